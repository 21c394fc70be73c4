#!/usr/bin/env bash
# clang-tidy over src/, with the checks of .clang-tidy.
# usage: check-tidy.sh BUILD [--quick]; BUILD was configured with clang. The quick form leaves out
# the analyzer, which takes nine tenths of the time and one process for each file: of several in one
# process it reports what is not there.
set -eu
cd "$(dirname "$0")/.."

checks=
files=1
if [ "${2:-}" = --quick ]; then
    checks='-clang-analyzer-*'
    files=12
fi

find src -name '*.c' -type f | LC_ALL=C sort |
    xargs -P "${JOBS:-$(nproc)}" -n $files clang-tidy -p "$1" --quiet --checks="$checks" \
        2> >(grep -v 'warnings* generated' >&2)
