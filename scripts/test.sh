#!/usr/bin/env bash
# What `make test` runs, in five minutes on two cores:
#
#   all users and tiers   the process tests (tests/integration), release build: as root and as an
#                         ordinary user, each with the cgroup tier and without it
#   once                  tests of what stands on all that (tests/features), the rules of the source
#                         tree, clang-tidy without the analyzer, clients of others
#   ASan and UBSan, once  unit, process and feature tests, and a minute of fuzzing
#   TSan, once            the tests of threads
#
# Tests wait more than they work, so several run at a time, and a lane of low priority builds and
# analyses in the time that they leave: first what the sanitizers' tests wait for. Most run in
# memory (see use_memory); the unit tests and those of the ordinary user without cgroups stay on the
# disk. What is done a thousand times is done a fifth as often under a sanitizer (rounds() of the
# harness). test-full.sh runs the rest: the unit tests of the release build, ten times the rounds,
# all combinations, denied system calls.
set -eu
cd "$(dirname "$0")/.."
. scripts/test-lib.sh

jobs=${TEST_JOBS:-$((3 * $(nproc)))}

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
    check "build: clang, ASan and UBSan" build_asan
    touch "$scratch/asan-built"
    nice_to 19 fuzzing 60 &
    check "build: clang, TSan" build_tsan
    touch "$scratch/tsan-built"
    check "clang-tidy" scripts/check-tidy.sh build-asan --quick
    static_checks
    wait
}

plan_of_this_user() {
    local me
    me=$(id -un)
    if can_use_cgroups; then
        plan "$me-cgroup" build '{integration,features}/test_*'
    else
        skip "the cgroup tier: there is no cgroup v2 tree that $me may write to"
        plan "$me" build 'features/test_*'
    fi
    NACRE_TIER=subreaper plan "$me-subreaper" build 'integration/test_*'
}

plan_of_ordinary_user() {
    local copy=$1
    if [ -n "$cgroup_home" ]; then
        plan user-cgroup "$copy" 'integration/test_*' "${in_cgroup[@]}" "${as_user[@]}"
    fi
    places=$scratch NACRE_TIER=subreaper plan user-subreaper "$copy" 'integration/test_*' \
        "${as_user[@]}"
}

release_suites() {
    local copy=
    ! can_use_cgroups || check "cgroup tier in force" check_tier cgroup build
    if ! is_root; then
        skip "the suites as root and as another user: this is not root"
    else
        copy=$(copy_for_user build)
        if can_use_cgroups; then
            delegate_cgroup
            in_cgroup=("$PWD/scripts/in-cgroup.sh" "$cgroup_home")
            check "cgroup tier, delegated" check_tier cgroup "$copy" "${in_cgroup[@]}" "${as_user[@]}"
        fi
    fi
    {
        plan_of_this_user
        [ -z "$copy" ] || plan_of_ordinary_user "$copy"
    } | run_planned "$jobs"
}

sanitizer_suites() {
    plan asan build-asan '{integration,features}/test_*' | run_planned "$jobs"
    await_file "$scratch/tsan-built"
    {
        plan tsan build-tsan 'integration/test_thread*'
        places=$scratch plan asan-unit build-asan 'unit/test_*'
    } | run_planned "$jobs"
}

begin
check "build: gcc, release" scripts/build.sh build -Dtests=true
[ $ok -eq 1 ] || finish
check "settings in the documentation" scripts/check-settings.sh build
use_memory
nice_to 10 builds_and_analysis &
release_suites
await_file "$scratch/asan-built"
check "clients of others" scripts/peers.sh build &
sanitizer_suites
wait
check "nothing left behind" check_nothing_left
finish
