#!/usr/bin/env bash
# What a machine runs when it is up, as root in a service of the system: each situation in its turn, and
# what is to be known of the machine. What happens is told on one port, line by line; at the end the logs
# of all of it go out on another.
# The settings are: scale (how much slower this machine is), extent (short or full), only (which
# situations, as a regular expression).
set -u
. /opt/nacre/settings
logs=/var/tmp/nacre-logs
told=/dev/virtio-ports/told

tell() {
    echo "$*" | tee "$told"
}

# -- Ways to come there ---------------------------------------------------------------------------

# A login as it is: PAM, logind, the user's systemd.
log_in() {
    local user=$1
    shift
    ssh -q -i /root/key -o StrictHostKeyChecking=no "$user@localhost" "$@"
}

as_service() {
    systemd-run --quiet --wait --pipe --collect "$@"
}

in_container() {
    local uid=$1 bundle=/run/container-$1 status
    shift
    mkdir -p "$bundle/rootfs"
    mount --bind / "$bundle/rootfs"
    python3 /opt/nacre/tests/vm/container.py "$uid" "$@" >"$bundle/config.json"
    crun run --bundle "$bundle" "tests-$uid" </dev/null
    status=$?
    umount "$bundle/rootfs"
    return $status
}

log_out() {
    loginctl terminate-user "$1" 2>/dev/null
    for _ in $(seq 300); do
        systemctl --quiet is-active "user@$(id -u "$1")" || return
        sleep 0.1
    done
}

# -- What is expected -----------------------------------------------------------------------------

# Regular expressions for what `nacre doctor` says.
by_controller=a.controller.of.cgroup.v2
by_keeper=the.keeper

# yes or no: whether the kernel has what a sandbox wants, and lets this user have it.
sandbox_for() {
    local version restricted
    version=$(uname -r | sed 's/^\([0-9]*\)\.\([0-9]*\).*/\1 \2/')
    restricted=$(sysctl -n kernel.apparmor_restrict_unprivileged_userns 2>/dev/null)
    # shellcheck disable=SC2086
    set -- "$1" $version
    if [ "$2" -lt 6 ] || { [ "$2" -eq 6 ] && [ "$3" -lt 12 ]; }; then
        echo no
    elif [ "$1" != root ] && [ "${restricted:-0}" -eq 1 ]; then
        echo no
    else
        echo yes
    fi
}

# situation LABEL TIER KEPT SCOPE MEMORY SANDBOX TESTS WAY...
situation() {
    local label=$1 expected=("${@:2:5}") tests=$7 begin=$SECONDS
    [[ $label =~ $only ]] || return
    shift 7
    # shellcheck disable=SC2086
    "$@" /bin/bash /opt/nacre/tests/vm/situation.sh "$label" "${expected[@]}" $tests \
        >"$logs/$label.way" 2>&1 || true
    [ -s "$logs/$label/results" ] || { mkdir -p "$logs/$label" && echo "0 1 no-result" >"$logs/$label/results"; }
    tell "done: $label, $((SECONDS - begin)) s, $(awk '{ p += $1; f += $2 } END { print p + 0 " passed, " f + 0 " failed" }' "$logs/$label/results")"
    awk '$2 > 0 { print $NF }' "$logs/$label/results" | while read -r name; do
        tell "failed: $label $name"
    done
}

# -- What is run ----------------------------------------------------------------------------------

prepare() {
    install -d -m 1777 "$logs"
    chmod 755 /opt/nacre
    ssh-keygen -q -t ed25519 -N '' -f /root/key
    for user in root ada; do
        local home
        home=$(getent passwd "$user" | cut -d: -f6)
        install -d -m 700 -o "$user" -g "$user" "$home/.ssh"
        install -m 600 -o "$user" -g "$user" /root/key.pub "$home/.ssh/authorized_keys"
    done
    {
        . /etc/os-release
        echo "$PRETTY_NAME, Linux $(uname -r), $(systemctl --version | head -n 1 | cut -d' ' -f1,2)," \
            "security modules $(cat /sys/kernel/security/lsm)"
    } >"$logs/machine"
    until systemctl --quiet is-active ssh.service ssh.socket; do sleep 0.2; done
}

# See scopes.py.
scopes_of_login() {
    [ -d "$logs/login" ] || return
    log_in ada python3 /opt/nacre/tests/vm/scopes.py /opt/nacre/build/nacre >"$logs/login/scopes" 2>&1
    grep '^[01] [01] ' "$logs/login/scopes" >>"$logs/login/results" ||
        echo "0 1 tier:scopes" >>"$logs/login/results"
}

# A kept shell outlives the login in which it began, with lingering in a scope, without it outside.
logins_end() {
    local label=$1 id ok=1
    [ -d "$logs/$label" ] || return
    id=$(log_in ada /opt/nacre/build/nacre start -- "'exec sleep 3333'")
    log_out ada
    log_in ada /opt/nacre/build/nacre list 2>&1 | tee "$logs/$label/logout" | grep -q "^running" || ok=0
    log_in ada /opt/nacre/build/nacre kill --all >/dev/null 2>&1
    echo "$ok $((1 - ok)) outlives:kept_over_logout" >>"$logs/$label/results"
}

short() {
    situation root-login cgroup cgroup yes $by_controller $(sandbox_for root) "" log_in root
    situation login cgroup subreaper yes $by_controller $(sandbox_for ada) "test_containment" log_in ada
    situation service subreaper subreaper no $by_keeper $(sandbox_for ada) "" as_service -p User=ada
    situation container subreaper subreaper no $by_keeper no "" in_container 0
}

full() {
    local tests="test_containment test_kill test_hang test_limits test_tty"
    situation root-login cgroup cgroup yes $by_controller $(sandbox_for root) "$tests" log_in root
    situation root-service cgroup cgroup no $by_keeper $(sandbox_for root) "" as_service
    situation login cgroup subreaper yes $by_controller $(sandbox_for ada) "$tests test_output test_truth" log_in ada
    situation user-scope cgroup cgroup yes $by_controller $(sandbox_for ada) "" \
        log_in ada systemd-run --user --scope --quiet
    situation user-service cgroup cgroup yes $by_controller $(sandbox_for ada) "" \
        log_in ada systemd-run --user --quiet --wait --pipe --collect
    situation su subreaper subreaper no $by_keeper $(sandbox_for ada) "" log_in root runuser -u ada --
    situation service subreaper subreaper no $by_keeper $(sandbox_for ada) "test_kill" as_service -p User=ada
    situation container subreaper subreaper no $by_keeper no "test_kill" in_container 0
    situation container-user subreaper subreaper no $by_keeper no "" in_container 1000
    loginctl enable-linger ada
    situation linger cgroup cgroup yes $by_controller $(sandbox_for ada) "" log_in ada
    logins_end linger
    loginctl disable-linger ada
    logins_end login
    restrictions
}

# What a system may be set to.
restrictions() {
    local yama usual
    usual=$(sysctl -n kernel.yama.ptrace_scope)
    for yama in 0 1 2; do
        sysctl -q kernel.yama.ptrace_scope=$yama
        situation yama-$yama cgroup subreaper yes $by_controller $(sandbox_for ada) "test_tty" log_in ada
    done
    sysctl -q "kernel.yama.ptrace_scope=$usual"
    if usual=$(sysctl -n kernel.apparmor_restrict_unprivileged_userns 2>/dev/null); then
        for restricted in 0 1; do
            sysctl -q kernel.apparmor_restrict_unprivileged_userns=$restricted
            situation apparmor-$restricted cgroup subreaper yes $by_controller $(sandbox_for ada) "" log_in ada
        done
        sysctl -q "kernel.apparmor_restrict_unprivileged_userns=$usual"
    else
        tell "not here: AppArmor's restriction of user namespaces"
    fi
    mount -o remount,hidepid=2 /proc
    situation hidepid cgroup subreaper yes $by_controller $(sandbox_for ada) "" log_in ada
    mount -o remount,hidepid=0 /proc
}

until [ -e "$told" ]; do sleep 0.1; done
prepare
tell "up: $(cat "$logs/machine")"
"$extent"
scopes_of_login
journalctl -b --no-pager >"$logs/journal" 2>&1
tar -cf /dev/virtio-ports/logs -C "$logs" .
