#!/usr/bin/env bash
# Installs the Debian packages that are missing, and says which and why.
# usage: deps.sh [build] [test] [full] [bench] [vm]
# What is heavy and wanted by a few cases only is of `full`: without it they are skipped, and say so.
set -eu

# For what, which, and why.
list_packages() {
    cat <<-'EOF'
	build gcc the C compiler
	build libc6-dev the headers of the C library, and its static form for the keeper
	build meson configures the build
	build ninja-build runs the build
	build pkg-config finds libraries
	build libjansson-dev reads the configuration file, and writes the JSON of the command line
	build libsqlite3-dev the catalog
	build libpcre2-dev searches what shells printed
	build libutf8proc-dev how wide characters are on a terminal
	build scdoc makes the manual pages
	test g++ compiles the public headers as C++
	test clang the second compiler, sanitizers and fuzzing
	test libclang-rt-14-dev the runtimes of clang's sanitizers
	test clang-format checks the formatting
	test clang-tidy static analysis
	test libcmocka-dev unit tests
	test libvterm-dev a terminal that ours is compared with
	test chromium the page is clicked through in a browser
	test musl-tools a shell that is linked with another libc
	test libseccomp-dev denies system calls, so that fallbacks are tested
	test fish a shell whose completion is tested
	test git a program that likes to open editors
	test curl a client of proxies
	test iproute2 links networks, for the gate to stand between
	test openssl makes the certificate of a server of the tests
	test python3 a program that asks, and one that serves
	test nodejs runs npm
	test npm installs the clients of others that the MCP server is tested with
	test gdb a debugger that asks
	test less a pager that is used
	test openssh-client programs that ask for a passphrase
	test sudo a program that asks for a password, and may not be looked at
	test vim an editor that is used
	test whiptail a program that asks with a menu
	test procps pkill and ps, run as agents run them
	test sqlite3 a stranger that holds the catalog
	test tmux a real terminal, for what is drawn on one and to compare the rendering with
	test zsh a shell whose completion is tested
	test util-linux setpriv and unshare: other users, other namespaces
	full cargo builds inside a sandbox, with what it fetched before
	full chromium has a sandbox of its own, which does not work in ours
	full gdb debugs inside a sandbox
	full python3-pip installs inside a sandbox, and from its caches
	full bubblewrap a sandbox that does not work in ours
	full sudo gains no rights inside a sandbox, and says why
	bench ripgrep what a search is compared with
	bench bubblewrap a sandbox that ours is compared with
	bench socat srt needs it
	bench git a program that reads many files
	bench nodejs runs npm
	bench npm installs the servers of others that ours is compared with
	bench python3 runs a loop that ours is compared with
	vm mmdebstrap makes the distributions that are booted
	vm debian-archive-keyring knows packages of Debian
	vm curl fetches the key of Ubuntu
	vm qemu-system-x86 boots them
	vm e2fsprogs makes their disks
	vm python3 prints the table of results
	EOF
}

# Node and npm often come from elsewhere; any will do, since the tests bring their own.
is_installed() {
    case $1 in
    nodejs) command -v node >/dev/null && return ;;
    npm) command -v npm >/dev/null && return ;;
    esac
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

list_missing() {
    local package why
    while read -r package why; do
        is_installed "$package" || echo "$package $why"
    done
}

# Prints how to become root: nothing, "sudo -n", or fails.
root_prefix() {
    [ "$(id -u)" -eq 0 ] && return 0
    sudo -n true 2>/dev/null && echo "sudo -n"
}

install_packages() {
    local prefix=$1 env="env DEBIAN_FRONTEND=noninteractive" log status=0
    shift
    log=$(mktemp)
    # shellcheck disable=SC2086
    {
        $prefix $env apt-get -q update &&
            $prefix $env apt-get -q -y -o DPkg::Lock::Timeout=120 \
                install --no-install-recommends "$@"
    } >"$log" 2>&1 </dev/null || status=$?
    [ $status -eq 0 ] || cat "$log" >&2
    rm -f "$log"
    return $status
}

wanted=$(list_packages | awk -v groups=" ${*:-build} " \
    'index(groups, " " $1 " ") && !listed[$2]++ { sub(/^[^ ]+ /, ""); print }')
if ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian, so nothing is installed. What Debian calls these is needed:"
    echo "$wanted" | sed 's/^\([^ ]*\) /  \1: /'
    exit 0
fi

missing=$(echo "$wanted" | list_missing)
[ -n "$missing" ] || exit 0

names=$(echo "$missing" | cut -d' ' -f1 | tr '\n' ' ')
echo "Missing packages:"
echo "$missing" | sed 's/^\([^ ]*\) /  \1: /'
if ! prefix=$(root_prefix); then
    echo "They cannot be installed without root or a sudo that asks nothing. Run this, then again:"
    echo "  sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends ${names% }'"
    exit 1
fi
echo "Installing them with ${prefix:+$prefix }apt-get ..."
# shellcheck disable=SC2086
if ! install_packages "$prefix" $names; then
    echo "apt-get failed; its words are above" >&2
    exit 1
fi
