#!/bin/sh
# Prints every C source and header of the project, from the root of the tree.
set -eu
cd "$(dirname "$0")/.."
find include src tests bench -name '*.[ch]' -type f | LC_ALL=C sort
