#!/bin/sh
# deb calls it with remove or upgrade, rpm with the number of versions that stay.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now xdpmon.service || true
	fi
	;;
esac
