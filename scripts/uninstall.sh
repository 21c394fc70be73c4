#!/usr/bin/env bash
# Removes what `make install` of this tree puts under the prefix of a build folder, below $DESTDIR if that
# is set; then the folders that are nacre's own, if nothing of somebody else's is in them.
# usage: uninstall.sh BUILD
set -eu -o pipefail
here=$(dirname "$0")

mapfile -t files < <(meson introspect --installed "$1" | grep -o '": "[^"]*"' | sed 's/^": "//; s/"$//')
[ ${#files[@]} -gt 10 ] || { echo "$1 does not say what it installs" >&2 && exit 1; }
removed=0 libdir=
for file in "${files[@]}"; do
    [[ $file != *.so.* ]] || libdir=${file%/*}
    path=${DESTDIR-}$file
    [ -e "$path" ] || [ -L "$path" ] || continue
    rm -f "$path"
    removed=$((removed + 1))
    [[ ${path%/*} != */nacre ]] || rmdir --ignore-fail-on-non-empty "${path%/*}"
done
[ $removed -eq 0 ] || "$here/after-install.sh" "$libdir"
echo "removed $removed files of nacre"
