#!/usr/bin/env bash
# nacre attach in real terminals: what is seen and typed, windows of other sizes, several people, and
# that the terminal is as it was whatever happens.
# usage: [NACRE=build/nacre] test_attach.sh [CASE...]
. "$(dirname "$0")/cases.sh"

# open_window COLUMNS ROWS: a shell of a person's, in a pane.
open_window() {
    cd "$work" || exit
    tm new-session -d -x "$1" -y "$2" "env PS1='% ' bash --norc --noprofile"
    trap 'tm kill-server' EXIT
    until_true on_screen '%'
    type_line 'stty -g >before'
    until_true test -s before
}
type_line() { tm send-keys -l "$1" && tm send-keys Enter; }
press() { tm send-keys "$@"; }
screen() { tm capture-pane -p; }
pane_has() { tm capture-pane -p -t "$1" | grep -q -- "$2"; }
row() { screen | sed -n "$1p"; }

# start ARGUMENT...: $id is a shell with a terminal.
start() {
    nacre start --tty "$@"
    equal "$status" 0
    id=$out
}
shows() { "$nacre" screen "$id" | grep -q -- "$1"; }
viewer() { pgrep -f "^$nacre attach .*$id\$" -P "$(tm display-message -p '#{pane_pid}')"; }

# The person's shell answers again, and its terminal is set as it was.
terminal_is_as_it_was() {
    rm -f after
    until_true off_screen 'leaves'
    type_line 'stty -g >after; echo as\_before'
    until_true on_screen as_before
    equal "$(<after)" "$(<before)"
    equal "$(tm display-message -p '#{alternate_on} #{mouse_any_flag} #{keypad_cursor_flag} #{cursor_flag}')" '0 0 0 1'
}

reads='trap : INT; echo ready; while read -r line; do echo "got <$line>" | cat -v; done'

case_who_looks_changes_nothing() {
    start --size 80x24 "$reads"
    open_window 80 30
    type_line "$nacre attach $id"
    until_true on_screen ready
    holds "$(row 30)" 'looking only | Ctrl-] d leaves'
    type_line 'not for you'
    press C-z
    press C-c
    terminal_is_as_it_was
    on_screen "left shell ${id:0:8}: running" || fail "$(screen)"
    ! shows 'not for' || fail 'it was typed to'
    nacre kill "$id"
}

case_who_types_is_heard() {
    start --size 80x24 "$reads"
    open_window 80 24
    type_line "$nacre attach --input $id"
    until_true on_screen ready
    type_line 'hello'
    until_true on_screen 'got <hello>'
    press C-c
    press C-] C-] x Enter
    until_true on_screen $'got <^]x>'
    type_line 'a line with ] and d'
    until_true on_screen 'and d>'
    press C-] d
    terminal_is_as_it_was
    nacre kill "$id"
}

case_other_keys_can_leave() {
    start "$reads"
    open_window 80 24
    type_line "$nacre attach -i --detach-key 'C-p,C-q' $id"
    until_true on_screen ready
    press C-p x C-] d Enter
    until_true on_screen 'd>'
    press C-p C-q
    terminal_is_as_it_was
    type_line "$nacre attach --detach-key none $id"
    until_true on_screen 'got'
    press C-] d
    kill "$(viewer)"
    terminal_is_as_it_was
    usage '--detach-key takes keys' attach --detach-key 'no such' "$id"
    nacre kill "$id"
}

# 80x24 shows a part of 120x40, the one with the cursor in it.
case_a_small_window_follows_the_cursor() {
    start --size 120x40 'for i in $(seq 1 39); do printf "row %d %s end\n" $i "$(printf "%0100d" 0)"; done; stty raw -echo
        printf "\033[1;1H"; head -c 1 >/dev/null; printf "\033[40;118H##"; exec sleep 300'
    open_window 80 24
    type_line "$nacre attach --input $id"
    until_true on_screen 'row 1 '
    holds "$(row 24)" '120x40, from row 1 column 1'
    holds "$(row 23)" 'row 23 '
    press x
    until_true on_screen '##'
    holds "$(row 24)" 'from row 18 column 41'
    holds "$(row 1)" '0 end'
    tm resize-window -x 130 -y 45
    until_true on_screen 'row 1 '
    until_true on_screen ' end'
    holds "$(row 45)" ' shell'
    press C-] d
    terminal_is_as_it_was
    nacre kill "$id"
}

case_a_window_lends_its_size() {
    start --size 120x40 'trap "stty size" WINCH; stty size; while :; do sleep 0.05; done'
    open_window 80 24
    type_line "$nacre attach --resize $id"
    until_true on_screen '24 80'
    nacre show "$id" --json
    equal "$(json 'r["terminal"]["columns"], r["terminal"]["rows"]')" '(80, 24)'
    tm resize-window -x 90 -y 20
    until_true on_screen '20 90'
    press C-c
    terminal_is_as_it_was
    until_true eval "'$nacre' output $id | tail -n 1 | grep -q '40 120'"
    type_line "clear; $nacre attach --resize $id"
    until_true on_screen '20 90'
    kill -KILL "$(viewer)"
    until_true eval "'$nacre' output $id | tail -n 1 | grep -q '40 120'"
    nacre kill "$id"
}

case_two_type_and_others_look() {
    local other looks
    start --size 80x24 "$reads"
    open_window 80 24
    type_line "$nacre attach --input $id"
    until_true on_screen ready
    other=$(tm split-window -d -h -P -F '#{pane_id}' "$nacre attach --input $id")
    looks=$(tm split-window -d -P -F '#{pane_id}' "$nacre attach $id")
    until_true pane_has "$other" ready
    until_true pane_has "$looks" ready
    tm send-keys -l -t "$other" first
    until_true pane_has "$looks" first
    tm send-keys -l -t "$looks" nothing
    type_line ' second'
    until_true pane_has "$other" 'got <first second>'
    nacre show "$id" --json
    equal "$(json 'r["attached"]["people"], r["attached"]["typing"]')" '(3, 2)'
    tm kill-pane -t "$looks"
    tm kill-pane -t "$other"
    until_true eval "'$nacre' show $id --json | grep -q '\"people\": 1'"
    type_line last
    until_true on_screen 'got <last>'
    nacre kill "$id"
}

case_signals_leave_the_terminal_as_it_was() {
    local signal
    start --size 80x24 'printf "\033[?1049h\033[?1h\033=\033[?1000h\033[?1002h\033[?1006h\033[?2004h\033[?25lfull"; exec sleep 300'
    open_window 80 24
    for signal in TERM HUP INT QUIT; do
        type_line "clear; $nacre attach --input $id"
        until_true on_screen full
        until_true eval '[ "$(tm display-message -p "#{mouse_any_flag}#{keypad_cursor_flag}#{cursor_flag}")" = 110 ]'
        kill -"$signal" "$(viewer)"
        terminal_is_as_it_was
        type_line clear
    done
    nacre kill "$id"
}

case_it_can_be_stopped_for_a_while() {
    start "$reads"
    open_window 80 24
    tm send-keys -l 'set -m' && press Enter
    type_line "$nacre attach --input $id"
    until_true on_screen ready
    kill -TSTP "$(viewer)"
    until_true on_screen Stopped
    type_line 'stty -g >after; fg'
    until_true on_screen ready
    equal "$(<after)" "$(<before)"
    type_line 'again'
    until_true on_screen 'got <again>'
    press C-] d
    terminal_is_as_it_was
    nacre kill "$id"
}

case_the_end_of_a_shell_is_the_end() {
    start "$reads"
    open_window 80 24
    type_line "$nacre attach --input $id; echo status \$?"
    until_true on_screen ready
    press C-d
    until_true on_screen 'the end of shell'
    on_screen 'exited(0)' || fail "$(screen)"
    terminal_is_as_it_was
    start 'echo ready; read -r x; exit 7'
    type_line "clear; $nacre attach --input $id; echo status \$?"
    until_true on_screen ready
    press Enter
    until_true on_screen 'status 7'
    type_line "clear; $nacre attach $id; echo status \$?"
    until_true on_screen 'has ended'
    on_screen 'status 1' || fail "$(screen)"
}

case_a_keeper_that_vanishes_takes_nothing_along() {
    start "echo keeper \$PPID; $reads"
    open_window 80 24
    type_line "$nacre attach --input $id"
    until_true on_screen ready
    kill -KILL "$("$nacre" output "$id" | sed -n 's/^keeper \([0-9]*\).*/\1/p')"
    until_true on_screen 'lost'
    terminal_is_as_it_was
}

# Only the program has it: no file of the home, and nothing a model would see.
case_a_password_is_nowhere() {
    start 'read -rs -p "Password: " word; echo; printf %s "$word" | sha256sum; sleep 300'
    open_window 80 24
    type_line "$nacre attach --input $id"
    until_true on_screen 'Password:'
    type_line 'Tr0ub4dor-xyzzy'
    until_true on_screen "$(printf %s Tr0ub4dor-xyzzy | sha256sum | cut -c 1-20)"
    press C-] d
    terminal_is_as_it_was
    ! grep -rqa Tr0ub4dor "$NACRE_HOME" || fail "it is in $(grep -rla Tr0ub4dor "$NACRE_HOME")"
    nacre show "$id"
    lacks "$out" Tr0ub4dor
    nacre kill "$id"
    ! grep -rqa Tr0ub4dor "$NACRE_HOME" || fail 'it came later'
}

# Clipboard, titles and their reports, DECRQSS, media copy, colours, and questions: the person's
# terminal neither does nor answers any of it.
case_what_is_dangerous_stays_inside() {
    start --size 80x24 'stty raw -echo
        printf "\033]52;c;aGFja2Vk\007\033]0;owned\007\033]2;owned\033\134\033kowned\033\134\033[21t"
        printf "\033P\044q\042p\033\134\033[5i\033[4i\033]4;1;?\007\033[?1;2\044p\033Z\005\302\2336n\033[>c\033[6n"
        timeout --foreground 0.5 cat | od -An -c; echo over; exec sleep 300'
    open_window 80 24
    tm set-option -g set-clipboard on
    type_line "$nacre attach --input $id"
    until_true on_screen over
    press C-] d
    terminal_is_as_it_was
    ! tm show-buffer 2>/dev/null | grep -q hacked || fail 'the clipboard was written'
    ! tm display-message -p '#{pane_title}' | grep -q owned || fail 'the title was set'
    lacks "$(screen)" '1;1R'
    lacks "$(screen)" '?1;2c'
    # The keeper answered, and nobody else did.
    equal "$("$nacre" screen "$id" | grep -o '; *[0-9]* *R' | wc -l)" 1
    nacre kill "$id"
}

case_pipes_are_seen_and_fed_by_lines() {
    nacre start --keep-stdin "${reads/:/\'echo interrupted\'}; echo no more"
    id=$out
    until_true has_output "$id" ready
    open_window 80 24
    type_line "$nacre attach --input $id"
    until_true on_screen ready
    press h e l p BSpace l o Enter
    until_true on_screen 'got <hello>'
    press C-c
    until_true on_screen interrupted
    press n o t ' ' y e t C-]
    press d
    terminal_is_as_it_was
    type_line "clear; $nacre attach --input $id"
    until_true on_screen 'got <hello>'
    press C-d
    until_true on_screen 'no more'
    until_true on_screen 'exited(0)'
    terminal_is_as_it_was
    nacre start "echo ready; exec sleep 300"
    type_line "clear; $nacre attach --input $out"
    until_true on_screen 'takes no input'
    type_line "clear; $nacre attach $out"
    until_true on_screen ready
    press C-] d
    terminal_is_as_it_was
    nacre kill --all
}

# Who is stopped holds up nobody, and knows in the end what there is to know.
case_a_viewer_that_is_stopped_catches_up() {
    local pane who
    start --size 80x24 'echo ready; read -r x; seq 300000; echo the\ end; sleep 300 & exit 3'
    open_window 80 24
    type_line "$nacre attach --input $id"
    until_true on_screen ready
    pane=$(tm split-window -d -P -F '#{pane_id}' "$nacre attach $id; echo status \$?; exec sleep 300")
    until_true pane_has "$pane" ready
    who=$(pgrep -f "^$nacre attach $id" -P "$(tm display-message -p -t "$pane" '#{pane_pid}')")
    kill -STOP "$who"
    press Enter
    until_true on_screen 'exited(3), lingering'
    kill -CONT "$who"
    until_true pane_has "$pane" 'status 3'
    nacre kill "$id"
}

case_from_inside_it_is_refused() {
    start --size 80x24 "$nacre attach \$NACRE_ID; echo status \$?; exec sleep 300"
    until_true shows 'status 1'
    shows 'inside of shell' || fail "$("$nacre" screen "$id")"
    nacre kill "$id"
}

# The format of players: a header; then intervals, what happened, and its text.
case_a_recording_has_sizes_times_and_people() {
    start --size 80x24 'printf "\303"; sleep 0.3; printf "\251 ready\n\377\n"; read -r x; echo $x; exit 3'
    open_window 100 30
    type_line "$nacre attach --input --resize $id"
    until_true on_screen 'é ready'
    type_line secret
    until_true on_screen 'exited(3)'
    "$nacre" show "$id" --cast >cast
    python3 -IS - cast <<'END' || fail "$(cat cast)"
import json, sys
lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
head, events = json.loads(lines[0]), [json.loads(line) for line in lines[1:]]
assert head["version"] == 3 and head["term"] == {"cols": 80, "rows": 24, "type": "xterm-256color"}, head
assert isinstance(head["timestamp"], int) and head["timestamp"] > 1e9
for interval, code, data in events:
    assert interval >= 0 and isinstance(interval, (int, float))
    assert code in "ormx" and isinstance(data, str), code
text = "".join(data for _, code, data in events if code == "o")
assert text.startswith("é ready\r\n\ufffd\r\n"), text
what = [(code, data) for _, code, data in events if code != "o"]
assert what[:3] == [("r", "100x30"), ("m", "a person came"), ("m", "a person typed")], what
assert what[-1] == ("x", "3") and events[-1][1] == "x", what
assert 0.2 < sum(interval for interval, _, _ in events) < 60
first = next(i for i, event in enumerate(events) if event[1] == "o")
assert sum(event[0] for event in events[: first + 1]) >= 0.25, "the torn character waits for its rest"
END
    nacre show "$id" --cast --json
    equal "$status" 2
    nacre start 'echo out; echo err >&2'
    id=$out
    nacre wait "$id"
    nacre show "$id" --cast
    holds "$out" '"out\r\n"'
    holds "$out" '"err\r\n"'
    holds "$out" '"x", "0"'
}

case_a_terminal_of_ones_own() {
    open_window 80 24
    tm set-option -g set-clipboard on
    type_line "PAGER=mine $nacre run -it -- 'trap \"echo caught\" INT; stty size; tty; echo \$PAGER \$TERM; cat; cat; exit 7'; echo status \$?"
    until_true on_screen '24 80'
    on_screen "mine $(tm show-options -gv default-terminal)" || fail "$(screen)"
    type_line 'typed'
    until_true eval '[ "$(screen | grep -c typed)" = 2 ]'
    press C-c
    until_true on_screen caught
    tm resize-window -x 90 -y 20
    press C-d
    until_true on_screen 'status 7'
    terminal_is_as_it_was
    type_line "clear; $nacre run -it -- 'stty raw -echo; printf \"\\033[6n\\033]52;c;aGFja2Vk\\007\\033[c\"; head -c 6 | od -An -c; stty sane; stty size'; echo status \$?"
    until_true on_screen 'status 0'
    on_screen '20 90' || fail "$(screen)"
    terminal_is_as_it_was
    ! tm show-buffer 2>/dev/null | grep -q hacked || fail 'the clipboard was written'
    type_line "clear; $nacre run -it -- 'printf \"\\033[?1049h\\033[?1h\\033[?1000h\\033[?25lfull\"; sleep 300'; echo status \$?"
    until_true on_screen full
    kill -TERM "$(pgrep -f "^$nacre run -it" -P "$(tm display-message -p '#{pane_pid}')")"
    until_true off_screen full
    terminal_is_as_it_was
    type_line "clear; $nacre run -it -- true; echo status \$?; $nacre run -it -- seq 1000; echo status \$?"
    until_true eval '[ "$(screen | grep -c "status 0")" = 1 ] && screen | grep -q ^1000'
    terminal_is_as_it_was
    nacre run -it -- true
    equal "$status" 1
    holds "$err" 'needs a terminal'
    nacre run -t -- 'tty; exit 3'
    equal "$status" 3
    match "$out" '^/dev/pts/'
    [ "$(echo in | "$nacre" run -i -- cat)" = in ] || fail '-i passes no stdin on'
}

case_without_a_terminal_it_says_so() {
    start "$reads"
    nacre attach "$id"
    equal "$status" 1
    holds "$err" 'it needs a terminal'
    usage 'an argument is missing' attach
    nacre kill "$id"
}

run_cases "$@"
