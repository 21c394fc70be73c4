"""What a start costs on each of several file systems: `true` through `nacre mcp`, its home there. Rounds go
round all of them, so that all see the same machine; of a machine that others use the fast twentieth says more
than the median.
usage: filesystems.py NACRE HOME... (the first is what the others are compared with)
"""
import json
import os
import subprocess
import sys
import time

ROUNDS = 6
STARTS = 150
WARM = 10


class Session:
    def __init__(self, home):
        self.server = subprocess.Popen([sys.argv[1], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, env=dict(os.environ, NACRE_HOME=home))
        self.number = 0
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={},
                 clientInfo={"name": "bench", "version": "1"})

    def ask(self, method, **params):
        self.number += 1
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.server.stdin.write(json.dumps(request).encode() + b"\n")
        self.server.stdin.flush()
        while json.loads(self.server.stdout.readline()).get("id") != self.number:
            pass

    def start(self):
        begin = time.monotonic()
        self.ask("tools/call", name="bash", arguments={"command": "true"})
        return time.monotonic() - begin

    def end(self):
        self.server.stdin.close()
        self.server.wait()


def main(homes):
    took = {home: [] for home in homes}
    for _ in range(ROUNDS):
        for home in homes:
            session = Session(home)
            took[home] += [session.start() for _ in range(WARM + STARTS)][WARM:]
            session.end()
    first = None
    for home in homes:
        times = sorted(took[home])
        fast, median = times[len(times) // 20], times[len(times) // 2]
        first = first or (fast, median)
        print(f"{os.path.basename(os.path.dirname(home)):16} fast {1e6 * fast:6.0f} us {fast / first[0]:5.2f}x"
              f"   median {1e6 * median:6.0f} us {median / first[1]:5.2f}x")


main(sys.argv[2:])
