#!/usr/bin/env bash
# What a start costs in homes on several file systems, as root: each is made in a file and mounted by a
# loop device where nobody else sees it, and is gone with this script, however it ends.
# usage: bench-filesystems.sh BUILD
set -eu
cd "$(dirname "$0")/.."

if [ -z "${BENCH_FILESYSTEMS_INSIDE-}" ]; then
    [ "$(id -u)" -eq 0 ] || { echo "only root may mount file systems" >&2 && exit 1; }
    BENCH_FILESYSTEMS_INSIDE=1 exec unshare --mount --propagation private "$0" "$@"
fi

build=$(realpath "$1")
place=$(mktemp -d)
trap 'umount -R "$place"/*/ 2>/dev/null; rm -rf "$place"' EXIT
trap 'exit 130' INT TERM

# formatted NAME COMMAND...: a new file system, made by a command, is mounted under its name.
formatted() {
    local name=$1
    shift
    truncate -s 2G "$place/$name.image"
    "$@" "$place/$name.image" >/dev/null
    mount -o loop "$place/$name.image" "$place/$name"
    rm "$place/$name.image"
}

# An overlay of two folders of an ext4, as containers have it.
overlaid() {
    mkdir "$place/below"
    formatted below mkfs.ext4 -q
    mkdir "$place/below/"{lower,upper,work}
    mount -t overlay overlay "$place/overlay" \
        -o "lowerdir=$place/below/lower,upperdir=$place/below/upper,workdir=$place/below/work"
}

homes=()
for name in tmpfs ext4 ext4-no-journal btrfs xfs overlay; do
    mkdir "$place/$name"
    case $name in
    tmpfs) mount -t tmpfs -o size=1G tmpfs "$place/$name" ;;
    ext4) formatted "$name" mkfs.ext4 -q ;;
    ext4-no-journal) formatted "$name" mkfs.ext4 -q -O '^has_journal' ;;
    btrfs) formatted "$name" mkfs.btrfs -q ;;
    xfs) formatted "$name" mkfs.xfs -q ;;
    overlay) overlaid ;;
    esac
    homes+=("$place/$name/home")
done
python3 bench/filesystems.py "$build/nacre" "${homes[@]}"
