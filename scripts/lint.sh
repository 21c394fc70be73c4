#!/usr/bin/env bash
# Everything that can be said about the sources without running them.
set -eu
cd "$(dirname "$0")/.."

status=0
step() {
    echo "== $1"
    shift
    "$@" || status=1
}

step "formatting" scripts/check-format.sh
step "layers" scripts/check-layers.sh
step "sizes" scripts/check-sizes.sh
step "headers" scripts/check-headers.sh
step "banned functions" scripts/check-banned.sh
step "traces of this machine" scripts/check-traces.sh
CC=clang step "compiles with clang" scripts/build.sh build-asan \
    -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
step "settings in the documentation" scripts/check-settings.sh build-asan
step "clang-tidy" scripts/check-tidy.sh build-asan
[ $status -eq 0 ] && echo "clean" || echo "not clean" >&2
exit $status
