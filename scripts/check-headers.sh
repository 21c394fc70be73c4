#!/usr/bin/env bash
# Every public header compiles alone, as strict C99 and as C++, without a warning.
set -eu
cd "$(dirname "$0")/.."

flags=(-fsyntax-only -Iinclude -Wall -Wextra -Wpedantic -pedantic-errors -Werror)
bad=0

compiles() {
    local header=$1 language=$2
    shift 2
    echo "#include <nacre/$header>" | "$@" "${flags[@]}" -x "$language" - && return
    echo "include/nacre/$header does not compile alone with $*" >&2
    bad=1
}

for path in include/nacre/*.h; do
    header=${path##*/}
    compiles "$header" c gcc -std=c99
    compiles "$header" c clang -std=c99
    compiles "$header" c++ clang++ -std=c++11
done
exit $bad
