#!/usr/bin/env bash
# The whole matrix: users x tiers x builds (release, ASan and UBSan, TSan) x what is denied.
#
#   nothing denied   all tests that start processes, with the long rounds (TSan: those of threads)
#   denied           the process tests (tests/integration), since it is the keeper and the library
#                    below the tools that meet the kernel; the usual rounds
#   the group tier   the process tests, which know what it cannot hold
#
# All cells are one queue. MATRIX, if set, is a regular expression over the labels of what to run:
# the cells, such as user-group-asan-pidfd_open, and unit, asan-unit, clang-tidy and fuzzing.
set -eu
cd "$(dirname "$0")/.."
. scripts/test-lib.sh

jobs=${TEST_JOBS:-$((3 * $(nproc)))}
export TEST_LIMIT=1800

# Puts a command into the wrapper that takes something away from it.
deny() {
    local build=$1 what=$2
    case $what in
    nothing) wrapper=() ;;
    cgroup-ro) wrapper=("$PWD/scripts/cgroup-readonly.sh") ;;
    *) wrapper=("$build/tests/programs/deny-syscall" "$what" --) ;;
    esac
}

# wanted LABEL: whether MATRIX asks for it.
wanted() {
    [[ $1 =~ ${MATRIX:-.} ]]
}

# What a cell of TIER, BUILD and DENIED consists of.
tests_of() {
    case $1,$2,$3 in
    *,build-tsan,*) echo 'integration/test_thread*' ;;
    group,*) echo 'integration/test_*' ;;
    *,nothing) echo '{integration,features}/test_*' ;;
    *) echo 'integration/test_*' ;;
    esac
}

# cell USER TIER BUILD DENIED: plans it.
cell() {
    local who=$1 tier=$2 build=$3 denied=$4 place=$3 flavour=${3#build}
    flavour=${flavour#-}
    local label=$who-$tier-${flavour:-release}-$denied
    wanted "$label" || return 0
    local prefix=()
    if [ "$who" = user ]; then
        place=$scratch/$build
        [ "$tier" != cgroup ] || prefix+=("$PWD/scripts/in-cgroup.sh" "$cgroup_home")
    fi
    deny "$(realpath "$(keepers_of "$place")")" "$denied"
    if [ "$denied" = cgroup-ro ]; then
        prefix+=("${wrapper[@]}")
        wrapper=()
    fi
    [ "$who" != user ] || prefix+=("${as_user[@]}")
    prefix+=("${wrapper[@]}")
    [ "$denied" = nothing ] || local long=
    NACRE_TIER=$tier plan "$label" "$place" "$(tests_of "$tier" "$build" "$denied")" "${prefix[@]}"
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
check "build: gcc, release" scripts/build.sh build -Dtests=true
check "build: clang, ASan and UBSan" build_asan
check "build: clang, TSan" build_tsan
[ "$(awk '$2 > 0' "$results" | wc -l)" -eq 0 ] || finish

use_memory
users=("$(id -un)")
tiers=(subreaper group)
if can_use_cgroups; then
    tiers=(cgroup subreaper group)
    check "cgroup tier in force" check_tier cgroup build
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
    long=1
    ! wanted unit || plan unit build 'unit/test_*'
    ! wanted asan-unit || plan asan-unit build-asan 'unit/test_*'
    matrix build
    matrix build-asan
    matrix build-tsan
} | run_planned "$jobs"
! wanted clang-tidy || check "clang-tidy" scripts/check-tidy.sh build-asan
! wanted fuzzing || fuzzing "${FUZZ_SECONDS:-600}"
check "nothing left behind" check_nothing_left
finish
