#!/bin/sh
# What was measured goes with a purge only.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/xdpmon /var/log/xdpmon /var/lib/xdpmon-coordinator /var/log/xdpmon-coordinator /etc/xdpmon
fi
