#!/usr/bin/env bash
# Sizes that keep code readable: 800 lines a file, 80 lines a function. A function is what stands
# between a `{` and a `}` that are alone in the first column.
set -eu
cd "$(dirname "$0")/.."

scripts/list-c.sh | xargs awk -v max_file=800 -v max_function=80 '
function end_file() {
    if (lines > max_file) {
        printf "%s: %d lines, at most %d are allowed\n", file, lines, max_file
        bad = 1
    }
}
FNR == 1 { end_file(); file = FILENAME; start = 0 }
{ lines = FNR }
/^\{$/ { start = FNR }
/^\}/ && start {
    if (FNR - start - 1 > max_function) {
        printf "%s:%d: a function of %d lines, at most %d are allowed\n",
            FILENAME, start, FNR - start - 1, max_function
        bad = 1
    }
    start = 0
}
END { end_file(); exit bad }'
