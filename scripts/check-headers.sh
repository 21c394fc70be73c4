#!/usr/bin/env bash
# Every public header compiles alone, as strict C99 and as C++, without a warning, and so does a
# program that uses its _INIT macros.
set -eu
cd "$(dirname "$0")/.."

flags=(-fsyntax-only -Iinclude -Wall -Wextra -Wpedantic -pedantic-errors -Werror)
bad=0

# A program that includes the header and makes one of each thing that it can initialise.
program() {
    local macro type
    echo "#include <nacre/$1>"
    echo "int main(void) {"
    grep -o '^#define NACRE_[A-Z_]*_INIT\>' "include/nacre/$1" | while read -r _ macro; do
        type=${macro%_INIT}
        type=${type,,}
        echo "$type a_$type = $macro; (void)a_$type;"
    done
    echo "return 0; }"
}

compiles() {
    local header=$1 language=$2
    shift 2
    program "$header" | "$@" "${flags[@]}" -x "$language" - && return
    echo "include/nacre/$header does not compile alone with $*" >&2
    bad=1
}

for path in include/nacre/*.h; do
    header=${path##*/}
    compiles "$header" c gcc -std=c99
    compiles "$header" c clang -std=c99
    for standard in c++11 c++17; do
        compiles "$header" c++ g++ -std=$standard
        compiles "$header" c++ clang++ -std=$standard
    done
done
exit $bad
