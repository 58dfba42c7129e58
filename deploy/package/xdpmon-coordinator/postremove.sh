#!/bin/sh
# Seeds, windows and keys are removed by a purge only.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/xdpmon-coordinator /var/log/xdpmon-coordinator /etc/xdpmon-coordinator
fi
