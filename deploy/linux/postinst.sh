#!/bin/sh
# After the files are there: makes the user and tells systemd. Nothing is started: the configuration is an example.
set -e
if ! getent passwd tailrace >/dev/null; then
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers tailrace.conf
	else
		echo 'tailrace: no systemd-sysusers here: make the user tailrace before the service is started' >&2
	fi
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
