#!/usr/bin/env bash
# Everything that can be said about the sources without running them: every scripts/check-*.sh.
set -eu
cd "$(dirname "$0")/.."

scripts/build.sh build
CC=clang scripts/build.sh build-asan -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
status=0
for check in scripts/check-*.sh; do
    build=build
    [ "$check" != scripts/check-tidy.sh ] || build=build-asan # it reads the commands of clang
    echo "== $check"
    "$check" "$PWD/$build" || status=1
done
[ $status -eq 0 ] && echo "clean" || echo "not clean" >&2
exit $status
