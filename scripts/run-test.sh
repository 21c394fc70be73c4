#!/usr/bin/env bash
# Runs one test in a place of its own, and counts its cases: the command of every test() of meson.
# usage: run-test.sh [--whole] BUILD PROGRAM [ARGUMENT...]
# PROGRAM is a path below BUILD, as is what it starts; with --whole it is a path of its own, has no
# cases, and its exit status is the result.
#
# The matrix (test-lib.sh) says in which surroundings:
#   TEST_LABEL    whose result it is, in $TEST_LOGS; without one, what the program printed is shown
#   TEST_MARK     what all that it starts has in its environment
#   TEST_PLACES   the folder that places are made in
#   TEST_COPY     the copy of BUILD to use instead, which belongs to the user that it runs as
#   TEST_AS       the words that it runs behind
set -eu

whole=0
[ "$1" != --whole ] || { whole=1 && shift; }
copy=${TEST_COPY:-$1}
program=$2
[[ $program = /* ]] || program=$copy/$program
shift 2
name=${program##*/}
read -ra as <<<"${TEST_AS-}"

place=$(mktemp -d "${TEST_PLACES:-${TMPDIR:-/tmp}}/nacre.XXXXXX")
late=
trap 'rm -rf "$place"' EXIT
trap 'late=1' TERM # meson and timeout(1) send it to the program too

# Who runs the tests is not in them: home, files and environment are new each time.
surroundings() {
    local variable long=${NACRE_TEST_LONG:-0} keepers=${copy%-tsan}
    for variable in ${!NACRE_*} ${!XDG_*} ${!MAKE*} MFLAGS LD_LIBRARY_PATH MALLOC_PERTURB_; do
        [[ $variable =~ ^NACRE_(TIER$|TEST_) ]] || unset "$variable"
    done
    # Keepers and helpers have one thread, so a build with TSan takes them from the one beside it.
    [ -x "$keepers/nacre-keeper" ] || keepers=$copy
    export HOME=$place/home TMPDIR=$place/tmp NACRE_HOME=$place/nacre LC_ALL=C.UTF-8
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    export NACRE_KEEPER=$keepers/nacre-keeper NACRE_TEST_PROGRAMS=$keepers/tests/programs
    export NACRE_TEST_MARK=${TEST_MARK:-$place} NACRE_TEST_BUILD=$keepers
    export CMOCKA_MESSAGE_OUTPUT=stdout UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
    # What was freed and is kept for a while is copied with every fork: 16 MiB of it are enough.
    export ASAN_OPTIONS=detect_stack_use_after_return=$long:abort_on_error=0:quarantine_size_mb=16
    # Scripts start the program a thousand times; what it does not free goes with it.
    [[ $name != *.sh ]] || ASAN_OPTIONS+=:detect_leaks=$long
    # A test may become another user. A copy belongs to the one that runs it.
    mkdir -m 711 "$HOME" "$TMPDIR"
    chmod 755 "$place"
    [ -z "${TEST_COPY-}" ] || chown -R "$(stat -c %u:%g "$program")" "$place"
    cd "$place"
}

# The counts that the program printed last, or the sum of cmocka's.
counts() {
    [ $whole -eq 0 ] || { echo "$((status == 0)) $((status != 0))" && return; }
    sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log" | grep . ||
        awk '/^\[  PASSED  \] [0-9]+ test/ { p += $4; seen = 1 }
             /^\[  FAILED  \] [0-9]+ test/ { f += $4; seen = 1 }
             END { if (seen) print p + 0, f + 0 }' "$log"
}

# judge CASE...: a test that ends badly, or without a result, has failed.
judge() {
    read -r passed failed < <(counts) || passed=0 failed=-1
    note=
    if [ -n "$late" ]; then
        note="(not done in its time)"
    elif [ "$failed" -lt 0 ]; then
        note="(no result, status $status)"
    elif [ $status -ne 0 ] && [ "$failed" -eq 0 ]; then
        note="(ended with status $status)"
    elif [ $# -gt 0 ] && [ $((passed + failed)) -eq 0 ] && ! grep -q '^skipped: ' "$log"; then
        note="(there is no such case)"
    fi
    [ -z "$note" ] || failed=1
}

report() {
    local us=$((${EPOCHREALTIME/./} - begin))
    [ -n "${TEST_LABEL-}" ] && [ "$failed" -eq 0 ] || sed 's/^/    /' "$log"
    printf '%-16s %-30s %4d passed, %d failed %s %3d.%d s\n' "${TEST_LABEL-}" "$name" "$passed" \
        "$failed" "$note" $((us / 1000000)) $((us / 100000 % 10))
    [ -z "${TEST_LABEL-}" ] || echo "$passed $failed $TEST_LABEL $name" >>"$TEST_LOGS/results"
}

log=$place/log
[ -z "${TEST_LABEL-}" ] || log=$TEST_LOGS/suite/$TEST_LABEL/$name.log
mkdir -p "${log%/*}"
begin=${EPOCHREALTIME/./}
status=0
(surroundings && exec ${as[@]+"${as[@]}"} "$program" "$@") >"$log" 2>&1 </dev/null || status=$?
judge "$@"
exec 9<"$0"
flock 9
report
[ "$failed" -eq 0 ]
