#!/usr/bin/env bash
# Runs every benchmark of a build folder, one after another. The servers of others that some compare
# with are installed first, into bench/servers.
# usage: bench.sh BUILD
set -eu
cd "$(dirname "$0")/.."
. scripts/npm-lib.sh

build=$(realpath "$1")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export NACRE_HOME=$home/nacre NACRE_KEEPER=$build/nacre-keeper NACRE_BUILD=$build

install_from_npm bench/servers >/dev/null
export NACRE_BENCH_NODE=$node NACRE_BENCH_SERVERS=$PWD/bench/servers HOME=$home
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

found=0
for program in "$build"/bench/*; do
    [ -f "$program" ] && [ -x "$program" ] || continue
    found=1
    "$program"
done
if [ $found -eq 0 ]; then
    echo "there is no benchmark in $build/bench" >&2
    exit 1
fi
