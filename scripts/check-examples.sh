#!/usr/bin/env bash
# The program of the README is examples/run.c, and every example compiles and runs as a user has it:
# plain cc, C99, what pkg-config says of an installed library, and the keeper installed beside it. The
# archive does as well, also in a program that has functions of the names that the library uses inside.
# usage: check-examples.sh BUILD
set -eu -o pipefail
cd "$(dirname "$0")/.."

if ! awk '/^```c$/ && !over { on = 1; next } /^```$/ && on { on = 0; over = 1 } on' README.md |
    diff - examples/run.c; then
    echo "the program of README.md (<) and examples/run.c (>) differ" >&2
    exit 1
fi
if nm -D "$1/libnacre.so" | grep -q ' __[at]san_init$'; then
    echo "skipped: a library with a sanitizer is not installed"
    exit
fi

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
meson install -C "$1" --no-rebuild --quiet --destdir "$place/root" >/dev/null
pc=$(find "$place/root" -name nacre.pc)
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$place/root NACRE_HOME=$place/home
unset NACRE_KEEPER
export LD_LIBRARY_PATH=${pc%/*/*}

# build_and_run WHAT SOURCE ARGUMENT...: of the compiler
build_and_run() {
    local what=$1
    shift
    # shellcheck disable=SC2046
    cc -std=c99 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags nacre) "$@" -o "$place/example" &&
        timeout 60 "$place/example" >"$place/out" 2>&1 && return
    [ ! -e "$place/out" ] || cat "$place/out"
    echo "$1, built against the installed $what, failed" >&2
    exit 1
}

cat >"$place/own.c" <<'EOF'
int buf_append(void);
int session_start(void);
int buf_append(void) { return 1; }
int session_start(void) { return 2; }
EOF
# shellcheck disable=SC2046
for source in examples/*.c; do
    build_and_run library "$source" $(pkg-config --libs nacre)
done
# shellcheck disable=SC2046
NACRE_KEEPER=$(find "$place/root" -name nacre-keeper) build_and_run archive examples/run.c "$place/own.c" "${pc%/*/*}/libnacre.a" \
    $(pkg-config --static --libs nacre | tr ' ' '\n' | grep -vx -e -lnacre)
