#!/usr/bin/env bash
# Runs the peers of others against the MCP server and the ACP terminals of a build folder. They are installed into
# tests/peers as the lock files say; the newer Node that they need is a package of its own.
# usage: peers.sh BUILD
set -eu
build=$(realpath "$1")
cd "$(dirname "$0")/.."
. scripts/npm-lib.sh

install_from_npm tests/peers
cd tests/peers
NACRE=$build/nacre "$node" peers.mjs
NACRE=$build/nacre "$node" acp.mjs
