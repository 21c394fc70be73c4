"""What a login session's scope is and costs: a session of `nacre mcp` runs commands, one after another,
each of which says in which cgroup it is. Prints the milliseconds of the first command and of the later ones,
with a scope and without, and a result for each of these:

- a session has one scope, and no later command leaves it;
- a user's systemd that does not answer in time is asked again by the next command.

usage: scopes.py NACRE (in a login session)
"""
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

LATER = 15


class Session:
    def __init__(self, tier=""):
        env = dict(os.environ) | ({"NACRE_TIER": tier} if tier else {})
        self.server = subprocess.Popen([sys.argv[1], "mcp"], stdin=subprocess.PIPE, env=env,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.number = 0
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={},
                 clientInfo={"name": "scopes", "version": "1"})
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.wait()

    def say(self, message):
        self.server.stdin.write(json.dumps(message) + "\n")
        self.server.stdin.flush()

    def ask(self, method, **params):
        self.number += 1
        self.say({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        while True:
            answer = json.loads(self.server.stdout.readline())
            if answer.get("id") == self.number:
                return answer["result"]

    def run(self):
        """The milliseconds that a command took, and the scope in which it was."""
        begin = time.monotonic()
        answer = self.ask("tools/call", name="bash", arguments={"command": "cat /proc/self/cgroup"})
        took = 1000 * (time.monotonic() - begin)
        cgroup = re.search(r"0::([^\s\"\\]+)", json.dumps(answer)).group(1)
        return took, re.search(r"/([^/]*\.scope)(/nacre-[0-9a-f]+)?$", cgroup).group(1)


def measure(tier):
    with Session(tier) as session:
        runs = [session.run() for _ in range(1 + LATER)]
    later = statistics.median(took for took, _ in runs[1:])
    print(f"{tier or 'scope'}: first {runs[0][0]:.1f} ms, later {later:.1f} ms (median of {LATER})")
    return {scope for _, scope in runs}


def one_scope():
    measure("")  # what is in no cache yet
    scopes = [measure("") for _ in range(3)]
    for _ in range(3):
        measure("subreaper")
    print(f"scopes of three sessions: {scopes}")
    return all(len(s) == 1 and min(s).startswith("nacre-") for s in scopes)


def late_manager():
    manager = int(subprocess.check_output(["pgrep", "-u", str(os.getuid()), "-x", "systemd"]))
    with Session() as session:
        os.kill(manager, signal.SIGSTOP)
        try:
            first = session.run()
        finally:
            os.kill(manager, signal.SIGCONT)
        later = [session.run() for _ in range(3)]
    print(f"the manager stood still for the first of these: {first}, {later}")
    return first[1].startswith("session-") and later[-1][1].startswith("nacre-")


failed = 0
for trial in (one_scope, late_manager):
    ok = trial()
    failed += not ok
    print(f"{int(ok)} {int(not ok)} tier:{trial.__name__}")
sys.exit(failed > 0)
