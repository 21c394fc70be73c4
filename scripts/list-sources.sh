#!/bin/sh
# Prints the names in DIR that match PATTERN, for the few places where meson may glob: tests,
# examples, checks, benchmarks and manual pages. Prints nothing if there are none.
set -eu
dir=$1
pattern=$2
find "$dir" -maxdepth 1 -type f -name "$pattern" -printf '%f\n' | LC_ALL=C sort
