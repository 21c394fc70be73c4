#!/usr/bin/env bash
# Boots machines, one after another, and has the promises and a part of the suite tried in each: what
# `make test-vm` runs. Of each a log folder is left, build/vm-logs/MACHINE, and of all a table.
# usage: run.sh [--short] [MACHINE...] (see `machines`; as root)
# VM_ONLY is a regular expression for the situations; VM_SCALE says how much slower than this one a machine
# is thought to be.
set -eu
cd "$(dirname "$0")/../.."

vm=tests/vm
out=$PWD/build/vm-logs
extent=full
[ "${1-}" != --short ] || { extent=short && shift; }
if [ "$(id -u)" -ne 0 ]; then
    echo "only root can make the images: sudo make test-vm" >&2
    exit 1
fi
if [ $# -eq 0 ] && [ $extent = short ]; then
    set -- debian12
elif [ $# -eq 0 ]; then
    # shellcheck disable=SC2046
    set -- $(awk '$NF == "always" { print $1 }' $vm/machines)
fi

# A virtual machine of the processor, if it can have one; else one that is emulated, ten times slower.
# Some /dev/kvm run only kernels that were made for them.
if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
    accel=(-accel kvm -cpu host)
    scale=2
else
    accel=(-accel "tcg,thread=multi,tb-size=512" -cpu max)
    scale=8
fi
scale=${VM_SCALE:-$scale}
limit=$((900 * scale))

machine=
scratch=$(mktemp -d "${TMPDIR:-/tmp}/nacre-vm.XXXXXX")
clean_up() {
    [ -z "$machine" ] || kill "$machine" 2>/dev/null || true
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# boot PLACE LOGS: until it turns itself off. What it writes on its disk is forgotten.
boot() {
    TMPDIR=$scratch timeout -k 10 "$limit" nice -n 10 qemu-system-x86_64 "${accel[@]}" \
        -smp 2 -m 2048 -nodefaults -no-user-config -display none -monitor none -no-reboot \
        -kernel "$1/kernel" -initrd "$1/initrd" \
        -append "root=/dev/disk/by-id/virtio-root rw panic=1 no_timer_check console=ttyS0" \
        -serial "file:$2/console" -device virtio-rng-pci \
        -drive "file=$1/root.img,format=raw,if=none,id=root,snapshot=on" \
        -drive "file=$scratch/nacre.tar,format=raw,if=none,id=nacre,readonly=on" \
        -device virtio-blk-pci,drive=root,serial=root \
        -device virtio-blk-pci,drive=nacre,serial=nacre -device virtio-serial-pci \
        -chardev "file,id=told,path=$2/told" -device virtserialport,chardev=told,name=told \
        -chardev "file,id=logs,path=$scratch/logs.tar" -device virtserialport,chardev=logs,name=logs \
        >"$2/qemu" 2>&1 </dev/null &
    machine=$!
    tail -n +1 --pid=$machine -s 0.5 -f "$2/told" 2>/dev/null | sed -u "s/^/$name: /" &
    wait $machine || echo "$name: the machine did not turn itself off" >&2
    machine=
    wait
}

test_machine() {
    local name=$1 place logs=$out/$1
    rm -rf "$logs" && mkdir -p "$logs" && touch "$logs/told"
    rm -f "$scratch/logs.tar"
    place=$($vm/image.sh "$name") || return
    printf '%s=%q\n' scale "$scale" extent "$extent" only "${VM_ONLY:-.}" >"$scratch/settings"
    nice -n 10 $vm/build.sh "$place" "$scratch/nacre.tar" >"$logs/build" 2>&1 ||
        { cat "$logs/build" >&2 && return 1; }
    tar -rf "$scratch/nacre.tar" -C "$scratch" settings
    # An initrd waits half a minute for its disk, and gives up: too little on a machine that is very busy.
    for _ in 1 2 3; do
        [ -s "$logs/told" ] || boot "$place" "$logs"
    done
    tar -xf "$scratch/logs.tar" -C "$logs" 2>/dev/null
}

mkdir -p "$out"
for name in "$@"; do
    test_machine "$name" || echo "$name: no results came out" >&2
done
python3 $vm/table.py "$out" "$@"
