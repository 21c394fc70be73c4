#!/usr/bin/env bash
# Functions that have no place in src/: those that cannot be used safely, those that are not for a
# library, and fork() outside of the keeper and its wrapper in sys. Comments and strings do not count.
set -eu
cd "$(dirname "$0")/.."

find src include -name '*.[ch]' -type f -print0 | sort -z | xargs -0 awk '
BEGIN {
    everywhere = "strcpy strcat sprintf vsprintf gets strtok system popen signal alloca"
    library = "printf vprintf fprintf vfprintf puts putchar perror exit abort"
    is_program["keeper"] = is_program["gate"] = is_program["mcp"] = is_program["acp"] = 1
    is_program["console"] = is_program["cli"] = 1
}
# Blanks out comments, strings and characters; in_comment goes on from line to line.
function code_of(line,    out, at) {
    out = ""
    while (line != "") {
        if (in_comment) {
            at = index(line, "*/")
            if (!at)
                return out
            line = substr(line, at + 2)
            in_comment = 0
        } else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047/)) {
            out = out substr(line, 1, RSTART - 1) " "
            at = substr(line, RSTART, 2)
            line = substr(line, RSTART + RLENGTH)
            if (at == "//")
                return out
            if (at == "/*")
                in_comment = 1
        } else {
            out = out line
            line = ""
        }
    }
    return out
}
function look_for(names, code, why,    list, n, i) {
    n = split(names, list, " ")
    for (i = 1; i <= n; i++)
        if (code ~ "(^|[^A-Za-z0-9_.>])" list[i] "[ \t]*\\(") {
            printf "%s:%d: %s() %s\n", FILENAME, FNR, list[i], why
            bad = 1
        }
}
FNR == 1 {
    in_comment = 0
    split(FILENAME, parts, "/")
    layer = parts[1] == "src" ? parts[2] : "include"
}
{
    code = code_of($0)
    look_for(everywhere, code, "is banned")
    if (!(layer in is_program))
        look_for(library, code, "is not for library code: it never logs, exits or aborts")
    if (layer != "keeper" && layer != "sys")
        look_for("fork", code, "belongs to the keeper alone")
}
END { exit bad }'
