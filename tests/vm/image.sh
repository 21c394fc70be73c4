#!/usr/bin/env bash
# Makes what a machine is booted from, in a folder of the cache: `tree`, the distribution as its own
# packages make it, in which nacre is built; `root.img`, the same as a disk; `kernel` and `initrd`.
# It is made once, and anew when what is said here changes. Prints the folder.
# usage: image.sh MACHINE
set -eu
cd "$(dirname "$0")"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nacre-vm
ubuntu_key=ubuntu-keyring_2023.11.28.1_all.deb
ubuntu_key_sum=36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8

# What builds nacre; what its tests run; what a user's machine has.
packages=(
    gcc libc6-dev meson ninja-build pkg-config scdoc ccache libjansson-dev libsqlite3-dev
    libpcre2-dev libutf8proc-dev libcmocka-dev libvterm-dev libseccomp-dev
    python3-minimal procps util-linux iproute2 git sqlite3 crun golang-github-containers-common
    systemd systemd-sysv dbus dbus-user-session libpam-systemd udev kmod initramfs-tools zstd
    apparmor openssh-server openssh-client
)

read -r name archive suites kernel _ < <(grep "^$1 " machines) || {
    echo "there is no machine $1; these are known:" $(sed -n 's/^\([a-z][^ ]*\) .*/\1/p' machines) >&2
    exit 1
}
suites=${suites//,/ }

# The key is in a package of Ubuntu's, which Debian 12 does not have: it is known by its sum.
fetch_ubuntu_key() {
    local deb=$new/$ubuntu_key
    curl -sSfL -o "$deb" "http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/$ubuntu_key"
    echo "$ubuntu_key_sum $deb" | sha256sum --quiet -c
    dpkg-deb -x "$deb" "$new/keys"
}

sources() {
    local suite where=http://deb.debian.org/debian
    for suite in $suites; do
        case $archive,$suite in
        ubuntu,*) echo "deb [signed-by=$new/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg]" \
            "http://archive.ubuntu.com/ubuntu $suite main universe" ;;
        *-security) echo "deb $where-security $suite main" ;;
        *) echo "deb $where $suite main" ;;
        esac
    done
}

make_tree() {
    local options=(--variant=minbase --format=directory --include="$(IFS=, && echo "${packages[*]},$kernel")")
    options+=(--aptopt='Apt::Install-Recommends "false"')
    for folder in doc man locale; do
        options+=(--dpkgopt="path-exclude=/usr/share/$folder/*")
    done
    case $suites in
    *-backports) options+=(--setup-hook='mkdir -p "$1/etc/apt/preferences.d"; printf "Package: linux-*\nPin: release n=*-backports\nPin-Priority: 600\n" >"$1/etc/apt/preferences.d/kernel"') ;;
    esac
    sources | mmdebstrap "${options[@]}" "${suites%% *}" "$new/tree" -
}

# An ordinary user; nobody who talks to the console; what begins the tests.
furnish() {
    local units=$new/tree/etc/systemd/system
    chroot "$new/tree" useradd -m -s /bin/bash ada
    install -m 644 nacre-vm.service "$units"
    mkdir -p "$units/multi-user.target.wants" "$new/tree/srv/source" "$new/tree/srv/build" "$new/tree/srv/ccache"
    ln -s ../nacre-vm.service "$units/multi-user.target.wants/"
    ln -s /dev/null "$units/serial-getty@ttyS0.service"
    echo "$name" >"$new/tree/etc/hostname"
}

make_disk() {
    cp -L "$(ls "$new"/tree/boot/vmlinuz-* | sort -V | tail -n 1)" "$new/kernel"
    cp -L "$(ls "$new"/tree/boot/initrd.img-* | sort -V | tail -n 1)" "$new/initrd"
    truncate -s 6G "$new/root.img"
    mkfs.ext4 -q -d "$new/tree" "$new/root.img"
}

recipe=$(grep "^$1 " machines | cat - image.sh nacre-vm.service | sha256sum | cut -c1-16)
place=$cache/$name-$recipe
if [ ! -e "$place/root.img" ]; then
    new=$cache/new-$name-$$
    trap 'rm -rf "$new"' EXIT
    mkdir -p "$new" "$cache/ccache"
    find "$cache" -maxdepth 1 -regex ".*/$name-[0-9a-f]*" -exec rm -rf {} +
    echo "making the image of $name, once ..." >&2
    {
        [ "$archive" != ubuntu ] || fetch_ubuntu_key
        make_tree
        furnish
        make_disk
    } >"$new/log" 2>&1 </dev/null || { tail -n 20 "$new/log" >&2 && exit 1; }
    mv "$new" "$place"
fi
echo "$place"
