#!/usr/bin/env bash
# The layer rule: a file of src/ knows its own room and the rooms that stand before it in
# scripts/rooms, and nothing else of the project but the public headers.
#
#   by includes   what a file names
#   by symbols    what its object file links to: a function of a public header, or one declared by
#                 hand, leads up as well as an included header does
#   the door      rooms above `session` use what it offers, and include nothing that is behind it
#   the document  docs/architecture.md shows the same order, a row for each room, and of which rooms
#                 each thing is built
#
# usage: check-layers.sh BUILD
set -eu -o pipefail
cd "$(dirname "$0")/.."

build=$1
bad=0

# Lines "RANK ROOM", for the programs below.
ranks() {
    awk '!/^#/ && NF { rank++; for (i = 1; i <= NF; i++) print rank, $i }' scripts/rooms
}

check_folders() {
    diff <(ranks | cut -d' ' -f2 | LC_ALL=C sort) \
        <(find src -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | LC_ALL=C sort) && return
    echo "scripts/rooms (<) and the folders of src (>) differ"
    return 1
}

check_includes() {
    find src -name '*.[ch]' -type f -print0 | LC_ALL=C sort -z | xargs -0 awk '
    NR == FNR { rank[$2] = $1; next }
    function complain(text) {
        printf "%s:%d: %s\n", FILENAME, FNR, text
        bad = 1
    }
    function behind_the_door(path) {
        return path ~ /^(local|home)\// || path ~ /^acp\/agent/
    }
    FNR == 1 {
        split(FILENAME, parts, "/")
        room = parts[2]
        above = rank[room] > rank["session"] && room != "acp"
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        path = $0
        sub(/^[^"]*"/, "", path)
        sub(/".*/, "", path)
        n = split(path, to, "/")
        if (n != 2 || !(to[1] in rank))
            complain("\"" path "\": write \"room/file.h\", or <nacre/file.h> for public headers")
        else if (to[1] != room && rank[to[1]] >= rank[room])
            complain(room " must not include " to[1] "/ (" path ")")
        else if (above && behind_the_door(path))
            complain(room " must not include " path ": it is behind session")
    }
    END { exit bad }' <(ranks)
}

# Lines "SOURCE OBJECT" of what the build is made of; objects of removed sources may lie about.
objects() {
    awk -F'"' '
    $2 == "file" { source = $4; sub(/^(\.\.\/)+/, "", source) }
    $2 == "output" && source ~ /^src\// { print source, $4 }' "$build/compile_commands.json"
}

# The keeper, what makes fences, the gate and the preload are programs of their own: what they define is for themselves.
check_symbols() {
    (cd "$build" && xargs nm -A -P -g) < <(cut -d' ' -f2 "$1") | awk '
    function room_of(source,    parts) {
        split(source, parts, "/")
        return parts[2]
    }
    function target_of(object) {
        sub(/\/.*/, "", object)
        return object
    }
    function is_seen(definer, user,    target) {
        target = target_of(object_of[definer])
        return target == target_of(object_of[user]) || target !~ /^nacre-(keeper|fence|gate|text)/
    }
    FILENAME == ARGV[1] { rank[$2] = $1; next }
    FILENAME == ARGV[2] { source_of[$2] = $1; object_of[$1] = $2; next }
    {
        sub(/:$/, "", $1)
        source = source_of[$1]
        if ($3 == "U" || $3 == "w" || $3 == "v")
            wanted[source " " $2]
        else
            definers[$2] = definers[$2] " " source
    }
    END {
        for (want in wanted) {
            split(want, w, " ")
            n = split(definers[w[2]], from, " ")
            for (i = 1; i <= n; i++) {
                here = room_of(w[1])
                there = room_of(from[i])
                if (here == there || !is_seen(from[i], w[1]))
                    continue
                links++
                if (rank[there] >= rank[here]) {
                    printf "%s links up to %s: %s()\n", w[1], from[i], w[2] | "LC_ALL=C sort"
                    bad = 1
                }
            }
        }
        close("LC_ALL=C sort")
        if (links < 100) {
            print "only " links + 0 " links between rooms were found: is this build complete?"
            bad = 1
        }
        exit bad
    }' <(ranks) "$1" -
}

# built_from TARGETS: the rooms that the objects of these targets (a pattern) come from, in order.
built_from() {
    awk -v targets="^($1)/" '
    FILENAME == ARGV[1] {
        split($1, parts, "/")
        if ($2 ~ targets)
            has[parts[2]]
        next
    }
    $2 in has { line = line (line == "" ? "" : ", ") $2 }
    END { print line }' "$list" <(ranks)
}

# row_says THING ROOMS: the row of THING in the table of what is built begins with these rooms.
row_says() {
    grep -qE "^\\| $1 \\| $2(;| \\|)" docs/architecture.md && return
    echo "docs/architecture.md must say of $1: $2"
    return 1
}

check_products() {
    local ok=0
    row_says '`nacre-keeper`' "$(built_from 'libcommon.*|libterminal.*|nacre-keeper.p')" || ok=1
    row_says '`nacre-fence`' "$(built_from 'libcommon.*|nacre-fence.p')" || ok=1
    row_says '`nacre-gate`' "$(built_from 'libcommon.*|nacre-gate.p')" || ok=1
    row_says '`libnacre.so`, `libnacre.a`' "$(built_from 'libcommon.*|libterminal.*|libnacre.*')" || ok=1
    row_says '`nacre`' "\`libnacre.a\`, $(built_from nacre.p)" || ok=1
    return $ok
}

check_document() {
    local file=docs/architecture.md order
    order=$(awk '!/^#/ && NF { gsub(/ /, ", "); line = line (line == "" ? "" : " < ") $0 }
        END { print line }' scripts/rooms)
    if ! awk -v order="$order" '
        /^base < / { in_line = 1; line = "" }
        in_line && /^```/ { in_line = 0 }
        in_line { line = line (line == "" ? "" : " ") $0 }
        END { gsub(/ +/, " ", line); exit line != order }' "$file"; then
        echo "$file shows another order than scripts/rooms: $order"
        return 1
    fi
    diff <(ranks | cut -d' ' -f2) <(sed -n '/^## Layers/,/^## /s/^| `\([a-z]*\)` |.*/\1/p' "$file") && return
    echo "the table of rooms in $file (>) differs from scripts/rooms (<)"
    return 1
}

list=$(mktemp)
trap 'rm -f "$list"' EXIT
objects >"$list"
check_folders || bad=1
check_includes || bad=1
check_symbols "$list" || bad=1
check_document || bad=1
check_products || bad=1
exit $bad
