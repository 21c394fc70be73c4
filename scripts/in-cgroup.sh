#!/bin/sh
# Runs a command in a cgroup. usage: in-cgroup.sh DIR COMMAND...
set -eu
echo $$ >"$1/cgroup.procs"
shift
exec "$@"
