#!/bin/sh
# deb calls it with remove or upgrade, rpm with the number of versions that stay.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now xdpmon.service || true
	fi
	# What an agent with `pin: true` leaves for its successor (docs/agent.md): without the file system its programs are off the interfaces.
	if grep -qs ' /run/xdpmon/bpf bpf ' /proc/mounts; then
		umount /run/xdpmon/bpf
	fi
	;;
esac
