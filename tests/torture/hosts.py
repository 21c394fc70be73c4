"""The front ends of a storm: servers over MCP that several threads use at a time, and the command
line. Each call has a bound; who is not answered within it is a finding, whatever nacre was doing."""
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "features"))
from mcp_client import NACRE, SANITIZED, Server  # noqa: E402
from traces import Bound  # noqa: E402

PROGRAM = os.path.abspath(NACRE)


class Finding(Exception):
    """Something that must not be true, is."""


class Gone(Exception):
    """The server ended while somebody waited for it."""


class Mcp(Server):
    """A server that several lanes share. Completions are kept as they came."""

    def __init__(self, place, name, prefix=(), **env):
        self.name, self.place = name, place
        self.lock = threading.Lock()
        self.condemned = False
        self.started = []
        self.surroundings = dict(place.env, NACRE_SESSION=name, **env)
        self.process = subprocess.Popen([*prefix, PROGRAM, "mcp"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=place.log, cwd=place.work,
                                        env=self.surroundings)
        place.servers.append(self)
        self.lines, self.messages, self.next_id, self.over = [], [], 0, False
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self.collect, daemon=True)
        self.reader.start()
        self.initialize()

    def collect(self):
        try:
            super().collect()
        except ValueError as broken:
            self.place.find("protocol", f"server {self.name} wrote a line that is no JSON: {broken}")
            with self.news:
                self.over = True
                self.news.notify_all()

    def request(self, *args, **more):
        with self.lock:
            try:
                return super().request(*args, **more)
            except (BrokenPipeError, ValueError):
                raise Gone(f"server {self.name} is gone") from None

    def notify(self, *args, **more):
        with self.lock:
            try:
                super().notify(*args, **more)
            except (BrokenPipeError, ValueError):
                raise Gone(f"server {self.name} is gone") from None

    def await_answer(self, id, bound, what, stretched=True):
        """The answer to a request, within its bound."""
        time_left = Bound(bound, stretched)
        while True:
            try:
                return self.answer(id, max(time_left.left(), 0.1))
            except AssertionError:
                if self.over:
                    raise Gone(f"server {self.name} ended during {what}") from None
                if time_left.over():
                    raise Finding(f"hang: {what} was not answered within {bound:.1f} s"
                                  f" by server {self.name}") from None

    def tool(self, name, bound=10, **arguments):
        """The result of a tool, or the sentence of an error as a result."""
        message = self.await_answer(self.begin(name, **arguments), bound, name)
        return message.get("result") or {"content": [], "isError": True, "error": message.get("error")}

    def completions(self):
        """(short id, repeated) of each completion that came, in order."""
        found = []
        for message in list(self.messages):
            for item in (message.get("result") or {}).get("content", []):
                found += told_in(item.get("text", ""))
        return found

    def die(self):
        """SIGKILL, as an unlucky machine would."""
        self.condemned = True
        self.process.kill()
        self.process.wait()

    def stop(self, bound):
        """The end of its input; how long it took, and its status, or None if it does not end."""
        time_left, began = Bound(bound), time.monotonic()
        while True:
            try:
                status = self.close(max(time_left.left(), 0.1))
                return time.monotonic() - began, status
            except subprocess.TimeoutExpired:
                if time_left.over():
                    return time.monotonic() - began, None


def told_in(text):
    """The completions that a text tells of: (short id, repeated). What a command printed does not
    begin like this; if it does, it is taken for one, as a model would. Many are counted, and named
    on the next line."""
    found, lines = [], text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("[Background task "):
            found.append((line.split()[2], "(repeated)" in line))
        elif line.startswith("[Background tasks completed: ") and number + 1 < len(lines):
            for one in lines[number + 1].split(", "):
                found.append((one.split()[0], "(repeated)" in one))
    return [(id, repeated) for id, repeated in found if is_hex(id)]


def is_hex(word):
    return bool(word) and all(letter in "0123456789abcdef" for letter in word)


class Answer:
    """What a verb of the command line did."""

    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def json(self):
        return json.loads(self.out)


def cli(place, *words, bound=10, prefix=(), env=None, stretched=True):
    """A verb, within its bound. It may fail with a sentence; it may not die of a signal."""
    return end_cli(begin_cli(place, *words, prefix=prefix, env=env), words, bound, stretched=stretched)


def begin_cli(place, *words, prefix=(), env=None):
    process = subprocess.Popen([*prefix, PROGRAM, *words], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=place.work,
                               env=dict(place.env, **(env or {})))
    process.began = time.monotonic()
    return process


def end_cli(process, words, bound, may_die=False, stretched=True):
    time_left = Bound(bound, stretched)
    while True:
        try:
            out, err = process.communicate(timeout=max(time_left.left(), 0.1))
            break
        except subprocess.TimeoutExpired:
            if time_left.over():
                process.kill()
                process.communicate()
                raise Finding(f"hang: nacre {' '.join(words)[:120]} was not done"
                              f" within {bound:.1f} s") from None
    if process.returncode < 0 and not may_die:
        raise Finding(f"crash: nacre {' '.join(words)[:120]} died of signal {-process.returncode}")
    return Answer(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"),
                  time.monotonic() - process.began)
