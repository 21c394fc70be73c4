#!/usr/bin/env bash
# Builds nacre with the compiler and the libraries of a machine's distribution, in its tree, and writes
# what a machine needs of it as a tar file. Mounts are seen by nobody else, and gone with this script.
# usage: build.sh PLACE FILE (as image.sh prints it)
set -eu
cd "$(dirname "$0")/../.."

if [ -z "${BUILD_INSIDE-}" ]; then
    BUILD_INSIDE=1 exec unshare --mount --propagation private "$0" "$@"
fi
tree=$1/tree
file=$2

mount -t tmpfs -o mode=755 tmpfs "$tree/srv/build"
mount -t tmpfs -o mode=755 tmpfs "$tree/srv/source"
tar -c --exclude='./build*' --exclude=./.git --exclude=node_modules . | tar -x -C "$tree/srv/source"
mount --bind "${1%/*}/ccache" "$tree/srv/ccache"
mount -t proc proc "$tree/proc"
mount --bind /dev/null "$tree/dev/null" 2>/dev/null || mount --rbind /dev "$tree/dev"

in_tree() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/srv/build CCACHE_DIR=/srv/ccache \
        JOBS="${JOBS:-$(nproc)}" chroot "$tree" "$@"
}

# The programs, those that misbehave on purpose, and the tests that are run.
wanted() {
    in_tree ninja -C /srv/build/build -t targets all | sed -n 's/^\([^ ]*\): c_LINKER$/\1/p' |
        grep -x -e 'nacre[a-z.-]*' -e 'tests/programs/.*' \
            -f <(grep -o '\<test_[a-z]*' tests/vm/inside.sh | sort -u | sed 's,^,tests/integration/,')
}

in_tree /srv/source/scripts/build.sh /srv/build/build -Dtests=true --target build.ninja
# shellcheck disable=SC2046
in_tree ninja --quiet -C /srv/build/build -j "${JOBS:-$(nproc)}" $(wanted)

# Programs, and what they find beside them; scripts/run-test.sh wants its folder as meson has it.
cd "$tree/srv/build"
find build \( -name '*.p' -o -name 'meson-*' \) -prune -o \
    \( -type f -perm -u+x -o -name '*.so*' \) -print0 >list
tar -cf "$file" --null -T list
tar -rf "$file" -C ../source scripts/run-test.sh tests/vm
