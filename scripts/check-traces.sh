#!/usr/bin/env bash
# Nothing of the machine where it was written stays in the tree: no path of the checkout, and no
# host of a package registry in a lock file.
set -eu
cd "$(dirname "$0")/.."

list_files() {
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard
    else
        find . \( -name 'build*' -o -name node_modules -o -name .git \) -prune -o -type f -print0
    fi
}

# The folder above the checkout counts too, unless everybody has one of that name.
local_paths() {
    local above
    above=$(dirname "$PWD")
    echo "$PWD"
    case $above in
    / | /home | /home/* | /root | /tmp | /var/tmp | /dev/shm | /srv | /opt | /mnt | /usr/src) ;;
    *) echo "$above" ;;
    esac
}

search() {
    list_files | xargs -0 grep -nIHE -e "$1" -- 2>/dev/null || true
}

found=
while read -r path; do
    quoted=$(printf '%s' "$path" | sed 's/[][\.*^$+?(){}|]/\\&/g')
    found+=$(search "(^|[^A-Za-z0-9_.\$}/-])$quoted(/|[^A-Za-z0-9_.-]|\$)")
done < <(local_paths)
if [ -n "$found" ]; then
    printf '%s\n' "$found"
    echo "these lines name a path of this machine" >&2
    exit 1
fi

locks=$(list_files | tr '\0' '\n' | grep -E '(^|/)(package-lock|npm-shrinkwrap)\.json$' || true)
if [ -n "$locks" ] && printf '%s\n' "$locks" | xargs grep -nHE '"resolved": *"https?:' --; then
    echo "these lines of a lock file name a package registry: leave \"resolved\" out" >&2
    exit 1
fi
