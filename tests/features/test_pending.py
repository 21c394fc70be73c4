#!/usr/bin/env python3
"""`nacre pending`, `allow` and `deny`: questions that are answered from another terminal, and by
nobody who should not.
usage: [NACRE=build/nacre] test_pending.py [CASE...]"""
import json
import os
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import NACRE, holds, lacks, main, until  # noqa: E402
from test_asking import Terminal  # noqa: E402

PROGRAM = os.path.abspath(NACRE)


class Home:
    """A home with a configuration of its own, and the verbs in it."""

    def __init__(self, serve, config=None, text=None):
        self.place = serve.place
        self.config = os.path.join(self.place, "config.json")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text if text is not None else json.dumps(config))
        self.env = dict(os.environ, NACRE_HOME=os.path.join(self.place, "home"),
                        NACRE_CONFIG=self.config, MCP_TEST_CASE=self.place)

    def run(self, *words, **more):
        return subprocess.run([PROGRAM, *words], env=dict(self.env, **more), cwd=self.place,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", start_new_session=True)

    def says(self, *words, status=0):
        done = self.run(*words)
        assert done.returncode == status, (words, done)
        return done.stdout

    def pending(self):
        return json.loads(self.says("pending", "--json"))

    def ask(self, text, *options):
        """nacre run at a terminal, at its question."""
        before = os.getcwd()
        os.chdir(self.place)
        t = Terminal([PROGRAM, "run", *options, "--", text], self.env)
        os.chdir(before)
        t.read_until(b"[n]o: ")
        return t

    def made(self, name):
        return os.path.exists(os.path.join(self.place, name))


def over(t):
    """How it ended."""
    return os.WEXITSTATUS(t.end())


def it_is_seen_and_answered_from_elsewhere(serve):
    h = Home(serve, {"policy": [{"ask": ["mkdir"]}]})
    assert h.pending() == [] and h.says("pending") == ""
    t = h.ask("mkdir a\u202e && echo b")
    one, = h.pending()
    holds(one["command"], "mkdir a\\u202e && echo b")
    holds(one["commands"], "mkdir 'a\\u202e'\n")
    assert one["cwd"] == os.path.realpath(h.place) and one["always"] == "", one
    shown = h.says("pending")
    holds(shown, one["id"][:8], "mkdir a\\u202e", "asked because of: rule")
    holds(h.says("deny", one["id"][:8]), "denied: mkdir a")
    assert over(t) == 1 and not h.made("a\u202e")
    holds(t.seen.decode(), "answered elsewhere", "said no")
    holds(h.says("allow", one["id"], status=1), "no question with an id")
    t = h.ask("mkdir b")
    h.says("allow", h.pending()[0]["id"][:4])
    assert over(t) == 0 and h.made("b")
    log = h.says("log")
    holds(log, "no, by nacre allow", "once, by nacre allow", "(ask: once, by nacre allow)")
    assert os.listdir(os.path.join(h.place, "home", "asking")) == []


def two_at_once_are_not_mixed_up(serve):
    h = Home(serve, {"policy": [{"ask": ["mkdir"]}]})
    a, b = h.ask("mkdir a"), h.ask("mkdir b")
    ids = {q["command"]: q["id"] for q in h.pending()}
    assert set(ids) == {"mkdir a", "mkdir b"}
    h.says("deny", ids["mkdir a"])
    h.says("allow", ids["mkdir b"])
    assert over(a) == 1 and over(b) == 0 and h.made("b") and not h.made("a")


def a_command_cannot_answer(serve):
    h = Home(serve, {"policy": [{"ask": ["mkdir"]}]})
    t = h.ask("mkdir a")
    id = h.pending()[0]["id"]
    bare = "env -i HOME=$HOME NACRE_HOME=$NACRE_HOME NACRE_CONFIG=$NACRE_CONFIG"
    # The last one is nobody's child any more when it answers.
    tries = (f"{PROGRAM} allow {id}", f"env -u NACRE_ID setsid -w {PROGRAM} allow {id}",
             f"{bare} sh -c '(setsid sh -c \"{PROGRAM} allow {id} >new 2>&1; mv new out\" &)'; "
             "until [ -e out ]; do sleep 0.05; done; cat out; exit 1")
    for line in tries:
        done = h.run("run", "--", line, NACRE_POLICY="[]")
        holds(done.stdout, "a command that nacre runs cannot answer for its user")
    fenced = h.run("run", "--sandbox", "workspace-write", "--",
                   f"NACRE_HOME={h.env['NACRE_HOME']} {PROGRAM} allow {id}", NACRE_POLICY="[]")
    assert fenced.returncode != 0, fenced
    assert [q["id"] for q in h.pending()] == [id] and not h.made("a")
    t.type(b"n\n")
    assert over(t) == 1


def what_lies_in_the_home_answers_nothing(serve):
    """Files, links and sockets of strangers, and words that are none."""
    h = Home(serve, {"policy": [{"ask": ["mkdir"]}]})
    t = h.ask("mkdir a")
    one, = h.pending()
    asking = os.path.join(h.place, "home", "asking")
    ours = os.path.join(asking, one["session"])
    with open(os.path.join(asking, "f" * 32), "w", encoding="ascii") as file:
        file.write(json.dumps([dict(one, command="true")]))
    os.symlink(ours, os.path.join(asking, "e" * 32))
    os.symlink("/etc/passwd", os.path.join(asking, "d" * 32))
    os.mkfifo(os.path.join(asking, "c" * 32))
    os.mkdir(os.path.join(asking, "b" * 32))
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    os.chdir(asking)
    dead.bind("a" * 32)
    dead.close()
    assert [q["id"] for q in h.pending()] == [one["id"]]
    assert not os.path.lexists(os.path.join(asking, "a" * 32))
    for word in (b"", b"\0", b"{", b"[]", b'{"do":"answer"}', b'{"do":"answer","id":1,"answer":1}',
                 b'{"do":"answer","id":"%s","answer":77}' % one["id"].encode(), b"x" * 5000,
                 b'{"do":"answer","id":"%s","answer":1}' % one["id"][:8].encode()):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(one["session"])
            s.send(word)
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(40)]
    for s in silent:
        s.connect(one["session"])
    until(lambda: [q["id"] for q in h.pending()] == [one["id"]], "it is still asked")
    for s in silent:
        s.close()
    os.chdir("/")
    # A name that somebody took away is not the question itself.
    os.unlink(ours)
    assert h.pending() == []
    assert not h.made("a")
    t.type(b"o\n")
    assert over(t) == 0 and h.made("a")


def who_asked_may_be_gone(serve):
    h = Home(serve, {"policy": [{"ask": ["mkdir"]}]})
    t = h.ask("mkdir a")
    id = h.pending()[0]["id"]
    os.kill(t.pid, 19)
    shown = h.run("pending")
    holds(shown.stdout, "1 session did not say what it asks")
    holds(h.says("allow", id, status=1), "a session that may have it did not say anything")
    os.kill(t.pid, 9)
    t.end()
    assert h.pending() == []
    holds(h.says("allow", id, status=1), "no question with an id")
    assert not h.made("a")


ODD = """{
    "timeout": "2m",   "policy": [
        {"deny": ["touch"],
         "because": "no }] \\"here\\""}
    ], "env_allow": ["X"],
    "policy_default": "ask"
}
"""


def always_is_the_line_that_was_shown(serve):
    h = Home(serve, text=ODD)
    os.chmod(h.config, 0o640)
    t = h.ask("mkdir -p 'a b' && ls >/dev/null")
    one, = h.pending()
    assert one["always"] == ('"policy": [{"allow": ["mkdir", "-p", "a b"]}]\n'
                             '"policy": [{"allow": ["ls"]}]'), one
    holds(h.says("pending"), one["always"].split("\n")[0])
    holds(h.says("allow", "--always", one["id"]), "always allowed")
    assert over(t) == 0
    with open(h.config, encoding="utf-8") as file:
        text = file.read()
    assert text == ODD.replace('"here\\""}\n    ]', '"here\\""},\n         {"allow": ["mkdir", "-p", '
                               '"a b"]},\n         {"allow": ["ls"]}\n    ]'), text
    assert os.stat(h.config).st_mode & 0o777 == 0o640
    assert h.run("run", "--", "mkdir -p 'a b'").returncode == 0
    assert h.run("run", "--", "mkdir -p 'a b' c").returncode == 1
    assert [n for n in os.listdir(h.place) if n.startswith("config")] == ["config.json"]
    holds(h.says("log", "--json"), '"answer":"always"', '\\"mkdir\\", \\"-p\\", \\"a b\\"')


def always_is_not_offered_for_everything(serve):
    h = Home(serve, {"policy_default": "ask", "policy": [{"ask": ["git", "push"]}]})
    for text in ("python3 x.py", "bash x.sh", "env mkdir a", "timeout 5 mkdir a", "$X", "eval ls",
                 "git push", "mkdir '*'", "./configure", "mkdir a; git push", "make", "mkdir a\x1b",
                 "sudo mkdir a", "find . -exec rm {} +", "node x", "mkdir \"$HOME\"",
                 "find . -name x"):
        t = h.ask(text)
        one, = h.pending()
        assert one["always"] == "", one
        lacks(t.seen.decode(), "[a]lways")
        holds(h.says("allow", "--always", one["id"], status=1), "cannot be allowed for always")
        t.type(b"a\nn\n")
        assert over(t) == 1
    # What the file does not say, it cannot say for always.
    h.env["NACRE_POLICY_DEFAULT"] = "ask"
    h.env["NACRE_POLICY"] = "[]"
    t = h.ask("mkdir a")
    assert h.pending()[0]["always"] == ""
    t.type(b"n\n")
    t.end()


def a_file_that_cannot_be_understood_stays_as_it_is(serve):
    h = Home(serve, {"policy_default": "ask"})
    for text in ('{"policy_default": "ask",}', "", "[]", '{"policy": "[]"}', '{"policy": [1]}',
                 '{"policy_default": "ask", "unknown": 1}',
                 '{"policy_default": "ask", "policy_default": "deny"}'):
        t = h.ask("mkdir a")
        one, = h.pending()
        with open(h.config, "w", encoding="utf-8") as file:
            file.write(text)
        env, h.env = h.env, dict(h.env, NACRE_CONFIG="/dev/null/none")
        h.env.pop("NACRE_CONFIG")
        h.env["XDG_CONFIG_HOME"] = h.place + "/none"
        done = h.run("allow", "--always", one["id"])
        assert done.returncode == 1, (text, done)
        assert [q["id"] for q in h.pending()] == [one["id"]]
        with open(h.config, encoding="utf-8") as file:
            assert file.read() == text
        t.type(b"n\n")
        assert over(t) == 1 and not h.made("a")
        h.env = env
        with open(h.config, "w", encoding="utf-8") as file:
            file.write('{"policy_default": "ask"}')


def a_link_stays_a_link_and_a_missing_file_is_made(serve):
    h = Home(serve, {})
    real = os.path.join(h.place, "dotfiles.json")
    os.rename(h.config, real)
    with open(real, "w", encoding="utf-8") as file:
        file.write('{"policy_default":"ask"}')
    os.symlink(real, h.config)
    t = h.ask("mkdir a")
    h.says("allow", "--always", h.pending()[0]["id"])
    assert over(t) == 0 and os.path.islink(h.config)
    with open(real, encoding="utf-8") as file:
        assert file.read() == '{"policy_default":"ask", "policy": [{"allow": ["mkdir", "a"]}]}'
    h.env.pop("NACRE_CONFIG")
    h.env.update(XDG_CONFIG_HOME=h.place + "/fresh", NACRE_POLICY_DEFAULT="ask")
    t = h.ask("mkdir b")
    h.says("allow", "--always", h.pending()[0]["id"])
    assert over(t) == 0
    with open(h.place + "/fresh/nacre/config.json", encoding="utf-8") as file:
        assert json.load(file) == {"policy": [{"allow": ["mkdir", "b"]}]}
    assert os.stat(h.place + "/fresh/nacre/config.json").st_mode & 0o777 == 0o600


CASES = [
    it_is_seen_and_answered_from_elsewhere, two_at_once_are_not_mixed_up, a_command_cannot_answer,
    what_lies_in_the_home_answers_nothing, who_asked_may_be_gone,
    always_is_the_line_that_was_shown, always_is_not_offered_for_everything,
    a_file_that_cannot_be_understood_stays_as_it_is,
    a_link_stays_a_link_and_a_missing_file_is_made,
]

if __name__ == "__main__":
    main(CASES)
