#!/usr/bin/env bash
# What `make test` runs: the rules of the source tree, both compilers, unit tests, the process
# tests (tests/integration) as root and as an ordinary user with and without the cgroup tier, those
# of what stands on them (tests/features) once, both with the sanitizers, and a minute of fuzzing.
# Two lanes go side by side: one runs tests, the other builds and analyses.
set -eu
cd "$(dirname "$0")/.."
. scripts/test-lib.sh

jobs=${TEST_JOBS:-2}

static_checks() {
    check "formatting" scripts/check-format.sh
    check "layers" scripts/check-layers.sh
    check "sizes" scripts/check-sizes.sh
    check "banned functions" scripts/check-banned.sh
    check "public headers" scripts/check-headers.sh
    check "traces of this machine" scripts/check-traces.sh
}

# The build with clang is the one with sanitizers: the warnings are the same.
builds_and_analysis() {
    export JOBS=1
    static_checks
    check "build: clang, ASan and UBSan" build_asan
    check "build: clang, TSan" build_tsan
    check "clang-tidy" scripts/check-tidy.sh build-asan --quick
    check "clients of others" scripts/peers.sh build
}

suites_of_this_user() {
    local me
    me=$(id -un)
    if can_use_cgroups; then
        check "cgroup tier in force" check_tier cgroup build
        suite "$me-cgroup" build '{integration,features}/test_*' "$jobs"
    else
        skip "the cgroup tier: there is no cgroup v2 tree that $me may write to"
        suite "$me" build 'features/test_*' "$jobs"
    fi
    NACRE_TIER=subreaper suite "$me-subreaper" build 'integration/test_*' "$jobs"
}

suites_of_ordinary_user() {
    local copy
    copy=$(copy_for_user build)
    if [ -n "$cgroup_home" ]; then
        local enter=("$PWD/scripts/in-cgroup.sh" "$cgroup_home" "${as_user[@]}")
        check "cgroup tier, delegated" check_tier cgroup "$copy" "${enter[@]}"
        suite user-cgroup "$copy" 'integration/test_*' "$jobs" "${enter[@]}"
    fi
    NACRE_TIER=subreaper suite user-subreaper "$copy" 'integration/test_*' "$jobs" "${as_user[@]}"
}

# Tests wait more than they work, so both users go at the same time.
release_suites() {
    local other=
    suite unit build 'unit/test_*' "$jobs"
    if is_root; then
        ! can_use_cgroups || delegate_cgroup
        suites_of_ordinary_user &
        other=$!
    else
        skip "the suites as root and as another user: this is not root"
    fi
    suites_of_this_user
    [ -z "$other" ] || wait "$other"
}

sanitizer_suites() {
    local threads
    suite tsan build-tsan 'integration/test_thread*' 1 &
    threads=$!
    suite asan-unit build-asan 'unit/test_*' "$jobs"
    suite asan build-asan '{integration,features}/test_*' $((jobs * 2))
    wait $threads
}

begin
check "build: gcc, release" scripts/build.sh build -Dtests=true
[ $ok -eq 1 ] || finish
check "settings in the documentation" scripts/check-settings.sh build
in_background builds_and_analysis &
release_suites
wait
JOBS=1 in_background fuzzing 60 &
sanitizer_suites
wait
check "nothing left behind" check_nothing_left
finish
