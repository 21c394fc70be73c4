#!/usr/bin/env bash
# Builds the fuzz targets and gives each an equal share of the time.
# usage: fuzz.sh SECONDS LOGS
# Finds are put into LOGS; inputs that a target learned from stay in build-fuzz/corpus.
set -eu
cd "$(dirname "$0")/.."

seconds=$1
logs=$2
mapfile -t sources < <(scripts/list-sources.sh tests/fuzz '*.c')
if [ ${#sources[@]} -eq 0 ]; then
    echo "there is no target in tests/fuzz" >&2
    exit 1
fi

CC=clang scripts/build.sh build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false \
    -Dc_args=-fsanitize=fuzzer-no-link --target fuzz-targets

mkdir -p "$logs"
share=$((seconds / ${#sources[@]}))
[ $share -ge 1 ] || share=1
status=0
for source in "${sources[@]}"; do
    target=${source%.c}
    learned=build-fuzz/corpus/$target
    seeds=tests/fuzz/corpus/$target
    mkdir -p "$learned"
    [ -d "$seeds" ] || seeds=
    # shellcheck disable=SC2086
    if "build-fuzz/tests/fuzz/$target" -max_total_time=$share -timeout=5 -rss_limit_mb=1024 \
        -artifact_prefix="$logs/$target-" "$learned" $seeds >"$logs/$target.log" 2>&1 </dev/null; then
        echo "$target: $(sed -n 's/^Done \([0-9]*\) runs.*/\1 inputs/p' "$logs/$target.log")"
    else
        echo "$target failed:"
        tail -n 60 "$logs/$target.log"
        status=1
    fi
done
exit $status
