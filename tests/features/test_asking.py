#!/usr/bin/env python3
"""Asking at a terminal: nacre run in one of its own, with a person that types."""
import json
import os
import pty
import select
import shutil
import sys
import tempfile
import time

NACRE = os.path.abspath(os.path.join(os.environ.get("NACRE_TEST_BUILD", "build"), "nacre"))
RULES = json.dumps([{"ask": ["mkdir"]}, {"deny": ["touch"]}])


class Terminal:
    """A program that has a terminal as its own, and pipes as stdin and stdout if wanted."""

    def __init__(self, words, env, stdin=None):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            if stdin is not None:
                null = os.open(stdin, os.O_RDONLY)
                os.dup2(null, 0)
            os.execvpe(words[0], words, env)

    def read_until(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError("no %r in %r" % (text, self.seen))
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                data = b""
            if not data:
                raise AssertionError("it ended without %r: %r" % (text, self.seen))
            self.seen += data

    def type(self, text):
        os.write(self.fd, text)

    def end(self):
        while True:
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                break
            if not data:
                break
            self.seen += data
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return status


def ask(env, text, typed, **options):
    t = Terminal([NACRE, "run", "--", text], env, **options)
    t.read_until(b"[n]o: ")
    t.type(typed)
    return t, t.end()


def main():
    place = tempfile.mkdtemp(prefix="nacre-asking.")
    os.chdir(place)
    env = dict(os.environ, NACRE_HOME=place + "/home", NACRE_POLICY=RULES)
    env.pop("NACRE_CONFIG", None)
    try:
        t, status = ask(env, "mkdir a && echo made", b"o\n")
        assert status == 0 and os.path.isdir("a") and b"made" in t.seen, t.seen
        assert b"mkdir a && echo made" in t.seen and b'rule {"ask": ["mkdir"]}' in t.seen, t.seen
        t, status = ask(env, "mkdir b", b"n\n")
        assert os.WEXITSTATUS(status) == 1 and b"said no" in t.seen, t.seen
        t, status = ask(env, "mkdir b", b"what?\nn\n")
        assert os.WEXITSTATUS(status) == 1 and b"o, s or n: " in t.seen, t.seen
        # Not stdin is asked.
        t, status = ask(env, "mkdir c", b"o\n", stdin="/dev/null")
        assert status == 0 and os.path.isdir("c"), t.seen
        # The end of what is typed, and Ctrl-C, are no yes.
        for key in b"\x04", b"\x03":
            t, status = ask(env, "mkdir b", key)
            assert os.WEXITSTATUS(status) == 1 and b"did not answer" in t.seen, t.seen
        # What cannot be seen is made visible before it is asked.
        texts_alone = dict(env, NACRE_POLICY_GATE="off")
        t, status = ask(texts_alone, "mkdir b\u202e; mkdir \x1b[2Jd", b"n\n")
        assert b"\\u202e" in t.seen and b"\\x1b[2J" in t.seen, t.seen
        # A denied one is not asked about.
        t = Terminal([NACRE, "run", "--", "mkdir b; touch b"], env)
        assert os.WEXITSTATUS(t.end()) == 1 and b"denied by rule" in t.seen, t.seen
        assert not os.path.exists("b") and not os.path.exists("d")
        # Without a terminal nobody is asked.
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.dup2(os.open("out", os.O_WRONLY | os.O_CREAT, 0o600), 2)
            os.execvpe(NACRE, [NACRE, "run", "--", "mkdir b"], env)
        assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 1
        with open("out", encoding="utf-8") as out:
            assert 'change "ask" in it to "allow"' in out.read()
        assert not os.path.exists("b")
        # All of it is in the log.
        log = os.popen("NACRE_HOME='%s/home' '%s' log --json" % (place, NACRE)).read()
        for answer in "once", "no", "cancelled":
            assert '"answer":"%s"' % answer in log, (answer, log)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
