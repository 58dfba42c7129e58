#!/bin/sh
# What was measured is removed by a purge only, and with it the user that owned it: nothing else is that user's. rpm has no purge; it leaves both.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/xdpmon /var/log/xdpmon /run/xdpmon /etc/xdpmon
	if id xdpmon >/dev/null 2>&1; then
		userdel xdpmon >/dev/null || true
	fi
	if getent group xdpmon >/dev/null 2>&1; then # userdel removes it where it was the user's own
		groupdel xdpmon >/dev/null || true
	fi
fi
