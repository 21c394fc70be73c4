#!/usr/bin/env bash
# What is done in one situation, by whoever stands in it: its promises, and its part of the suite.
# usage: situation.sh LABEL TIER KEPT SCOPE MEMORY SANDBOX [TEST...]
# What is expected there is a part of its words: a better tier than is said fails as a worse one does.
#   TIER     the containment that is in force
#   KEPT     that of a shell which is to outlive its session: without lingering, it gets no scope
#   SCOPE    yes or no: whether the user's systemd gives a scope
#   MEMORY   the first words of what holds the limit of memory, as `nacre doctor` says it
#   SANDBOX  yes or no: whether there is one
set -u
. /opt/nacre/settings
label=$1
export TIER=$2 KEPT=$3 SCOPE=$4 MEMORY=$5 SANDBOX=$6 NACRE=/opt/nacre/build/nacre LC_ALL=C.UTF-8
shift 6

logs=/var/tmp/nacre-logs/$label
mkdir -p "$logs/suite"
grep . /proc/self/cgroup /proc/sys/kernel/yama/ptrace_scope >"$logs/where" 2>&1
id >>"$logs/where"
/opt/nacre/tests/vm/promises.sh >"$logs/promises" 2>&1 </dev/null
grep '^[01] [01] ' "$logs/promises" >>"$logs/results"

export TEST_LABEL=$label TEST_LOGS=$logs NACRE_TEST_SCALE=$scale
for test in "$@"; do
    timeout -k 10 $((120 * scale)) /opt/nacre/scripts/run-test.sh /opt/nacre/build \
        "tests/integration/$test" </dev/null >>"$logs/tests" 2>&1
done
