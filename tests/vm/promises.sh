#!/usr/bin/env bash
# What the README promises, tried as people use it: with the command line, as whoever runs this, where he
# stands. Prints a line for each: "1 0 PROMISE:CASE" or "0 1 PROMISE:CASE", and what went wrong above it.
# usage: promises.sh (NACRE, TIER, KEPT, SCOPE, MEMORY, SANDBOX: see situation.sh)
set -u

# -- What is tried --------------------------------------------------------------------------------

tier_in_force() {
    expect "$("$NACRE" run --json -- true 2>&1)" "\"containment\": *\"$TIER\""
}

scope_told() {
    expect "$doctor" "  $SCOPE  *scope "
}

memory_holder_told() {
    expect "$doctor" "  yes  *memory  *$MEMORY"
}

outlives_daemon() {
    quietly "$NACRE" run -- "(setsid $sleep & ); nohup $sleep >/dev/null 2>&1 & (env -i setsid $sleep &); true"
    gone
}

outlives_timeout() {
    quietly "$NACRE" run --timeout 2 -- "echo BEFORE; setsid $sleep & $sleep"
    status_is 124 && expect "$out" BEFORE && gone
}

outlives_kill() {
    local id
    id=$("$NACRE" start -- "trap '' TERM; (env -i setsid $sleep &); nohup $sleep & while :; do $sleep; done") || return
    await_there 2 || return
    quietly "$NACRE" kill "$id" --grace 1
    status_is 0 && expect "$out" ", 0 survivors" && gone
}

# Only a cgroup holds what wiped its environment, after the death of its keeper.
outlives_keeper() {
    local id spared=1
    [ "$KEPT" != cgroup ] || spared=0
    id=$("$NACRE" start -- "echo \$PPID >keeper; (env -i setsid $sleep &); (setsid $sleep &); $sleep") || return
    await_there 3 || return
    expect "$("$NACRE" show "$id" --json)" "\"containment\": *\"$KEPT\"" || return
    kill -KILL "$(cat keeper)" || return
    for _ in $(seq 100); do
        quietly "$NACRE" list --all
        [ "$(left)" -gt $spared ] || break
        sleep 0.1
    done
    expect "$out" lost || return
    [ "$(left)" -le $spared ] || { echo "$(left) are left" && return 1; }
}

lost_nothing() {
    "$NACRE" run -- 'seq 100000; seq 200000 >&2' >out 2>err
    cmp out <(seq 100000) && cmp err <(seq 200000) || return
    "$NACRE" output "$("$NACRE" list --all --quiet --last 1)" --stream out | cmp - <(seq 100000)
}

hangs_at_no_pipe() {
    local begin=$SECONDS
    quietly "$NACRE" run -- "$sleep & echo up"
    expect "$out" up && [ $((SECONDS - begin)) -lt 60 ] && gone
}

hangs_at_no_input() {
    quietly "$NACRE" run --timeout 60 -- 'cat; read x || echo nothing; tty'
    expect "$out" nothing && expect "$out" "not a tty"
}

lies_not() {
    quietly "$NACRE" run -- 'exit 3'
    status_is 3 || return
    quietly "$NACRE" run -- 'kill -SEGV $$'
    status_is 139 || return
    quietly "$NACRE" run -- /nonexistent/program argument
    status_is 127
}

bloats_not() {
    NACRE_QUOTA=1MiB NACRE_HOME=$PWD/small "$NACRE" run -- 'yes | head -c 30000000' >/dev/null
    [ "$(du -sk small | cut -f1)" -lt 8192 ]
}

limits_memory() {
    quietly "$NACRE" run --limit memory=64M -- 'exec python3 -c "import time; b = bytearray(200 << 20); time.sleep(60)"'
    status_is 137 && expect "$out" "killed by the memory limit 64 MiB"
}

limits_processes() {
    quietly "$NACRE" run --limit processes=20 -- "exec python3 -c '$forks'"
    expect "$out" "process limit 20"
}

# Where there is none it is said, and nothing is started.
sandbox_holds() {
    local outside=$HOME/nacre-outside-$BASHPID
    mkdir -p work && cd work || return
    quietly "$NACRE" run --sandbox workspace-write -- "echo in >file; echo out >$outside; true"
    cd .. || return
    [ ! -e "$outside" ] || { rm "$outside" && return 1; }
    if [ "$SANDBOX" = yes ]; then
        expect "$out" "Sandbox: refused to write" && [ -e work/file ]
    else
        status_is 1 && expect "$out" "sandbox" && [ ! -e work/file ]
    fi
}

terminal_is_one() {
    local id ok=0
    id=$("$NACRE" start --tty --size 100x30 -- "stty size; read line; echo \"got \$line\"; $sleep") || return
    await "$id" "30 100" && "$NACRE" input "$id" $'hello\r' && await "$id" "got hello" || ok=1
    quietly "$NACRE" kill "$id" --grace 1
    [ $ok -eq 0 ] && gone
}

forks='
import os, time
for _ in range(60):
    try:
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
    except OSError:
        pass
time.sleep(1)'

# -- Means ----------------------------------------------------------------------------------------

# The output of a command, and its status.
quietly() {
    out=$("$@" 2>&1 </dev/null)
    status=$?
}

expect() {
    grep -q -e "$2" <<<"$1" || { echo "\"$2\" is not in: $1" && return 1; }
}

status_is() {
    [ $status -eq "$1" ] || { echo "the status is $status, wanted $1: $out" && return 1; }
}

await() {
    for _ in $(seq 300); do
        quietly "$NACRE" screen "$1"
        ! grep -q "$2" <<<"$out" || return 0
        sleep 0.1
    done
    echo "\"$2\" is not on the screen: $out"
    return 1
}

await_there() {
    for _ in $(seq 300); do
        [ "$(left)" -lt "$1" ] || return 0
        sleep 0.1
    done
    echo "of $1 processes $(left) are there: $out"
    return 1
}

left() {
    pgrep -cf "^$sleep"
}

gone() {
    local left
    left=$(pgrep -af "^$sleep") || return 0
    echo "left behind: $left"
    return 1
}

promise() {
    local words
    sleep="sleep 30$((10000 + RANDOM))$BASHPID"
    if words=$($2 2>&1); then
        echo "1 0 $1:$2"
    else
        echo "$words"
        echo "0 1 $1:$2"
    fi
    pkill -KILL -f "^$sleep"
}

place=$(mktemp -d /var/tmp/nacre-promises.XXXXXX)
cd "$place" || exit
export NACRE_HOME=$place/home
# In a login that has just begun the bus has to start first, which takes long on a busy machine.
"$NACRE" doctor >/dev/null 2>&1
doctor=$("$NACRE" doctor 2>&1)
echo "$doctor"
promise tier tier_in_force
promise tier scope_told
promise limits memory_holder_told
for function in outlives_daemon outlives_timeout outlives_kill outlives_keeper lost_nothing \
    hangs_at_no_pipe hangs_at_no_input lies_not bloats_not limits_memory limits_processes \
    sandbox_holds terminal_is_one; do
    promise "${function%%_*}" "$function"
done
cd / && rm -rf "$place"
