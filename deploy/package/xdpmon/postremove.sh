#!/bin/sh
# What was measured is removed by a purge only.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/xdpmon /var/log/xdpmon /etc/xdpmon
fi
