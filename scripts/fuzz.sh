#!/usr/bin/env bash
# Gives each fuzz target of a build folder an equal share of the time.
# usage: fuzz.sh BUILD SECONDS LOGS; BUILD was made with clang, a sanitizer and -Dfuzz=true.
# Finds are put into LOGS; inputs that a target learned from stay in BUILD/corpus.
set -eu
cd "$(dirname "$0")/.."

build=$1
seconds=$2
logs=$3
mapfile -t sources < <(scripts/list-sources.sh tests/fuzz '*.c')
if [ ${#sources[@]} -eq 0 ]; then
    echo "there is no target in tests/fuzz" >&2
    exit 1
fi

mkdir -p "$logs"
share=$((seconds / ${#sources[@]}))
[ $share -ge 1 ] || share=1
status=0
for source in "${sources[@]}"; do
    target=${source%.c}
    learned=$build/corpus/$target
    seeds=tests/fuzz/corpus/$target
    mkdir -p "$learned"
    [ -d "$seeds" ] || seeds=
    # shellcheck disable=SC2086
    if "$build/tests/fuzz/$target" -max_total_time=$share -timeout=5 -rss_limit_mb=1024 \
        -artifact_prefix="$logs/$target-" "$learned" $seeds >"$logs/$target.log" 2>&1 </dev/null; then
        echo "$target: $(sed -n 's/^Done \([0-9]*\) runs.*/\1 inputs/p' "$logs/$target.log")"
    else
        echo "$target failed:"
        tail -n 60 "$logs/$target.log"
        status=1
    fi
done
exit $status
