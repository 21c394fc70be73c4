#!/usr/bin/env bash
# The whole matrix: users x tiers x sanitizers x denied system calls, with the long tests.
# MATRIX, if set, is a regular expression over the labels of what to run: the cells, such as
# user-group-asan-pidfd_open, and unit, asan-unit, clang-tidy and fuzzing.
set -eu
cd "$(dirname "$0")/.."
. scripts/test-lib.sh

jobs=${TEST_JOBS:-2}
export NACRE_TEST_LONG=1 TEST_LIMIT=1800

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

# cell USER TIER BUILD DENIED PATTERN
cell() {
    local who=$1 tier=$2 build=$3 denied=$4 pattern=$5 place=$3 flavour=${3#build}
    flavour=${flavour#-}
    local label=$who-$tier-${flavour:-release}-$denied
    wanted "$label" || return 0
    local prefix=()
    if [ "$who" = user ]; then
        place=$scratch/$build
        [ "$tier" != cgroup ] || prefix+=("$PWD/scripts/in-cgroup.sh" "$cgroup_home")
    fi
    deny "$(realpath "$place")" "$denied"
    if [ "$denied" = cgroup-ro ]; then
        prefix+=("${wrapper[@]}")
        wrapper=()
    fi
    [ "$who" != user ] || prefix+=("${as_user[@]}")
    prefix+=("${wrapper[@]}")
    NACRE_TIER=$tier suite "$label" "$place" "$pattern" "$jobs" "${prefix[@]}"
}

# Every combination of one build; a read-only cgroup tree means nothing to the other tiers.
matrix() {
    local build=$1 pattern=$2 who tier denied
    for who in "${users[@]}"; do
        for tier in "${tiers[@]}"; do
            for denied in nothing clone3 pidfd_open close_range cgroup-ro; do
                [ $denied != cgroup-ro ] || { is_root && [ "$tier" = cgroup ]; } || continue
                cell "$who" "$tier" "$build" "$denied" "$pattern"
            done
        done
    done
}

begin
check "build: gcc, release" scripts/build.sh build -Dtests=true
check "build: clang, ASan and UBSan" build_asan
check "build: clang, TSan" build_tsan
[ "$(awk '$2 > 0' "$results" | wc -l)" -eq 0 ] || finish

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

! wanted unit || suite unit build 'unit/test_*' "$jobs"
! wanted asan-unit || suite asan-unit build-asan 'unit/test_*' "$jobs"
matrix build '{integration,features}/test_*'
matrix build-asan '{integration,features}/test_*'
matrix build-tsan 'integration/test_thread*'
! wanted clang-tidy || check "clang-tidy" scripts/check-tidy.sh build-asan
! wanted fuzzing || fuzzing "${FUZZ_SECONDS:-600}"
check "nothing left behind" check_nothing_left
finish
