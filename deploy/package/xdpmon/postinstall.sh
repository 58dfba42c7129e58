#!/bin/sh
# The user that the agent runs as, and a configuration that only it and root read. No service is started: its configuration is to be read first.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers /usr/lib/sysusers.d/xdpmon.conf
elif ! id xdpmon >/dev/null 2>&1; then
	useradd --system --home-dir /var/lib/xdpmon --no-create-home --shell /usr/sbin/nologin xdpmon
fi
chown xdpmon:xdpmon /etc/xdpmon
chmod 0700 /etc/xdpmon
[ ! -e /etc/xdpmon/agent.yaml ] || {
	chown xdpmon:xdpmon /etc/xdpmon/agent.yaml
	chmod 0600 /etc/xdpmon/agent.yaml
}
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# After an upgrade the new program takes over; a service that is not running stays so.
	systemctl try-restart xdpmon.service || true
fi
if [ "$1" = configure ] && [ -z "$2" ] || [ "$1" = 1 ]; then # the first time
	echo 'xdpmon: nothing was started. First: sudo xdpmon demo --listen :9400 (a network of its own, and a page), sudo xdpmon check IFACE, or edit'
	echo 'xdpmon: /etc/xdpmon/agent.yaml and run systemctl enable --now xdpmon'
fi
