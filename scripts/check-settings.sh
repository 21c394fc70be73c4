#!/usr/bin/env bash
# The table of docs/configuration.md says what the program says: every setting, in the same order,
# with its default, what is allowed, and what it is for.
# usage: check-settings.sh BUILD
set -eu -o pipefail
cd "$(dirname "$0")/.."

rows_of_program() {
    env -i HOME=/nonexistent "$1/nacre" config --json | python3 -c '
import json, sys
for name, s in json.load(sys.stdin).items():
    default = "`%s`" % s["default"] if s["default"] else ""
    print("| `%s` | %s | %s | %s |" % (name, default, s["allowed"], s["help"]))
'
}

diff <(rows_of_program "$1") <(grep '^| `[a-z_]*` | ' docs/configuration.md) && exit
echo "docs/configuration.md (>) and \"nacre config\" (<) differ" >&2
exit 1
