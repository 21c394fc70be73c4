#!/usr/bin/env bash
# The programs of examples/ print what they are there to show.
# usage: [NACRE_TEST_BUILD=build] test_examples.sh [CASE...]
set -u

examples=$(realpath "${NACRE_TEST_BUILD:-build}/examples")
passed=0 failed=0 shown=

# shows NAME PATTERN [FILTER]: all of the output of an example, as an extended regular expression.
shows() {
    shown+=" $1 "
    [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " = *" $1 "* ]] || return 0
    local out status=0
    out=$(timeout -k 5 60 "$examples/$1" 2>&1) || status=$?
    out=$(${3:-cat} <<<"$out")
    if [ $status -eq 0 ] && [[ $out =~ ^$2$ ]]; then
        passed=$((passed + 1))
        echo "ok      $1"
    else
        failed=$((failed + 1))
        printf 'FAILED  %s: status %d, not as expected:\n%s\n' "$1" $status "$out"
    fi
}

wanted=("$@")
nl=$'\n'
text='"text":"Exit code: 3.*from a tool\\n"'
shows run "exited\(3\), lingering after [0-9]+ ms, left running: sleep 300${nl}hello${nl}oops"
# Which of two commands is heard first is for the machine to say.
shows watch_loop "1 exited\(4\)${nl}1 out: one${nl}2 err: two${nl}2 exited\(0\)" sort
shows tools "[0-9]+ bytes about the tools, for the model.*${nl}\{\"content\":\[\{\"type\":\"text\",$text\}\].*\"status\":\"exited\(3\)\".*\}"
shows background "started [0-9a-f]{32}${nl}\[Background task [0-9a-f]{8} completed\]${nl}status: exited\(0\)${nl}exit_code: 0${nl}success: true${nl}.*${nl}built"
for program in "$examples"/*; do
    [ ! -f "$program" ] || [[ $shown = *" ${program##*/} "* ]] ||
        { echo "FAILED  nobody looks at what ${program##*/} prints" && failed=$((failed + 1)); }
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
