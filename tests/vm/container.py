"""Writes what an OCI runtime wants to know of a container such as Docker makes them: no user namespace,
Docker's capabilities, its masked paths and its default seccomp profile. That one is made of podman's,
which is Docker's but for the calls that those of Docker's need CAP_SYS_ADMIN for.
usage: container.py UID COMMAND... >config.json
"""
import json
import sys

PROFILE = "/usr/share/containers/seccomp.json"
NEEDS_ADMIN = """bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount
    mount_setattr move_mount open_tree perf_event_open pivot_root quotactl quotactl_fd setdomainname
    sethostname setns syslog umount umount2 unshare""".split()
NEW_SPACES = 0x7E020000
CAPABILITIES = ["CAP_" + name for name in """CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID
    SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE""".split()]
MASKED = """/proc/acpi /proc/asound /proc/interrupts /proc/kcore /proc/keys /proc/latency_stats
    /proc/timer_list /proc/timer_stats /proc/sched_debug /proc/scsi /sys/firmware""".split()
READONLY = "/proc/bus /proc/fs /proc/irq /proc/sys /proc/sysrq-trigger".split()


def rule(action, names, error=None, args=None):
    made = {"action": action, "names": names}
    if error:
        made["errnoRet"] = error
    if args:
        made["args"] = args
    return made


def seccomp():
    with open(PROFILE) as file:
        known = json.load(file)["syscalls"]
    allowed = [
        rule(r["action"], [n for n in r["names"] if n not in NEEDS_ADMIN], args=r.get("args"))
        for r in known
        if r["action"] == "SCMP_ACT_ALLOW" and not r.get("excludes")
        and (not r.get("includes") or "amd64" in r["includes"].get("arches", []))
    ]
    no_spaces = [{"index": 0, "value": NEW_SPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
        "syscalls": [r for r in allowed if r["names"]] + [
            rule("SCMP_ACT_ALLOW", ["socket", "chroot"]),
            rule("SCMP_ACT_ALLOW", ["clone"], args=no_spaces),
            rule("SCMP_ACT_ERRNO", ["clone3"], error=38),
        ],
    }


def mount(destination, kind, source, *options):
    return {"destination": destination, "type": kind, "source": source, "options": list(options)}


def container(uid, command):
    spaces = "pid ipc uts mount network cgroup".split()
    capabilities = CAPABILITIES if uid == 0 else []
    return {
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs", "readonly": False},
        "hostname": "container",
        "process": {
            "user": {"uid": uid, "gid": uid},
            "args": command,
            "cwd": "/",
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/var/tmp"],
            "capabilities": dict.fromkeys(["bounding", "effective", "permitted"], capabilities)
            | {"bounding": CAPABILITIES},
            "noNewPrivileges": False,
        },
        "mounts": [
            mount("/proc", "proc", "proc", "nosuid", "noexec", "nodev"),
            mount("/dev", "tmpfs", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
            mount("/dev/pts", "devpts", "devpts", "nosuid", "noexec", "newinstance",
                  "ptmxmode=0666", "mode=0620", "gid=5"),
            mount("/dev/shm", "tmpfs", "shm", "nosuid", "noexec", "nodev", "mode=1777"),
            mount("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", "ro"),
            mount("/sys/fs/cgroup", "cgroup", "cgroup", "nosuid", "noexec", "nodev", "ro"),
        ],
        "linux": {
            "namespaces": [{"type": space} for space in spaces],
            "maskedPaths": MASKED,
            "readonlyPaths": READONLY,
            "seccomp": seccomp(),
        },
    }


json.dump(container(int(sys.argv[1]), sys.argv[2:]), sys.stdout, indent=1)
