#!/bin/sh
# The user that the coordinator runs as, and a configuration that only it and root read. No service is started: its configuration is to be read first.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers /usr/lib/sysusers.d/xdpmon-coordinator.conf
elif ! id xdpmon-coordinator >/dev/null 2>&1; then
	useradd --system --home-dir /var/lib/xdpmon-coordinator --no-create-home --shell /usr/sbin/nologin xdpmon-coordinator
fi
chown xdpmon-coordinator:xdpmon-coordinator /etc/xdpmon-coordinator
chmod 0700 /etc/xdpmon-coordinator
[ ! -e /etc/xdpmon-coordinator/coordinator.yaml ] || {
	chown xdpmon-coordinator:xdpmon-coordinator /etc/xdpmon-coordinator/coordinator.yaml
	chmod 0600 /etc/xdpmon-coordinator/coordinator.yaml
}
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# After an upgrade the new program takes over; a service that is not running stays so.
	systemctl try-restart xdpmon-coordinator.service || true
fi
if [ "$1" = configure ] && [ -z "$2" ] || [ "$1" = 1 ]; then # the first time
	echo 'xdpmon-coordinator: nothing was started. It listens on this host alone until there are keys (xdpmon-coordinator keys init); edit'
	echo 'xdpmon-coordinator: /etc/xdpmon-coordinator/coordinator.yaml and run systemctl enable --now xdpmon-coordinator'
fi
