#!/usr/bin/env bash
# What `make test` runs, in eight minutes on two cores:
#
#   all users and tiers   the process tests (tests/integration), release build: as root and as an
#                         ordinary user, each with the cgroup tier and without it; what is tried to
#                         get out of a fence as both, without it
#   once                  tests of what stands on all that (tests/features), the rules of the source
#                         tree, clang-tidy without the analyzer, clients of others
#   ASan and UBSan, once  unit, process and feature tests, and a minute of fuzzing
#   TSan, once            the tests of threads
#   at the end, alone     short storms of hostile commands (tests/torture), of another seed in each
#                         cell: others would not be told from what they do to the machine
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

# The build with clang is the one with sanitizers: the warnings are the same.
builds_and_analysis() {
    make_build build-asan "clang, ASan and UBSan" build_asan
    nice_to 19 step "fuzzing for 60 s" scripts/fuzz.sh build-asan 60 "$logs/fuzz" &
    make_build build-tsan "clang, TSan" build_tsan
    step "clang-tidy" scripts/check-tidy.sh build-asan --quick
    plan checks build checks | run_planned 1
    wait
}

plan_of_this_user() {
    local me
    me=$(id -un)
    if can_use_cgroups; then
        plan "$me-cgroup" build integration,features
    else
        skip "the cgroup tier: there is no cgroup v2 tree that $me may write to"
        plan "$me" build features
    fi
    plan "$me-subreaper" build integration,fence NACRE_TIER=subreaper
}

plan_of_ordinary_user() {
    [ -z "$cgroup_home" ] ||
        plan user-cgroup build integration "TEST_COPY=$1" "TEST_AS=$in_cgroup $as_user"
    plan user-subreaper build integration,fence NACRE_TIER=subreaper \
        "TEST_PLACES=$scratch" "TEST_COPY=$1" "TEST_AS=$as_user"
}

release_suites() {
    local copy=
    ! can_use_cgroups || step "cgroup tier in force" check_tier cgroup build
    if ! is_root; then
        skip "the suites as root and as another user: this is not root"
    else
        copy=$(copy_for_user build)
        if can_use_cgroups; then
            delegate_cgroup
            step "cgroup tier, delegated" check_tier cgroup "$copy" "$in_cgroup $as_user"
        fi
    fi
    {
        plan_of_this_user
        [ -z "$copy" ] || plan_of_ordinary_user "$copy"
    } | run_planned "$jobs"
}

sanitizer_suites() {
    plan asan build-asan integration,features | run_planned "$jobs"
    await_build build-tsan
    {
        plan tsan build-tsan threads
        plan asan-unit build-asan unit "TEST_PLACES=$scratch"
    } | run_planned "$jobs"
}

storms() {
    {
        ! can_use_cgroups || plan "$(id -un)-cgroup" build torture
        plan "$(id -un)-subreaper" build torture NACRE_TIER=subreaper NACRE_TEST_STORM_SEED=2
        [ ! -d "$scratch/build" ] ||
            plan user-subreaper build torture NACRE_TIER=subreaper NACRE_TEST_STORM_SEED=3 \
                "TEST_PLACES=$scratch" "TEST_COPY=$scratch/build" "TEST_AS=$as_user"
    } | run_planned 1
}

begin
make_build build "gcc, release" build_release
[ $ok -eq 1 ] || finish
use_memory
nice_to 10 builds_and_analysis &
release_suites
await_build build-asan
plan peers build peers | run_planned 1 &
sanitizer_suites
wait
storms
step "nothing left behind" check_nothing_left
finish
