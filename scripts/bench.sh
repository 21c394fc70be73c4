#!/usr/bin/env bash
# Runs every benchmark of a build folder, one after another.
# usage: bench.sh BUILD
set -eu
cd "$(dirname "$0")/.."

build=$(realpath "$1")
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export NACRE_HOME=$home/nacre NACRE_KEEPER=$build/nacre-keeper NACRE_BUILD=$build

if [ -x bench/run.sh ]; then
    bench/run.sh "$build"
    exit
fi
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
