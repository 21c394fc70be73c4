#!/usr/bin/env bash
# Runs every benchmark of a build folder, one after another, each in a home of its own: what one has
# left there is nothing for the next to find. The servers of others that some compare with are
# installed first, into bench/servers.
# usage: bench.sh BUILD
set -eu
cd "$(dirname "$0")/.."
. scripts/npm-lib.sh

build=$(realpath "$1")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export NACRE_KEEPER=$build/nacre-keeper NACRE_BUILD=$build

bench() {
    NACRE_HOME=$home/${1##*/} "$1"
}

install_from_npm bench/servers >/dev/null
# Without these one row less is printed.
if install_from_npm bench/sandboxes >/dev/null; then
    NACRE_BENCH_CODEX=$(find "$PWD/bench/sandboxes/node_modules/@openai" -path '*/bin/codex' -type f \
        -perm -u+x -print -quit)
    # It takes no home that lies below /tmp.
    export CODEX_HOME=$PWD/bench/sandboxes/node_modules/.codex
    mkdir -p "$CODEX_HOME"
    export NACRE_BENCH_CODEX NACRE_BENCH_SRT=$PWD/bench/sandboxes/node_modules/.bin/srt
fi
export NACRE_BENCH_NODE=$node NACRE_BENCH_SERVERS=$PWD/bench/servers HOME=$home NACRE_BENCH_SOURCE=$PWD
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# The first is the one that starts commands: a file system from which others have just removed tens
# of thousands of files makes new ones slowly for a while.
mapfile -t programs < <(find "$build/bench" -maxdepth 1 -type f -perm -u+x | sort)
if [ ${#programs[@]} -eq 0 ]; then
    echo "there is no benchmark in $build/bench" >&2
    exit 1
fi
bench "$build/bench/start"
for program in "${programs[@]}"; do
    [ "$program" = "$build/bench/start" ] || bench "$program"
done
