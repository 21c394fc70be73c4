"""A raw client of `nacre mcp`, and what runs the cases of a test with it: each in a home of its
own, with a time limit, and nothing of it alive afterwards."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

NACRE = os.environ.get("NACRE") or os.path.join(os.environ.get("NACRE_TEST_BUILD", "build"), "nacre")
PREFIX = "io.modelcontextprotocol/"
MODERN = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}
with open(NACRE, "rb") as program:
    SANITIZED = b"__asan_init" in program.read()
CASE_LIMIT = 60
ANSWER_LIMIT = 20


class Server:
    """A server process; what it sends is collected by a thread."""

    def __init__(self, home, cwd=None, read=True, **env):
        self.surroundings = dict(os.environ, NACRE_HOME=home, MCP_TEST_CASE=home, **env)
        self.process = subprocess.Popen([os.path.abspath(NACRE), "mcp"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=self.surroundings,
                                        cwd=cwd or home_parent(home))
        self.lines = []
        self.messages = []
        self.news = threading.Condition()
        self.over = False
        self.next_id = 0
        self.reader = threading.Thread(target=self.collect, daemon=True)
        if read:
            self.reader.start()

    def collect(self):
        for line in self.process.stdout:
            value = json.loads(line)
            with self.news:
                self.lines.append(value)
                self.messages.extend(value if isinstance(value, list) else [value])
                self.news.notify_all()
        with self.news:
            self.over = True
            self.news.notify_all()

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def request(self, method, params=None, modern=False, id=None):
        """Sends a request and returns its id."""
        if id is None:
            self.next_id += 1
            id = self.next_id
        params = dict(params or {})
        if modern:
            params["_meta"] = dict(MODERN, **params.get("_meta", {}))
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def notify(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def wait(self, wanted, limit=ANSWER_LIMIT):
        """The first message, past or to come, for which wanted() holds."""
        deadline = time.monotonic() + limit
        with self.news:
            while True:
                for message in self.messages:
                    if wanted(message):
                        return message
                left = deadline - time.monotonic()
                if left <= 0 or self.over:
                    raise AssertionError(f"it never came; there are {str(self.messages[-3:])[-3000:]}")
                self.news.wait(left)

    def answer(self, id, limit=ANSWER_LIMIT):
        return self.wait(lambda m: "method" not in m and m.get("id") == id, limit)

    def answers(self, id):
        return [m for m in self.messages if "method" not in m and m.get("id") == id]

    def notifications(self, method):
        return [m for m in self.messages if m.get("method") == method]

    def ask(self, method, params=None, modern=False):
        """The result of a request."""
        message = self.answer(self.request(method, params, modern))
        assert "result" in message, message
        return message["result"]

    def refused(self, method, params=None, modern=False):
        """The code of the error that a request gets."""
        message = self.answer(self.request(method, params, modern))
        assert "error" in message, message
        return message["error"]["code"]

    def initialize(self, version="2025-11-25"):
        result = self.ask("initialize", {"protocolVersion": version, "capabilities": {},
                                         "clientInfo": {"name": "test", "version": "1"}})
        self.notify("notifications/initialized")
        return result

    def begin(self, tool, modern=False, token=None, **arguments):
        params = {"name": tool, "arguments": arguments}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return self.request("tools/call", params, modern)

    def call(self, tool, modern=False, **arguments):
        """The result of a tool."""
        message = self.answer(self.begin(tool, modern, **arguments))
        assert "result" in message, message
        return message["result"]

    def text(self, tool, **arguments):
        """The text of a tool's answer, completions in front of it included."""
        return text_of(self.call(tool, **arguments))

    def start(self, command, **arguments):
        """Starts a background shell; its id."""
        result = self.call("bash", command=command, background=True, **arguments)
        assert not result["isError"], result
        return result["_meta"]["nacre/run"]["id"]

    def await_end(self, *shells):
        """Returns when they have ended; the server is not asked for that."""
        subprocess.run([NACRE, "wait", *shells, "--timeout", "30"], check=True,
                       stdout=subprocess.DEVNULL, env=self.surroundings)

    def close(self, limit=15):
        """The end of its input; its exit status."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        return self.process.wait(limit)

    def stays_below(self, mib):
        """It never had more memory than this. The sanitizers' own does not count."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        assert SANITIZED or peak < mib * 1024, f"{peak} KiB"


class Gate:
    """Where commands stand still until it is opened, before they come or after."""

    def __init__(self, serve, name="gate"):
        self.path = os.path.join(serve.place, name)
        os.mkfifo(self.path)
        self.passing = f": <{self.path}"
        self.opening = f"exec 9<>{self.path}"

    def open(self):
        """For good: whoever comes later meets a writer too."""
        os.open(self.path, os.O_RDWR | os.O_CLOEXEC)


def mark():
    """A duration that no other process has, to be found by."""
    return f"{random.randint(1000, 9999)}.{random.randint(10 ** 8, 10 ** 9)}"


def text_of(result):
    return "".join(item["text"] for item in result["content"])


def home_parent(home):
    return os.path.dirname(home)


def holds(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is not in {text!r}"


def lacks(text, part):
    assert part not in text, f"{part!r} is in {text!r}"


def until(condition, what, limit=10):
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"never came true: {what}"
        time.sleep(0.02)


def processes(part, of):
    """Pids that are no zombies, and have part in a file of /proc."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/{of}", "rb") as file:
                if part.encode() not in file.read():
                    continue
            with open(f"/proc/{pid}/stat", "rb") as file:
                if file.read().rpartition(b") ")[2][:1] not in b"ZX":
                    found.append(int(pid))
        except OSError:
            pass
    return found


def alive(mark):
    """Processes with a mark among their arguments."""
    return processes(mark, "cmdline")


def run_case(case, place, server=Server):
    def too_late(*_):
        raise AssertionError(f"not done after {CASE_LIMIT} s")

    servers = []

    def serve(home="home", *options, **more):
        servers.append(server(os.path.join(place, home), *options, **more))
        return servers[-1]

    serve.place = place
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(CASE_LIMIT)
    try:
        case(serve)
        for one in servers:
            if one.process.poll() is None:
                status = one.close()
                assert status == 0, f"the server ended with {status}"
        until(lambda: not processes("MCP_TEST_CASE=" + place, "environ"), "nothing is left", 5)
    finally:
        signal.alarm(0)
        for one in servers:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()


def main(cases, server=Server):
    """Runs the cases, or those that are named; serve() gives them servers of this kind."""
    wanted = sys.argv[1:]
    passed = failed = 0
    for case in cases:
        name = case.__name__
        if wanted and name not in wanted:
            continue
        place = tempfile.mkdtemp(prefix="nacre-mcp-")
        began = time.monotonic()
        try:
            run_case(case, place, server)
            passed += 1
            print(f"ok     {name} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED {name}", flush=True)
            traceback.print_exc(file=sys.stdout)
        shutil.rmtree(place, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
