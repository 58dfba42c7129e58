#!/bin/sh
# The user that agent and coordinator run as, and configurations that only it and root read. No service is started: its configuration is to be read first.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers /usr/lib/sysusers.d/xdpmon.conf
elif ! id xdpmon >/dev/null 2>&1; then
	useradd --system --home-dir /var/lib/xdpmon --no-create-home --shell /usr/sbin/nologin xdpmon
fi
chown xdpmon:xdpmon /etc/xdpmon
chmod 0700 /etc/xdpmon
for file in agent coordinator; do
	[ ! -e /etc/xdpmon/$file.yaml ] || {
		chown xdpmon:xdpmon /etc/xdpmon/$file.yaml
		chmod 0600 /etc/xdpmon/$file.yaml
	}
done
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# After an upgrade the new program takes over; a service that is not running stays so.
	systemctl try-restart xdpmon.service xdpmon-coordinator.service || true
fi
