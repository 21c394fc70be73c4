#!/usr/bin/env bash
# The whole matrix: users x tiers x builds (release, ASan and UBSan, TSan) x what is denied.
#
#   nothing denied   all tests that start processes, with the long rounds (TSan: those of threads), and
#                    the storm (tests/torture) for STORM_SECONDS, ten minutes if not said
#   denied           the process tests (tests/integration), since it is the keeper and the library
#                    below the tools that meet the kernel; the usual rounds
#   the group tier   the process tests, which know what it cannot hold, and what is tried to get out of
#                    a fence
#
# All cells are one queue. MATRIX, if set, is a regular expression over the labels of what to run:
# the cells, such as user-group-asan-pidfd_open, and unit, asan-unit, clang-tidy, fuzzing and booted.
set -eu
cd "$(dirname "$0")/.."
. scripts/test-lib.sh

scale=8

# wanted LABEL: whether MATRIX asks for it.
wanted() {
    [[ $1 =~ ${MATRIX:-.} ]]
}

# The suites of a cell of TIER, BUILD and DENIED.
suites_of() {
    case $1,$2,$3 in
    *,build-tsan,*) echo threads ;;
    group,*,nothing) echo integration,fence ;;
    group,*) echo integration ;;
    *,nothing) echo integration,features,torture ;;
    *) echo integration ;;
    esac
}

# cell USER TIER BUILD DENIED: plans it. The words that a test runs behind: what root can do, the
# user, what takes a system call away.
cell() {
    local who=$1 tier=$2 build=$3 denied=$4 flavour=${3#build} place=$PWD as='' words=()
    flavour=${flavour#-}
    local label=$who-$tier-${flavour:-release}-$denied
    wanted "$label" || return 0
    [ "$denied" != cgroup-ro ] || as="$PWD/scripts/cgroup-readonly.sh"
    if [ "$who" = user ]; then
        place=$scratch
        words+=("TEST_COPY=$place/$build")
        [ "$tier" != cgroup ] || as="$in_cgroup $as"
        as+=" $as_user"
    fi
    case $denied in
    nothing) words+=(NACRE_TEST_LONG=1 "NACRE_TEST_STORM_SECONDS=${STORM_SECONDS:-600}") ;;
    cgroup-ro) ;;
    *) as+=" $place/${build%-tsan}/tests/programs/deny-syscall $denied --" ;;
    esac
    plan "$label" "$build" "$(suites_of "$tier" "$build" "$denied")" "NACRE_TIER=$tier" \
        "TEST_AS=$as" ${words[@]+"${words[@]}"}
}

# Every combination of one build; a read-only cgroup tree means nothing to the other tiers.
matrix() {
    local build=$1 who tier denied
    for who in "${users[@]}"; do
        for tier in "${tiers[@]}"; do
            for denied in nothing clone3 pidfd_open close_range cgroup-ro; do
                [ $denied != cgroup-ro ] || { is_root && [ "$tier" = cgroup ]; } || continue
                cell "$who" "$tier" "$build" "$denied"
            done
        done
    done
}

begin
make_build build "gcc, release" build_release
make_build build-asan "clang, ASan and UBSan" build_asan
make_build build-tsan "clang, TSan" build_tsan
! compgen -G "$scratch/*.failed" >/dev/null || finish

use_memory
users=("$(id -un)")
tiers=(subreaper group)
if can_use_cgroups; then
    tiers=(cgroup subreaper group)
    step "cgroup tier in force" check_tier cgroup build
else
    skip "the cgroup tier: there is no cgroup v2 tree that $(id -un) may write to"
fi
if is_root; then
    users+=(user)
    [ "${tiers[0]}" != cgroup ] || delegate_cgroup
    for build in build build-asan build-tsan; do
        copy_for_user $build >/dev/null
    done
else
    skip "the suites as root and as another user, and the read-only cgroup tree: this is not root"
fi

{
    ! wanted unit || plan unit build unit NACRE_TEST_LONG=1
    ! wanted asan-unit || plan asan-unit build-asan unit NACRE_TEST_LONG=1
    matrix build
    matrix build-asan
    matrix build-tsan
} | run_planned "$jobs"
if ! is_root; then
    skip "a booted distribution: this is not root"
elif wanted booted; then
    step "booted: packages" scripts/deps.sh vm
    step "booted" tests/vm/run.sh --short
fi
! wanted clang-tidy || step "clang-tidy" scripts/check-tidy.sh build-asan
! wanted fuzzing || step "fuzzing" scripts/fuzz.sh build-asan "${FUZZ_SECONDS:-600}" "$logs/fuzz"
step "nothing left behind" check_nothing_left
finish
