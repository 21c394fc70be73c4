#!/usr/bin/env bash
# clang-tidy over src/, with the checks of .clang-tidy. One file at a time: the analyzer of several
# in one process reports what is not there.
# usage: check-tidy.sh BUILD [--quick]; BUILD was configured with clang. The quick form leaves out
# the analyzer, which takes nine tenths of the time.
set -eu
cd "$(dirname "$0")/.."

checks=
[ "${2:-}" != --quick ] || checks='-clang-analyzer-*'

find src -name '*.c' -type f | LC_ALL=C sort |
    xargs -P "${JOBS:-$(nproc)}" -n 1 clang-tidy -p "$1" --quiet --checks="$checks" \
        2> >(grep -v 'warnings* generated' >&2)
