#!/usr/bin/env bash
# The C of the documentation is C of this library: programs in README.md and docs/ compile without a
# warning, the README's prints what stands below it, and whatever has a name of the library in a
# piece of code or as a function is declared in a public header.
# usage: check-programs.sh BUILD, which is one without sanitizers
set -eu -o pipefail
cd "$(dirname "$0")/.."

build=$(realpath "$1")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
bad=0

complain() {
    echo "$*"
    bad=1
}

# Writes each piece of C to a file of its own, named as its document and line.
extract() {
    awk -v place="$place" '
    FNR == 1 { out = "" }
    /^```/ && out != "" { close(out); out = ""; next }
    /^```c$/ { name = FILENAME; gsub(/[^A-Za-z0-9]/, "-", name); out = place "/" name "-" FNR ".c"; next }
    out != "" { print > out }' README.md docs/*.md
}

compile() {
    cc -std=c17 -Wall -Wextra -Werror -Iinclude "$1" -L"$build" -lnacre \
        -Wl,-rpath,"$build" -o "${1%.c}"
}

# What the README shows below its program, as far as it is the same each time.
shown() {
    awk '/^\$ cc example\.c / { on = 1; next } on && /^```/ { exit } on' README.md
}

same_each_time() {
    sed 's/after [0-9]* ms/after N ms/'
}

check_readme() {
    local program
    program=$(grep -l 'int main' "$place"/README-md-*.c) || true
    if [ ! -x "${program%.c}" ]; then
        complain "README.md must have one program that compiles"
    elif ! diff <(shown | same_each_time) \
        <(env -i HOME="$place" PATH="$PATH" "${program%.c}" | same_each_time); then
        complain "the program of README.md prints (>) other than what stands there (<)"
    fi
}

# Names of the library in pieces of code, and functions that a text names.
named() {
    cat "$place"/*.c | grep -oE '\b(nacre|NACRE)_\w+'
    grep -ohE '\bnacre_[a-z0-9_]+\(\)' README.md docs/*.md | tr -d '()'
}

extract
for source in "$place"/*.c; do
    ! grep -q 'int main' "$source" || compile "$source" || complain "${source##*/} does not compile"
done
check_readme
cat include/nacre/*.h | grep -oE '\b(nacre|NACRE)_\w+' | sort -u >"$place/declared"
unknown=$(named | sort -u | comm -23 - "$place/declared")
[ -z "$unknown" ] || complain "the documentation names what no header declares: ${unknown//$'\n'/ }"
exit $bad
