#!/usr/bin/env bash
# The command line, driven as people and scripts drive it.
# usage: [NACRE=build/nacre] test_cli.sh [CASE...]
# shellcheck source=tests/features/cases.sh
source "$(dirname "$(realpath "$0")")/cases.sh"

# -- Saying what it is, and refusing what makes no sense -------------------------------------------

case_help() {
    local verb
    nacre --help
    equal "$status" 0
    for verb in run start list output show wait input kill adopt rm gc sessions config doctor \
        sandbox policy; do
        holds "$out" "  $verb "
    done
    for verb in run start list output show wait input kill adopt rm gc sessions config doctor \
        sandbox policy; do
        nacre help $verb
        equal "$status" 0
        holds "$out" "usage: nacre $verb"
        local help=$out
        nacre $verb --help
        equal "$status" 0
        equal "$out" "$help"
        equal "$err" ""
    done
    nacre --version
    equal "$status" 0
    match "$out" '^nacre [0-9]+\.[0-9]+\.[0-9]+$'
    equal "$(ls -A "$NACRE_HOME" 2>/dev/null)" ""
}

case_usage() {
    usage 'did you mean "list"?' lsit
    usage 'did you mean "output"?' outptu
    usage 'unknown verb "frobnicate"' frobnicate
    usage 'unknown verb "frobnicate"' help frobnicate
    usage 'unknown option "--frob"' --frob
    usage 'did you mean --timeout?' run --tiemout 5 -- true
    usage 'unknown option "-x"' list -x
    usage 'missing' run
    usage 'missing' run --
    usage 'missing' output
    usage 'which shells?' kill
    usage 'which shells?' rm
    usage 'missing' wait
    usage '"x"' list x
    usage '--timeout needs a value' run --timeout
    usage '--all takes no value' list --all=yes
    usage '--env' run --env NOVALUE -- true
    usage '--env' start --env =x -- true
    usage '--summary' run --summary --json -- true
    usage '--stream' output abcd --stream both
    usage '--signal' kill abcd --signal NOSUCH
    usage '--signal' kill abcd --signal 0
    usage '--tail' output abcd --tail 5 --offset 5
    usage 'TEXT' input abcd
    usage 'did you mean "timeout_max"?' config timout_max
    usage '"b"' config a b
    usage 'missing' adopt
    usage '"x"' sessions x
    usage '"x"' gc x
    usage '--replace needs --name' start --replace -- true
    usage '--replace needs --name' start --replace --name '' -- true
    usage '--watch and --json' list --watch --json
    usage 'did you mean "sessions"?' session
    equal "$(ls -A "$NACRE_HOME" 2>/dev/null)" ""
}

case_numbers() {
    local bad
    for bad in 0 0.0 -1 abc '' ' 5' '5 ' 1e3 0x10 inf nan 5x . 1.2.3 99999999999999999999; do
        usage '--timeout' run --timeout "$bad" -- true
    done
    for bad in -1 abc '' ' 5' 1.5 99999999999999999999; do
        usage '--tail' output abcd --tail "$bad"
        usage '--offset' output abcd --offset "$bad"
    done
    for bad in -1 abc '' 5x; do
        usage '--grace' kill abcd --grace "$bad"
        usage '--timeout' wait abcd --timeout "$bad"
    done
    for good in 5 5. .5 5.25 0005 5s 900ms 2m; do
        nacre run --timeout $good -- 'exit 3'
        equal "$status" 3
    done
    nacre run --timeout=5 -- 'exit 3'
    equal "$status" 3
}

case_ids() {
    local verb id twin
    for verb in output wait kill rm adopt; do
        usage 'no shell is called "abc", and it is no id' $verb abc
        usage 'it is no id' $verb xyzw
        usage 'it is no id' $verb ABCD
        usage 'it is no id' $verb 0123456789abcdef0123456789abcdef0
        usage 'it is no id' $verb ''
        nacre $verb 0123abcd
        equal "$status" 1
        holds "$out$err" '0123abcd'
    done
    nacre start -- true
    id=$out
    until_true "$nacre" wait "$id" >/dev/null
    nacre output "${id:0:4}"
    equal "$status" 0
    # Two shells that begin alike: any id is only a name of a directory.
    twin=${id:0:31}
    [ "${id:31}" = 0 ] && twin+=1 || twin+=0
    cp -a "$NACRE_HOME/runs/$id" "$NACRE_HOME/runs/$twin"
    for verb in output wait rm adopt kill; do
        nacre $verb "${id:0:8}"
        equal "$status" 1
        equal "$out" ""
        holds "$err" "${id:0:8}"
    done
    rm -r "${NACRE_HOME:?}/runs/$twin"
    nacre output "$id"
    equal "$status" 0
}

# -- run -------------------------------------------------------------------------------------------

case_run_streams() {
    nacre run -- 'printf foo; sleep .05; echo err >&2; sleep .05; echo bar'
    equal "$status" 0
    equal "$out" foobar
    equal "$err" err
    nacre run echo one '  two'
    equal "$out" 'one   two'
    nacre run -- 'echo --json; echo "$0"; cat; echo end'
    equal "$out" $'--json\nbash\nend'
}

case_run_bytes() {
    head -c 3000000 /dev/urandom >"$work/a"
    head -c 1000000 /dev/urandom >"$work/b"
    "$nacre" run -- "cat $work/a & cat $work/b >&2; wait" >"$work/out" 2>"$work/err" || fail "status $?"
    cmp "$work/a" "$work/out" || fail "stdout differs"
    cmp "$work/b" "$work/err" || fail "stderr differs"
}

case_run_status() {
    local code
    for code in 0 1 7 127 143 255; do
        nacre run -- "exit $code"
        equal "$status" $code
        equal "$err" ""
    done
    nacre run -- 'kill -SEGV $$'
    equal "$status" 139
    nacre run -- 'kill -KILL $$'
    equal "$status" 137
    nacre run -- no-such-command-here
    equal "$status" 127
    holds "$err" 'no-such-command-here'
    nacre run -- 'if'
    equal "$status" 2
}

case_run_timeout() {
    local sleep begin
    sleep=$(unique_sleep)
    begin=$(milliseconds)
    nacre run --timeout 0.5 -- "echo BEFORE; $own_session sleep $sleep & sleep $sleep"
    equal "$status" 124
    equal "$out" BEFORE
    holds "$err" 'timed out after 0.5s'
    [ $(($(milliseconds) - begin)) -lt 3000 ] || fail "it took too long"
    until_true dead "sleep $sleep"
}

case_limits() {
    local bad
    for bad in memory memory= =2G memory=0 memory=x cpu=-1 cpu=1,5 processes=1.5 nothing=1; do
        usage '--limit' run --limit "$bad" -- true
    done
    nacre run --limit files=77,cpu_time=1h --limit file_size=1M -- 'ulimit -n; ulimit -f; exit 4'
    equal "$out" $'77\n1024'
    equal "$err" ""
    equal "$status" 4
    nacre run --limit file_size=4K -- "exec head -c 99999 /dev/zero >$work/large"
    equal "$status" 153
    equal "$err" 'nacre: killed by the file size limit 4 KiB'
    nacre run --json --limit file_size=4K -- "exec head -c 99999 /dev/zero >$work/large"
    holds "$out" '"ended_by": "file_size"'
    holds "$out" 'killed(limit file_size)'
    NACRE_LIMIT_FILES=55 nacre run -- 'ulimit -n'
    equal "$out" 55
    nacre start --limit files=66 -- 'ulimit -n'
    nacre wait "$out"
    nacre doctor --json
    holds "$out" '"file_size": "rlimit"'
}

case_run_surroundings() {
    mkdir "$work/dir"
    nacre run --cwd "$work/dir" --env "A=1 2" --env B= --env A=3 -- 'pwd; echo "$A,${B-unset}"'
    equal "$out" "$work/dir"$'\n3,'
    nacre run --shell sh -- 'echo "$0"'
    equal "$out" sh
    nacre run --shell /bin/bash -- 'echo "${BASH_VERSION:+yes}"'
    equal "$out" yes
    nacre run --shell no-such-shell -- true
    equal "$status" 1
    match "$err" '^nacre: .*no-such-shell'
    nacre run --cwd "$work/none" -- true
    equal "$status" 1
    match "$err" '^nacre: '
    equal "$out" ""
    nacre list --all
    lines 3
}

case_run_stdin() {
    echo from-file >"$work/in"
    nacre run --stdin "$work/in" -- cat
    equal "$out" from-file
    nacre run --stdin - -- cat < <(echo from-us; echo more)
    equal "$out" $'from-us\nmore'
    nacre run -- cat < <(echo not-passed)
    equal "$out" ""
    nacre run --stdin "$work/none" -- cat
    equal "$status" 1
    holds "$err" "$work/none"
    nacre run --stdin "$work" -- cat
    equal "$status" 1
    holds "$err" "$work"
    head -c 5000000 /dev/urandom >"$work/big"
    "$nacre" run --stdin "$work/big" -- cat | cmp - "$work/big" || fail "the input differs"
}

case_run_leftover() {
    # Between the fork and the exec it is a shell.
    local sleep begin until_sleep='until grep -qs ^sleep /proc/$!/cmdline; do :; done'
    sleep=$(unique_sleep)
    begin=$(milliseconds)
    nacre run -- "sleep $sleep & $until_sleep; echo hi"
    equal "$status" 0
    equal "$out" hi
    match "$err" "^nacre: ended 1 process the command left behind \(sleep $sleep, pid [0-9]+\)\$"
    [ $(($(milliseconds) - begin)) -lt 1500 ] || fail "it took too long"
    until_true dead "sleep $sleep"
    nacre run -- "$own_session sleep $sleep & $until_sleep; (sleep $sleep & $until_sleep); echo hi; exit 4"
    equal "$status" 4
    match "$err" "^nacre: ended 2 processes the command left behind \(sleep $sleep, pid [0-9]+; sleep"
    until_true dead "sleep $sleep"
    nacre run -- "(until [ -e '$work/never' ]; do sleep 0.05; done) & echo hi"
    holds "$err" "bash (a subshell of the command), pid "
    nacre run -- 'echo hi > >(cat); exit 0'
    equal "$out" hi
    # In the group tier nobody tells of the end of an orphan, and the cat may still be counted.
    [ -z "$own_session" ] || equal "$err" ""
}

# Not even SIGKILL arrives in a frozen (v1) cgroup. One sentence says so, and the end is not waited
# for twice.
case_run_survivor() {
    local sleep pid begin group=/sys/fs/cgroup/freezer/frozen-$$
    [ "$(id -u)" -eq 0 ] && mkdir "$group" 2>/dev/null || skip "needs root and the freezer of cgroup v1"
    sleep=$(unique_sleep)
    start_run -- "$own_session sleep $sleep & until [ -e '$work/go' ]; do sleep 0.02; done"
    until_true pgrep -f "^sleep $sleep" >/dev/null
    pid=$(pgrep -f "^sleep $sleep")
    echo "$pid" >"$group/cgroup.procs"
    echo FROZEN >"$group/freezer.state"
    until_true grep -q FROZEN "$group/freezer.state"
    begin=$(milliseconds)
    touch "$work/go"
    status=0
    wait $run_pid || status=$?
    begin=$(($(milliseconds) - begin))
    echo THAWED >"$group/freezer.state"
    until_true dead "sleep $sleep"
    until_true rmdir "$group" 2>/dev/null
    # In the group tier nobody tells the keeper: it looks again after 5 s.
    until_true eval "[ -z \"\$($nacre list)\" ]"
    equal "$status" 0
    equal "$(<"$work/err")" \
        "nacre: 1 process could not be ended, not even by SIGKILL (sleep $sleep, pid $pid)"
    [ $begin -lt 11000 ] || fail "it took $begin ms"
}

case_run_summary() {
    local sleep
    sleep=$(unique_sleep)
    nacre run --summary -- 'echo out; echo err >&2; exit 3'
    equal "$status" 3
    equal "$err" ""
    equal "$out" "Exit code: 3
--- stderr (1 line) ---
err
--- stdout (1 line) ---
out"
    nacre run --summary -- true
    equal "$out" 'Exit code: 0'
    nacre run --summary -- 'kill -SEGV $$'
    equal "$status" 139
    match "$out" '^Signal: SIGSEGV( \(core dumped\))? \| stdout'
    nacre run --summary --timeout 0.3 -- "echo BEFORE; exec sleep $sleep"
    equal "$status" 124
    match "$out" '^Timed out after 0\.3s \(killed\) \| stdout: 1 line '
    holds "$out" $'\nBEFORE'
    # Before its exec it is a subshell.
    nacre run --summary -- "sleep $sleep & until grep -q sleep /proc/\$!/comm; do :; done; echo hi"
    match "$out" $'\nLeft running: pid [0-9]+ \\(sleep '"$sleep"$'\\)\nhi'
    until_true dead "sleep $sleep"
}

# What a summary leaves out is counted exactly, and is what the log has at these lines.
case_run_summary_cut() {
    local id from to
    nacre run --summary -- 'seq 1 20000; echo "ERROR: cause" >&2; seq 1 20000'
    equal "$status" 0
    [ ${#out} -le 10240 ] || fail "the summary has ${#out} bytes"
    match "$out" 'stdout: 40000 lines \| stderr: 1 line'
    holds "$out" $'--- stderr (1 line) ---\nERROR: cause'
    match "$out" $'\nLeft out: stdout ([0-9]+) lines \\(([0-9]+) bytes\\)\\. Get it back with: nacre recall --id ([0-9a-f]{8}) --lines ([0-9]+)-([0-9]+) --stream out\n'
    local lines=${BASH_REMATCH[1]} bytes=${BASH_REMATCH[2]}
    id=${BASH_REMATCH[3]} from=${BASH_REMATCH[4]} to=${BASH_REMATCH[5]}
    match "$out" '--- stdout \(first ([0-9]+) of 40000\) ---'
    equal "$from" $((BASH_REMATCH[1] + 1))
    match "$out" '--- stdout \(last ([0-9]+) of 40000\) ---'
    equal "$to" $((40000 - BASH_REMATCH[1]))
    equal "$lines" $((to - from + 1))
    equal "$("$nacre" output "$id" --stream out | sed -n "$from,${to}p" | wc -c)" "$bytes"
}

case_show() {
    local id
    nacre run --summary -- 'seq 1 20000; echo "ERROR: cause"; seq 1 20000; exit 3'
    equal "$status" 3
    local summary=$out
    holds "$summary" $'\n--- stdout (likely causes: 1 of 1) ---\n19999- 19999\n20000- 20000\n20001: ERROR: cause\n20002- 1\n'
    match "$summary" 'nacre recall --id ([0-9a-f]{8}) '
    id=${BASH_REMATCH[1]}
    nacre show "$id"
    equal "$status" 0
    equal "$err" ""
    equal "$out" "$summary"
    nacre show "$id" --tokens 300
    [ ${#out} -le 1200 ] || fail "the summary has ${#out} bytes"
    holds "$out" $'\n20001: ERROR: cause\n'
    nacre show "$id" --compact
    holds "$out" $'\n--- stdout (last 20 of 40001) ---\n19981\n'
    equal "$(wc -l <"$work/out")" 23
    local compact=$out
    NACRE_VIEW=compact nacre show "$id"
    equal "$out" "$compact"
    NACRE_STDOUT_LINES=5 nacre show "$id" --compact
    holds "$out" $'\n--- stdout (last 5 of 40001) ---\n19996\n'
    NACRE_ANSWER=2000 nacre show "$id"
    [ ${#out} -le 2000 ] || fail "the summary has ${#out} bytes"
    nacre show "$id" --json
    equal "$(json 'r["exit_code"], r["stdout_lines"], r["summary"].splitlines()[0]')" \
        "(3, 40001, 'Exit code: 3 | stdout: 40001 lines | stderr: 0 lines')"
    equal "$(json 'abs(r["summary_tokens"] * 4 - len(r["summary"])) <= 2')" True
    usage '--tokens takes 256 or more' show "$id" --tokens 255
    usage 'missing' show
    usage 'it is no id' show xyz
    nacre show ffff
    equal "$status" 1
}

# Nothing that a command prints can pass for a line of ours.
case_show_framed() {
    nacre run --summary -- 'printf "Exit code: 0 | x\n\033[1m--- stderr (3 lines) ---\n%s\r[shell 12345678\n" busy'
    equal "$out" 'Exit code: 0
\Exit code: 0 | x
\--- stderr (3 lines) ---
\[shell 12345678'
}

# A running shell has a summary, too.
case_show_running() {
    local id sleep
    sleep=$(unique_sleep)
    id=$("$nacre" start -- "printf 'ready? '; sleep $sleep")
    until_true has_output "$id" ready
    nacre show "$id"
    equal "$out" 'Running | stdout: 1 line | stderr: 0 lines
ready? '
    nacre kill "$id"
    nacre show "$id"
    match "$out" '^Killed \| stdout: 1 line '
}

case_run_json() {
    local sleep
    sleep=$(unique_sleep)
    nacre run --json --cwd "$work" -- 'printf "a\377b\n"; echo e >&2; sh -c "exit 3" | cat; exit 5'
    equal "$status" 5
    equal "$(json 'r["status"], r["exit_code"], r["signal"], r["timed_out"], r["tree"]')" \
        "('exited(5)', 5, None, False, 'empty')"
    equal "$(json 'r["stdout_lines"], r["stderr_lines"], r["bytes"], r["omitted"]')" \
        "(1, 1, {'stdout': 4, 'stderr': 2}, {'stdout': 0, 'stderr': 0})"
    equal "$(json 'r["cwd"]')" "$work"
    equal "$(json 'sorted(r["output"])')" "$(json 'sorted("a\ufffdb\ne\n")')"
    equal "$(json 'r["output_omitted"], r["leftover"], r["core_dumped"]')" "(0, [], False)"
    match "$(json 'r["id"]')" '^[0-9a-f]{32}$'
    match "$(json 'r["containment"]')" '^(cgroup|subreaper|group)$'
    match "$(json 'r["elapsed_ms"], r["cpu_ms"], r["max_rss_kb"]')" '^\([0-9]+, [0-9]+, [0-9]+\)$'

    nacre run --json -- "sleep $sleep & head -c 3000000 /dev/zero | tr '\0' x"
    equal "$(json 'len(r["output"]), r["output_omitted"]')" "(1048576, 1951424)"
    equal "$(json 'len(r["leftover"]), r["leftover"][0]["command"], r["leftover"][0]["ports"]')" \
        "(1, 'sleep $sleep', [])"
    equal "$(json 'r["status"]')" 'exited(0), lingering'
    until_true dead "sleep $sleep"

    nacre run --json --timeout 0.2 -- "exec sleep $sleep"
    equal "$status" 124
    equal "$(json 'r["status"], r["timed_out"], r["exit_code"], r["reason"]')" "('timed_out', True, None, 'deadline')"
}

case_run_signals() {
    local sleep signal
    for signal in INT:130 TERM:143 HUP:129; do
        sleep=$(unique_sleep)
        start_run -- "trap 'echo cleaned; exit 0' TERM; $own_session sleep $sleep & echo ready; wait"
        until_true printed ready "$work/out"
        kill -"${signal%:*}" $run_pid
        status=0
        wait $run_pid 2>/dev/null || status=$?
        equal "$status" "${signal#*:}"
        holds "$(<"$work/out")" cleaned
        equal "$(<"$work/err")" ""
        until_true dead "sleep $sleep"
    done
    nacre list --all
    lines 3
    equal "$(grep -c $'^cancelled\t' "$work/out")" 3
}

case_run_second_interrupt() {
    local sleep begin
    sleep=$(unique_sleep)
    start_run -- "trap '' TERM INT; echo ready; while :; do sleep 0.1; : $sleep; done"
    until_true printed ready "$work/out"
    begin=$(milliseconds)
    kill -INT $run_pid
    sleep 0.3
    kill -0 $run_pid || fail "it did not wait for the grace"
    kill -INT $run_pid
    status=0
    wait $run_pid 2>/dev/null || status=$?
    equal "$status" 130
    [ $(($(milliseconds) - begin)) -lt 1500 ] || fail "the grace was not cut short"
}

case_run_ignored_signals() {
    rm -f "$work/out"
    (trap '' HUP INT; exec "$nacre" run -- 'echo ready; sleep 0.7; echo done' >"$work/out") &
    until_true printed ready "$work/out"
    kill -HUP $!
    kill -INT $!
    wait $! || fail "it was ended by an ignored signal"
    holds "$(<"$work/out")" 'done'
}

case_run_killed_front_end() {
    local sleep
    sleep=$(unique_sleep)
    start_run -- "$own_session sleep $sleep & echo ready; sleep $sleep"
    until_true printed ready "$work/out"
    until_true alive "sleep $sleep"
    kill -KILL $run_pid
    wait $run_pid 2>/dev/null
    until_true dead "sleep $sleep"
    nacre list --all
    lines 1
    match "$out" $'^killed\t'
}

case_run_broken_pipe() {
    local sleep statuses
    sleep=$(unique_sleep)
    env --default-signal=PIPE "$nacre" run -- "$own_session sleep $sleep & yes" 2>"$work/err" |
        head -1 >"$work/out"
    statuses=${PIPESTATUS[*]}
    equal "$statuses" "141 0"
    equal "$(<"$work/out")" y
    equal "$(<"$work/err")" ""
    until_true dead "sleep $sleep"
    "$nacre" run --summary -- "sleep 0.3; echo $sleep" 2>"$work/err" | true
    equal "${PIPESTATUS[0]}" 141
    equal "$(<"$work/err")" ""
}

# What left the log before a slow reader took it is named to the byte, and the status says so, too.
case_run_slow_reader() {
    local total=300000000 shown missed=0
    "$nacre" run -- "head -c $total /dev/zero" 2>"$work/err" | (sleep 1; wc -c) >"$work/out"
    status=${PIPESTATUS[0]}
    shown=$(<"$work/out")
    if [ "$shown" -ne $total ]; then
        match "$(<"$work/err")" '^nacre: ([0-9]+) bytes of output are missing'
        missed=${BASH_REMATCH[1]}
        equal "$status" 1
    fi
    equal $((shown + missed)) $total
}

case_run_cannot_write() {
    [ -e /dev/full ] || return 0
    status=0
    "$nacre" run -- 'echo x; sleep 60' >/dev/full 2>"$work/err" || status=$?
    equal "$status" 1
    match "$(<"$work/err")" '^nacre: cannot write'
    status=0
    "$nacre" run -- 'echo x; sleep 60' >&- 2>"$work/err" || status=$?
    equal "$status" 1
    match "$(<"$work/err")" '^nacre: cannot write'
    status=0
    "$nacre" list --help >/dev/full 2>"$work/err" || status=$?
    equal "$status" 1
    "$nacre" run -- 'echo unheard >&2; exit 3' 2>&- && fail "the status is lost"
    return 0
}

# A reader that does not read must not keep a signal from being heard.
# A limit on the size of files is an error and not the end, and the command's own as it was.
case_file_size() {
    nacre start -- 'echo old'
    equal "$status" 0
    out=$(ulimit -S -f 0; "$nacre" run -- "echo hi; ulimit -S -f; (echo >$work/file); echo \$?" 2>/dev/null |
        cat; exit "${PIPESTATUS[0]}") || fail "status $?: $out"
    equal "$out" $'hi\n0\n153'
    out=$(ulimit -S -f 0; "$nacre" list --all 2>&1 | cat; exit "${PIPESTATUS[0]}") || fail "list: $out"
    holds "$out" 'echo old'
    out=$(ulimit -S -f 0; "$nacre" recall old 2>&1 | cat; exit "${PIPESTATUS[0]}") || fail "recall: $out"
    out=$(ulimit -S -f 0; "$nacre" gc 2>&1 | cat; exit "${PIPESTATUS[0]}") || fail "gc: $out"
    status=0
    (ulimit -S -f 1; "$nacre" run -- 'seq 1 3000' >"$work/out" 2>/dev/null) || status=$?
    equal "$status" 1
    equal "$(wc -c <"$work/out")" 1024
}

# What it said is believed, though nothing of it could be written down.
case_keeper_that_cannot_write() {
    nacre run -- 'prlimit --pid $PPID --fsize=0:0; exit 7'
    equal "$status" 7
    lacks "$err" vanished
}

case_run_blocked_reader() {
    local sleep
    sleep=$(unique_sleep)
    mkfifo "$work/fifo"
    (exec 3<"$work/fifo"; exec sleep 30) &
    local reader=$!
    env --default-signal=TERM "$nacre" run -- "yes $sleep" >"$work/fifo" &
    local pid=$!
    sleep 0.5
    kill -TERM $pid
    status=0
    wait $pid 2>/dev/null || status=$?
    kill $reader
    equal "$status" 143
    until_true dead "yes $sleep"
}

# -- Shells in the background ----------------------------------------------------------------------

case_start_to_rm() {
    local sleep id
    sleep=$(unique_sleep)
    id=$("$nacre" start --name web -- "echo up; echo warn >&2; exec sleep $sleep") || fail "start failed"
    match "$id" '^[0-9a-f]{32}$'
    until_true eval "[ \"\$($nacre output $id)\" = $'up\nwarn' ]"
    nacre output "${id:0:6}" --stream out
    equal "$out" up
    nacre output "$id" --stream err
    equal "$out" warn
    nacre list
    lines 1
    match "$out" "^running"$'\t'"${id:0:8}"$'\t[0-9]+s\t[0-9.]+s\t[0-9.]+s\t[0-9.]+[KM]\t8\t-\t-\t'"\[web\] echo up; echo warn"
    nacre rm "$id"
    equal "$status" 1
    match "$err" '^nacre: '
    nacre wait "$id" --timeout 0
    equal "$status" 124
    equal "$out" "$id running"
    nacre kill "$id"
    equal "$status" 0
    match "$out" "^killed background shell $id: 1 process signalled, 0 needed SIGKILL, 0 survivors\$"
    until_true dead "sleep $sleep"
    nacre kill "$id"
    equal "$status" 0
    equal "$out" "shell $id had ended already: killed"
    nacre list
    lines 0
    nacre list --all
    lines 1
    match "$out" "^killed"$'\t'
    nacre output "$id"
    equal "$out" $'up\nwarn'
    nacre rm "$id"
    equal "$status" 0
    equal "$out$err" ""
    nacre output "$id"
    equal "$status" 1
    nacre list --all
    lines 0
}

case_start_options() {
    local id
    id=$("$nacre" start --timeout 0.2 --cwd "$work" --env A=1 -- 'pwd; echo $A; exec sleep 60') || fail "start failed"
    nacre wait "$id"
    equal "$status" 0
    equal "$out" "$id timed_out"
    nacre output "$id"
    equal "$out" "$work"$'\n1'
    nacre start --cwd "$work/none" -- true
    equal "$status" 1
    equal "$out" ""
    match "$err" '^nacre: '
    nacre list --all
    lines 1
    NACRE_ID=0123456789abcdef0123456789abcdef nacre start -- true
    equal "$status" 0
    match "$out" '^[0-9a-f]{32}$'
    holds "$err" 'inside shell 01234567'
    nacre wait "$out"
}

case_start_inside() {
    local sleep id
    [ -n "$own_session" ] || skip "the group tier does not hold what leaves the process group"
    sleep=$(unique_sleep)
    id=$("$nacre" start -- "'$nacre' start -- 'exec sleep $sleep'; exec sleep $sleep") || fail "start failed"
    until_true eval "[ \$($nacre list | wc -l) -eq 2 ]"
    until_true eval "$nacre output $id | grep -q 'inside shell'"
    nacre kill "$id"
    equal "$status" 0
    until_true dead "sleep $sleep"
}

case_kept_survives() {
    local sleep id
    sleep=$(unique_sleep)
    id=$(setsid "$nacre" start -- "while :; do echo tick; sleep 0.05; done; : $sleep") || fail "start failed"
    until_true eval "[ \$($nacre output $id | wc -l) -gt 5 ]"
    nacre kill "$id" --signal KILL
    equal "$status" 0
    holds "$out" '0 survivors'
}

case_list() {
    local sleep long
    sleep=$(unique_sleep)
    nacre list
    equal "$out$err$status" 0
    nacre list --json
    equal "$out" '[]'
    long=$("$nacre" start -- $'printf "%s" "'"$(printf 'x%.0s' {1..300})"$'"\nexec sleep '"$sleep") || fail "start failed"
    nacre run -- true
    local ling
    ling=$("$nacre" start -- "sleep $sleep & exit 7") || fail "start failed"
    nacre wait "$ling"
    equal "$out" "$ling exited(7), lingering"
    nacre list
    lines 2
    holds "$out" $'exited(7), lingering\t'
    lacks "$out" 'exited(0)'
    nacre list --all
    lines 3
    holds "$out" "\" exec sleep $sleep"
    nacre list --all --json
    equal "$(json 'len(r), r[0]["status"], r[1]["status"], r[2]["status"]')" \
        "(3, 'running', 'exited(0)', 'exited(7), lingering')"
    equal "$(json 'r[0]["id"]')" "$long"
    local width
    for width in 30 60 100 200; do
        script -qec "stty cols $width; $nacre list" /dev/null | tr -d '\r' >"$work/tty"
        holds "$(<"$work/tty")" STATUS
        holds "$(<"$work/tty")" '…'
        [ $width -eq 30 ] ||
            equal "$(sed 's/\x1b\[[0-9]*m//g; s/…/./' "$work/tty" | awk "length > $width")" ""
    done
    holds "$(<"$work/tty")" UNREAD
    lacks "$(<"$work/tty")" PORTS
    lacks "$(<"$work/tty")" SESSION
    NO_COLOR=1 script -qec "$nacre list" /dev/null >"$work/tty"
    lacks "$(<"$work/tty")" $'\033'
    nacre kill "$long" "$ling"
    equal "$status" 0
    lines 2
    until_true dead "sleep $sleep"
}

# What an ended shell used is in its record; what a living one uses is looked up.
case_list_usage() {
    local id port
    id=$("$nacre" start -- 'exec python3 -c "
import socket, time
m = bytearray(b\"x\") * (40 << 20)
s = socket.create_server((\"127.0.0.1\", 0))
print(s.getsockname()[1], flush=True)
time.sleep(300)"') || fail "start failed"
    until_true eval "[ -n \"\$($nacre output $id)\" ]"
    port=$("$nacre" output "$id")
    nacre list
    match "$out" "^running"$'\t'"${id:0:8}"$'\t[0-9]+[sm]\t[0-9.]+s\t[0-9.]+s\t[4-9][0-9]M\t[56]\t'"$port"$'\t-\texec python3 -c '
    script -qec "stty cols 80; $nacre list" /dev/null >"$work/tty"
    holds "$(<"$work/tty")" PORTS
    nacre list --json
    equal "$(json 'r[0]["usage"]["ports"], r[0]["usage"]["processes"]')" "([$port], 1)"
    equal "$(json 'r[0]["usage"]["memory_bytes"] > 40 << 20, r[0]["unread"] > 0, r[0]["background"]')" \
        "(True, True, True)"
    nacre kill "$id"
    nacre list --all
    match "$out" "^killed"$'\t'"${id:0:8}"$'\t[0-9]+[sm]\t[0-9.]+s\t[0-9.]+s\t[4-9][0-9]M\t[56]\t-\t-\texec'
    nacre list --all --json
    equal "$(json 'r[0]["usage"], r[0]["max_rss_kb"] > 40 << 10')" "(None, True)"
}

# run_as NAME ARGUMENT...: nacre run as the front end of a session of that name; $run_pid is it.
run_as() {
    NACRE_SESSION=$1 start_run "${@:2}"
}

case_sessions() {
    local sleep a b
    sleep=$(unique_sleep)
    nacre sessions --all
    equal "$status$out$err" 0
    nacre sessions --all --json
    equal "$out" '[]'
    a=$(NACRE_SESSION=starter "$nacre" start -- "exec sleep $sleep") || fail "start failed"
    nacre run -- true
    run_as agent --cwd "$work" -- "echo ready; exec sleep $sleep"
    until_true printed ready "$work/out"
    cp "$work/out" "$work/ready"
    nacre list
    lines 2
    holds "$out" $'\tagent\techo ready'
    nacre sessions
    lines 2
    match "$out" $'^ended\t[0-9a-f]{8}\tstarter\t-\t-\t[0-9]+s\t-\t1/1\t0\t/.*\nalive\t[0-9a-f]{8}\tagent\t-\t'$run_pid$'\t[0-9]+s\t-\t1/1\t0\t/'
    nacre sessions --all
    lines 2
    nacre sessions --json
    equal "$(json '[(s["status"], s["name"], s["running"], s["shells"], s["completions"]) for s in r]')" \
        "[('ended', 'starter', 1, 1, 0), ('alive', 'agent', 1, 1, 0)]"
    equal "$(json 'r[1]["pid"]')" "$run_pid"
    b=$(json 'r[1]["id"]')
    equal "$(json 'r[0]["cwd"]')" "$PWD"
    for b in agent "$b" "${b:0:4}"; do
        nacre list --session "$b"
        lines 1
        holds "$out" $'agent\techo ready'
    done
    nacre list --session "$(json 'r[0]["id"]' 2>/dev/null || echo none)"
    equal "$status" 1
    for b in nobody 0 "" 0123abcd; do
        nacre list --session "$b"
        equal "$status" 1
        equal "$out" ""
        holds "$err" "no session with the name or id \"$b\""
    done
    nacre kill "$a"
    nacre sessions --json
    equal "$(json '[s["name"] for s in r]')" "['agent']"
    nacre sessions --all --json
    equal "$(json '[s["completions"] for s in r]')" "[1, 0]"
    kill -KILL $run_pid
    wait $run_pid 2>/dev/null
    until_true dead "sleep $sleep"
    nacre sessions
    lines 0
    nacre sessions --all
    match "$out" $'\ngone\t[0-9a-f]{8}\tagent\t-\t-\t'
    script -qec "stty cols 100; $nacre sessions --all" /dev/null >"$work/tty"
    holds "$(<"$work/tty")" UNDELIVERED
    script -qec "$nacre sessions" /dev/null >"$work/tty"
    holds "$(<"$work/tty")" 'none is alive'
}

case_adopt() {
    local sleep id
    sleep=$(unique_sleep)
    run_as agent -- "echo ready; exec sleep $sleep"
    until_true printed ready "$work/out"
    nacre list --json
    id=$(json 'r[0]["id"]')
    equal "$(json 'r[0]["session_name"], r[0]["session_alive"], r[0]["background"]')" \
        "('agent', True, False)"
    nacre adopt "${id:0:8}"
    equal "$status" 0
    equal "$err" ""
    holds "$out" "shell $id is kept: it no longer ends with its session"
    nacre list --json
    equal "$(json 'r[0]["session"], r[0]["session_name"], r[0]["session_alive"]')" "(None, '', False)"
    kill -KILL $run_pid
    wait $run_pid 2>/dev/null
    sleep 0.3
    alive "sleep $sleep" || fail "it ended with its session"
    nacre list
    match "$out" "^running"$'\t'"${id:0:8}"$'\t'
    nacre adopt "$id"
    equal "$status" 0
    equal "$out" "shell $id is kept already, and its session has ended: there is nothing to do"
    nacre kill "$id"
    nacre adopt "$id"
    equal "$status" 1
    equal "$out" ""
    equal "$err" "nacre: shell ${id:0:8} has ended; there is nothing left to keep"
    id=$("$nacre" start -- "exec sleep $sleep") || fail "start failed"
    nacre adopt "$id" 0123abcd
    equal "$status" 1
    holds "$out" "shell $id is kept already"
    holds "$err" 0123abcd
    nacre kill "$id"
}

case_names() {
    local sleep id other first
    sleep=$(unique_sleep)
    id=$("$nacre" start --name web -- "exec sleep $sleep") || fail "start failed"
    nacre list --json
    first=$(json 'r[0]["session"]')
    nacre start --name web -- "exec sleep $sleep"
    equal "$status" 0
    equal "$out" "$id"
    match "$err" "^nacre: already running: shell ${id:0:8} has the name \"web\""
    nacre start --name web --replace -- "exec sleep $sleep"
    equal "$out" "$id"
    nacre list --json
    equal "$(json '[s["session"] for s in r]')" "['$first']"
    for other in "--cwd / -- exec sleep $sleep" "-- sleep $sleep"; do
        # shellcheck disable=SC2086
        nacre start --name web $other
        equal "$status" 1
        equal "$out" ""
        holds "$err" "the name \"web\" belongs to shell ${id:0:8}"
    done
    nacre start --name web --replace -- "sleep $sleep"
    equal "$status" 0
    equal "$err" ""
    match "$out" '^[0-9a-f]{32}$'
    other=$out
    [ "$other" != "$id" ] || fail "it is the same shell"
    nacre wait "$id" "$other" --timeout 0
    equal "$out" "$id killed
$other running"
    nacre kill "$other"
    nacre start --name web -- true
    equal "$status" 0
    equal "$err" ""
}

case_gc() {
    local a b running
    a=$("$nacre" start -- 'head -c 3000000 /dev/zero') || fail "start failed"
    nacre wait "$a"
    b=$("$nacre" start -- 'head -c 500000 /dev/zero') || fail "start failed"
    nacre wait "$b"
    running=$("$nacre" start -- 'echo; exec sleep 300') || fail "start failed"
    until_true eval "[ \$($nacre output $running | wc -l) -eq 1 ]"
    nacre list --all
    nacre gc
    equal "$status$err" 0
    match "$out" '^removed 0 shells \(0\); 3 stay \('
    NACRE_HOME_QUOTA=1MiB nacre gc --dry-run
    match "$out" '^would remove 1 shell \(2\.9M\); 2 stay \([0-9.]+[KM]\)$'
    NACRE_HOME_QUOTA=1MiB nacre gc --dry-run --verbose
    match "$out" "^$a +2\\.9M  ended [0-9]+[sm] ago"
    NACRE_HOME_QUOTA=1MiB nacre gc --dry-run --json
    equal "$(json 'r["dry_run"], r["removed"][0]["id"], r["removed"][0]["bytes"] >= 3000000')" \
        "(True, '$a', True)"
    equal "$(json 'r["removed_bytes"] == sum(s["bytes"] for s in r["removed"]), r["kept"] + len(r["removed"])')" \
        "(True, 3)"
    nacre output "$a" --tail 0
    equal "$status" 0
    NACRE_HOME_QUOTA=1MiB nacre gc
    match "$out" '^removed 1 shell \(2\.9M\); 2 stay \('
    nacre output "$a" --tail 0
    equal "$status" 1
    nacre list --all
    lacks "$out" "${a:0:8}"
    holds "$out" "${running:0:8}"
    NACRE_HOME_DAYS=0 nacre gc
    equal "$status" 1
    holds "$err" home_days
    nacre kill "$running"
    NACRE_HOME=$work/never nacre gc
    equal "$out" 'removed 0 shells (0); 0 stay (0)'
    [ ! -e "$work/never" ] || fail "looking created a home"
}

# -- A list that is drawn again and again ----------------------------------------------------------

at_prompt() { [ "$(tm capture-pane -p | sed '/^$/d' | tail -n 1)" = 'prompt>' ]; }

case_list_watch() {
    local id key
    nacre list --watch
    equal "$status" 1
    equal "$out" ""
    match "$err" '^nacre: list: --watch needs a terminal'
    TERM=dumb script -qec "$nacre list --watch" /dev/null >"$work/tty"
    holds "$(<"$work/tty")" 'needs a terminal'
    id=$("$nacre" start --name first -- 'exec sleep 300') || fail "start failed"
    tm new-session -d -x 90 -y 10 "env PS1='prompt> ' bash --norc --noprofile"
    trap 'tm kill-server' EXIT
    until_true on_screen 'prompt>'
    tm send-keys "echo above; $nacre list --watch; echo status \$?" Enter
    until_true on_screen '[first] exec sleep 300'
    on_screen STATUS || fail "no heading"
    local second
    second=$("$nacre" start --name second -- 'exec sleep 300') || fail "start failed"
    until_true on_screen '[second]'
    [ "$(tm capture-pane -p | grep -c '\[first\]')" -eq 1 ] || fail "drawn twice: $(tm capture-pane -p)"
    nacre kill "$second"
    until_true off_screen '[second]'
    tm send-keys x
    tm resize-window -x 60 -y 8
    until_true eval "tm capture-pane -p | grep -q '^running.*…\$'"
    [ "$(tm capture-pane -p | grep -c '\[first\]')" -eq 1 ] || fail "drawn twice: $(tm capture-pane -p)"
    tm send-keys q
    until_true on_screen 'status 0'
    on_screen '[first]' || fail "the last picture is gone"
    equal "$(tm display -p '#{alternate_on} #{cursor_flag}')" '0 1'
    for key in C-c q; do
        tm send-keys clear Enter
        until_true off_screen '[first]'
        tm send-keys "$nacre list --watch" Enter
        until_true on_screen '[first]'
        tm send-keys $key
        until_true at_prompt # what is typed before that is thrown away
        tm send-keys "stty -a | grep -o ' icanon'; stty -a | grep -o ' echo '; echo en''d" Enter
        until_true on_screen $'\nend'
        holds "$(tm capture-pane -p)" $'\n icanon\n echo'
    done
    # More shells than lines.
    for key in 1 2 3 4 5 6 7 8; do
        "$nacre" start -- "exec sleep 30$key" >/dev/null || fail "start failed"
    done
    tm send-keys clear Enter "$nacre list --watch" Enter
    until_true on_screen 'and 4 more'
    on_screen STATUS || fail "the heading left: $(tm capture-pane -p)"
    tm send-keys q
    nacre list --json
    # shellcheck disable=SC2046
    nacre kill $(json '" ".join(s["id"] for s in r)')
}

# -- output ----------------------------------------------------------------------------------------

case_output_parts() {
    local id n
    id=$("$nacre" start -- 'seq 1 50000; sleep 0.1; echo e1 >&2; echo e2 >&2; sleep 0.1; printf last') || fail "start failed"
    nacre wait "$id"
    (seq 1 50000; printf 'e1\ne2\nlast') >"$work/all"
    "$nacre" output "$id" | cmp - "$work/all" || fail "the output differs"
    for n in 0 1 2 3 4 100 20000 50003 50004 18446744073709551614; do
        "$nacre" output "$id" --tail $n | cmp - <(tail -n $n "$work/all") || fail "--tail $n"
        "$nacre" output "$id" --tail $n --follow | cmp - <(tail -n $n "$work/all") || fail "-f $n"
    done
    "$nacre" output "$id" --tail 1 --stream err | cmp - <(echo e2) || fail "--tail 1 of stderr"
    "$nacre" output "$id" --tail 3 --stream err | cmp - <(echo e1; echo e2) || fail "--tail 3 of stderr"
    "$nacre" output "$id" --tail 2 --stream out | cmp - <(echo 50000; printf last) || fail "of stdout"
    for n in 0 1 4096 65536 100000 288904 999999999; do
        "$nacre" output "$id" --offset $n | cmp - <(tail -c +$((n + 1)) "$work/all") || fail "--offset $n"
    done
    nacre output "$id" --tail 2
    equal "$out" $'e2\nlast'
    equal "$err" ""
}

case_output_tail_of_lines() {
    local id
    id=$("$nacre" start -- 'printf "a\n\n\nb\n"') || fail "start failed"
    nacre wait "$id"
    local n
    for n in 0 1 2 3 4 5; do
        "$nacre" output "$id" --tail $n | cmp - <(printf 'a\n\n\nb\n' | tail -n $n) || fail "$n"
    done
    id=$("$nacre" start -- true) || fail "start failed"
    nacre wait "$id"
    nacre output "$id" --tail 5
    equal "$status$out$err" 0
}

case_output_follow() {
    local id
    id=$("$nacre" start -- 'for i in 1 2 3; do echo $i; sleep 0.1; done; (sleep 0.3; echo late) & exit 3') || fail "start failed"
    nacre output "$id" --follow
    equal "$status" 0
    equal "$out" $'1\n2\n3\nlate'
    id=$("$nacre" start -- 'echo now; exec sleep 60') || fail "start failed"
    "$nacre" output "$id" --follow >"$work/follow" &
    until_true printed now "$work/follow"
    nacre kill "$id"
    wait $! || fail "the follower failed"
}

case_output_on_a_terminal() {
    local id verb
    id=$("$nacre" start -- 'printf "\033[31mred\033[0m\t\303\251\377 \302\233x\007\n"') || fail "start failed"
    nacre wait "$id"
    script -qec "env TERM=xterm $nacre output $id" /dev/null | tr -d '\r' >"$work/tty"
    equal "$(<"$work/tty")" $'\033[31mred\033[0m\t\303\251\357\277\275 \357\277\275x^G'
    script -qec "env TERM=xterm NO_COLOR=1 $nacre output $id" /dev/null | tr -d '\r' >"$work/tty"
    equal "$(<"$work/tty")" $'red\t\303\251\357\277\275 \357\277\275x^G'
    script -qec "$nacre output $id --raw" /dev/null | tr -d '\r' >"$work/tty"
    equal "$(<"$work/tty")" $'\033[31mred\033[0m\t\303\251\377 \302\233x\007'
    nacre output "$id"
    equal "$out" $'\033[31mred\033[0m\t\303\251\377 \302\233x\007'
    id=$("$nacre" start -- 'printf "\033]52;c;eA==\a\033[?1049h\033[6n\xe2\x80\xaeend\n"') ||
        fail "start failed"
    nacre wait "$id"
    for verb in "output $id" "output $id --follow" "show $id" 'recall end'; do
        script -qec "env TERM=xterm $nacre $verb" /dev/null | tr -d '\r' >"$work/tty"
        holds "$(<"$work/tty")" end
        sed 's/\x1b\[[0-9;]*m//g' "$work/tty" >"$work/rest"
        lacks "$(<"$work/rest")" $'\033'
        lacks "$(<"$work/rest")" $'\u202e'
    done
}

case_output_gap() {
    local id total=200000000
    id=$("$nacre" start -- "yes xxxxxxxx | head -c $total; echo; echo end; echo e >&2") || fail "start failed"
    nacre wait "$id"
    "$nacre" output "$id" >"$work/all" 2>"$work/gap" || fail "status $?"
    [ "$(wc -l <"$work/gap")" -eq 1 ] || fail "the gap is not named once: $(<"$work/gap")"
    match "$(<"$work/gap")" '^nacre: ([0-9]+) bytes before offset [0-9]+ are not in the log '
    equal $((BASH_REMATCH[1] + $(stat -c %s "$work/all"))) $((total + 7))
    nacre output "$id" --tail 2 --stream out
    equal "${#out}" "$(($(wc -c <"$work/out") - 1))"
    match "$out" $'x\nend$'
    nacre output "$id" --stream err
    equal "$out" e
    equal "$err" ""
}

# -- wait, input, kill -----------------------------------------------------------------------------

case_recall() {
    local a b
    a=$("$nacre" start -- 'seq 1 5000; echo "Error: one" >&2; printf "crlf end\r\n"') || fail "start failed"
    nacre wait "$a"
    sleep 0.01
    b=$("$nacre" start -- 'echo error two; printf "last error"') || fail "start failed"
    nacre wait "$b"
    nacre recall error
    equal "$status" 0
    equal "$out" "${b:0:8} stdout:1: error two"$'\n'"${b:0:8} stdout:2: last error"
    nacre recall -i ERROR --id "${a:0:6}"
    equal "$out" "${a:0:8} stderr:1: Error: one"
    nacre recall 'end$' --since 1h --all
    equal "$out" "${a:0:8} stdout:5001: crlf end"
    nacre recall -F 'end$'
    equal "$status$out" 1
    nacre recall --stream out Error
    equal "$status$out" 1
    nacre recall --since 2099-01-01 error
    equal "$status$out" 1
    nacre recall '^4999$' -C 1
    equal "$out" "${a:0:8} stdout-4998- 4998"$'\n'"${a:0:8} stdout:4999: 4999"$'\n'"${a:0:8} stdout-5000- 5000"
    nacre recall '^[24]$' -C 0
    lines 2
    nacre recall '^(2|6)$' -C 1
    equal "$(sed -n 4p "$work/out")" --
    nacre recall --limit 3 '^\d+$'
    equal "$(tail -n 1 "$work/out")" '[4997 more matching lines; --limit shows more]'
    lines 4
}
case_recall_lines() {
    local id
    id=$("$nacre" start -- 'seq 1 500; seq 1 3 >&2') || fail "start failed"
    nacre wait "$id"
    nacre recall --id "$id" --lines 120-121
    equal "$out" "${id:0:8} stdout:120: 120"$'\n'"${id:0:8} stdout:121: 121"
    nacre recall --id "$id" --lines -1 --stream out
    equal "$out" "${id:0:8} stdout:500: 500"
    nacre recall --id "$id" --lines 2- --stream err
    lines 2
    nacre recall --id "$id" --lines 1-
    lines 503
    nacre recall --id "$id" --lines 490- 9
    lines 10
    nacre recall --id "$id" --lines 501-
    equal "$status$out" 1
}
case_recall_json() {
    local id
    id=$("$nacre" start -- 'echo one; printf "caf\303\251 \377 two"; echo three >&2') || fail "start failed"
    nacre wait "$id"
    nacre recall --json --limit 1 'o|e'
    python3 - "$work/out" "$id" <<-'END' || fail "not as expected: $out"
	import json, sys
	d = json.load(open(sys.argv[1]))
	assert d["matches"] == 3 and d["more"] == 2 and d["complete"] is True and d["shells"] == 1, d
	line, = d["lines"]
	assert line["id"] == sys.argv[2] and line["text"] == "one" and line["line"] == 1, line
	assert line["stream"] == "stdout" and line["match"] is True and len(line["session"]) == 32, line
	END
    nacre recall --json nothing
    equal "$status" 1
    holds "$out" '"matches": 0'
}
case_recall_misuse() {
    nacre run -- 'yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab | head -100'
    nacre recall 'a('
    equal "$status" 2
    match "$err" 'parenthesis, at offset 2'
    nacre recall
    equal "$status" 2
    nacre recall --lines 5
    equal "$status" 2
    holds "$err" "needs --id"
    nacre recall x --lines 5-3
    equal "$status" 2
    nacre recall x --since soon
    equal "$status" 2
    holds "$err" 10m
    nacre recall x --stream both
    equal "$status" 2
    nacre recall x --session 12 --all
    equal "$status" 2
    nacre recall -Z x
    equal "$status" 2
    nacre recall x --id zzzz
    equal "$status" 2
    nacre recall x --id 0123
    equal "$status" 1
    nacre recall '(a+)+$'
    equal "$status" 1
    holds "$err" "too many steps"
    nacre recall '(a*)*(?:a*)*[c-d]' --timeout 0.001
    equal "$status" 124
    holds "$err" "not done in time"
}
case_recall_on_a_terminal() {
    nacre run -- 'echo some word here'
    script -qec "env TERM=xterm $nacre recall word" /dev/null | tr -d '\r' >"$work/tty"
    holds "$(<"$work/tty")" $'some \033[31mword\033[0m here'
    script -qec "env TERM=xterm NO_COLOR=1 $nacre recall word" /dev/null | tr -d '\r' >"$work/tty"
    match "$(<"$work/tty")" '^[0-9a-f]{8} stdout:1: some word here$'
}
case_wait() {
    local a b begin
    a=$("$nacre" start -- "until [ -e '$work/go' ]; do sleep 0.02; done; exit 3") ||
        fail "start failed"
    b=$("$nacre" start -- 'exec sleep 60') || fail "start failed"
    nacre wait "$a" "$b" --timeout 0.1
    equal "$status" 124
    equal "$out" "$a running
$b running"
    : >"$work/go"
    begin=$(milliseconds)
    nacre wait "$b" "$a" --any
    equal "$status" 0
    equal "$out" "$a exited(3)"
    [ $(($(milliseconds) - begin)) -lt 2000 ] || fail "it took too long"
    nacre wait "$a"
    equal "$status" 0
    equal "$out" "$a exited(3)"
    nacre wait "$a" 0123abcd
    equal "$status" 1
    equal "$out" ""
    nacre kill "$b"
    nacre wait "$a" "$b"
    equal "$status" 0
    equal "$out" "$a exited(3)
$b killed"
}

case_input() {
    local id
    id=$("$nacre" start --keep-stdin -- 'read -r x; echo "got $x"; cat; echo end') || fail "start failed"
    nacre input "$id" $'yes\n'
    equal "$status$out$err" 0
    nacre input "$id" -- -dash
    equal "$status" 0
    printf ' and stdin\n' | "$nacre" input "$id" - || fail "status $?"
    head -c 1000000 /dev/zero | tr '\0' z | "$nacre" input "$id" - --eof || fail "status $?"
    nacre wait "$id"
    equal "$out" "$id exited(0)"
    "$nacre" output "$id" >"$work/all"
    equal "$(head -2 "$work/all")" $'got yes\n-dash and stdin'
    equal "$(wc -c <"$work/all")" $((8 + 16 + 1000000 + 4))
    nacre input "$id" more
    equal "$status" 1
    match "$err" '^nacre: '
    id=$("$nacre" start --keep-stdin -- 'cat; echo end') || fail "start failed"
    nacre input "$id" --eof
    equal "$status" 0
    nacre wait "$id"
    nacre output "$id"
    equal "$out" end
    id=$("$nacre" start -- 'exec sleep 60') || fail "start failed"
    nacre input "$id" text
    equal "$status" 1
    nacre kill "$id"
}

case_kill() {
    local sleep a b begin
    sleep=$(unique_sleep)
    a=$("$nacre" start -- "trap '' TERM; echo ready; while :; do sleep 0.1; : $sleep; done") || fail "start failed"
    until_true eval "[ \"\$($nacre output $a)\" = ready ]"
    begin=$(milliseconds)
    nacre kill "$a" --grace 0.3
    equal "$status" 0
    match "$out" "^killed background shell $a: [0-9]+ process(es)? signalled, [1-9][0-9]* needed SIGKILL, 0 survivors\$"
    [ $(($(milliseconds) - begin)) -lt 2000 ] || fail "it took too long"
    a=$("$nacre" start -- "trap 'echo int; exit 0' INT; echo ready; while :; do sleep 0.05; done") || fail "start failed"
    until_true eval "[ \"\$($nacre output $a)\" = ready ]"
    nacre kill "$a" --signal INT
    equal "$status" 0
    nacre output "$a"
    equal "$out" $'ready\nint'
    a=$("$nacre" start -- "$own_session sleep $sleep & nohup sleep $sleep & (sleep $sleep &); sleep $sleep | cat") || fail "start failed"
    b=$("$nacre" start -- "exec sleep $sleep") || fail "start failed"
    nacre kill "$a" 0123abcd "$b"
    equal "$status" 1
    lines 2
    holds "$err" 'no shell with id or name "0123abcd"'
    until_true dead "sleep $sleep"
    a=$("$nacre" start -- 'exit 0') || fail "start failed"
    nacre wait "$a"
    nacre kill "$a"
    equal "$status" 0
    equal "$out" "shell $a had ended already: exited(0)"
    nacre wait "$a"
    equal "$out" "$a exited(0)"
}

# -- Homes, and this machine -----------------------------------------------------------------------

case_bad_homes() {
    local verb
    echo file >"$work/file"
    for home in "$work/file" "$work/file/below" /proc/nacre /dev/null; do
        NACRE_HOME=$home nacre run -- true
        equal "$status" 1
        equal "$out" ""
        match "$err" '^nacre: '
        [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than one sentence: $err"
        NACRE_HOME=$home nacre start -- true
        equal "$status" 1
    done
    equal "$(<"$work/file")" file
    NACRE_HOME=$work/never nacre list --all
    equal "$status$out$err" 0
    [ ! -e "$work/never" ] || fail "looking created a home"
}

case_damaged_runs() {
    local id file
    id=$("$nacre" start -- 'echo kept') || fail "start failed"
    nacre wait "$id"
    mkdir -p "$NACRE_HOME/runs/00000000000000000000000000000000" "$NACRE_HOME/runs/not-an-id"
    touch "$NACRE_HOME/runs/stray-file"
    nacre list --all
    equal "$status" 0
    holds "$out" "${id:0:8}"
    nacre output "$id"
    equal "$out" kept
    nacre output 0000
    equal "$status" 1
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than one sentence: $err"
    for file in state spec log spans; do
        cp -a "$NACRE_HOME/runs/$id" "$work/saved"
        : >"$NACRE_HOME/runs/$id/$file"
        for verb in output wait kill; do
            nacre $verb "$id"
            [ "$status" -le 1 ] || fail "$verb with an empty $file: status $status, $err"
        done
        nacre list --all
        equal "$status" 0
        rm -r "${NACRE_HOME:?}/runs/$id"
        mv "$work/saved" "$NACRE_HOME/runs/$id"
    done
    nacre output "$id"
    equal "$out" kept
}

# The personality makes the kernel call itself 2.6.
case_old_kernel() {
    local old=$work/old
    printf '#!/bin/sh\nexec setarch --uname-2.6 "%s" "$@"\n' "$(realpath "$nacre")" >"$old"
    chmod +x "$old"
    nacre=$old nacre run -- true
    equal "$status" 1
    match "$err" "nacre needs Linux 5\.4 or newer; this is 2\.6"
}

case_doctor() {
    nacre doctor
    equal "$status" 0
    holds "$out" "home: $NACRE_HOME"
    match "$out" 'containment: (cgroup|subreaper|group)'
    equal "$err" ""
    nacre doctor --json
    equal "$status" 0
    equal "$(json 'r["home"]')" "$NACRE_HOME"
    equal "$(json 'len(r["probes"]) > 0 and all(set(p) >= {"name", "ok", "meaning"} for p in r["probes"])')" True
    NACRE_TIER=subreaper nacre doctor
    holds "$out" 'containment: subreaper'
    NACRE_TIER=group nacre doctor
    holds "$out" 'containment: group'
    equal "$(ls -A "$TMPDIR")" ""
    NACRE_KEEPER=/nonexistent nacre doctor
    equal "$status" 1
}

# A keeper that has no nacre-fence beside it: no sandbox can be made.
without_fence() {
    mkdir "$work/apart"
    cp "${NACRE_KEEPER:-$(dirname "$nacre")/nacre-keeper}" "$work/apart/nacre-keeper"
    cp "$(dirname "$nacre")/nacre-text.so" "$work/apart"
    export NACRE_KEEPER=$work/apart/nacre-keeper
}

case_policy() {
    local rules='[{"deny": ["git", "push", ["-f", "--force"]], "because": "use --force-with-lease"}]'
    nacre policy
    equal "$status" 2
    nacre policy explain x
    equal "$status" 2
    match "$err" '"explain" is not known'
    nacre policy check 'git push -f'
    equal "$status" 0
    equal "${out%%$'\n'*}" allow
    export NACRE_POLICY=$rules
    nacre policy check 'cd x && bash -c "git push -uf"'
    equal "${out%%$'\n'*}" deny
    match "$out" 'use --force-with-lease'
    nacre policy check 'git push $x'
    equal "${out%%$'\n'*}" allow
    match "$out" 'unknown, because'
    NACRE_POLICY_GATE=off nacre policy check 'git push $x'
    equal "${out%%$'\n'*}" ask
    match "$out" 'unknown, because'
    nacre policy check 'git status; rm x' --json
    equal "$(json 'r["verdict"], [c["command"] for c in r["commands"]], r["commands"][1]["classes"]')" \
        "('allow', ['git status', 'rm x'], ['writes', 'destructive'])"
    nacre run 'true; git push --force'
    equal "$status" 1
    match "$err" 'nothing was started: denied by rule .*: use --force-with-lease'
    nacre run 'true'
    equal "$status" 0
    nacre log
    match "$out" 'denial.*git push --force: nothing was started'
    match "$out" 'true  \(allow\)'
    NACRE_POLICY='[{"deny": ["rm"], "match": "ls"}]' nacre config
    equal "$status" 1
    match "$err" 'NACRE_POLICY: rule 1 of policy says that it matches what it does not: ls'
    unset NACRE_POLICY
}

case_doctor_sandbox() {
    nacre doctor
    match "$out" 'sandbox, and what would hold it:'
    if ! nacre sandbox explain --sandbox read-only || [ "$status" != 0 ]; then
        nacre doctor
        match "$out" 'no   P1 files.*the sandbox cannot be had, so nothing was started'
        skip "no sandbox can be made here: $out"
    fi
    nacre doctor --json
    equal "$(json 'len(r["sandbox"]), all(p["held"] for p in r["sandbox"]), r["sandbox_error"]')" \
        "(8, True, None)"
    without_fence
    nacre doctor
    equal "$status" 0
    match "$out" 'no   P1 files.*no   P8 privilege.*cannot execute nacre-fence'
    nacre doctor --json
    equal "$(json 'any(p["held"] for p in r["sandbox"])')" False
    equal "$(json '"nacre-fence" in r["sandbox_error"]')" True
    equal "$(ls -A "$TMPDIR")" ""
}

case_sandbox_explain() {
    local explain=(sandbox explain --sandbox workspace-write)
    usage 'the word is "explain"' sandbox show
    usage 'say which one is meant' sandbox explain -- true
    nacre sandbox explain
    equal "$out" $'sandbox: off (default)\ncommands run with the rights of who starts them'
    mkdir -p "$work/project/.git/hooks" "$work/project/sub" "$work/secrets" "$work/elsewhere"
    touch "$work/project/.git/config"
    cd "$work/project" || fail "no project"
    nacre "${explain[@]}"
    [ "$status" = 0 ] || skip "no sandbox can be made here: $out"
    equal "$err" ""
    holds "$out" "sandbox: workspace-write (--sandbox)"
    holds "$out" "network: off, but for loopback"
    match "$out" "writable: [^:]*$work/project"
    match "$out" "protected: [^:]*$work/project/.git/config"
    match "$out" "pinned: [^:]*$work/project/.git"
    match "$out" 'yes  P1 files.*yes  P4 network.*-    P5 hosts.*yes  P8 privilege'
    equal "$(ls -A "$TMPDIR")" ""
    lacks "$(ls -A "$NACRE_HOME" 2>/dev/null)" fence

    nacre "${explain[@]}" --hide "$work/secrets" --write "$work/elsewhere" --network example.org --json
    equal "$status" 0
    equal "$(json 'r["mode"], r["network"], r["error"]')" "('workspace-write', ['example.org'], None)"
    equal "$(json "'$work/secrets' in r['places']['hidden']")" True
    equal "$(json "'$work/elsewhere' in r['places']['writable']")" True
    equal "$(json 'all(p["held"] for p in r["properties"])')" True
    nacre "${explain[@]}" --network on
    match "$out" '-    P4 network.*-    P5 hosts'

    nacre "${explain[@]}" -- 'touch sub/a; echo >>.git/config; exit 7'
    equal "$status" 7
    holds "$err" "nacre: Sandbox: refused to write $work/project/.git/config: it is protected"
    [ -e sub/a ] && [ ! -s .git/config ] || fail "it did not run in the sandbox"
    nacre "${explain[@]}" -- true
    equal "$err" "nacre: Sandbox: refused nothing, as far as that is known"

    nacre sandbox explain --sandbox workspace-write --write "$work/none"
    equal "$status" 1
    holds "$err" "sandbox_write names $work/none"
    without_fence
    nacre "${explain[@]}"
    equal "$status" 1
    match "$out" 'no   P1 files.*cannot execute nacre-fence'
}

# -- Settings --------------------------------------------------------------------------------------

# config_file TEXT: becomes the configuration file; $config is its path.
config_file() {
    config=$work/config.json
    printf '%s' "$1" >"$config"
    chmod 600 "$config"
    export NACRE_CONFIG=$config
}

case_config() {
    nacre config
    equal "$status" 0
    equal "$err" ""
    match "$out" $'(^|\n)timeout +1m +default\n'
    match "$out" $'(^|\n)home +'"$NACRE_HOME"$' +environment NACRE_HOME\n'
    match "$out" $'\nkeeper +/[^ ]*nacre-keeper +'
    config_file $'{\n  "timeout": 90,\n  "quota": "1MiB", "env_allow": ["A", "B_*"]\n}\n'
    export NACRE_QUOTA=2MiB
    nacre config
    match "$out" $'\ntimeout +90s +'"$config:2"$'\n'
    match "$out" $'\nquota +2MiB +environment NACRE_QUOTA\n'
    match "$out" $'\nenv_allow +A,B_\\* +'"$config:3"$'\n'
    nacre config timeout
    equal "$out" 90s
    nacre config env_deny
    equal "$status$out" 0
    nacre config quota --explain
    holds "$out" 'allowed: 256KiB to 1TiB; default: 64MiB'
    nacre config --json
    equal "$status" 0
    equal "$(json 'r["timeout"]["value"], r["timeout"]["origin"], r["timeout"]["default"]')" \
        "(90, '$config:2', '1m')"
    equal "$(json 'r["quota"]["value"], r["env_allow"]["value"], r["history"]["value"]')" \
        "(2097152, ['A', 'B_*'], True)"
    equal "$(json 'r["home"]["value"]')" "$NACRE_HOME"
    nacre config --json grace
    equal "$(json 'list(r)')" "['grace']"
    [ ! -e "$NACRE_HOME" ] || fail "looking created a home"
}

# What is wrong is said by whatever needs the settings.
case_config_wrong() {
    local verb
    config_file $'{\n  "timeout": 90,\n  "quota": "1KiB"\n}\n'
    for verb in 'config' 'config timeout' 'run true' 'list' 'doctor --env'; do
        # shellcheck disable=SC2086
        nacre $verb
        equal "$status" 1
        equal "$out" ""
        equal "$err" "nacre: $config:3: quota takes a size such as 65536 or 64MiB, 256KiB to 1TiB; got \"1KiB\""
    done
    config_file $'{"timeout": 90,\n "timeout_mx": 5}'
    nacre run true
    equal "$err" "nacre: $config:2: there is no setting \"timeout_mx\"; did you mean \"timeout_max\"?"
    config_file $'{"timeout": 90,\n "grace": 5,\n}'
    nacre run true
    match "$err" "^nacre: $config:3: "
    config_file '{}'
    nacre run true
    equal "$status" 0
    chmod 666 "$config"
    nacre run true
    equal "$status" 1
    holds "$err" 'others may write'
    NACRE_CONFIG=$work/none nacre run true
    equal "$status" 1
    holds "$err" "$work/none"
    NACRE_CONFIG='' NACRE_GRACE=soon nacre run true
    equal "$status" 1
    holds "$err" 'NACRE_GRACE: grace takes a time'
}

# What a message quotes stays on its line, and does nothing to the terminal.
case_messages_are_legible() {
    local bad=$'x\nnacre: all is well\e]52;c;eA==\a\u202ey'
    nacre output "$bad"
    lacks "$err" $'\n'
    lacks "$err" $'\e'
    lacks "$err" $'\u202e'
    holds "$err" 'x\nnacre: all is well\x1b]52;c;eA==\x07\u202ey'
    nacre run --cwd "/$bad" -- true
    equal "$status" 1
    holds "$err" '"/x\nnacre: all is well\x1b]52;'
    nacre "$bad"
    lacks "$err" $'\e'
    nacre run "--$bad"
    lacks "$err" $'\e'
    nacre kill "$(printf 'x%.0s' {1..9000})"
    [ ${#err} -lt 1100 ] || fail "a message of ${#err} bytes"
}

case_config_used() {
    unset NACRE_TIER # it would win over the file
    config_file '{"shell": "sh", "tier": "group"}'
    nacre run --json -- 'echo "$0"'
    equal "$(json 'r["output"], r["containment"]')" "('sh\n', 'group')"
    nacre run --shell bash -- 'echo "$0"'
    equal "$out" bash
    unset NACRE_HOME
    config_file "{\"home\": \"$work/elsewhere\"}"
    nacre run -- true
    equal "$status" 0
    [ -d "$work/elsewhere/runs" ] || fail "the home is not there"
}

case_secrets() {
    export OPENAI_API_KEY=v4lue-1 MY_SECRET=v4lue-2 SSH_AUTH_SOCK=/sock GITHUB_TOKEN=v4lue-3
    nacre run -- env
    equal "$status" 0
    lacks "$out" v4lue
    holds "$out" SSH_AUTH_SOCK=/sock
    nacre doctor --env
    equal "$status" 0
    lacks "$out$err" v4lue
    match "$out" $'\n  MY_SECRET +"env_allow": \\["MY_SECRET"\\]\n'
    lacks "$out" SSH_AUTH_SOCK
    export DATABASE_URL=postgres://u:v4lue-4@h/db REDIS_URL=redis://h:6379/0 SENTRY_DSN=v4lue-5
    nacre run -- env
    lacks "$out" v4lue
    holds "$out" REDIS_URL=redis://h:6379/0
    nacre doctor --env
    lacks "$out$err" v4lue
    match "$out" $'\n  DATABASE_URL +"env_allow": \\["DATABASE_URL"\\]  \\(a URL with a password\\)\n'
    match "$out" $'\n  SENTRY_DSN +"env_allow": \\["SENTRY_DSN"\\]\n'
    config_file '{"env_allow": ["GITHUB_*"], "env_deny": ["SSH_AUTH_SOCK"]}'
    nacre run -- env
    holds "$out" GITHUB_TOKEN=v4lue-3
    lacks "$out" MY_SECRET
    lacks "$out" SSH_AUTH_SOCK
    nacre run --env MY_SECRET=given -- env
    holds "$out" MY_SECRET=given
    nacre doctor --env --json
    lacks "$out" v4lue
    equal "$(json '[(e["name"], e["why"]) for e in r["removed"] if e["name"] in ("MY_SECRET", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "DATABASE_URL")]')" \
        "[('DATABASE_URL', 'value'), ('MY_SECRET', 'name'), ('SSH_AUTH_SOCK', 'env_deny')]"
    equal "$(json '[e["allow"] for e in r["removed"] if e["name"] == "MY_SECRET"]')" \
        "['\"env_allow\": [\"GITHUB_*\", \"MY_SECRET\"]']"
}

run_cases "$@"
