#!/bin/sh
# Seeds, windows and keys are removed by a purge only, and with it the user that owned it: nothing else is that user's. rpm has no purge; it leaves both.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/xdpmon-coordinator /var/log/xdpmon-coordinator /run/xdpmon-coordinator /etc/xdpmon-coordinator
	if id xdpmon-coordinator >/dev/null 2>&1; then
		userdel xdpmon-coordinator >/dev/null || true
	fi
	if getent group xdpmon-coordinator >/dev/null 2>&1; then # userdel removes it where it was the user's own
		groupdel xdpmon-coordinator >/dev/null || true
	fi
fi
