#!/bin/sh
# Before the files are removed, not when they are replaced by another version: then the operator restarts the service.
# dpkg says "remove", rpm says 0 versions will be left.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now tailrace.service || true
	fi
	;;
esac
