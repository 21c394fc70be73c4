#!/usr/bin/env bash
# Makes the static library for other programs: all objects joined into one, in which only the functions
# of the map are left for the linker to see. A program may have a buf_append() of its own.
# usage: archive.sh OUTPUT MAP PARTS COMPILER [ARGUMENT]...
set -eu -o pipefail

output=$1 map=$2 parts=$3
shift 3
object=$output.o names=$output.names
trap 'rm -f "$object" "$names"' EXIT
rm -f "$output"

# Objects for link-time optimisation become machine code now: the linker cannot rename in them.
native=()
! "$@" -flinker-output=nolto-rel -x c -c -o /dev/null - <<<'int nacre;' 2>/dev/null ||
    native=(-flinker-output=nolto-rel)
"$@" -r -nostdlib ${native[@]+"${native[@]}"} -o "$object" -Wl,--whole-archive "$parts" -Wl,--no-whole-archive
sed -n 's/^ *\(nacre_[a-z0-9_]*\);$/\1/p' "$map" >"$names"
objcopy --keep-global-symbols="$names" "$object"
ar rcsD "$output" "$object"
