#!/usr/bin/env bash
# The screen of a shell against tmux, which draws the same bytes: the recordings of real programs, cut
# at several places. One thing differs: what is drawn with the set of lines (ESC ( 0) is captured by tmux
# as the letters that stand for them. On its own screen it shows lines, as we do.
# usage: [NACRE=build/nacre] test_screen_oracle.sh [CASE...]
. "$(dirname "$0")/cases.sh"

here=$(dirname "$self")

trim() { sed 's/ *$//; y/┌┐└┘─│├┤┬┴┼/lkmjqxtuwvn/' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'; }

# show FILE BYTES: what a program does that prints so much of it, and how one knows that it has.
show() { echo "stty raw -echo; head -c $2 '$1'; touch '$work/shown-$3'; exec sleep 300"; }

theirs() {
    tm new-session -d -x 80 -y 24 "$(show "$1" "$2" tmux)"
    until_true test -e "$work/shown-tmux"
    # What was written before is drawn before this is answered.
    until_true eval '[ "$(tm display-message -p "#{pane_dead}")" = 0 ]'
    tm capture-pane -p | trim
    tm kill-server
    rm "$work/shown-tmux"
    until_true eval '! tm list-sessions >/dev/null 2>&1'
}

ours() {
    local id
    id=$("$nacre" start --size 80x24 -- "$(show "$1" "$2" nacre)") || fail 'it did not start'
    until_true test -e "$work/shown-nacre"
    "$nacre" screen "$id" 2>/dev/null | trim
    "$nacre" kill "$id" >/dev/null
    rm "$work/shown-nacre"
}

# compare NAME: at its end, and at quarters.
compare() {
    local file=$here/recording-$1 size cut
    size=$(stat -c %s "$file") || fail "no recording $1"
    for cut in 1 2 3 4; do
        # Not inside of a character: what is drawn of half of one is nobody's business.
        cut=$((size * cut / 4))
        while [ $cut -lt "$size" ] && ! head -c $cut "$file" | iconv -f UTF-8 -t UTF-8 >/dev/null 2>&1; do
            cut=$((cut + 1))
        done
        diff <(theirs "$file" $cut) <(ours "$file" $cut) >"$work/diff" ||
            fail "$1 after $cut of $size bytes (< tmux, > nacre): $(<"$work/diff")"
    done
}

compare_all() {
    local name
    for name in "$@"; do
        compare "$name"
    done
}

case_editors_and_pagers() {
    compare_all vim nano less man
}

case_tables_and_menus() {
    compare_all top htop dialog whiptail mc
}

case_prompts_and_colours() {
    compare_all bash python node sqlite3 git-log git-add
}

case_tmux_inside() {
    compare_all tmux
}

run_cases "$@"
