#!/usr/bin/env bash
# README.md and the manual page have the verbs of `nacre help`, and no other; the manual page has
# them once in its synopsis and once as a heading.
# usage: check-verbs.sh BUILD
set -eu -o pipefail
cd "$(dirname "$0")/.."

bad=0

of_program() {
    env -i HOME=/nonexistent "$1/nacre" help |
        awk '/^verbs:$/ { on = 1; next } NF == 0 { on = 0 } on { print $1 }'
}

# `help` itself is explained above the table, and needs no chapter.
but_help() {
    grep -vx help
}

of_readme() {
    awk '/^\| verb \| does \|$/ { on = 1; next } !/^\|/ { on = 0 } on' README.md |
        sed -n 's/^| `\([a-z-]*\).*/\1/p'
}

of_synopsis() {
    sed -n '/^# SYNOPSIS$/,/^# DESCRIPTION$/s/^\*nacre \([a-z][a-z-]*\)\*.*/\1/p' man/nacre.1.scd
}

of_chapters() {
    awk '/^# VERBS$/ { on = 1; next } /^# / { on = 0 } on && sub(/^## /, "")' man/nacre.1.scd |
        tr -s ', ' '\n'
}

# compare WHERE FILTER LISTER: any order will do.
compare() {
    diff <(of_program "$build" | $2 | sort) <($3 | $2 | sort) && return
    echo "$1 (>) and \"nacre help\" (<) have other verbs"
    bad=1
}

build=$1
[ "$(of_program "$build" | wc -l)" -gt 10 ] || { echo "\"nacre help\" lists no verbs" && exit 1; }
compare "the table of README.md" but_help of_readme
compare "the synopsis of nacre(1)" cat of_synopsis
compare "the chapters of nacre(1)" but_help of_chapters
exit $bad
