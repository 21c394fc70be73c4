#!/usr/bin/env bash
# Configures a build folder if that is needed, and builds it.
# usage: build.sh DIR [-Doption=value]... [--target NAME]
# CC chooses the compiler of a new folder, JOBS the number of jobs.
set -eu -o pipefail
cd "$(dirname "$0")/.."

dir=$1
shift
log=$dir/configure.log
options=()
targets=()
while [ $# -gt 0 ]; do
    case $1 in
    --target) targets+=("$2") && shift ;;
    *) options+=("$1") ;;
    esac
    shift
done

need() {
    command -v "$1" >/dev/null && return
    echo "$1 is not installed: \`make deps\` installs what building needs" >&2
    exit 1
}

# The options in force are noted in the folder, so that asking for them again costs nothing.
new_options() {
    local option
    for option in ${options[@]+"${options[@]}"}; do
        grep -qxF -e "$option" "$dir/options.txt" 2>/dev/null || return 0
    done
    return 1
}

note_options() {
    local option
    touch "$dir/options.txt"
    for option in ${options[@]+"${options[@]}"}; do
        sed -i "\|^${option%%=*}=|d" "$dir/options.txt"
        echo "$option" >>"$dir/options.txt"
    done
}

# Tests, benchmarks, examples, checks and manual pages are globbed: a file that came or went changes its folder.
new_files() {
    [ -n "$(find tests bench examples man scripts -name node_modules -prune -o -type d -newer "$dir/build.ninja" -print)" ]
}

configure() {
    mkdir -p "$dir"
    if ! meson setup "$@" ${options[@]+"${options[@]}"} "$dir" >"$log" 2>&1; then
        cat "$log" >&2
        exit 1
    fi
    note_options
}

need meson
need ninja
need "${CC:-cc}"
if [ ! -f "$dir/build.ninja" ]; then
    configure
elif new_options || new_files; then
    configure --reconfigure
fi
if ! ninja --quiet -C "$dir" -j "${JOBS:-$(nproc)}" ${targets[@]+"${targets[@]}"} |
    sed '/^ninja: no work to do\.$/d; /ld.gold: warning: Cannot export local symbol/d'; then
    echo "the build in $dir failed" >&2
    exit 1
fi
