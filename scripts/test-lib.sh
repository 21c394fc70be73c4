# shellcheck shell=bash
# What test.sh and test-full.sh share: counting, the surroundings of suites, and what this machine
# allows. Sourced from the root of the tree.
#
# A result is a line "PASSED FAILED LABEL" in $results; the sum of them is the last line printed.

export LC_ALL=C.UTF-8
unset MAKEFLAGS MAKELEVEL MFLAGS ${!NACRE_*}

logs=$PWD/build/test-logs
results=$logs/results
skips=$logs/skips
planned=$logs/planned
jobs=${TEST_JOBS:-$((3 * $(nproc)))}
user=65534
as_user="setpriv --reuid=$user --regid=$user --clear-groups --"
in_cgroup=
cgroup_home=
scratch=
memory=

is_root() {
    [ "$(id -u)" -eq 0 ]
}

begin() {
    rm -rf "$logs"
    mkdir -p "$logs"
    touch "$results" "$skips" "$planned"
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/nacre-suite.XXXXXX")
    chmod 755 "$scratch"
    mkdir -m 1777 "$scratch/homes"
    export TEST_LOGS=$logs TEST_MARK=$scratch TEST_PLACES=$scratch
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

# step NAME COMMAND...: passes or fails as a whole; $ok says which.
step() {
    local name=$1 log begin=$SECONDS
    shift
    ok=1
    log=$logs/step-${name//[^a-zA-Z0-9]/-}.log
    "$@" >"$log" 2>&1 </dev/null || ok=0
    echo "$ok $((1 - ok)) step $name" >>"$results"
    if [ $ok -eq 1 ]; then
        printf '%-16s %-30s %-20s %5d s\n' step "$name" ok $((SECONDS - begin))
    else
        flock scripts/run-test.sh bash -c 'sed "s/^/    /" "$1"; printf "%-16s %-30s FAILED\n" step "$0"' \
            "$name" "$log"
    fi
}

# nice_to NICE COMMAND...: a lane that must not disturb the tests beside it.
nice_to() {
    renice -n "$1" "$BASHPID" >/dev/null
    shift
    "$@"
}

# plan LABEL BUILD SUITES [NAME=VALUE...]: prints a line for each test that meson knows in SUITES (with
# commas) of BUILD: its priority, and the words for env that run it so. $scale stretches the limits.
plan() {
    if [ -e "$scratch/$2.failed" ]; then
        skip "$1: $2 could not be built"
        return
    fi
    python3 - "${scale:-1}" "$@" <<-'EOF'
	import json, shlex, sys
	scale, label, build, suites, *words = sys.argv[1:]
	limited, wanted = len(words), {"nacre:" + suite for suite in suites.split(",")}
	for test in json.load(open(build + "/meson-info/intro-tests.json")):
	    if wanted & set(test["suite"]):
	        limit = str(test["timeout"] * int(scale))
	        words[limited:] = ["TEST_LABEL=" + label, "timeout", "-k", "10", limit, *test["cmd"]]
	        print(test["priority"], shlex.join(words))
	EOF
}

# Waits for a folder that another lane builds.
await_build() {
    until [ -e "$scratch/$1.done" ]; do
        sleep 0.1
    done
}

# run_planned JOBS: the lines of its input, those of high priority first.
run_planned() {
    local queue
    queue=$(sort -s -rn -k 1,1 | cut -d' ' -f2-)
    [ -z "$queue" ] || echo "$queue" >>"$planned"
    xargs -r -P "$1" -L 1 env <<<"$queue" || true
}

# The sum of all, and what was skipped. What was planned and gave no result has failed. The exit
# status says whether all is well.
finish() {
    local passed failed missing
    missing=$(($(wc -l <"$planned") - $(grep -vc '^[0-9]* [0-9]* step ' "$results" || true)))
    [ $missing -eq 0 ] || echo "0 $missing tests that gave no result" >>"$results"
    awk '$2 > 0 { $1 = $2 = ""; sub(/^ */, ""); print "failed: " $0 }' "$results"
    report_skips
    echo "$((SECONDS - started)) seconds; the logs are in build/test-logs"
    read -r passed failed < <(awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }' "$results")
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
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
    [ "${free:-0}" -ge 2000000 ] && memory=$(mktemp -d /dev/shm/nacre.XXXXXX) || return 0
    printf '#!/bin/sh\n' >"$memory/probe"
    chmod 755 "$memory" "$memory/probe"
    ! "$memory/probe" 2>/dev/null || TEST_PLACES=$memory
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
    in_cgroup="$PWD/scripts/in-cgroup.sh $cgroup_home"
}

remove_cgroups() {
    local tries
    for tries in 1 2 3 4 5; do
        [ -d "$1" ] || return 0
        find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || sleep "0.$tries"
    done
}

# -- Builds and their copies ---------------------------------------------------------------------

build_release() {
    scripts/build.sh build -Dtests=true
}

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

# make_build FOLDER NAME FUNCTION: of a folder that could not be built nothing is planned.
make_build() {
    step "build: $2" "$3"
    [ $ok -eq 1 ] || touch "$scratch/$1.failed"
    touch "$scratch/$1.done"
}

# The checkout may be nobody else's to read, so the ordinary user gets a copy of what was built.
copy_for_user() {
    local build=$1 copy=$scratch/$1
    mkdir -p "$copy"
    (cd "$build" && find . \( -name '*.p' -o -name 'meson-*' -o -name test-logs \) -prune -o \
        \( -type f -perm -u+x -o -name '*.so*' -o -name '*.jsonl' -o -name '*.py' \) -print0 |
        xargs -0 cp -a --parents -t "$copy")
    chmod -R a+rX "$copy"
    chown -R "$user:$user" "$copy"
    echo "$copy"
}

# check_tier TIER BUILD [WORDS]: a suite that quietly ran in a lower tier than it could would
# be a skipped one.
check_tier() {
    local want=$1 build=$2
    local -x NACRE_HOME=$scratch/homes/$RANDOM$RANDOM
    # shellcheck disable=SC2086
    ${3-} "$build/nacre" run --json -- true | tee /dev/stderr | grep -q "\"containment\": *\"$want\""
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
