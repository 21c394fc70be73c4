#!/usr/bin/env bash
# Runs one test program and counts its cases. Called by suite() of test-lib.sh.
# usage: run-test.sh LABEL BUILD PROGRAM [COMMAND...]; what PROGRAM starts is taken from BUILD
set -eu

label=$1
build=$(realpath "$2")
program=$(realpath "$3")
shift 3
name=${program##*/}
log=$logs/suite/$label/$name.log
limit=${TEST_LIMIT:-240}
long=${NACRE_TEST_LONG:-0}

# The counts that the program printed last, or the sum of cmocka's.
counts() {
    sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$1" | grep . && return
    awk '/^\[  PASSED  \] [0-9]+ test/ { p += $4; seen = 1 }
         /^\[  FAILED  \] [0-9]+ test/ { f += $4; seen = 1 }
         END { if (seen) print p + 0, f + 0 }' "$1"
}

# The program runs as its owner: a copy for the ordinary user belongs to that user.
surroundings() {
    place=$(mktemp -d "$places/run.XXXXXX")
    trap 'rm -rf "$place"' EXIT
    export HOME=$place/home TMPDIR=$place/tmp NACRE_HOME=$place/nacre
    mkdir -m 700 "$HOME" "$TMPDIR"
    chmod 755 "$place"
    [ "$(id -u)" -ne 0 ] || chown -R "$(stat -c %u:%g "$program")" "$place"
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    export NACRE_KEEPER=$build/nacre-keeper NACRE_TEST_PROGRAMS=$build/tests/programs
    export NACRE_TEST_MARK=$scratch NACRE_TEST_BUILD=$build CMOCKA_MESSAGE_OUTPUT=stdout
    # What was freed and is kept for a while is copied with every fork: 16 MiB of it are enough.
    export ASAN_OPTIONS=detect_stack_use_after_return=$long:abort_on_error=0:quarantine_size_mb=16
    # Scripts start the program a thousand times; what it does not free goes with it.
    case $name in
    *.sh) ASAN_OPTIONS+=:detect_leaks=$long ;;
    esac
    export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
}

report() {
    local passed=$1 failed=$2 note=$3
    printf '%-16s %-30s %4d passed, %d failed %s %5.1f s\n' \
        "$label" "$name" "$passed" "$failed" "$note" "$(elapsed)"
    [ "$failed" -eq 0 ] || sed 's/^/    /' "$log"
    echo "$passed $failed $label $name" >>"$results"
}

elapsed() {
    local us=$((${EPOCHREALTIME/./} - begin))
    echo "$((us / 1000000)).$((us / 100000 % 10))"
}

mkdir -p "${log%/*}"
surroundings
begin=${EPOCHREALTIME/./}
status=0
cd "$place"
timeout -k 10 "$limit" "$@" "$program" >"$log" 2>&1 </dev/null || status=$?
read -r passed failed < <(counts "$log") || passed=
note=
if [ -z "$passed" ] || { [ $status -ne 0 ] && [ "$failed" -eq 0 ]; }; then
    note="(ended with status $status)"
    [ -n "$passed" ] || note="(no result, status $status)"
    [ $status -ne 124 ] && [ $status -ne 137 ] || note="(not done after $limit s)"
    passed=${passed:-0}
    failed=1
fi
exec 9<"$results"
flock 9
report "$passed" "$failed" "$note"
