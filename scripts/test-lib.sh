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
user=65534
as_user=(setpriv --reuid="$user" --regid="$user" --clear-groups --)
cgroup_home=
scratch=

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
    export results skips logs scratch
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
    rm -rf "$scratch"
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

# Runs a lane of checks that must not disturb the tests beside it.
in_background() {
    renice -n 10 "$BASHPID" >/dev/null
    "$@"
}

# fuzzing SECONDS: of all targets together.
fuzzing() {
    if [ -n "$(scripts/list-sources.sh tests/fuzz '*.c')" ]; then
        check "fuzzing for $1 s" scripts/fuzz.sh "$1" "$logs/fuzz"
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

# suite LABEL BUILD PATTERN JOBS [COMMAND...]: runs the test programs of BUILD that are made of the
# sources tests/PATTERN (with braces, if there are several), each behind COMMAND.
suite() {
    local label=$1 build=$2 pattern=$3 jobs=$4 sources
    shift 4
    mapfile -t sources < <(patterns "tests/$pattern" | while read -r one; do
        compgen -G "$one" | grep -E '/test_.*\.(c|sh|py)$'
    done)
    if [ ! -x "$build/nacre" ]; then
        skip "$label: $build could not be built"
    elif [ ${#sources[@]} -eq 0 ]; then
        skip "$label: there is no tests/$pattern"
    else
        printf '%s\n' "${sources[@]%.c}" |
            xargs -P "$jobs" -I{} scripts/run-test.sh "$label" "$build" "$build/{}" "$@" || true
    fi
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
    sanitizer_build build-asan address,undefined
}

# Only the tests of threads run under it, so only they are built.
build_tsan() {
    local source targets=(--target nacre --target nacre-keeper --target nacre-text.so)
    for source in tests/integration/test_thread*.c; do
        targets+=(--target "${source%.c}")
    done
    sanitizer_build build-tsan thread --target test-programs "${targets[@]}"
}

# The checkout may be nobody else's to read, so the ordinary user gets a copy of what was built.
copy_for_user() {
    local build=$1 copy=$scratch/$1
    mkdir -p "$copy"
    (cd "$build" && find . \( -name '*.p' -o -name 'meson-*' -o -name test-logs \) -prune -o \
        \( -type f -perm -u+x -o -name '*.so*' \) -print0 |
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
