#!/usr/bin/env bash
# Runs the peers of others against the MCP servers, the ACP terminals and the page of a build folder. They are installed into
# tests/peers as the lock files say; the newer Node that they need is a package of its own.
# usage: peers.sh BUILD | install
set -eu
cd "$(dirname "$0")/.."
. scripts/npm-lib.sh

if [ "$1" = install ]; then
    is_installed_from_npm tests/peers ||
        echo "installing from npm: the clients of others that the tests use, below tests/peers"
    install_from_npm tests/peers >/dev/null
    exit
fi
build=$(realpath "$1")
install_from_npm tests/peers
cd tests/peers
NACRE=$build/nacre "$node" peers.mjs
NACRE=$build/nacre "$node" http.mjs
NACRE=$build/nacre "$node" acp.mjs
NACRE=$build/nacre NACRE_PICTURES=$build/pictures "$node" page.mjs
