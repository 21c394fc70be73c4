# What the tests of the command line are made of, for bash scripts that source it: a case is a function
# case_NAME, and a process of its own with a time limit and a home of its own; afterwards nothing of
# that home may be alive. The script ends with: run_cases "$@"
set -u

self=$(realpath "$0")
nacre=${NACRE:-${NACRE_TEST_BUILD:-build}/nacre}
limit=${CASE_LIMIT:-60}

# -- What cases are made of ------------------------------------------------------------------------

# Ends the case, and says in which of its lines.
fail() {
    local i=0
    while [[ ${FUNCNAME[i]} != case_* ]]; do
        i=$((i + 1))
    done
    echo "    line ${BASH_LINENO[i - 1]}: $1" >&2
    exit 1
}

# Ends the case, which cannot hold here.
skip() {
    echo "skipped: ${FUNCNAME[1]#case_}: $1"
    exit 77
}

# What the group tier does not hold is left out of the commands.
own_session=setsid
[ "${NACRE_TIER-}" != group ] || own_session=

# nacre ARGUMENT...: $out, $err and $status are what came of it.
nacre() {
    status=0
    "$nacre" "$@" >"$work/out" 2>"$work/err" || status=$?
    out=$(<"$work/out")
    err=$(<"$work/err")
}

equal() { [ "$1" = "$2" ] || fail "got '$1', expected '$2'"; }
holds() { [[ $1 == *"$2"* ]] || fail "'$2' is not in '$1'"; }
lacks() { [[ $1 != *"$2"* ]] || fail "'$2' is in '$1'"; }
match() { [[ $1 =~ $2 ]] || fail "'$1' does not match '$2'"; }
lines() { [ "$(wc -l <"$work/out")" -eq "$1" ] || fail "expected $1 lines, got '$out'"; }

# until COMMAND...: waits a few seconds for it to succeed.
until_true() {
    local i
    for ((i = 0; i < 250; i++)); do
        "$@" && return
        sleep 0.02
    done
    fail "never came true: $*"
}

# Alive means: a process that is not a zombie, with this marker among its arguments.
alive() {
    local pid state
    for pid in $(pgrep -f -- "$1"); do
        [ "$pid" = $$ ] || [ "$pid" = "$BASHPID" ] && continue
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
        [ -n "$state" ] && [ "$state" != Z ] && return 0
    done
    return 1
}
dead() { ! alive "$1"; }
printed() { grep -qs -- "$1" "$2"; }
has_output() { "$nacre" output "$1" | grep -q -- "$2"; }

# A duration that no other process has, to be found by.
unique_sleep() { echo "$((100000 + RANDOM)).$$$RANDOM"; }

json() { python3 -IS -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' \
    "$work/out" "$1"; }

milliseconds() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

usage() {
    local expected=$1
    shift
    nacre "$@"
    equal "$status" 2
    equal "$out" ""
    holds "$err" "$expected"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than one sentence: $err"
    match "$err" '^nacre: '
}

# start_run ARGUMENT...: nacre run in the background with its signals as a terminal
# leaves them, which bash's `&` does not.
start_run() {
    rm -f "$work/out"
    env --default-signal=INT,HUP,TERM,PIPE "$nacre" run "$@" >"$work/out" 2>"$work/err" &
    run_pid=$!
}

# A real terminal. Its socket goes with the case.
tm() { TMUX_TMPDIR=$TMPDIR tmux -L t -f /dev/null "$@"; }
on_screen() { [[ $(tm capture-pane -p) == *"$1"* ]]; }
off_screen() { ! on_screen "$1"; }

# -- Running them ----------------------------------------------------------------------------------

# The processes that belong to a home: by their environment, or by a file of it that is open.
processes_of() {
    local pid state
    {
        grep -lsza "^NACRE_HOME=$1\$" /proc/[0-9]*/environ
        find /proc/[0-9]*/fd -maxdepth 1 -lname "$1/*" 2>/dev/null
    } | cut -d/ -f3 | sort -u | while read -r pid; do
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
        [ -z "$state" ] || [ "$state" = Z ] || echo "$pid"
    done
}

# Says what is left of a home, if anything still is after a moment, and ends it.
check_nothing_left() {
    local i pids pid
    for ((i = 0; i < 50; i++)); do
        pids=$(processes_of "$1")
        [ -n "$pids" ] || return 0
        sleep 0.05
    done
    for pid in $pids; do
        echo "    left behind: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
        kill -KILL "$pid" 2>/dev/null
    done
    return 1
}

run_case() {
    local name=$1 place ok=1 status=0 begin=$SECONDS
    place=$(mktemp -d)
    mkdir "$place/work" "$place/tmp"
    env -u NACRE_ID NACRE_HOME="$place/home" TMPDIR="$place/tmp" NACRE="$nacre" work="$place/work" \
        timeout -k 5 "$limit" bash "$self" --case "$name" </dev/null || status=$?
    [ $status -ne 124 ] || echo "    not done after $limit s"
    [ $status -eq 0 ] || [ $status -eq 77 ] || ok=0
    check_nothing_left "$place/home" || ok=0
    rm -rf "$place"
    if [ $ok -eq 1 ] && [ $status -eq 77 ]; then
        return
    elif [ $ok -eq 1 ]; then
        passed=$((passed + 1))
        echo "ok      $name ($((SECONDS - begin)) s)"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
    fi
}

run_all() {
    passed=0 failed=0
    nacre=$(realpath -e "$nacre") || exit 1
    local names=("$@") name
    [ $# -gt 0 ] || mapfile -t names < <(sed -n 's/^case_\([a-z_]*\)() {$/\1/p' "$self")
    for name in "${names[@]}"; do
        run_case "$name"
    done
    echo "$passed passed, $failed failed"
    [ $failed -eq 0 ]
}

run_cases() {
    if [ "${1-}" = --case ]; then
        "case_$2"
    else
        run_all "$@" 2>&1
    fi
}
