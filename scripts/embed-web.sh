#!/usr/bin/env bash
# Writes the C source that has the files of the page inside: each as it is, and packed if gzip is
# there. The program needs nothing of them on disk.
# usage: embed-web.sh OUTPUT.c FILE...
set -eu

output=$1
packed=$(dirname "$output")/web-packed
mkdir -p "$packed"
shift

type_of() {
    case $1 in
    *.html) echo 'text/html; charset=utf-8' ;;
    *.css) echo 'text/css; charset=utf-8' ;;
    *.js) echo 'text/javascript; charset=utf-8' ;;
    *.svg) echo 'image/svg+xml' ;;
    esac
}

# embed NAME FILE: two symbols around the bytes.
embed() {
    # shellcheck disable=SC2016
    printf '__asm__(".section .rodata\\n%s: .incbin \\"%s\\"\\n%s_end: .byte 0\\n.previous");\n' \
        "$1" "$2" "$1"
    printf 'extern const char %s[], %s_end[];\n' "$1" "$1"
}

{
    echo '/* Made by scripts/embed-web.sh. */'
    echo '#include "page/web_files.h"'
    table=
    n=0
    for file in "$@"; do
        name=web_$n path=$(realpath "$file")
        embed "$name" "$path"
        zipped="NULL, NULL"
        if command -v gzip >/dev/null; then
            gzip -9nc "$file" >"$packed/$name.gz"
            embed "${name}_gz" "$(realpath "$packed/$name.gz")"
            zipped="${name}_gz, ${name}_gz_end"
        fi
        short=${file##*/}
        [ "$short" != index.html ] || short=
        tag=$(sha256sum "$file" | cut -c1-16)
        table+="    {\"$short\", \"$(type_of "$file")\", \"W/\\\"$tag\\\"\", $name, ${name}_end, $zipped},
"
        n=$((n + 1))
    done
    echo 'const struct web_file web_files[] = {'
    printf '%s' "$table"
    echo '    {0},'
    echo '};'
} >"$output"
