#!/usr/bin/env python3
"""The scope that a user's systemd gives in a login session: how often it is asked, and where commands are
then. The login session is a cgroup that is called like one, and the manager is ours, on a bus of ours;
tests/vm has the real ones.
usage: [NACRE=build/nacre] test_login_scope.py [CASE...]"""
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import main  # noqa: E402

CALL_HELLO, CALL_START = 1, 4
RETURN, ERROR, SIGNAL = 2, 3, 4
JOB = "/org/freedesktop/systemd1/job/1"
MANAGER = "org.freedesktop.systemd1.Manager"


# -- The manager -----------------------------------------------------------------------------------

def padded(data, alignment):
    return data + bytes(-len(data) % alignment)


def text(value):
    return struct.pack("<I", len(value)) + value.encode() + b"\0"


def signature(value):
    return bytes([len(value)]) + value.encode() + b"\0"


def message(kind, fields, types="", body=b""):
    head = b""
    if types:
        fields = fields + [(8, "g", types)]
    for code, type, value in fields:
        data = padded(head, 8) + bytes([code]) + signature(type)
        value = {"u": lambda v: struct.pack("<I", v), "g": signature}.get(type, text)(value)
        head = (padded(data, 4) if type != "g" else data) + value
    start = b"l" + bytes([kind, 0, 1]) + struct.pack("<III", len(body), 1, len(head))
    return padded(start + head, 8) + body


def granted(name):
    body = padded(struct.pack("<I", 1) + text(JOB), 4)
    body = padded(body + text(name), 4) + text("done")
    return (message(RETURN, [(5, "u", CALL_START)], "o", text(JOB)) +
            message(SIGNAL, [(1, "o", JOB), (2, "s", MANAGER), (3, "s", "JobRemoved")], "uoss", body))


def refused(_):
    return message(ERROR, [(4, "s", "org.example.No"), (5, "u", CALL_START)], "s", text("not today"))


class Manager:
    """Answers each who asks by the next word of a plan; the last one goes on. "late" is no answer."""

    def __init__(self, *plan):
        self.plan = plan
        self.asked = []
        self.folder = tempfile.mkdtemp(prefix="nacre-bus-")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.folder, "bus"))
        self.listener.listen()
        self.open = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            peer, _ = self.listener.accept()
            self.open.append(peer)
            data = peer.recv(65536)
            name = re.search(rb"nacre-[0-9a-f]{32}-\d+\.scope", data).group().decode()
            at = data.index(b"\x04\0\0\0", data.index(b"PIDs\0"))
            word = self.plan[min(len(self.asked), len(self.plan) - 1)]
            self.asked.append(name)
            if word != "late":
                self.answer(peer, word, name, struct.unpack("<I", data[at + 4:at + 8])[0])

    def answer(self, peer, word, name, pid):
        if word == "granted":
            scope = os.path.join(os.environ["LOGIN_SLICE"], name)
            os.mkdir(scope)
            with open(os.path.join(scope, "cgroup.procs"), "w") as file:
                file.write(str(pid))
        hello = message(RETURN, [(5, "u", CALL_HELLO)], "s", text(":1.1"))
        peer.send(b"OK 0123\r\n" + hello + {"granted": granted, "refused": refused}[word](name))


# -- The cases -------------------------------------------------------------------------------------

def places(serve, manager, count):
    """The scopes that as many commands of a session are in, one after another."""
    s = serve(XDG_RUNTIME_DIR=manager.folder)
    said = [s.text("bash", command="cat /proc/self/cgroup") for _ in range(count)]
    return [re.search(r"0::/\S*/user-0\.slice/([^/\s]+)", words).group(1) for words in said]


def a_session_asks_once(serve):
    manager = Manager("granted")
    assert places(serve, manager, 4) == manager.asked * 4, manager.asked
    assert len(manager.asked) == 1


def a_refusal_is_final(serve):
    manager = Manager("refused", "granted")
    assert set(places(serve, manager, 3)) == {"session-1.scope"}
    assert len(manager.asked) == 1


def who_was_late_is_asked_again(serve):
    manager = Manager("late", "granted")
    at = places(serve, manager, 4)
    assert at == ["session-1.scope"] + [manager.asked[1]] * 3, (at, manager.asked)
    assert len(manager.asked) == 2


def not_for_ever(serve):
    manager = Manager("late")
    assert set(places(serve, manager, 5)) == {"session-1.scope"}
    assert len(manager.asked) == 3, manager.asked


CASES = [a_session_asks_once, a_refusal_is_final, who_was_late_is_asked_again, not_for_ever]


# -- The login session -----------------------------------------------------------------------------

def tree():
    """The mount point of the cgroup tree of version 2, or None."""
    with open("/proc/mounts") as mounts:
        return next((line.split()[1] for line in mounts if line.split()[2] == "cgroup2"), None)


def log_in():
    """Runs the cases in a cgroup that is called like a login session of root."""
    root = os.path.join(tree(), f"login-{os.getpid()}")
    slice = os.path.join(root, "user-0.slice")
    session = os.path.join(slice, "session-1.scope")
    os.makedirs(session)

    def enter():
        with open(os.path.join(session, "cgroup.procs"), "w") as file:
            file.write("0")

    try:
        env = dict(os.environ, LOGIN_SLICE=slice)
        return subprocess.run([sys.executable, *sys.argv], env=env, preexec_fn=enter, check=False).returncode
    finally:
        for folder, _, _ in os.walk(root, topdown=False):
            os.rmdir(folder)


if __name__ == "__main__":
    if "LOGIN_SLICE" in os.environ:
        main(CASES)
    elif os.geteuid() != 0 or not tree() or os.environ.get("NACRE_TIER", "cgroup") != "cgroup":
        print("skipped: a login session's scope: it needs root, a cgroup v2 tree and the cgroup tier")
        print("0 passed, 0 failed")
    else:
        sys.exit(log_in())
