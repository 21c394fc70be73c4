# shellcheck shell=bash
# What test.sh and test-full.sh share: counting, the surroundings of suites, and what this machine
# allows. Sourced from the root of the tree.
#
# A result is a line "PASSED FAILED LABEL" in $results; the sum of them is the last line printed.

export LC_ALL=C.UTF-8
unset MAKEFLAGS MAKELEVEL MFLAGS XDG_CONFIG_HOME
for name in ${!NACRE_*}; do
    unset "$name"
done

logs=$PWD/build/test-logs
results=$logs/results
skips=$logs/skips
slow_tests='test_leaks test_mcp test_mcp_keepers test_cli test_completion test_hosts test_tool_output test_kill
    test_tool_bash test_tool_shells test_acp test_containment test_output test_owner test_lost test_crash
    test_hang test_sweep test_recall test_stream'
user=65534
as_user=(setpriv --reuid="$user" --regid="$user" --clear-groups --)
cgroup_home=
scratch=
memory=

is_root() {
    [ "$(id -u)" -eq 0 ]
}

begin() {
    rm -rf "$logs"
    mkdir -p "$logs"
    : >"$results"
    : >"$skips"
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/nacre-suite.XXXXXX")
    chmod 755 "$scratch"
    mkdir -m 1777 "$scratch/homes"
    places=$scratch
    export results skips logs scratch places
    started=$SECONDS
    trap clean_up EXIT
    trap 'exit 130' INT TERM
}

clean_up() {
    local pids
    pids=$(jobs -p)
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
    [ -z "$cgroup_home" ] || remove_cgroups "$cgroup_home"
    rm -rf "$scratch" "$memory"
}

skip() {
    echo "$1" >>"$skips"
}

# check NAME COMMAND...: one step that passes or fails as a whole; $ok says which.
check() {
    local name=$1 log begin=$SECONDS
    shift
    log=$logs/check-${name//[^a-zA-Z0-9]/-}.log
    ok=1
    "$@" >"$log" 2>&1 </dev/null || ok=0
    echo "$ok $((1 - ok)) check $name" >>"$results"
    if [ $ok -eq 1 ]; then
        printf '%-16s %-30s %-20s %5d s\n' check "$name" ok $((SECONDS - begin))
    else
        flock "$results" bash -c 'printf "%-16s %-30s FAILED\n" check "$0"; sed "s/^/    /" "$1"' \
            "$name" "$log"
    fi
}

# nice_to NICE COMMAND...: a lane of checks that must not disturb the tests beside it.
nice_to() {
    renice -n "$1" "$BASHPID" >/dev/null
    shift
    "$@"
}

# fuzzing SECONDS: of all targets together, which are built with ASan and UBSan.
fuzzing() {
    if [ -n "$(scripts/list-sources.sh tests/fuzz '*.c')" ]; then
        check "fuzzing for $1 s" scripts/fuzz.sh build-asan "$1" "$logs/fuzz"
    else
        skip "fuzzing: there is no target in tests/fuzz"
    fi
}

# a/{b,c}/d: a/b/d and a/c/d.
patterns() {
    case $1 in
    *{*) local word rest=${1#*\}}
        for word in $(sed 's/^[^{]*{\([^}]*\)}.*/\1/; s/,/ /g' <<<"$1"); do
            echo "${1%%\{*}$word$rest"
        done ;;
    *) echo "$1" ;;
    esac
}

# keepers_of BUILD: the build that its tests take keepers and helpers from. Those have one thread, so
# under TSan they are the release build's.
keepers_of() {
    echo "${1%-tsan}"
}

# plan LABEL BUILD PATTERN [COMMAND...]: prints what runs the test programs of BUILD that are made of
# the sources tests/PATTERN (with braces, if there are several), each behind COMMAND: one line each
# of words for env, in the surroundings of this call ($NACRE_TIER, $places; $long if the rounds are
# to be the long ones).
plan() {
    local label=$1 build=$2 pattern=$3 keepers sources source
    keepers=$(keepers_of "$build")
    shift 3
    mapfile -t sources < <(patterns "tests/$pattern" | while read -r one; do
        compgen -G "$one" | grep -E '/test_.*\.(c|sh|py)$'
    done)
    if [ ! -x "$keepers/nacre-keeper" ]; then
        skip "$label: $build could not be built"
    elif [ ${#sources[@]} -eq 0 ]; then
        skip "$label: there is no tests/$pattern"
    else
        for source in "${sources[@]%.c}"; do
            printf ' %q' ${NACRE_TIER+"NACRE_TIER=$NACRE_TIER"} "places=$places" \
                ${long:+"NACRE_TEST_LONG=1"} \
                scripts/run-test.sh "$label" "$keepers" "$build/$source" "$@"
            echo
        done
    fi
}

# Waits for what another lane makes.
await_file() {
    until [ -e "$1" ]; do
        sleep 0.1
    done
}

# How many tests have given a result.
count_results() {
    grep -vc '^[0-9]* [0-9]* check ' "$results" || true
}

# run_planned JOBS: the lines of its input, the tests that take longest first. A failed test is
# counted by its own result; what gives none is counted here.
run_planned() {
    local planned before missing
    planned=$(cat)
    [ -n "$planned" ] || return 0
    before=$(count_results)
    awk -v slow="$slow_tests" 'BEGIN { count = split(slow, names); }
        { rank = count + 1; for (i = count; i > 0; i--) if (index($0, names[i])) rank = i;
          print rank, $0 }' <<<"$planned" | sort -s -n -k 1,1 | cut -d' ' -f2- |
        xargs -P "$1" -L 1 env || true
    missing=$((before + $(grep -c . <<<"$planned") - $(count_results)))
    [ "$missing" -eq 0 ] || echo "0 $missing tests that gave no result" >>"$results"
}

# suite LABEL BUILD PATTERN JOBS [COMMAND...]: runs what plan() makes of it.
suite() {
    local label=$1 build=$2 pattern=$3 jobs=$4
    shift 4
    plan "$label" "$build" "$pattern" "$@" | run_planned "$jobs"
}

# The sum of all, and what was skipped. The exit status says whether all is well.
finish() {
    local passed failed
    report_failures
    report_skips
    echo "$((SECONDS - started)) seconds; the logs are in build/test-logs"
    read -r passed failed < <(awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }' "$results")
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

report_failures() {
    awk '$2 > 0 { $1 = $2 = ""; sub(/^ */, ""); print "failed: " $0 }' "$results"
}

report_skips() {
    find "$logs" -name '*.log' -path '*/suite/*' -exec \
        sed -n 's/^skipped: //p' {} + | sort | uniq -c |
        awk '{ n = $1; $1 = ""; print "skipped:" $0 (n > 1 ? " (" n " times)" : "") }'
    sed 's/^/skipped: /' "$skips"
}

# Lets tests run in memory from here on, where that has room and can hold programs: making and
# removing thousands of files is a quarter of their work on a disk.
use_memory() {
    local free
    free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)
    [ "${free:-0}" -ge 2000000 ] && memory=$(mktemp -d /dev/shm/nacre-suite.XXXXXX) || return 0
    printf '#!/bin/sh\n' >"$memory/probe"
    chmod 755 "$memory" "$memory/probe"
    ! "$memory/probe" 2>/dev/null || places=$memory
}

# -- What this machine allows --------------------------------------------------------------------

# The folder of this process in the cgroup v2 tree, if there is one.
own_cgroup() {
    local mount path
    mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    path=$(sed -n 's/^0:://p' /proc/self/cgroup)
    [ -n "$mount" ] && [ -n "$path" ] && [ -d "$mount$path" ] && echo "$mount${path%/}"
}

# Whether a process can be put into a new cgroup here, found out by doing it.
can_use_cgroups() {
    local above probe status=0
    above=$(own_cgroup) || return 1
    probe=$above/nacre-probe-$$
    mkdir "$probe" 2>/dev/null || return 1
    [ -e "$probe/cgroup.kill" ] && (echo "$BASHPID" >"$probe/cgroup.procs") 2>/dev/null || status=1
    rmdir "$probe"
    return $status
}

# A subtree of the cgroup tree that belongs to the ordinary user, as systemd would delegate it.
delegate_cgroup() {
    cgroup_home=$(own_cgroup)/nacre-suite-$$
    mkdir "$cgroup_home"
    chown "$user" "$cgroup_home" "$cgroup_home"/cgroup.{procs,threads,subtree_control}
}

remove_cgroups() {
    local tries
    for tries in 1 2 3 4 5; do
        [ -d "$1" ] || return 0
        find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || sleep "0.$tries"
    done
}

# -- Builds and their copies ---------------------------------------------------------------------

sanitizer_build() {
    local dir=$1 sanitizers=$2
    shift 2
    CC=clang scripts/build.sh "$dir" -Dtests=true -Doptimization=1 -Db_lundef=false \
        "-Db_sanitize=$sanitizers" "$@"
}

build_asan() {
    sanitizer_build build-asan address,undefined -Dfuzz=true
}

# Only the tests of threads run under it, so only they are built.
build_tsan() {
    local source targets=()
    for source in tests/integration/test_thread*.c; do
        targets+=(--target "${source%.c}")
    done
    sanitizer_build build-tsan thread "${targets[@]}"
}

# The checkout may be nobody else's to read, so the ordinary user gets a copy of what was built.
copy_for_user() {
    local build=$1 copy=$scratch/$1
    mkdir -p "$copy"
    (cd "$build" && find . \( -name '*.p' -o -name 'meson-*' -o -name test-logs \) -prune -o \
        \( -type f -perm -u+x -o -name '*.so*' -o -name '*.jsonl' \) -print0 |
        xargs -0 cp -a --parents -t "$copy")
    chmod -R a+rX "$copy"
    chown -R "$user:$user" "$copy"
    echo "$copy"
}

# check_tier TIER BUILD [COMMAND...]: a suite that quietly ran in a lower tier than it could would
# be a skipped one.
check_tier() {
    local want=$1 build=$2
    local -x NACRE_HOME=$scratch/homes/$RANDOM$RANDOM
    shift 2
    "$@" "$build/nacre" run --json -- true | tee /dev/stderr | grep -q "\"containment\": *\"$want\""
}

# Nothing that a suite started is alive: all of it carries the mark in its environment.
check_nothing_left() {
    local pid left=0
    for pid in $(grep -lsza "^NACRE_TEST_MARK=$scratch\$" /proc/[0-9]*/environ | cut -d/ -f3); do
        [ "$pid" != $$ ] && [ "$pid" != "$BASHPID" ] && kill -0 "$pid" 2>/dev/null || continue
        echo "left behind: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
        left=1
    done
    return $left
}
