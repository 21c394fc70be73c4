#!/usr/bin/env bash
# What people meet at a terminal, and what agents' users and authors of programs do with nacre.
# usage: [NACRE=build/nacre] test_people.sh [CASE...]
# shellcheck source=tests/features/cases.sh
source "$(dirname "$(realpath "$0")")/cases.sh"

# -- A command whose reader is gone ----------------------------------------------------------------

# Nothing is printed: the end of the reader alone is what is noticed.
case_run_reader_gone() {
    local sleep how
    for how in '' --summary --json; do
        sleep=$(unique_sleep)
        mkfifo "$work/fifo"
        # shellcheck disable=SC2086
        env --default-signal=PIPE "$nacre" run $how -- "$own_session sleep $sleep & sleep $sleep" \
            >"$work/fifo" 2>"$work/err" &
        run_pid=$!
        exec 3<"$work/fifo"
        until_true alive "sleep $sleep"
        kill -0 $run_pid || fail "it did not wait"
        exec 3<&-
        status=0
        wait $run_pid 2>/dev/null || status=$?
        equal "$status" 141
        equal "$(<"$work/err")" ""
        until_true dead "sleep $sleep"
        rm "$work/fifo"
    done
    "$nacre" list --all | grep -c $'^cancelled\t' >"$work/out"
    equal "$(<"$work/out")" 3
}

# Who reads stderr matters only where nobody reads stdout.
case_run_reader_of_stderr() {
    local sleep
    sleep=$(unique_sleep)
    mkfifo "$work/fifo"
    env --default-signal=PIPE "$nacre" run -- "sleep $sleep" >/dev/null 2>"$work/fifo" &
    run_pid=$!
    exec 3<"$work/fifo"
    until_true alive "sleep $sleep"
    exec 3<&-
    status=0
    wait $run_pid 2>/dev/null || status=$?
    equal "$status" 141
    until_true dead "sleep $sleep"
    env --default-signal=PIPE "$nacre" run -- "echo ready; until [ -e '$work/go' ]; do sleep 0.02; done; echo end" \
        2>"$work/fifo" > >(cat >"$work/out") &
    run_pid=$!
    exec 3<"$work/fifo"
    until_true printed ready "$work/out"
    exec 3<&-
    touch "$work/go"
    wait $run_pid || fail "it ended for a reader of stderr: $?"
    until_true printed end "$work/out"
}

# A terminal that hangs up, as when a connection breaks, with SIGHUP ignored.
case_run_terminal_gone() {
    local sleep
    sleep=$(unique_sleep)
    python3 -IS - "$nacre" "$sleep" <<-'END' || fail "it did not end by SIGPIPE"
	import os, pty, signal, subprocess, sys, time
	master, slave = pty.openpty()
	run = subprocess.Popen([sys.argv[1], "run", "--", "sleep " + sys.argv[2]], stdin=subprocess.DEVNULL,
	                       stdout=slave, stderr=slave, start_new_session=True,
	                       preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
	os.close(slave)
	while subprocess.run(["pgrep", "-f", "^sleep " + sys.argv[2]], stdout=subprocess.DEVNULL).returncode:
	    time.sleep(0.02)
	assert run.poll() is None
	os.close(master)
	assert run.wait(20) == -signal.SIGPIPE, run.returncode
	END
    until_true dead "sleep $sleep"
}

# -- Words, options and help -----------------------------------------------------------------------

case_argv() {
    nacre run -- printf '[%s]\n' 'a b' '$HOME' '*' ''
    equal "$out" $'[a b]\n[$HOME]\n[*]\n[]'
    nacre run -- 'printf "[%s]\n" "$((1 + 1))"'
    equal "$out" '[2]'
    nacre run -- sh -c 'exit 7'
    equal "$status" 7
    nacre run -- no-such-program-here x
    equal "$status" 127
    holds "$err" 'no-such-program-here'
    holds "$err" 'a shell command is one argument'
    nacre run -- "$work" x
    equal "$status" 126
    usage '--shell' run --shell sh -- echo a
    usage '--shell' start --shell sh -- echo a
    local id
    id=$("$nacre" start -- printf '[%s]\n' 'a b' '$HOME') || fail "start failed"
    nacre wait "$id"
    nacre output "$id"
    equal "$out" $'[a b]\n[$HOME]'
}

case_letters() {
    local id
    nacre run --timeout 0.2 -C / -e A=1 -e B=2 -- 'pwd; echo $A$B; exec sleep 60'
    equal "$status" 124
    equal "$out" $'/\n12'
    nacre run --timeout 2m -eA=3 -- 'echo $A'
    equal "$out" 3
    id=$("$nacre" start -- 'seq 1 5') || fail "start failed"
    nacre wait "$id" -t 10s
    nacre logs "$id" -n 2
    equal "$out" $'4\n5'
    nacre logs "$id" -fn2
    equal "$out" $'4\n5'
    nacre ls -aq
    holds "$out" "$id"
    nacre ps -a
    holds "$out" "seq 1 5"
    nacre inspect "$id"
    holds "$out" 'Exit code: 0'
    id=$("$nacre" start -- 'exec sleep 300') || fail "start failed"
    nacre stop "$id" -s KILL
    holds "$out" "killed background shell $id"
    usage 'unknown option "-x"' ls -x
    usage 'unknown option "-ax"' ls -ax
    usage '--tail needs a value' logs abcd -n
    usage '--timeout takes a time above 0' run --timeout 0 -- true
    nacre -V
    equal "$out" "$("$nacre" --version)"
}

case_help_fits() {
    local verb
    nacre
    equal "$status" 2
    equal "$out" ""
    holds "$err" $'\n  run '
    nacre help
    for verb in '' $(awk '/^verbs:$/ { on = 1; next } NF == 0 { on = 0 } on && $1 != "help" { print $1 }' "$work/out"); do
        # shellcheck disable=SC2086
        nacre help $verb
        equal "$status" 0
        equal "$(awk 'length > 79 || / $/' "$work/out")" ""
    done
    nacre help ls
    holds "$out" 'other words for it: ls ps'
}

# -- Lists -----------------------------------------------------------------------------------------

case_list_choices() {
    local ok bad run red=$'\033[31m'
    ok=$("$nacre" start -- true) || fail "start failed"
    bad=$("$nacre" start --name web -- 'exit 3') || fail "start failed"
    nacre wait "$ok" "$bad"
    run=$("$nacre" start -- 'exec sleep 300') || fail "start failed"
    nacre list --failed -q
    equal "$out" "$bad"
    nacre list --last 2 -q
    equal "$out" "$bad"$'\n'"$run"
    nacre list --last 0 -q
    equal "$out" ""
    nacre list --since 1h -q
    lines 3
    nacre list --since 2099-01-01 -q
    equal "$out" ""
    nacre list --last 1 --failed --json
    equal "$(json 'len(r), r[0]["id"]')" "(1, '$bad')"
    nacre list -a --format '{id}\t{status}|{name}|{command}{nix'
    holds "$out" "$bad"$'\texited(3)|web|exit 3{nix'
    holds "$out" "$ok"$'\texited(0)|-|true'
    usage '{nix}' list --format '{nix}'
    usage 'exclude each other' list -q --json
    usage '--since takes' list --since soon
    script -qec "env TERM=xterm $nacre list --all" /dev/null | tr -d '\r' >"$work/tty"
    holds "$(<"$work/tty")" "${red}exited(3)"
    lacks "$(<"$work/tty")" "${red}exited(0)"
    holds "$(<"$work/tty")" ' TIME '
    script -qec "$nacre list" /dev/null >"$work/tty"
    lacks "$(<"$work/tty")" ' TIME '
    equal "$("$nacre" list --all | awk -F'\t' '{ print NF }' | sort -u)" 10
    nacre kill "$run"
}

case_kill_and_rm_many() {
    local sleep a b c
    sleep=$(unique_sleep)
    a=$(NACRE_SESSION=one "$nacre" start -- "exec sleep $sleep") || fail "start failed"
    b=$(NACRE_SESSION=two "$nacre" start -- "exec sleep $sleep") || fail "start failed"
    c=$(NACRE_SESSION=two "$nacre" start -- "exec sleep $sleep") || fail "start failed"
    nacre kill --session two
    equal "$status" 0
    lines 2
    lacks "$out" "$a"
    nacre list -q
    equal "$out" "$a"
    nacre rm --all
    equal "$status$out$err" 0
    nacre list -aq
    equal "$out" "$a"
    nacre output "$b"
    equal "$status" 1
    nacre kill --all
    holds "$out" "killed background shell $a"
    until_true dead "sleep $sleep"
    nacre kill --all
    equal "$status$out$err" 0
    usage 'which shells' kill --all "$a"
    usage 'which shells' rm --all "$a"
    nacre kill --session nobody
    equal "$status" 1
    lacks "$err" "$c"
}

case_wait_exit_code() {
    local ok bad
    ok=$("$nacre" start -- true) || fail "start failed"
    bad=$("$nacre" start -- 'exit 3') || fail "start failed"
    nacre wait "$ok" "$bad"
    equal "$status" 0
    nacre wait --exit-code "$ok" "$bad"
    equal "$status" 3
    nacre wait --exit-code "$ok"
    equal "$status" 0
    bad=$("$nacre" start --timeout 0.1 -- 'exec sleep 300') || fail "start failed"
    nacre wait --exit-code "$ok" "$bad"
    equal "$status" 124
    bad=$("$nacre" start -- 'kill -SEGV $$') || fail "start failed"
    nacre wait --exit-code "$bad"
    equal "$status" 139
}

case_wait_for_a_port() {
    local web other port
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    web=$("$nacre" start --name web -- "sleep 0.3; exec python3 -m http.server $port --bind 127.0.0.1") ||
        fail "start failed"
    nacre wait web --port "$port" --timeout 20
    equal "$status" 0
    equal "$out" "$web $port"
    nacre list --port "$port" -q
    equal "$out" "$web"
    other=$("$nacre" start -- 'exec sleep 300') || fail "start failed"
    nacre wait "$other" --port "$port" --timeout 20
    equal "$status" 1
    match "$err" "port $port is held by shell ${web:0:8} \\(\\[web\\]\\)"
    nacre wait "$other" --port 0 --timeout 0.1
    equal "$status" 124
    nacre wait "$other" --port 70000
    equal "$status" 2
    nacre wait "$other" "$web" --port 1
    equal "$status" 2
    nacre kill "$other" "$web"
}

case_wait_until_input() {
    local id other
    id=$("$nacre" start --tty -- 'sleep 0.3; read -s x') || fail "start failed"
    nacre wait "$id" --until-input --timeout 20
    equal "$status" 0
    match "$out" "^$id bash \\(pid [0-9]+\\) waits for a password, echo off\$"
    other=$("$nacre" start -- 'exec sleep 300') || fail "start failed"
    nacre wait "$other" --until-input --timeout 20
    equal "$status" 1
    match "$err" "has no stdin that could be typed to"
    nacre kill "$id" "$other"
}

case_output_times() {
    local id moment='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}'
    id=$("$nacre" start -- 'echo one; printf two; sleep 0.3; echo; echo three >&2; sleep 0.1; printf four') || fail "start failed"
    nacre wait "$id"
    nacre output "$id" --timestamps
    match "$out" "^$moment one"$'\n'"$moment two"$'\n'"$moment three"$'\n'"$moment four\$"
    nacre output "$id" -t --stream err
    match "$out" "^$moment three\$"
    id=$("$nacre" start -- "echo old; until [ -e '$work/go' ]; do sleep 0.02; done; echo new") || fail "start failed"
    until_true has_output "$id" old
    local since
    sleep 1
    since=$(date +%FT%T)
    touch "$work/go"
    nacre wait "$id"
    nacre output "$id" --since "$since"
    equal "$out" new
    nacre output "$id" --since 2099-01-01
    equal "$out" ""
    usage '--since takes' output "$id" --since soon
}

# -- Whose they are, and what happened -------------------------------------------------------------

# An agent that starts a shell with a description, and says who it is.
agent() {
    python3 -IS - "$nacre" "$work" <<-'END'
	import json, os, subprocess, sys, time
	server = subprocess.Popen([sys.argv[1], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
	def ask(id, method, params):
	    line = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
	    server.stdin.write(json.dumps(line).encode() + b"\n")
	    server.stdin.flush()
	    return json.loads(server.stdout.readline())
	ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
	                      "clientInfo": {"name": "tiny-agent", "version": "1"}})
	ask(2, "tools/call", {"name": "bash", "arguments": {
	    "command": "echo ready; exec sleep 300", "description": "Wait for nothing",
	    "run_in_background": True}})
	open(sys.argv[2] + "/started", "w").close()
	while not os.path.exists(sys.argv[2] + "/end"):
	    time.sleep(0.02)
	server.stdin.close()
	server.wait()
	END
}

# Whether these events are in the log of a shell, and who did them.
noted() {
    nacre log --json
    [ "$(python3 -IS -c 'import json, sys
events = (json.loads(line) for line in open(sys.argv[1]))
print(", ".join(sorted("%s %s" % (e["event"], e.get("by")) for e in events if e["id"] == sys.argv[2])))' \
        "$work/out" "$1")" = "$2" ]
}

case_whose_they_are() {
    local id
    agent &
    until_true test -e "$work/started"
    nacre list --json
    id=$(json 'r[0]["id"]')
    equal "$(json 'r[0]["client"], r[0]["description"]')" "('tiny-agent', 'Wait for nothing')"
    nacre list
    holds "$out" $'\ttiny-agent\t(Wait for nothing) echo ready; exec sleep 300'
    nacre run -- true
    nacre sessions --all
    lines 1
    match "$out" $'^alive\t[0-9a-f]{8}\t-\ttiny-agent\t'
    nacre kill "$id"
    # Its server notes the end when it hears of it, which the kill does not wait for.
    until_true noted "$id" 'end None, kill person, start None'
    touch "$work/end"
    wait
}

case_log() {
    local id n
    nacre log
    equal "$status$out$err" 0
    id=$("$nacre" start --name web -- 'exec sleep 300') || fail "start failed"
    nacre run -- 'exit 3'
    nacre run --cwd /none -- true
    nacre kill "$id"
    nacre log
    equal "$(cut -f2 "$work/out" | tr '\n' ' ')" 'start start end denial kill '
    match "$out" $'^[0-9-]+T[0-9:.]+Z\tstart\t'"$id"$'\t[0-9a-f]{32}\t\[web\] exec sleep 300'
    holds "$out" $'\texited(3) after 0.'
    match "$out" $'\tSIGTERM by a person: 1 signalled, 0 needed SIGKILL, 0 survived$'
    nacre log -n 2
    equal "$(cut -f2 "$work/out" | tr '\n' ' ')" 'denial kill '
    nacre log --since 2099-01-01
    equal "$out" ""
    script -qec "stty cols 70; env TERM=xterm $nacre log" /dev/null | tr -d '\r' >"$work/tty"
    equal "$(sed 's/\x1b\[[0-9]*m//g; s/…/./' "$work/tty" | awk 'length > 70')" ""
    match "$(sed 's/\x1b\[[0-9]*m//g' "$work/tty")" '^[0-9-]+ [0-9:]+  start     '"${id:0:8}"'  \[web\]'
    "$nacre" log --follow -n 0 >"$work/follow" &
    n=$!
    until_true eval "\"$nacre\" run -- 'echo followed' >/dev/null; grep -q followed '$work/follow'"
    kill $n
    wait $n 2>/dev/null
    # Nobody reads any more.
    mkfifo "$work/fifo"
    "$nacre" log --follow >"$work/fifo" &
    n=$!
    head -c 1 "$work/fifo" >"$work/first"
    wait $n 2>/dev/null
    equal "$(wc -c <"$work/first")" 1
}

# -- The server, for those who add it --------------------------------------------------------------

case_mcp_check() {
    nacre mcp --check
    equal "$err" ""
    equal "$status" 0
    match "$out" '^server: nacre [0-9.]+ answers after [0-9]+ ms, with [0-9]+ tools'
    match "$out" $'\ncommand: "true" ended after [0-9]+ ms: Exit code: 0'
    match "$out" $'\nhome: '"$NACRE_HOME"$'\ncontainment: (cgroup|subreaper|group)\n  '
    nacre list --all
    equal "$out" ""
    NACRE_TIER=group nacre mcp --check
    holds "$out" 'containment: group'
    NACRE_KEEPER=/nonexistent nacre mcp --check
    equal "$status" 1
    holds "$err" 'could not be run'
    NACRE_GRACE=soon nacre mcp --check
    equal "$status" 1
    usage 'exclude each other' mcp --check --install claude
    usage 'no client is called "nobody"' mcp --install nobody
    usage 'no client is called "nobody"' mcp --print-config nobody
}

# What an agent that worked here was not told yet is not told to the check.
case_mcp_check_takes_nothing() {
    local id
    id=$("$nacre" start -- true) || fail "start failed"
    nacre wait "$id"
    nacre mcp --check
    equal "$status" 0
    match "$out" $'\ncommand: "true" ended after [0-9]+ ms: Exit code: 0'
}

# Wherever an id is wanted.
case_names_are_ids() {
    local sleep
    sleep=$(unique_sleep)
    "$nacre" start --name web -- "echo up; exec sleep $sleep" >/dev/null || fail "start failed"
    until_true has_output web up
    nacre show web
    match "$out" $'^Running \\| stdout: 1 line \\| stderr: 0 lines\nup$'
    nacre recall --id web up
    holds "$out" 'stdout:1: up'
    nacre kill web
    match "$out" '^killed background shell [0-9a-f]{32}: '
    nacre wait web
    match "$out" '^[0-9a-f]{32} killed$'
    nacre kill web
    match "$out" '^shell [0-9a-f]{32} had ended already: killed$'
    nacre rm web
    equal "$status" 0
    usage 'no shell is called "web", and it is no id' rm web
}

case_mcp_print_config() {
    local client
    export MY_SECRET=v4lue-1
    for client in claude copilot cursor gemini opencode qwen vscode zed; do
        nacre mcp --print-config $client
        equal "$status$err" 0
        equal "$(json '[list(v) for v in r.values()]')" "[['nacre']]"
        holds "$out" "$(realpath "$nacre")"
        holds "$out" "\"NACRE_HOME\": \"$NACRE_HOME\""
    done
    nacre mcp --print-config codex
    equal "$(python3 -IS -c 'import sys, tomllib; s = tomllib.load(open(sys.argv[1], "rb"))["mcp_servers"]["nacre"]
print(s["args"], s["env"])' "$work/out")" "['mcp'] {'NACRE_HOME': '$NACRE_HOME'}"
    script -qec "$nacre mcp --print-config claude" /dev/null | tr -d '\r' >"$work/tty"
    holds "$(<"$work/tty")" "claude mcp add --scope user nacre -- env NACRE_HOME=$NACRE_HOME $(realpath "$nacre") mcp"
    holds "$(<"$work/tty")" '"deny": ["Bash"]'
    holds "$(<"$work/tty")" '"env_allow": ["MY_SECRET"]'
    lacks "$(<"$work/tty")" v4lue
    (unset NACRE_HOME && "$nacre" mcp --print-config claude >"$work/out") || fail "status $?"
    equal "$(json 'r')" "{'mcpServers': {'nacre': {'type': 'stdio', 'command': '$(realpath "$nacre")', 'args': ['mcp']}}}"
}

case_mcp_install() {
    export HOME=$work/home MY_SECRET=v4lue
    mkdir -p "$HOME/dots" "$HOME/.cursor"
    nacre mcp --install claude
    equal "$status$err" 0
    holds "$out" "added the server to $HOME/.claude.json"
    holds "$out" '"deny": ["Bash"]'
    holds "$out" 'MY_SECRET'
    "$nacre" mcp --print-config claude | cmp - "$HOME/.claude.json" || fail "it is another fragment"
    nacre mcp --install claude
    holds "$out" "the server is in $HOME/.claude.json already"
    equal "$(ls -A "$HOME" | tr '\n' ' ')" '.claude.json .cursor dots '
    # All else stays, in its order, behind a link, too; the old file is kept.
    printf '{"z": 1.5, "a": [0.1, "caf\303\251", 12345678901234567], "mcpServers": {"other": {}, "nacre": {"command": "old"}}}' \
        >"$HOME/dots/mcp.json"
    cp "$HOME/dots/mcp.json" "$work/old"
    chmod 640 "$HOME/dots/mcp.json"
    ln -s ../dots/mcp.json "$HOME/.cursor/mcp.json"
    nacre mcp --install cursor
    equal "$status$err" 0
    [ -L "$HOME/.cursor/mcp.json" ] || fail "the link is gone"
    equal "$(stat -c %a "$HOME/dots/mcp.json")" 640
    cp "$HOME/dots/mcp.json" "$work/out"
    equal "$(json 'list(r), r["a"], list(r["mcpServers"]), r["mcpServers"]["nacre"]["args"]')" \
        "(['z', 'a', 'mcpServers'], [0.1, 'café', 12345678901234567], ['other', 'nacre'], ['mcp'])"
    holds "$(<"$work/out")" '0.1,'
    cmp "$work/old" "$HOME/dots/mcp.json.before-nacre-1" || fail "the old file is not kept"
    # TOML is added to, never rewritten.
    mkdir "$HOME/.codex"
    printf '# mine\nmodel = "x"' >"$HOME/.codex/config.toml"
    nacre mcp --install codex
    equal "$status" 0
    equal "$(head -n 2 "$HOME/.codex/config.toml")" $'# mine\nmodel = "x"'
    equal "$(python3 -IS -c 'import sys, tomllib; s = tomllib.load(open(sys.argv[1], "rb"))
print(s["model"], s["mcp_servers"]["nacre"]["args"])' "$HOME/.codex/config.toml")" "x ['mcp']"
    nacre mcp --install codex
    holds "$out" 'already'
    NACRE_HOME=/elsewhere nacre mcp --install codex
    equal "$status" 1
    holds "$err" 'remove that first'
    # What cannot be read is not touched.
    mkdir -p "$HOME/.config/zed"
    printf '// mine\n{"a": 1}\n' >"$HOME/.config/zed/settings.json"
    nacre mcp --install zed
    equal "$status" 1
    holds "$err" "settings.json cannot be changed: line 1:"
    equal "$(<"$HOME/.config/zed/settings.json")" $'// mine\n{"a": 1}'
    equal "$(ls "$HOME/.config/zed")" settings.json
    XDG_CONFIG_HOME=$work/config nacre mcp --install opencode
    holds "$out" "added the server to $work/config/opencode/opencode.json"
}

# -- Completion ------------------------------------------------------------------------------------

# What stands before a tab in what nacre offers for these words.
offered() { "$nacre" __complete "$@" | cut -f1 | tr '\n' ' '; }

case_complete() {
    local id web ended
    equal "$(offered li)" 'list '
    equal "$(offered lo)" 'log logs '
    equal "$(offered help ki)" 'kill '
    equal "$(offered --)" ''
    equal "$(offered run --su)" '--summary '
    equal "$(offered run --timeout 5 --su)" '--summary '
    equal "$(offered run --cwd '')" ':folders '
    equal "$(offered run --stdin '')" ':files '
    equal "$(offered run --cwd / make '')" ':program 3 '
    equal "$(offered run -- make '')" ':program 2 '
    equal "$(offered run -- '')" ':program 2 '
    equal "$(offered run --summary '')" ':program 2 '
    equal "$(offered completion '')" 'bash zsh fish '
    equal "$(offered mcp --install c)" 'claude codex copilot cursor '
    equal "$(offered output --stream '')" 'out err '
    equal "$(offered output --stream=o)" '--stream=out '
    equal "$(offered output --stream = o)" 'out '
    equal "$(offered config timeout_)" 'timeout_max '
    equal "$(offered list --json --js)" ''
    equal "$(offered run --env A=1 --en)" '--env '
    equal "$(offered nothing '')" ''
    [ ! -e "$NACRE_HOME" ] || fail "completing created a home"
    web=$(NACRE_SESSION=agent "$nacre" start --name web -- $'exec sleep 300 # \e[1m') || fail "start failed"
    ended=$("$nacre" start -- 'exit 3') || fail "start failed"
    "$nacre" wait "$ended" >"$work/wait"
    equal "$("$nacre" __complete kill '')" "${web:0:8}"$'\t''running [web] exec sleep 300 #  [1m'
    equal "$(offered rm '')" "${ended:0:8} "
    equal "$(offered output '' | tr ' ' '\n' | sort | tr -d '\n')" "$(printf '%s\n' "${web:0:8}" "${ended:0:8}" | sort | tr -d '\n')"
    equal "$(offered output "${web:0:5}")" "${web:0:8} "
    equal "$(offered kill "$web" '')" ''
    equal "$(offered show "$web" '')" ''
    equal "$(offered list --session ag)" 'agent '
    nacre kill "$web"
}

# in_terminal COMMAND: a real terminal of 100 columns, with a program in it that shows "prompt>".
in_terminal() {
    tm new-session -d -x 100 -y 30 "$1"
    trap 'tm kill-server' EXIT
    until_true on_screen 'prompt>'
}
type_in() { tm send-keys -l "$1"; }
at_line() { [[ $(tm capture-pane -p | sed '/^$/d' | tail -n 1) == "$1"* ]]; }

# Tab, pressed in the shells themselves.
tabs() {
    local id folder sleep
    sleep=$(unique_sleep)
    folder=$(dirname "$(realpath "$nacre")")
    export PATH=$folder:$PATH
    mkdir -p "$work/place/some-folder"
    touch "$work/place/some-file"
    id=$("$nacre" start --name web -- "exec sleep $sleep") || fail "start failed"
    in_terminal "$1"
    type_in 'nacre sho'
    tm send-keys Tab
    until_true on_screen 'prompt> nacre show'
    tm send-keys Tab
    until_true on_screen "prompt> nacre show ${id:0:8}"
    tm send-keys C-u
    type_in 'nacre output --stream e'
    tm send-keys Tab
    until_true on_screen 'nacre output --stream err'
    tm send-keys C-u
    type_in "nacre run --cwd $work/place/some-fo"
    tm send-keys Tab
    until_true eval "tm capture-pane -pJ | grep -q 'place/some-folder'"
    tm send-keys C-u
    type_in "nacre run ls $work/place/some-fi"
    tm send-keys Tab
    until_true eval "tm capture-pane -pJ | grep -q 'place/some-file'"
    tm send-keys C-u
    "$nacre" start -- "exec sleep $sleep" >"$work/second" || fail "start failed"
    type_in 'nacre kill '
    # One more if the two ids begin alike.
    until_true eval "tm send-keys Tab; on_screen 'running [web] exec sleep'"
    on_screen "$(cut -c1-8 "$work/second")" || fail "the second is not listed: $(tm capture-pane -p)"
    "$nacre" kill --all >"$work/killed"
}

case_tab_in_bash() {
    printf 'PS1="prompt> "; bind "set bell-style none"; source <(nacre completion bash)\n' >"$work/rc"
    tabs "bash --noprofile --rcfile $work/rc"
}

case_tab_in_zsh() {
    command -v zsh >/dev/null || skip "needs zsh"
    mkdir "$work/z"
    printf 'PS1="prompt> "\nunsetopt beep prompt_sp\nautoload -Uz compinit; compinit -u -d %s/dump\nsource <(nacre completion zsh)\n' "$work" >"$work/z/.zshrc"
    tabs "env ZDOTDIR=$work/z zsh -d"
}

case_tab_in_fish() {
    command -v fish >/dev/null || skip "needs fish"
    export HOME=$work/home
    mkdir -p "$HOME/.config/fish/completions"
    "$nacre" completion fish >"$HOME/.config/fish/completions/nacre.fish"
    printf 'function fish_prompt; echo -n "prompt> "; end\nset -g fish_greeting\nset -g fish_autosuggestion_enabled 0\n' >"$HOME/.config/fish/config.fish"
    tabs "env HOME=$HOME XDG_CONFIG_HOME=$HOME/.config fish"
}

# -- Shells of another libc ------------------------------------------------------------------------

# The preload is made for glibc's loader; another one would call it without arguments.
case_musl_shell() {
    command -v musl-gcc >/dev/null || skip "needs musl-gcc"
    cat >"$work/shell.c" <<-'END'
	#include <unistd.h>
	int main(int argc, char **argv)
	{
	    (void)argc;
	    execv("/bin/sh", argv);
	    return 1;
	}
	END
    musl-gcc -o "$work/mush" "$work/shell.c" || fail "it does not compile"
    nacre run --shell "$work/mush" -- 'echo "hi $0"; exit 3'
    equal "$err" ""
    equal "$status" 3
    match "$out" '^hi .*mush$'
}

run_cases "$@"
