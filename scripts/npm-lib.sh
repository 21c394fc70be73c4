# shellcheck shell=bash
# Programs of others from npm, as a lock file says, with a Node that is new enough for them. Sourced
# from the root of the tree.

# The one Node that all of them run with; it is a package of its own, one for each machine.
case $(uname -m) in
aarch64) node=arm64 ;;
*) node=x64 ;;
esac
node=$PWD/tests/peers/node/node_modules/node-linux-$node/bin/node

# A folder is as its lock file says if it was installed from that very file.
is_current() {
    cmp -s "$1/package-lock.json" "$1/node_modules/.installed"
}

# install_locked FOLDER COMMAND...: with the npm that COMMAND starts. No script of a package runs.
install_locked() {
    local folder=$1
    shift
    is_current "$folder" && return
    (cd "$folder" && "$@" ci --ignore-scripts --no-audit --no-fund)
    cp "$folder/package-lock.json" "$folder/node_modules/.installed"
}

is_installed_from_npm() {
    is_current tests/peers/node && is_current "$1"
}

# install_from_npm FOLDER: and the Node.
install_from_npm() {
    if ! command -v npm >/dev/null; then
        echo "npm is not installed: \`make deps\` installs what tests need" >&2
        return 1
    fi
    install_locked tests/peers/node npm
    if [ ! -x "$node" ]; then
        rm -rf tests/peers/node/node_modules
        echo "npm did not install a Node for this machine ($(uname -m)): ask for it again when online" >&2
        return 1
    fi
    PATH=${node%/*}:$PATH install_locked "$1" "$node" "$(realpath "$(command -v npm)")"
}
