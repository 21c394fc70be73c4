#!/usr/bin/env bash
# One set of functions, said three times: declared NACRE_API in include/nacre, listed in
# src/libnacre.map, exported by the library under the version NACRE_0 and by the archive, where there is one.
# usage: check-symbols.sh BUILD | --write; --write makes the map of the headers.
set -eu -o pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

declared() {
    cat include/nacre/*.h | tr '\n' ' ' | sed 's/NACRE_API /\n&/g' |
        sed -n 's/^NACRE_API [^(]*\(nacre_[a-z0-9_]*\)(.*/\1/p' | sort
}

mapped() {
    sed -n 's/^ *\(nacre_[a-z0-9_]*\);$/\1/p' src/libnacre.map
}

exported() {
    nm -D --defined-only "$1/libnacre.so" | sed -n 's/^[0-9a-f]* [^A] \(.*\)@@NACRE_0$/\1/p;
        /@@NACRE_0$/!s/.* [^A] //p' | sort
}

in_archive() {
    nm -g --defined-only "$1/libnacre.a" | sed -n 's/^[0-9a-f]* [A-Z] //p' | sort
}

if [ "$1" = --write ]; then
    printf 'NACRE_0 {\n  global:\n%s\n  local:\n    *;\n};\n' "$(declared | sed 's/.*/    &;/')" \
        >src/libnacre.map
    exit
fi
diff <(declared) <(mapped) && diff <(declared) <(exported "$1") &&
    { [ ! -e "$1/libnacre.a" ] || diff <(declared) <(in_archive "$1"); } && exit
echo "include/nacre (<) and src/libnacre.map or the library (>) differ; --write makes the map" >&2
exit 1
