#!/usr/bin/env python3
"""`nacre mcp`: a model's day at a terminal, with the real programs. It starts them, is told when they
read, types, and sees what comes; passwords are typed by a person.
usage: [NACRE=build/nacre] test_mcp_terminal.py [CASE...]"""
import os
import re
import shutil
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import NACRE, holds, lacks, main, text_of, until  # noqa: E402

LINE = r"\[nacre: .* \(pid \d+\) reads (a line|keys) from the terminal"
VIM = "vim -N -u NONE -i NONE"


class Terminal:
    """One program at a terminal. What is typed is answered by what the screen shows then."""

    def __init__(self, s, command, **arguments):
        self.s = s
        self.text = text_of(s.call("bash", command=command, tty=True, **arguments))
        found = re.search(r"background shell ([0-9a-f]{8})", self.text)
        assert found, self.text
        self.id = found.group(1)

    def screen(self):
        return self.s.text("bash_output", id=self.id, screen=True)

    def shows(self, *parts):
        """A busy machine may need longer than a call waits."""
        def seen():
            self.text = self.screen()
            return all(part in self.text for part in parts)
        try:
            until(seen, f"{parts} on the screen", 30)
        except AssertionError:
            raise AssertionError(f"{parts} is not on the screen:\n{self.text}") from None

    def type(self, text, *parts, **more):
        self.text = self.s.text("bash_input", id=self.id, input=text, wait=20, **more)
        if not all(part in self.text for part in parts):
            self.shows(*parts)

    def keys(self, keys, *parts):
        self.text = self.s.text("bash_input", id=self.id, keys=keys, wait=20)
        if not all(part in self.text for part in parts):
            self.shows(*parts)

    def reads(self):
        assert re.search(LINE, self.text), self.text

    def ends(self, status="exited(0)"):
        until(lambda: status in self.s.text("bash_output", id=self.id, screen=True), status, 30)


def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        print(f"left out: there is no {missing[0]}")
    return missing


def a_call_answers_when_its_program_reads(serve):
    s = serve()
    began = time.monotonic()
    t = Terminal(s, "read -p 'Name: ' x; echo hello $x")
    assert time.monotonic() - began < 20, "it waited for its time to be over"
    holds(t.text, "reads a line from the terminal: \"Name:\"")
    t.type("ann\n", "hello ann")


def so_does_one_with_a_kept_stdin(serve):
    s = serve()
    began = time.monotonic()
    text = s.text("bash", command="read x; echo got $x", keep_stdin=True)
    assert time.monotonic() - began < 20, text
    holds(text, "bash (pid ", "reads its stdin")


def what_looks_like_a_question_is_none(serve):
    s = serve()
    text = s.text("bash", command="printf 'Proceed? [y/N] '; sleep 3; echo over", tty=True)
    holds(text, "Exit code: 0", "over")
    lacks(text, "reads")


def it_is_waited_for(serve):
    s = serve()
    shell = s.start("sleep 1; read x; sleep 1; read -s y; sleep 300", tty=True)
    text = s.text("bash_output", id=shell, until_input=True)
    holds(text, "bash (pid ", "reads a line from the terminal")
    s.text("bash_input", id=shell, input="a\n")
    text = s.text("bash_output", id=shell, until_input=True)
    holds(text, "waits for a password, echo off", f"A person can type it: nacre attach --input {shell[:8]}")
    s.text("bash_input", id=shell, input="secret\n")
    text = s.text("bash_output", id=shell, until_input=True, wait=1)
    holds(text, "nobody was seen to read its input yet")
    text = text_of(s.call("bash_output", id=s.start("sleep 300"), until_input=True))
    holds(text, "has no stdin that could be typed to")


def python_and_node(serve):
    s = serve()
    if needs("python3", "node"):
        return
    t = Terminal(s, "exec python3 -q")
    t.reads()
    t.type("6 * 7\n", "42")
    t.reads()
    t.type("import getpass; len(getpass.getpass())\n", "waits for a password, echo off")
    t.type("abc\n", "\n3\n")
    lacks(s.text("bash_output", id=t.id, offset=0), "abc")
    t.type("exit()\n")
    t.ends()
    t = Terminal(s, "exec node")
    t.reads()
    t.type("[1, 2].map(x => x * 21)\n", "[ 21, 42 ]")
    t.type(".exit\n")
    t.ends()


def sqlite3_and_gdb(serve):
    s = serve()
    if needs("sqlite3", "gdb"):
        return
    t = Terminal(s, "exec sqlite3")
    t.reads()
    t.type("create table t(x); insert into t values (41); select x + 1 from t;\n", "\n42\n")
    t.type(".quit\n")
    t.ends()
    t = Terminal(s, "exec gdb -q -nx")
    t.reads()
    t.type("print 6 * 7\n", "$1 = 42")
    t.type("quit\n")
    t.ends()


def npm_init(serve):
    s = serve()
    if needs("npm"):
        return
    os.mkdir(os.path.join(s.surroundings["MCP_TEST_CASE"] + "-package"))
    place = s.surroundings["MCP_TEST_CASE"] + "-package"
    t = Terminal(s, "exec npm init --no-update-notifier", cwd=place, background=True)
    t.shows("package name:", "reads keys from the terminal")
    # Which questions there are depends on its version.
    for _ in range(15):
        t.reads()
        if "Is this OK?" in t.text:
            break
        t.type("\n")
        if not re.search(LINE, t.text):
            t.shows("reads keys from the terminal")
    holds(t.text, "license:", "Is this OK?")
    t.type("\n")
    t.ends()
    assert os.path.exists(os.path.join(place, "package.json"))


REPOSITORY = ("git init -q r && cd r && git config user.name a && git config user.email a@b && "
              "seq 9 >f && git add f && git commit -qm one && echo 10 >>f && git commit -qam two && "
              "sed -i 's/5/five/' f")


def git_add_and_rebase(serve):
    s = serve()
    if needs("git", "vim"):
        return
    t = Terminal(s, f"{REPOSITORY} && exec git add -p")
    t.reads()
    holds(t.text, "Stage this hunk")
    t.type("y\n")
    t.ends()
    t = Terminal(s, f"cd r && git commit -qm three && GIT_SEQUENCE_EDITOR='{VIM}' GIT_EDITOR=true "
                    "git rebase -i --root")
    t.shows("pick", "# Rebase")
    t.keys("j c w", "-- INSERT --")
    t.type("fixup", "fixup")
    t.keys("esc")
    t.type(":wq\n", "Successfully rebased")
    t.ends()
    holds(s.text("bash", command="cd r && git log --format=%s"), "three\none\n")


def vim_less_and_top(serve):
    s = serve()
    if needs("vim", "less", "top"):
        return
    t = Terminal(s, f"exec {VIM} note", columns=80, rows=24)
    holds(t.text, "reads keys from the terminal")
    t.keys("i", "-- INSERT --")
    t.type("a line of vim", "a line of vim")
    t.keys("esc")
    t.type(":wq\n")
    t.ends()
    holds(s.text("bash", command="cat note"), "a line of vim")
    t = Terminal(s, "seq 500 >numbers; PAGER= exec less numbers", columns=80, rows=24)
    t.keys("G", "\n500\n")
    t.type("?123\n", "\n123\n")
    t.type("q")
    t.ends()
    t = Terminal(s, "exec top -d 100", columns=80, rows=24)
    t.shows("PID", "reads keys from the terminal")
    t.type("q")
    t.ends()


def ssh_keygen_and_whiptail(serve):
    s = serve()
    if needs("ssh-keygen", "whiptail"):
        return
    t = Terminal(s, "exec ssh-keygen -t ed25519 -f key")
    holds(t.text, "waits for a password, echo off: \"Enter passphrase")
    t.type("a long secret\n", "same passphrase again")
    t.type("a long secret\n", "SHA256:")
    t.ends()
    lacks(s.text("bash_output", id=t.id, offset=0), "a long secret")
    t = Terminal(s, "exec whiptail --menu 'which one' 12 40 3 1 first 2 second", columns=80, rows=24)
    t.shows("second", "reads keys from the terminal")
    t.keys("down", "2 second")
    t.keys("enter")
    t.ends()


# -- Passwords, by a person ------------------------------------------------------------------------

class User:
    """An ordinary user with a password, as long as it is needed."""

    def __init__(self):
        self.name = f"nacre-t{os.getpid() % 100000}"
        self.password = f"pw{os.urandom(6).hex()}"

    def __enter__(self):
        subprocess.run(["useradd", "-M", "-d", "/", "-s", "/bin/bash", self.name], check=True)
        subprocess.run(["chpasswd"], input=f"{self.name}:{self.password}\n".encode(), check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["userdel", self.name], check=False, stderr=subprocess.DEVNULL)


def a_person_types(s, shell, text):
    subprocess.run([NACRE, "input", shell, "-"], input=text.encode(), check=True, env=s.surroundings)


def su_and_sudo_ask_and_a_person_answers(serve):
    if os.getuid() != 0:
        print("left out: only root makes a user")
        return
    if needs("su", "sudo"):
        return
    s = serve()
    with User() as user:
        # From one ordinary user to another: su asks, and may not be looked at.
        nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups --"
        t = Terminal(s, f"exec {nobody} su {user.name} -c 'echo I am $(id -un)'")
        holds(t.text, "waits for a password, echo off: \"Password:\"", "nacre attach --input")
        a_person_types(s, t.id, user.password + "\n")
        t.shows(f"I am {user.name}")
        rules = f"/etc/sudoers.d/{user.name}"
        with open(rules, "w", encoding="ascii") as file:
            file.write(f"{user.name} ALL=(ALL) /usr/bin/id\n")
        os.chmod(rules, 0o440)
        try:
            uid = subprocess.run(["id", "-u", user.name], capture_output=True, check=True, text=True)
            one = f"setpriv --reuid={uid.stdout.strip()} --clear-groups --"
            t = Terminal(s, f"exec {one} sudo -k /usr/bin/id -un")
            holds(t.text, f"waits for a password, echo off: \"[sudo] password for {user.name}:\"")
            a_person_types(s, t.id, user.password + "\n")
            t.shows("\nroot\n")
        finally:
            os.unlink(rules)
        for shell in (t.id,):
            lacks(s.text("bash_output", id=shell, offset=0), user.password)
        home = s.surroundings["NACRE_HOME"]
        found = subprocess.run(["grep", "-r", user.password, home], capture_output=True, check=False)
        assert not found.stdout, found.stdout


# -- Ports -----------------------------------------------------------------------------------------

def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def a_port_is_waited_for(serve):
    s = serve()
    if needs("python3"):
        return
    port = free_port()
    shell = s.start(f"sleep 1; exec python3 -m http.server {port} --bind 127.0.0.1", name="web")
    holds(s.text("bash_output", id=shell, port=port), f"listens on port {port}]", "python3 (pid ")
    holds(s.text("bash_output", id=shell, port=0), f"listens on port {port}]")
    other = s.start("sleep 300")
    holds(s.text("bash_output", id=other, port=port),
          f"port {port} is held by shell {shell[:8]} ([web])")
    holds(s.text("bash_output", id=other, port=free_port(), wait=0.5), "does not listen on port")
    ended = s.start("sleep 0.5")
    holds(s.text("bash_output", id=ended, port=free_port()), "exited(0)")
    with socket.socket(socket.AF_INET6) as mine:
        mine.bind(("::1", 0))
        mine.listen()
        port = mine.getsockname()[1]
        holds(s.text("bash_output", id=other, port=port),
              f"port {port} is held by a process outside nacre (pid {os.getpid()})")


main([a_call_answers_when_its_program_reads, so_does_one_with_a_kept_stdin,
      what_looks_like_a_question_is_none, it_is_waited_for, python_and_node, sqlite3_and_gdb, npm_init,
      git_add_and_rebase, vim_less_and_top, ssh_keygen_and_whiptail,
      su_and_sudo_ask_and_a_person_answers, a_port_is_waited_for])
