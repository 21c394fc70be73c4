#!/usr/bin/env python3
"""`nacre mcp`: what real use brings, end to end. Commands that would hang, output that is too much,
outcomes that must be told as they are, and what strangers send.
usage: [NACRE=build/nacre] test_mcp_scenarios.py [CASE...]"""
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import (NACRE, SANITIZED, Gate, alive, holds, lacks, main, mark, text_of,  # noqa: E402
                        until)


def run(s, command, **arguments):
    """The text of a foreground command, its record, and the seconds it took."""
    began = time.monotonic()
    result = s.call("bash", command=command, **arguments)
    return text_of(result), result["_meta"]["nacre/run"], time.monotonic() - began


def soon(seconds):
    return seconds * (10 if SANITIZED else 3)


# -- Never hang ------------------------------------------------------------------------------------

def leftovers_do_not_delay(serve):
    s = serve()
    later = Gate(serve, "later")
    for start in (f"sleep {mark()} &", "python3 -m http.server 0 --bind 127.0.0.1 2>/dev/null &",
                  f"setsid sleep {mark()} &"):
        text, record, seconds = run(s, f"{start} echo hi")
        holds(text, "Exit code: 0", "hi\n")
        assert record["exit_code"] == 0 and seconds < soon(0.4), (start, seconds)
        assert record["tree"] == "alive" and record["leftover"], (start, record)
        holds(s.text("kill_shell", id=record["id"]), "killed background shell")
    text, record, _ = run(s, f"({later.passing}; echo late; sleep 60) & echo early")
    holds(text, "early")
    later.open()
    holds(s.text("bash_output", id=record["id"], until="late"), "late")


def a_closed_output_is_no_end(serve):
    s = serve()
    text, record, seconds = run(s, "exec >/dev/null 2>&1; sleep 300", timeout=1)
    holds(text, "Timed out after 1s")
    assert record["timed_out"] and 1 <= seconds < soon(1.5)
    shell = s.start("exec >/dev/null 2>&1; sleep 300")
    began = time.monotonic()
    holds(s.text("kill_shell", id=shell), "killed background shell")
    assert time.monotonic() - began < soon(0.7)


def nothing_is_asked(serve):
    s = serve()
    repo = os.path.join(serve.place, "repo")
    git = "git -c user.name=n -c user.email=e@x"
    run(s, f"git init -q {repo} && cd {repo} && {git} commit -q --allow-empty -m one && "
           f"echo a > f && git add f && {git} commit -qm two && echo b > f && git add f")
    head = run(s, "git rev-parse HEAD", cwd=repo)[0]
    for command in ("read x", "python3 -c 'input()'", "read x </dev/tty", f"{git} commit",
                    f"{git} stash -q; {git} rebase -i HEAD~1"):
        text, record, seconds = run(s, command, cwd=repo, timeout=20)
        assert record["exit_code"] not in (0, None) and seconds < soon(2), (command, text)
    assert run(s, "cat; echo over")[0].endswith("over\n")
    run(s, "git rebase --abort", cwd=repo)
    assert run(s, "git rev-parse HEAD", cwd=repo)[0] == head


def a_foreground_server_yields(serve):
    s = serve()
    seconds = mark()
    result = s.call("bash", command=f"echo listening; sleep {seconds}", **{"yield": 1})
    shell = result["_meta"]["nacre/run"]["id"]
    holds(text_of(result), "listening", shell[:8], "Still running after 1 s")
    assert alive(seconds)
    holds(s.text("kill_shell", id=shell), "killed background shell")
    assert not alive(seconds)


def a_full_pipe_holds_up_nobody(serve):
    s = serve()
    shell = s.start("sleep 60", keep_stdin=True)
    stuck = s.begin("bash_input", id=shell, input="x" * 200000)
    began = time.monotonic()
    holds(s.text("bash", command="echo quick"), "quick")
    assert s.ask("ping") == {}
    assert time.monotonic() - began < soon(0.4) and not s.answers(stuck)
    result = s.answer(stuck)["result"]
    assert result["isError"]
    holds(text_of(result), "wrote only 65536 of 200000 bytes")
    # The same where bash itself is given text for a stdin that stays open.
    stuck = s.begin("bash", command="sleep 60", background=True, keep_stdin=True, stdin="x" * 200000)
    began = time.monotonic()
    holds(s.text("bash", command="echo quick"), "quick")
    assert time.monotonic() - began < soon(0.4) and not s.answers(stuck)
    holds(text_of(s.answer(stuck)["result"]), "134464 bytes of stdin were not taken")
    result = s.call("bash", command="sleep 0.5; wc -c", keep_stdin=True, stdin="x" * 200000, background=True)
    shell = result["_meta"]["nacre/run"]["id"]
    lacks(text_of(result), "not taken")
    holds(s.text("bash_input", id=shell, eof=True), "closed its stdin")
    holds(s.text("bash_output", id=shell, wait=5), "200000")


# -- Output ----------------------------------------------------------------------------------------

def the_cause_is_lifted_out(serve):
    s = serve()
    for where, stream in (("echo 'ERROR: real cause' >&2", "stderr"),
                          ("echo 'ERROR: real cause'", "stdout")):
        text, record, _ = run(s, f"seq 1 20000; {where}; seq 1 20000")
        number = 1 if stream == "stderr" else 20001
        holds(text, "ERROR: real cause")
        if stream == "stdout":
            assert re.search(rf"{number}\b.*ERROR: real cause", text), text
        lines = 40000 + (stream == "stdout")
        assert record["stdout_lines"] == lines
        holds(text, f"stdout: {lines} lines")
        left = re.search(r'Left out: stdout (\d+) lines.*recall\(id: "(\w+)", lines: "(\d+)-(\d+)"', text)
        assert left, text
        shown = len(re.findall(r"^\d+$", text, re.M)) + len(re.findall(r"^\d+[:-] ", text, re.M))
        assert int(left[1]) == lines - shown, (left[0], shown, lines)
        first = int(left[3])
        got = s.text("recall", id=left[2], lines=f"{first}-{first + 2}", stream="stdout")
        holds(got, *(f"\n{n}: {n}" for n in range(first, first + 3)))
        assert len(text) <= 10240


def a_timeout_keeps_what_was_printed(serve):
    s = serve()
    text, record, seconds = run(s, "echo BEFORE; sleep 999", timeout=1)
    holds(text, "Timed out after 1s (killed)", "BEFORE")
    assert record["status"] == "timed_out" and record["timed_out"] is True
    assert seconds <= 1 + 2 + (0.2 if not SANITIZED else 2), seconds


def reads_show_what_is_new(serve):
    s = serve()
    gates = [Gate(serve, f"gate{i}") for i in range(3)]
    shell = s.start("; ".join(f"{gate.passing}; echo part{i}" for i, gate in enumerate(gates))
                    + "; sleep 60")
    for i, gate in enumerate(gates):
        gate.open()
        text = s.text("bash_output", id=shell, wait=10)
        holds(text, f"part{i}\n")
        assert text.count("part") == 1, text
    assert s.text("bash_output", id=shell).endswith("\n(no new output)\n")
    holds(s.text("bash_output", id=shell, offset=0), "part0\npart1\npart2\n")
    assert s.text("bash_output", id=shell).endswith("\n(no new output)\n")


# -- Truth -----------------------------------------------------------------------------------------

def outcomes_are_told_as_they_are(serve):
    s = serve()
    text, record, _ = run(s, "kill -SEGV $$")
    holds(text, "Signal: SIGSEGV")
    assert record["signal"] == "SIGSEGV" and record["exit_code"] is None
    for code in (7, 143):
        text, record, _ = run(s, f"exit {code}")
        holds(text, f"Exit code: {code}\n")
        assert record["exit_code"] == code and record["signal"] is None
    text, record, _ = run(s, "sh -c 'exit 3' | tail -1")
    assert record["exit_code"] == 0 and record["pipestatus"] == [3, 0]
    for command in ("set -e; sh -c 'exit 3' | tail -1", "trap 'echo bye' EXIT; sh -c 'exit 3' | tail -1",
                    "sh -c 'exit 3' | tail -1; cat <<E\nhere\nE", "echo end \\"):
        record = run(s, command)[1]
        assert record["exit_code"] == 0 and record["pipestatus"] in (None, [3, 0], [0]), (command, record)
    assert run(s, "if then fi")[1]["exit_code"] == 2


def failures_name_stage_and_cause(serve):
    s = serve()
    text, record, _ = run(s, "no-such-command-at-all")
    assert record["exit_code"] == 127
    holds(text, "not found")
    result = s.call("bash", command="true", cwd="/no/such/place")
    assert result["isError"]
    holds(text_of(result), "/no/such/place", "directory", "No such file")
    plain = os.path.join(serve.place, "plain")
    with open(plain, "w", encoding="ascii") as file:
        file.write("x")
    text, record, _ = run(s, plain)
    assert record["exit_code"] == 126
    holds(text, "Permission denied")
    holds(run(s, ": " + "y" * (1 << 20) + "; echo long")[0], "long")


def exactly_eight_run(serve):
    s = serve()
    calls = [s.begin("bash", command="exec sleep 60", background=True) for _ in range(20)]
    results = [s.answer(id)["result"] for id in calls]
    started = [r["_meta"]["nacre/run"]["id"] for r in results if not r["isError"]]
    refused = [text_of(r) for r in results if r["isError"]]
    assert len(started) == 8 and len(refused) == 12
    for text in refused:
        holds(text, "8 background shells are running", *(id[:8] for id in started))
    s.text("kill_shell", id=started[2])
    s.start("exec sleep 60")
    assert s.call("bash", command="exec sleep 60", background=True)["isError"]
    holds(s.text("bash", command="echo foreground"), "foreground")


# -- After a crash ---------------------------------------------------------------------------------

def the_next_server_in_a_directory_tells(serve):
    places = [os.path.join(serve.place, name) for name in ("here", "there")]
    for place in places:
        os.mkdir(place)
    gate = Gate(serve)
    s = serve(cwd=places[0])
    shells = [s.start(f"{gate.passing}; exit {i}") for i in range(3)]
    gate.open()
    s.await_end(*shells)
    s.process.kill()
    s.process.wait()
    lacks(serve(cwd=places[1]).text("list_shells"), "[Background task")
    other = serve(cwd=places[0])
    text = other.text("list_shells")
    for i, shell in enumerate(shells):
        holds(text, f"[Background task {shell[:8]} completed]", f"exit_code: {i}")
    lacks(other.text("list_shells"), "[Background task")
    # Old ids still answer, with the truth.
    for i, shell in enumerate(shells):
        holds(other.text("bash_output", id=shell), f"exited({i})")


# -- Strangers -------------------------------------------------------------------------------------

VALUES = {"string": ["text", "\0", ""], "number": [1.5, -0.5, 1e300], "integer": [3, -1, 0, 2 ** 63 - 1],
          "boolean": [True, False], "array": [[], [1], ["abcd"], [None]],
          "object": [{}, {"a": 1}, {"a": "b"}, {"": ""}], "null": [None]}


def every_type_for_every_argument(serve):
    s = serve()
    seconds = mark()
    shell = s.start(f"sleep {seconds}")
    until(lambda: alive(seconds), "it runs")
    asked = 0
    for tool in s.ask("tools/list")["tools"]:
        schema = tool["inputSchema"]
        for name, wanted in list(schema["properties"].items()) + [("no_such", {"type": ""})]:
            right = {n: "exit" for n in schema.get("required", []) if n != name}
            types = {wanted["type"], "null"} | ({"integer"} if wanted["type"] == "number" else set())
            for kind, values in VALUES.items():
                for value in values if kind not in types else []:
                    result = s.call(tool["name"], **dict(right, **{name: value}))
                    asked += 1
                    assert result["isError"], (tool["name"], name, value, text_of(result))
                    holds(text_of(result), name)
    assert asked > 300, asked
    holds(s.text("list_shells"), shell[:8], "running")
    assert alive(seconds)


def strangers_do_not_touch_shells(serve):
    s = serve()
    seconds = mark()
    s.start(f"sleep {seconds}")
    until(lambda: alive(seconds), "it runs")
    nested = b"[" * 100000
    line = b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"bash","arguments":%s}}'
    for data, code in ((nested, -32700), (nested + b"]" * 100000, -32700),
                       (line % (b"n", b'{"command":' + nested + b"]" * 100000 + b"}"), -32700),
                       (line % (b"n", b'{"command":"a\0b"}'), -32700),
                       (line % (b"n", b'{"command":"a","command":"b"}'), -32600),
                       (b'{"jsonrpc":"2.0","id":"n","id":"m","method":"ping"}', -32600)):
        before = len(s.messages)
        s.raw(data + b"\n")
        s.wait(lambda m: len(s.messages) > before)
        assert s.messages[before]["error"]["code"] == code, (data[:80], s.messages[before])
    result = s.call("bash", command="echo a\0b")
    assert result["isError"]
    holds(text_of(result), "command")
    assert alive(seconds)
    s.raw(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kill_sh')
    assert alive(seconds)
    assert s.close() == 0


def two_servers_at_once(serve):
    """Ten clients' worth of work from two servers of one home, each with its own shells."""
    servers = [serve(), serve()]
    calls = [(s, i, s.begin("bash", command=f"echo n{i}; sleep 0.1")) for i in range(8) for s in servers]
    shells = {s: [s.start(f"sleep 0.{i}; exit {i}") for i in range(5)] for s in servers}
    for s, i, id in calls:
        holds(text_of(s.answer(id)["result"]), f"n{i}\n")
    told = {s: "" for s in servers}

    def look():
        for s in servers:
            told[s] += s.text("bash", command="true") + s.text("list_shells")
        return all(s.text("list_shells", state="running").endswith("no background shells\n")
                   for s in servers)

    until(look, "all have ended")
    for s in servers:
        other = servers[1 - servers.index(s)]
        everything = json.dumps(s.messages)
        for shell in shells[s]:
            assert everything.count(f"[Background task {shell[:8]} completed]") <= 1
            lacks(json.dumps(other.messages), shell[:8])
        assert all(shell[:8] in everything for shell in shells[s])
    listed = subprocess.run([NACRE, "list", "--all"], check=False,
                            capture_output=True, timeout=20,
                            env=dict(os.environ, NACRE_HOME=os.path.join(serve.place, "home")))
    for s in servers:
        for shell in shells[s]:
            holds(listed.stdout.decode(), shell[:8])


def files_that_may_not_grow(serve):
    s = serve()
    s.initialize()
    _, hard = resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (0, hard))
    holds(s.text("bash", command="seq 1 30000; ulimit -S -f"), "30000", "\n0\n")
    shell = s.start("echo from the background")
    s.await_end(shell)
    holds(s.text("recall", pattern="from the back"), f"{shell[:8]} stdout:1: from the background")
    holds(s.text("list_shells"), shell[:8])
    s.close()


CASES = [
    leftovers_do_not_delay, a_closed_output_is_no_end, nothing_is_asked, a_foreground_server_yields,
    a_full_pipe_holds_up_nobody, the_cause_is_lifted_out, a_timeout_keeps_what_was_printed,
    reads_show_what_is_new, outcomes_are_told_as_they_are, failures_name_stage_and_cause,
    exactly_eight_run, the_next_server_in_a_directory_tells, every_type_for_every_argument,
    strangers_do_not_touch_shells, two_servers_at_once, files_that_may_not_grow,
]

if __name__ == "__main__":
    if not shutil.which("git"):
        sys.exit("git is missing")
    main(CASES)
