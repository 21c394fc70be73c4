#!/usr/bin/env bash
# nacre top in a real terminal: at several sizes, without colours, with hostile names and output; what
# is chosen, filtered, sorted and ended.
# usage: [NACRE=build/nacre] test_top.sh [CASE...]
. "$(dirname "$0")/cases.sh"

# open_top COLUMNS ROWS [VARIABLE=VALUE]: and its end with the case.
open_top() {
    tm new-session -d -x "$1" -y "$2" "env ${3:-A=b} $nacre top; echo left; exec sleep 300"
    trap 'tm kill-server' EXIT
}
close_top() {
    tm kill-server
    until_true eval '! tm list-sessions >/dev/null 2>&1'
}
screen() { tm capture-pane -p; }
chosen() { screen | sed -n 's/^> //p'; }
is_chosen() { [[ $(chosen) == *"$1"* ]]; }
press() { tm send-keys "$@"; }

start() {
    nacre start --name "$1" "$2"
    equal "$status" 0
}

end_all() { "$nacre" kill --all >/dev/null 2>&1; }

case_every_size_shows_list_and_output() {
    local size
    for i in 1 2 3; do start "shell-$i" "echo output of number $i; exec sleep 300"; done
    for size in '80 24' '120 40' '40 12'; do
        # shellcheck disable=SC2086
        open_top $size
        until_true is_chosen shell-3
        until_true on_screen 'output of number 3'
        equal "$(screen | wc -l)" "${size#* }"
        [ "$(screen | wc -L)" -le "${size% *}" ] || fail "wider than the terminal: $(screen)"
        match "$(screen | head -n 1)" '^nacre: 3 shells run'
        match "$(screen | tail -n 1)" '^j k choose'
        press q
        until_true on_screen left
        off_screen 'output of number' || fail 'the screen is not as it was'
        close_top
    done
    end_all
}

case_output_follows_what_is_chosen() {
    start one 'echo this is one; exec sleep 300'
    start two 'i=0; while [ $i -lt 200 ]; do echo "two-$i"; i=$((i+1)); done; exec sleep 300'
    open_top 80 24
    until_true is_chosen two
    until_true on_screen two-199
    press PageUp
    until_true off_screen two-199
    until_true on_screen 'scrolled up'
    press f
    until_true on_screen two-199
    press Down
    until_true is_chosen one
    until_true on_screen 'this is one'
    press j j j
    until_true is_chosen one
    press k
    until_true is_chosen two
    tm resize-window -x 60 -y 10
    until_true eval '[ "$(screen | wc -l)" = 10 ] && screen | tail -n 1 | grep -q "^j k"'
    end_all
}

case_what_is_printed_now_is_seen() {
    mkfifo "$work/gate"
    start waits "read -r x <$work/gate; echo came \$x; exec sleep 300"
    open_top 80 24
    until_true is_chosen waits
    echo late >"$work/gate"
    until_true on_screen 'came late'
    end_all
}

case_one_is_ended_with_its_proof() {
    start stays 'exec sleep 300'
    start goes 'sleep 300 & sleep 300 & wait'
    open_top 100 24
    until_true is_chosen goes
    press x
    until_true on_screen 'end '
    press n
    until_true off_screen 'any other key'
    match "$(screen)" 'goes'
    press x
    until_true on_screen 'any other key'
    press y
    until_true on_screen '3 processes got the signal, 0 needed SIGKILL, 0 left'
    until_true is_chosen stays
    until_true eval '! screen | grep -q "\[goes\]"'
    press e
    until_true on_screen 'killed'
    end_all
}

case_enter_ends_nothing() {
    start stays 'exec sleep 300'
    open_top 80 24
    until_true is_chosen stays
    press x
    until_true on_screen 'any other key'
    press Enter
    until_true off_screen 'any other key'
    press Enter Enter x Enter
    until_true off_screen 'any other key'
    nacre list --quiet
    [ -n "$out" ] || fail 'it was ended'
    end_all
}

case_a_filter_narrows() {
    start apple 'exec sleep 300'
    start pear 'exec sleep 300'
    open_top 80 24
    until_true on_screen apple
    press /
    tm send-keys -l appl
    until_true off_screen pear
    until_true is_chosen apple
    press Enter
    until_true on_screen ', with appl'
    press / Escape
    until_true on_screen pear
    press /
    tm send-keys -l 'q nothing'
    until_true on_screen 'no shells like that'
    press Escape
    until_true on_screen pear
    end_all
}

case_order_can_be_changed() {
    start busy 'while :; do :; done'
    start idle 'exec sleep 300'
    open_top 80 24
    until_true is_chosen idle
    press s
    until_true on_screen 'by cpu'
    until_true eval "screen | grep -n 'busy\|idle' | head -n 1 | grep -q busy"
    is_chosen idle || fail 'what is chosen changed with the order'
    end_all
}

case_everything_that_was_printed_is_searched() {
    start first 'i=0; while [ $i -lt 3000 ]; do echo "row $i"; i=$((i+1)); done; echo needle one; exec sleep 300'
    start ended 'echo needle in what has ended'
    start second 'exec sleep 300'
    open_top 80 24
    until_true is_chosen second
    press r
    tm send-keys -l 'NEEDLE'
    until_true on_screen 'search all output for: NEEDLE'
    press Enter
    until_true on_screen '2 of 2 lines with "NEEDLE"'
    until_true on_screen 'stdout:3001: needle one'
    press j
    until_true eval "screen | grep -q '^> .*needle one'"
    press Enter
    until_true is_chosen first
    until_true on_screen 'from what was found on'
    until_true on_screen 'needle one'
    off_screen 'row 2999' || fail 'it is not opened there'
    press f
    until_true on_screen 'row 2999'
    press r Escape
    until_true off_screen 'search all output'
    press r
    tm send-keys -l 'no such text q'
    press Enter
    until_true on_screen '0 of 0 lines'
    press q
    until_true off_screen '0 of 0 lines'
    match "$(screen | head -n 1)" '^nacre:'
    end_all
}

case_a_terminal_shows_its_screen() {
    start plain 'exec sleep 300'
    nacre start --tty --name drawn "printf 'go''ne\\033[2J\\033[3;5Hhere it is'; exec sleep 300"
    equal "$status" 0
    open_top 80 24
    until_true is_chosen drawn
    until_true on_screen '    here it is'
    until_true on_screen 'its screen'
    off_screen gone || fail 'what was erased is shown'
    end_all
}

case_shells_of_a_session_stand_together() {
    start one 'exec sleep 300'
    start two 'exec sleep 300'
    open_top 100 24
    until_true is_chosen two
    press s s s s
    until_true on_screen 'by session'
    is_chosen two || fail 'what is chosen changed with the order'
    end_all
}

case_colours_are_not_needed() {
    start plain 'exec sleep 300'
    open_top 80 24 NO_COLOR=1
    until_true is_chosen plain
    equal "$(tm capture-pane -pe | grep -c $'\x1b\\[[0-9;]*m')" 0
    end_all
}

case_hostile_names_and_output_stay_text() {
    start safe "printf '\\033]0;owned\\007\\033[2J\\033[Hgone\\033[?1049l\\033[6n\\n\\342\\200\\256mirror\\n'; : $'\\033[2Jinside'; exec sleep 300"
    open_top 80 24
    until_true is_chosen safe
    until_true on_screen gone
    match "$(screen | head -n 1)" '^nacre: 1 shell'
    ! tm display-message -p '#{pane_title}' | grep -q owned || fail 'the title was set'
    [[ $(screen) != *$'\u202e'* ]] || fail 'text is turned around'
    press ?
    until_true on_screen 'sort by'
    press q
    until_true on_screen left
    end_all
}

case_signals_leave_the_terminal_as_it_was() {
    local signal
    start any 'exec sleep 300'
    for signal in TERM HUP INT; do
        open_top 80 24
        until_true is_chosen any
        kill -"$signal" "$(pgrep -f "^$nacre top\$" -P "$(tm display-message -p '#{pane_pid}')")" ||
            fail 'it is not there'
        until_true on_screen left
        close_top
    done
    end_all
}

case_a_shell_is_attached_to_and_back() {
    nacre start --size 80x24 'echo ready; while read -r line; do echo "got <$line>"; done'
    equal "$status" 0
    open_top 80 24
    until_true on_screen 'j k choose'
    press a
    until_true on_screen 'looking only'
    press C-]
    press d
    until_true on_screen 'j k choose'
    press i
    until_true on_screen 'typing'
    press h e l l o Enter
    until_true on_screen 'got <hello>'
    press C-]
    press d
    until_true on_screen 'j k choose'
    on_screen 'got <hello>' || fail "$(screen)"
    press i
    until_true on_screen 'typing'
    press C-d
    until_true on_screen 'nothing runs'
    press q
    until_true on_screen left
    end_all
}

case_without_a_terminal_it_says_so() {
    nacre top
    equal "$status" 1
    match "$err" 'needs a terminal'
}

run_cases "$@"
