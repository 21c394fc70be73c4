#!/usr/bin/env bash
# What is installed can be removed again to the last file; and the loader of this machine knows the
# library after the one, and does not after the other. That is tried with folders of its own in the place
# of /usr/local and /etc, which needs root.
# usage: check-install.sh BUILD
set -eu -o pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "$1" >&2
    exit 1
}

below_destdir() {
    local place
    place=$(mktemp -d)
    DESTDIR=$place meson install -C "$1" --no-rebuild --quiet >/dev/null
    [ -n "$(find "$place" -path "*/bin/nacre" -perm -1)" ] || fail "nothing was installed"
    mkdir -p "$place/keep"
    touch "$(dirname "$(find "$place" -name nacre.h)")/other.h"
    DESTDIR=$place scripts/uninstall.sh "$1" >/dev/null
    (cd "$place" && find . -type f -o -type l -o -name nacre -empty) | grep -vx '.*/nacre/other.h' >&2 &&
        fail "this is left after an uninstall"
    [ -n "$(find "$place" -name other.h)" ] || fail "a file of somebody else's was removed"
    rm -rf "$place"
}

# In a mount namespace of its own.
on_this_machine() {
    local etc
    etc=$(mktemp -d)
    mount -t tmpfs none "$etc"
    cp -a /etc/. "$etc"
    mount --bind "$etc" /etc
    umount -l "$etc"
    rmdir "$etc"
    mount -t tmpfs none /usr/local
    meson install -C "$1" --no-rebuild --quiet >/dev/null
    ldconfig -p | grep '=> /usr/local/.*/libnacre.so.0$\|=> /usr/local/lib/libnacre.so.0$' >/dev/null ||
        fail "the loader does not know the library"
    scripts/uninstall.sh "$1" >/dev/null
    ldconfig -p | grep libnacre >&2 && fail "the loader still knows the library"
    find /usr/local -type f -o -type l | grep . >&2 && fail "this is left after an uninstall"
    return 0
}

case ${2-} in
'')
    below_destdir "$1"
    unshare -m true 2>/dev/null && [ "$(id -u)" -eq 0 ] && [[ $(command -v meson) != /usr/local/* ]] &&
        unshare -m mount -t tmpfs none /usr/local 2>/dev/null ||
        { echo "skipped: the loader of this machine: needs root and mount namespaces" && exit; }
    unshare -m --propagation private "$0" "$1" --inside
    ;;
--inside) on_this_machine "$1" ;;
esac
