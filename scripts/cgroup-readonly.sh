#!/bin/sh
# Runs a command where the cgroup v2 tree is mounted read-only. usage: cgroup-readonly.sh COMMAND...
set -eu
if [ "${CGROUP_READONLY:-}" != inside ]; then
    CGROUP_READONLY=inside exec unshare --mount "$0" "$@"
fi
unset CGROUP_READONLY
awk '$3 == "cgroup2" { print $2 }' /proc/mounts | while read -r mount; do
    mount -o remount,bind,ro "$mount"
done
exec "$@"
