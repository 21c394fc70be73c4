#!/usr/bin/env bash
# Every C file is formatted as .clang-format says; `make format` does it.
set -eu
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
scripts/list-c.sh | xargs clang-format --dry-run -Werror 2>"$log" && exit
sed -n 's/^\([^:]*:[0-9]*\):[0-9]*: error: .*/\1: not formatted/p' "$log" | sort -t: -k1,1 -u
echo "\`make format\` formats them" >&2
exit 1
