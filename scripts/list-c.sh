#!/bin/sh
# Prints every C source and header of the project, from the root of the tree.
set -eu
cd "$(dirname "$0")/.."
find include src tests bench examples -name node_modules -prune -o -name '*.[ch]' -type f -print | LC_ALL=C sort
