#!/usr/bin/env bash
# The layer rule: a file in src/ includes its own layer and those to the left of it, and nothing
# else of the project but the public headers.
set -eu
cd "$(dirname "$0")/.."

find src -name '*.[ch]' -type f -print0 | sort -z | xargs -0 awk '
BEGIN {
    count = split("base sys config run keeper view catalog rpc backend shell recall tool", order)
    for (i = 1; i <= count; i++)
        rank[order[i]] = i
    rank["mcp"] = rank["acp"] = count + 1
    rank["cli"] = count + 2 # its verbs start the other two
}
function complain(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    bad = 1
}
FNR == 1 {
    split(FILENAME, parts, "/")
    layer = parts[2]
    if (!(layer in rank))
        complain("src/" layer " is no layer")
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    path = $0
    sub(/^[^"]*"/, "", path)
    sub(/".*/, "", path)
    n = split(path, to, "/")
    if (n != 2 || !(to[1] in rank))
        complain("\"" path "\": write \"layer/file.h\", or <nacre/file.h> for public headers")
    else if (to[1] != layer && rank[to[1]] >= rank[layer])
        complain(layer " must not include " to[1] "/ (" path ")")
}
END { exit bad }'
