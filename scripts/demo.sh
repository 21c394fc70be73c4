#!/usr/bin/env bash
# Runs a command under nacre and shows it as a model would see it.
# usage: demo.sh BUILD; NACRE_DEMO holds the command, empty for one that shows the promises.
set -eu -o pipefail
cd "$(dirname "$0")/.."

build=$1
default='echo "on stdout"; echo "on stderr" >&2; sleep 60 & echo "left $! behind"'
command=${NACRE_DEMO:-$default}
unset NACRE_DEMO

is_alive() {
    local state
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || return 1
    [ -n "$state" ] && [ "$state" != Z ] && [ "$state" != X ]
}

# The default command leaves a `sleep 60` behind and prints its pid.
check_left_behind() {
    local pid
    pid=$(sed -n 's/^left \([0-9][0-9]*\) behind$/\1/p' "$1")
    if [ -z "$pid" ]; then
        echo "The command did not say which process it left behind." >&2
        return 1
    elif is_alive "$pid"; then
        echo "Process $pid, which the command left behind, is still alive: that is a bug." >&2
        return 1
    fi
    echo "Checked: process $pid, which the command left behind, is gone. It ended with the session."
}

output=$(mktemp)
trap 'rm -f "$output"' EXIT

echo "This is a command under nacre, and what a model would read about it:"
echo
printf "$ %s/nacre run --summary -- '%s'\n\n" "$build" "${command//\'/\'\\\'\'}"
status=0
"$build/nacre" run --summary -- "$command" | tee "$output" || status=$?
echo
if [ "$command" = "$default" ] && [ $status -eq 0 ]; then
    check_left_behind "$output" || status=1
    echo "Try your own: make run CMD='...'"
fi
echo "The log stays: $build/nacre list --all shows the run, $build/nacre output ID its output."
echo
echo "Add it to your agent; for Claude Code:"
echo "  claude mcp add --scope user nacre -- $(realpath "$build/nacre") mcp"
echo "Others: $build/nacre mcp --print-config codex (copilot, cursor, gemini, opencode, qwen, vscode, zed)"
exit $status
