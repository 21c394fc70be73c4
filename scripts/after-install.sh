#!/usr/bin/env bash
# Tells the dynamic loader of a library that came or went, where it looks for libraries: only root can,
# and below a DESTDIR it is not that of this machine.
# usage: after-install.sh LIBDIR; LIBDIR may be relative to $MESON_INSTALL_PREFIX
set -eu

dir=$1
[[ $dir = /* ]] || dir=$MESON_INSTALL_PREFIX/$dir
[ -z "${DESTDIR-}" ] && [ "$(id -u)" -eq 0 ] || exit 0
PATH=$PATH:/usr/sbin:/sbin
command -v ldconfig >/dev/null || exit 0
dir=$(realpath -m "$dir")
while IFS=: read -r listed _; do
    [ "$(realpath -m "$listed")" != "$dir" ] || exec ldconfig
done < <(ldconfig -N -X -v 2>/dev/null | grep '^/')
