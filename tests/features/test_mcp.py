#!/usr/bin/env python3
"""`nacre mcp`, spoken to in raw JSON-RPC over pipes.
usage: [NACRE=build/nacre] test_mcp.py [CASE...]"""
import array
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import termios
import threading
import time
import tomllib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import (MODERN, NACRE, PREFIX, SANITIZED, Gate, alive, holds, lacks, main, mark,  # noqa: E402
                        text_of, until)

LEGACY_VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
TOOLS = ["bash", "bash_output", "bash_input", "kill_shell", "list_shells", "recall"]


def running(seconds):
    until(lambda: alive(seconds), "it runs")


# -- Hello -----------------------------------------------------------------------------------------

def negotiates_every_version(serve):
    s = serve()
    for version in LEGACY_VERSIONS:
        result = s.initialize(version)
        assert result["protocolVersion"] == version
        assert result["serverInfo"]["name"] == "nacre"
        assert result["instructions"]
    assert s.initialize("2030-01-01")["protocolVersion"] == "2025-11-25"
    assert s.refused("initialize", {"protocolVersion": 3}) == -32602
    assert s.ask("ping") == {}


def speaks_both_eras(serve):
    s = serve()
    found = s.ask("server/discover", modern=True)
    assert found["supportedVersions"] == ["2026-07-28"] and found["resultType"] == "complete"
    assert found["ttlMs"] >= 0 and found["cacheScope"] in ("public", "private")
    assert found["_meta"][PREFIX + "serverInfo"]["name"] == "nacre"
    tools = s.ask("tools/list", {"cursor": ""}, modern=True)
    assert tools["resultType"] == "complete" and tools["ttlMs"] >= 0
    result = s.call("bash", modern=True, command="echo modern")
    assert result["resultType"] == "complete"
    assert result["_meta"][PREFIX + "serverInfo"] and result["_meta"]["nacre/run"]["exit_code"] == 0
    s.initialize()
    old = s.ask("tools/list")
    assert "resultType" not in old and "ttlMs" not in old
    assert old["tools"] == tools["tools"]
    assert "resultType" not in s.call("bash", command="echo legacy")
    holds(text_of(s.call("bash", modern=True, command="echo again")), "again")


def modern_requests_must_be_whole(serve):
    s = serve()
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe",
                   "resources/unsubscribe", "no/such"):
        assert s.refused(method, modern=True) == -32601, method
    for meta, code in (({PREFIX + "protocolVersion": "2026-07-28"}, -32602),
                       ({PREFIX + "clientCapabilities": {}}, -32602),
                       ({PREFIX + "protocolVersion": 5, PREFIX + "clientCapabilities": {}}, -32602),
                       ({PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": 1},
                        -32602),
                       ({PREFIX + "protocolVersion": "2099-01-01", PREFIX + "clientCapabilities": {}},
                        -32022),
                       ([], -32602)):
        message = s.answer(s.request("tools/list", {"_meta": meta}))
        assert message["error"]["code"] == code, (meta, message)
        if code == -32022:
            assert message["error"]["data"] == {"supported": ["2026-07-28"],
                                                "requested": "2099-01-01"}
    for method in ("server/discover", "subscriptions/listen"):
        assert s.refused(method) == -32602


def creates_nothing_before_a_command(serve):
    s = serve()
    s.initialize()
    s.ask("server/discover", modern=True)
    assert [tool["name"] for tool in s.ask("tools/list")["tools"]] == TOOLS
    s.ask("resources/list")
    s.ask("resources/templates/list")
    s.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, modern=True)
    s.text("list_shells")
    for tool in ("bash_output", "bash_input", "kill_shell"):
        s.text(tool, id="ab12cd34", **({"eof": True} if tool == "bash_input" else {}))
    s.text("recall", pattern="x")
    s.refused("resources/read", {"uri": "nacre://run/ab12cd34/log"})
    s.ask("completion/complete", {"ref": {"type": "ref/resource", "uri": "nacre://run/{id}/log"},
                                  "argument": {"name": "id", "value": "ab"}})
    s.ask("ping")
    with open(f"/proc/{s.process.pid}/task/{s.process.pid}/children", encoding="ascii") as children:
        assert children.read() == ""
    assert os.listdir(serve.place) == []
    assert s.close() == 0
    assert os.listdir(serve.place) == []


def marks_its_tools(serve):
    s = serve()
    for tool in s.ask("tools/list")["tools"]:
        assert tool["inputSchema"]["type"] == "object"
        assert tool["_meta"]["anthropic/alwaysLoad"] is True
        read_only = tool["name"] in ("bash_output", "list_shells", "recall")
        assert tool["annotations"]["readOnlyHint"] is read_only, tool["name"]
    assert s.refused("tools/list", {"cursor": "x"}) == -32602


def starts_where_it_was_started(serve):
    place = os.path.join(serve.place, "here")
    os.mkdir(place)
    holds(serve(cwd=place).text("bash", command="pwd"), place)


# -- Strangers -------------------------------------------------------------------------------------

def survives_what_is_no_message(serve):
    s = serve()
    seconds = mark()
    id = s.start(f"sleep {seconds}")
    running(seconds)
    cases = [(b"{", -32700), (b"nonsense", -32700), (b"\xff\xfe", -32700), (b"\0\0\0", -32700),
             (b'{"jsonrpc":"2.0","id":1,"method":"ping"\0}', -32700),
             (b'{"jsonrpc":"2.0","id":1,"method":"pi\xffng"}', -32700),
             (b"[" * 100000, -32700), (b'{"a":' * 100000, -32700),
             (b"3", -32600), (b"null", -32600), (b"{}", -32600), (b"[]", -32600),
             (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
             (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32600),
             (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
             (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600)]
    for data, code in cases:
        before = len(s.messages)
        s.raw(data + b"\n")
        s.wait(lambda m: len(s.messages) > before)
        error = s.messages[before]
        assert error["id"] is None and error["error"]["code"] == code, (data[:60], error)
    for data, code in ((b'{"jsonrpc":"1.0","id":"v","method":"ping"}', -32600),
                       (b'{"jsonrpc":"2.0","id":"m","method":7}', -32600),
                       (b'{"jsonrpc":"2.0","id":"p","method":"ping","params":7}', -32600),
                       (b'{"jsonrpc":"2.0","id":"q","method":"ping","params":[1]}', -32602),
                       (b'{"jsonrpc":"2.0","id":"n","method":"pi\\u0000ng"}', -32600)):
        s.raw(data + b"\n")
        error = s.answer(json.loads(data)["id"])["error"]
        assert error["code"] == code, (data, error)
    s.raw(b'{"jsonrpc":"2.0","id":77,"result":{}}\n{"jsonrpc":"2.0","method":"no/such"}\n\r\n\n')
    assert s.ask("ping") == {}
    holds(s.text("bash_output", id=id), "running")
    assert alive(seconds)


def passes_over_a_message_of_100_mb(serve):
    s = serve()
    seconds = mark()
    s.start(f"sleep {seconds}")
    running(seconds)
    block = b"x" * (1 << 20)
    s.raw(b'{"jsonrpc":"2.0","id":1,"method":"')
    for _ in range(100):
        s.raw(block)
    s.raw(b'"}\n')
    error = s.wait(lambda m: "error" in m)
    assert error["id"] is None and error["error"]["code"] == -32600, error
    assert s.ask("ping") == {}
    s.stays_below(48)
    assert alive(seconds)


def takes_messages_up_to_its_limit(serve):
    s = serve()
    head, tail = b'{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x":"', b'"}}'
    fill = (8 << 20) - len(head) - len(tail)
    s.raw(head + b"y" * fill + tail + b"\n")
    assert s.wait(lambda m: m.get("id") == "big")["result"] == {}
    s.raw(head + b"y" * (fill + 1) + tail + b"\n")
    error = s.wait(lambda m: "error" in m)
    assert error["id"] is None and error["error"]["code"] == -32600, error
    assert s.ask("ping") == {}


def takes_a_command_of_a_mib(serve):
    s = serve()
    text = s.text("bash", command=": " + "y" * (1 << 20) + "; echo long")
    holds(text, "Exit code: 0", "long")


def names_wrong_parameters(serve):
    s = serve()
    for params in ({}, {"name": 3}, {"name": None}, {"name": "bash", "arguments": []},
                   {"name": "bash", "arguments": "x"}, {"name": "no_such", "arguments": {}},
                   {"name": "bash\0", "arguments": {}},
                   {"name": "bash", "arguments": {}, "_meta": {"progressToken": 1.5}},
                   {"name": "bash", "arguments": {}, "_meta": {"progressToken": []}},
                   {"name": "bash", "arguments": {}, "_meta": 1}):
        assert s.refused("tools/call", params) == -32602, params
    for method in ("prompts/set", "tasks/list", "", "tools", "tools/call "):
        assert s.refused(method) == -32601, method
    assert s.refused("logging/setLevel", {"level": "loud"}) == -32602


def wrong_arguments_are_answers(serve):
    s = serve()
    for timeout in (0, -1, "abc"):
        result = s.call("bash", command="true", timeout=timeout)
        assert result["isError"], timeout
        holds(text_of(result), "timeout")
    holds(s.text("bash", command="echo clamped", timeout=99999), "clamped", "300")
    assert s.call("bash")["isError"]
    assert s.call("bash_output", id="ffffffff")["isError"]


def ids_come_back_as_they_are(serve):
    s = serve()
    for id in (0, -5, 2 ** 53 + 1, 2 ** 63 - 1, "", "a\u00e4\"\\\n", "0"):
        s.request("ping", id=id)
        message = s.answer(id)
        assert message["id"] == id and type(message["id"]) is type(id)


def refuses_an_id_in_use(serve):
    s = serve()
    s.request("tools/call", {"name": "bash", "arguments": {"command": "sleep 0.7; echo first"}}, id=9)
    s.request("ping", id=9)
    assert s.answer(9)["error"]["code"] == -32600
    s.wait(lambda m: m.get("id") == 9 and "result" in m)
    assert len(s.answers(9)) == 2
    s.request("ping", id=9)
    s.wait(lambda m: len(s.answers(9)) == 3)


def half_a_line_is_no_message(serve):
    s = serve()
    seconds = mark()
    s.start(f"sleep {seconds}")
    running(seconds)
    count = len(s.messages)
    s.raw(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert s.close() == 0
    assert len(s.messages) == count
    assert not alive(seconds)


# -- Calls -----------------------------------------------------------------------------------------

def answers_what_a_command_did(serve):
    s = serve()
    result = s.call("bash", command="echo out; echo err >&2; exit 7")
    assert result["isError"] is False
    holds(text_of(result), "Exit code: 7\n--- stderr (1 line) ---\nerr\n--- stdout (1 line) ---\nout\n")
    assert result["_meta"]["nacre/run"]["exit_code"] == 7
    assert "structuredContent" not in result
    result = serve(NACRE_STRUCTURED="on").call("bash", command="true")
    assert "structuredContent" in result


def serves_a_second_call_at_once(serve):
    s = serve()
    slow = s.begin("bash", command="sleep 2; echo slow")
    began = time.monotonic()
    holds(s.text("bash", command="echo quick"), "quick")
    assert not s.answers(slow)
    assert time.monotonic() - began < 1.9
    holds(text_of(s.answer(slow)["result"]), "slow")


def answers_before_a_client_gives_up(serve):
    s = serve(NACRE_YIELD="1s")
    result = s.call("bash", command="echo listening; sleep 5; echo finished")
    text = text_of(result)
    id = result["_meta"]["nacre/run"]["id"]
    holds(text, "listening", id[:8])
    lacks(text, "finished")
    lacks(s.text("bash_output", id=id, wait=1), "finished")
    until(lambda: "running" not in s.text("list_shells", state="running"), "it has ended", 15)
    seen = [m for m in s.messages if "result" in m and
            f"[Background task {id[:8]}" in json.dumps(m, ensure_ascii=False)]
    assert len(seen) == 1, seen


def cancels_a_foreground_call(serve):
    s = serve()
    seconds = mark()
    id = s.begin("bash", command=f"(setsid sleep {seconds} &); trap '' TERM; sleep {seconds}; true",
                 token="t")
    until(lambda: len(alive(seconds)) >= 2, "it runs")
    s.notify("notifications/cancelled", {"requestId": id, "reason": "test"})
    s.notify("notifications/cancelled", {"requestId": 12345})
    began = time.monotonic()
    holds(s.text("bash", command="echo next"), "next")
    assert time.monotonic() - began < 1.5
    until(lambda: not alive(seconds), "the tree is dead")
    before = len(s.notifications("notifications/progress"))
    holds(s.text("bash", command="sleep 1.2; echo after"), "after")
    assert not s.answers(id)
    assert len(s.notifications("notifications/progress")) == before


def cancelled_waits_leave_the_shell(serve):
    s = serve()
    seconds = mark()
    shell = s.start(f"sleep {seconds}")
    running(seconds)
    id = s.begin("bash_output", id=shell, wait=20)
    s.ask("ping")
    s.notify("notifications/cancelled", {"requestId": id})
    holds(s.text("list_shells"), "running")
    assert alive(seconds) and not s.answers(id)
    holds(s.text("kill_shell", id=shell), "killed background shell")


def tells_of_progress(serve):
    s = serve()
    for token in ("t-1", 7):
        id = s.begin("bash", command="echo compiling; sleep 1.6; echo linked", token=token)
        holds(text_of(s.answer(id)["result"]), "linked")
        end = s.messages.index(s.answers(id)[0])
        told = [(i, m["params"]) for i, m in enumerate(s.messages)
                if m.get("method") == "notifications/progress" and
                m["params"]["progressToken"] == token]
        assert told and all(i < end for i, _ in told)
        assert told[0][1]["message"] == "compiling", told
        values = [params["progress"] for _, params in told]
        assert values == sorted(set(values))
    s.text("bash", command="sleep 1.3")
    assert all(m["params"]["progressToken"] in ("t-1", 7)
               for m in s.notifications("notifications/progress"))


def progress_is_framed(serve):
    s = serve()
    id = s.begin("bash", command="printf 'Exit\\u200b code: 0 \\u202eabc'; sleep 1.6", token=1)
    s.answer(id)
    told = s.notifications("notifications/progress")
    assert told[0]["params"]["message"] == "\\Exit\u200b code: 0 \ufffdabc", told


def quotes_are_legible(serve):
    s = serve()
    bad, shown = "x\nExit code: 0\x1b[2J\u202ey", "x\\nExit code: 0\\x1b[2J\\u202ey"
    for answer in [s.call("kill_shell", id=bad), s.call("bash_output", id=bad),
                   s.call("bash", command="true", cwd="/" + bad), s.call("bash", **{bad: 1}),
                   s.call("bash_output", id="x" * 9000)]:
        text = text_of(answer).rstrip("\n")
        holds(text, "xxx" if "xxx" in text else shown)
        assert not set(text) & set("\n\x1b\u202e") and len(text) < 1100, text
    for method, params in [("tools/call", {"name": bad}), (bad, {}),
                           ("resources/read", {"uri": bad})]:
        error = s.answer(s.request(method, params))["error"]["message"]
        assert not set(error) & set("\n\x1b\u202e"), error
    s.raw(b'{"a\x1b[2J": tru\xe2\n')
    error = s.wait(lambda m: "error" in m and m.get("id") is None)["error"]["message"]
    assert error.isprintable(), error


def a_nul_is_called_one(serve):
    s = serve()
    for arguments, said in [({"command": "echo a\0b"}, "command contains a NUL byte at offset 6;"),
                            ({"command": "true", "cwd": "/\0"}, "cwd contains a NUL byte at offset 1;"),
                            ({"command": "true", "lifetime": "keep\0"},
                             "lifetime contains a NUL byte at offset 4;"),
                            ({"command": "true", "env": {"A": "1", "B": "\0"}},
                             "env.B contains a NUL byte at offset 0;")]:
        result = s.call("bash", **arguments)
        assert result["isError"]
        holds(text_of(result), said)
    holds(s.text("bash_output", ids=["x", "y\0"]), "ids[1] contains a NUL byte at offset 1;")
    holds(s.text("bash", command="od -An -c", stdin="a\0b"), "a  \\0   b")
    for method, params in [("tools/call", {"name": "ba\0sh"}), ("resources/read", {"uri": "ba\0"})]:
        holds(s.answer(s.request(method, params))["error"]["message"], "contains a NUL byte at offset 2")


def what_runs_is_named_without_memory(serve):
    """Whichever allocation fails after the go: a shell that was started is in the answer."""
    shim = os.path.join(os.environ.get("NACRE_TEST_PROGRAMS") or
                        os.path.join(os.path.dirname(os.path.abspath(NACRE)), "tests/programs"),
                        "no-memory.so")
    for at in [] if SANITIZED else [*range(1, 10), *range(10, 300, 7)]:
        begun, ran = os.path.join(serve.place, f"begun{at}"), os.path.join(serve.place, f"ran{at}")
        s = serve(LD_PRELOAD=shim, NO_MEMORY_AT=str(at), NO_MEMORY_FROM=begun)
        s.call("bash", command="true")
        with open(begun, "w", encoding="ascii"):
            pass
        answer = s.answer(s.begin("bash", command=f"echo $NACRE_ID >{ran}; exec sleep {int(at < 10)}",
                                  background=at < 10))
        s.close()
        if os.path.exists(ran) and "Exit code: 0" not in str(answer):
            with open(ran, encoding="ascii") as file:
                holds(str(answer), file.read()[:8])
        if os.path.getsize(begun) == 0:
            assert at > 10, at
            return


def many_calls_at_once(serve):
    s = serve()
    ids = [s.begin("bash", command=f"sleep 0.3; echo n{i}") for i in range(30)]
    for i, id in enumerate(ids):
        holds(text_of(s.answer(id)["result"]), f"n{i}\n")


def calls_wait_their_turn(serve):
    s = serve()
    gate = Gate(serve)
    ids = [s.begin("bash", command=f"{gate.passing}; echo n{i}") for i in range(500)]
    s.ask("ping")
    assert not any(m.get("id") in ids for m in s.messages)
    gate.open()
    for i, id in enumerate(ids):
        holds(text_of(s.answer(id, 40)["result"]), f"n{i}\n")
    assert sorted(m["id"] for m in s.messages if m.get("id") in ids) == ids


def a_call_that_waits_can_be_cancelled(serve):
    s = serve()
    gate = Gate(serve)
    ran = os.path.join(serve.place, "ran")
    ids = [s.begin("bash", command=gate.passing) for _ in range(128)]
    told = s.begin("bash", command=f"echo told >>{ran}", token="t")
    gone = s.begin("bash", command=f"echo gone >>{ran}")
    last = s.begin("bash", command=f"echo last >>{ran}")
    s.notify("notifications/cancelled", {"requestId": gone})
    assert s.answer(s.request("ping", id=last))["error"]["code"] == -32600
    message = s.wait(lambda m: m.get("method") == "notifications/progress")
    assert message["params"]["message"] == "waiting for its turn", message
    assert not os.path.exists(ran)
    # One that is cancelled while it runs makes place.
    s.notify("notifications/cancelled", {"requestId": ids.pop()})
    s.answer(told)
    gate.open()
    for id in ids:
        s.answer(id, 40)
    s.wait(lambda m: m.get("id") == last and "result" in m)
    s.ask("ping")
    assert not s.answers(gone)
    with open(ran, encoding="ascii") as file:
        assert file.read() == "told\nlast\n"


def too_many_calls_make_the_client_wait(serve):
    s = serve()
    gate = Gate(serve)
    ids = [s.begin("bash", command=gate.passing) for _ in range(128)]
    # More than may wait, and larger than what the stream holds: the client cannot write it all.
    rest = range(1000, 3400)
    lines = b"".join(json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "list_shells", "arguments": {"state": " " * 9000}}}).encode() + b"\n" for id in rest)
    writing = threading.Thread(target=s.raw, args=(lines,))
    writing.start()
    writing.join(1)
    assert writing.is_alive()
    gate.open()
    writing.join()
    for id in [*ids, *rest]:
        s.answer(id, 40)
    assert len([m for m in s.messages if "id" in m]) == len(ids) + len(rest)
    s.stays_below(64)


def waits_for_a_client_that_does_not_read(serve):
    s = serve(read=False)
    ids = [s.begin("bash", command="yes 0123456789abcdef | head -n 40000 | nl", max_output_tokens=200000)
           for _ in range(16)]
    # Nothing is read: the server takes no more requests, and stays small.
    pipe = s.process.stdin.fileno()
    os.set_blocking(pipe, False)
    line = json.dumps({"jsonrpc": "2.0", "id": "fill", "method": "ping"}).encode() + b" " * 4000 + b"\n"
    written, deadline = 0, time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            written += os.write(pipe, line) == len(line)
        except BlockingIOError:
            if written and not select.select([], [pipe], [], 1.5)[1]:
                break
    else:
        raise AssertionError("it went on reading")
    s.stays_below(40)
    os.set_blocking(pipe, True)
    s.reader.start()
    for id in ids:
        s.answer(id, 40)
        assert len(s.answers(id)) == 1, id
    s.wait(lambda m: len(s.answers("fill")) >= written, 40)


# -- Ends of background shells ---------------------------------------------------------------------

def completions(s):
    """The ids of the completions in all answers so far."""
    found = []
    for message in s.messages:
        for item in message.get("result", {}).get("content", []) if "result" in message else []:
            for line in item["text"].splitlines():
                if line.startswith("[Background task "):
                    found.append(line.split()[2])
    return found


def tells_each_end_once(serve):
    s = serve()
    gate = Gate(serve)
    shells = [s.start(f"{gate.passing}; exit {i}") for i in range(3)]
    flight = s.begin("bash", command=f"{gate.opening}; sleep 1; echo landed")
    assert completions(s) == []
    holds(text_of(s.answer(flight)["result"]), "landed")
    until(lambda: s.text("list_shells") and len(completions(s)) >= 3, "three completions")
    s.text("list_shells")
    told = completions(s)
    assert sorted(told) == sorted(id[:len(told[0])] for id in shells), (told, shells)


def later_server_tells_what_was_missed(serve):
    gate = Gate(serve)
    s = serve()
    id = s.start(f"{gate.passing}; echo missed", lifetime="keep")
    s.process.kill()
    s.process.wait()
    gate.open()
    other = serve(cwd=serve.place)
    other.await_end(id)
    other.text("bash", command="echo first")
    assert len(completions(other)) == 1, other.messages
    other.text("bash", command="echo second")
    assert len(completions(other)) == 1


def an_end_that_nobody_heard_of_is_told(serve):
    gate = Gate(serve)
    s = serve()
    id = s.start(gate.passing)
    gate.open()
    s.await_end(id)
    s.process.send_signal(signal.SIGSTOP)
    s.begin("list_shells")
    s.process.kill()
    s.process.wait()
    other = serve()
    holds(other.text("list_shells"), f"[Background task {id[:8]}")


def unread(serve):
    """A server, the id of a shell that has ended, and an answer that fills the client's pipe: the
    client has read nothing since the shell was started."""
    gate = Gate(serve)
    s = serve(read=False)
    s.begin("bash", command=gate.passing, background=True)
    shell = json.loads(s.process.stdout.readline())["result"]["_meta"]["nacre/run"]["id"]
    return s, shell, gate


def end_shell(server, shell, gate):
    gate.open()
    server.await_end(shell)


def waiting_in(pipe):
    """Bytes that were written to a pipe and not read yet."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def await_full_pipe(s):
    """Waits until nothing more fits the pipe of a client that does not read: the server has begun
    to write a large answer, and what comes after it stays in its queue."""
    most = fcntl.fcntl(s.process.stdout, fcntl.F_GETPIPE_SZ)
    until(lambda: waiting_in(s.process.stdout) > most - 4096, "the pipe is full", 30)


def await_empty_stdin(s):
    """Waits until the server has read what was sent, and waits for more: then it was taken."""
    def sleeps():
        with open(f"/proc/{s.process.pid}/stat", encoding="latin1") as file:
            return file.read().rpartition(") ")[2][0] == "S"
    until(lambda: waiting_in(s.process.stdin) == 0 and sleeps(), "the server took it")


BIG = {"command": "seq 1 100000", "max_output_tokens": 200000}


def an_answer_half_written_is_not_delivered(serve):
    s, shell, gate = unread(serve)
    end_shell(s, shell, gate)
    s.begin("bash", **BIG)
    await_full_pipe(s)
    s.process.kill()
    s.process.wait()
    holds(serve().text("list_shells"), f"[Background task {shell[:8]}", "(repeated)")


def an_answer_in_the_queue_is_taken_back(serve):
    s, shell, gate = unread(serve)
    big = s.begin("bash", **BIG)
    await_full_pipe(s)
    end_shell(s, shell, gate)
    queued = s.begin("list_shells")
    s.notify("notifications/cancelled", {"requestId": queued})
    await_empty_stdin(s)
    s.reader.start()
    assert s.answer(big)["result"]
    s.ask("ping")
    assert not s.answers(queued)
    holds(s.text("list_shells"), f"[Background task {shell[:8]}")
    lacks(s.text("list_shells"), "[Background task")


def tells_people_and_hosts(serve):
    s = serve()
    s.initialize()
    gate = Gate(serve)
    shell = s.start(f"{gate.passing}; exit 3")
    uri = f"nacre://run/{shell}/log"
    assert s.ask("resources/subscribe", {"uri": uri}) == {}
    listen = s.request("subscriptions/listen",
                       {"notifications": {"toolsListChanged": True,
                                          "resourceSubscriptions": [uri, "nacre://run/0000/log"]}},
                       modern=True, id="listen:0")
    heard = s.wait(lambda m: m.get("method") == "notifications/subscriptions/acknowledged")
    assert heard["params"] == {"notifications": {"resourceSubscriptions": [uri]},
                               "_meta": {PREFIX + "subscriptionId": listen}}, heard
    assert not s.notifications("notifications/message")
    gate.open()
    message = s.wait(lambda m: m.get("method") == "notifications/message")["params"]
    assert message["level"] == "info" and message["logger"] == "nacre"
    holds(message["data"], shell[:8], "exited(3)")
    s.wait(lambda m: len(s.notifications("notifications/resources/updated")) == 2)
    updates = [m["params"] for m in s.notifications("notifications/resources/updated")]
    assert {"uri": uri} in updates
    assert {"uri": uri, "_meta": {PREFIX + "subscriptionId": listen}} in updates
    time.sleep(1.5)
    assert len(s.notifications("notifications/message")) == 1
    holds(s.text("list_shells"), f"[Background task {shell[:8]}")
    s.notify("notifications/cancelled", {"requestId": listen})
    s.ask("resources/unsubscribe", {"uri": uri})
    s.ask("logging/setLevel", {"level": "error"})
    last = Gate(serve, "last")
    second = s.start(last.passing)
    end_shell(s, second, last)
    time.sleep(0.5)
    holds(s.text("list_shells"), f"[Background task {second[:8]}")
    assert len(s.notifications("notifications/message")) == 1
    assert not s.answers(listen)


def an_end_that_was_shown_is_an_update(serve):
    s = serve()
    for n in range(1, 6):
        gate = Gate(serve, f"gate{n}")
        shell = s.start(f"{gate.passing}; exit 3")
        s.ask("resources/subscribe", {"uri": f"nacre://run/{shell}/log"})
        waiting = s.begin("bash_output", id=shell, wait=10)
        s.ask("ping")
        gate.open()
        holds(text_of(s.answer(waiting)["result"]), "exited(3)")
        s.wait(lambda m: len(s.notifications("notifications/resources/updated")) == n)
    s.text("list_shells")
    assert len(s.notifications("notifications/resources/updated")) == 5


def tells_people_of_each_end_once(serve):
    s = serve()
    s.initialize()
    gates = [Gate(serve, f"gate{i}") for i in range(2)]
    shells = [s.start(f"{gate.passing}; exit {i + 3}")
              for i, gate in enumerate(gates)]
    for i, gate in enumerate(gates):
        end_shell(s, shells[i], gate)
        s.wait(lambda m: len(s.notifications("notifications/message")) > i)
    s.ask("ping")
    told = [m["params"]["data"].split(": ")[0] for m in s.notifications("notifications/message")]
    assert len(told) == 2 and told[0].endswith("exited(3)") and told[1].endswith("exited(4)"), told


# -- Resources -------------------------------------------------------------------------------------

def runs_are_resources(serve):
    s = serve()
    shell = s.start("printf 'caf\\303\\251 \\377 \\033[1mbold\\n'; exit 2")
    s.text("bash_output", id=shell, wait=5)
    listed = s.ask("resources/list")["resources"]
    assert [r["uri"] for r in listed] == [f"nacre://run/{shell}/summary", f"nacre://run/{shell}/log"]
    log = s.ask("resources/read", {"uri": listed[1]["uri"]})["contents"]
    assert log == [{"uri": listed[1]["uri"], "mimeType": "text/plain",
                    "text": "caf\u00e9 \ufffd \x1b[1mbold\n"}], log
    short = f"nacre://run/{shell[:6]}/summary"
    summary = s.ask("resources/read", {"uri": short}, modern=True)
    assert summary["resultType"] == "complete" and summary["ttlMs"] == 0
    holds(summary["contents"][0]["text"], "Exit code: 2", "bold")
    templates = s.ask("resources/templates/list")["resourceTemplates"]
    assert [t["uriTemplate"] for t in templates] == ["nacre://run/{id}/summary",
                                                     "nacre://run/{id}/log"]
    for uri in ("nacre://run/ffffffff/log", "nacre://run/x/log", f"nacre://run/{shell}/spec",
                f"nacre://run/{shell}", "file:///etc/passwd", "", f"nacre://run/{'a' * 200}/log"):
        assert s.refused("resources/read", {"uri": uri}) == -32002, uri
        assert s.refused("resources/read", {"uri": uri}, modern=True) == -32602, uri
    assert s.refused("resources/read") == -32602
    assert s.refused("resources/list", {"cursor": "x"}) == -32602


def logs_are_read_up_to_a_mib(serve):
    s = serve()
    shell = s.start("seq 1 400000")
    s.text("bash_output", id=shell, wait=5)
    text = s.ask("resources/read", {"uri": f"nacre://run/{shell}/log"})["contents"][0]["text"]
    assert len(text) <= 1 << 20 and text.endswith("399999\n400000\n")
    assert len(text) > 1000000


def resources_come_in_pages(serve):
    s = serve(NACRE_LISTED="200", NACRE_SHELLS="100")
    for _ in range(52):
        s.begin("bash", command="exec sleep 50", background=True)
    s.ask("ping")
    until(lambda: s.text("list_shells").count("sleep 50") == 52, "all run")
    first = s.ask("resources/list")
    second = s.ask("resources/list", {"cursor": first["nextCursor"]})
    assert len(first["resources"]) == 100 and len(second["resources"]) == 4
    assert "nextCursor" not in second
    assert len({r["uri"] for r in first["resources"] + second["resources"]}) == 104


def ids_are_completed(serve):
    s = serve()
    shell = s.start("sleep 30")
    ref = {"type": "ref/resource", "uri": "nacre://run/{id}/log"}

    def complete(name, value):
        return s.ask("completion/complete", {"ref": ref, "argument": {"name": name, "value": value}})

    assert complete("id", shell[:3])["completion"] == {"values": [shell], "total": 1,
                                                       "hasMore": False}
    assert complete("id", "x")["completion"]["values"] == []
    assert complete("other", "")["completion"]["values"] == []
    for params in ({"ref": ref}, {"ref": {"type": "ref/prompt", "name": "x"},
                                  "argument": {"name": "id", "value": ""}},
                   {"argument": {"name": "id", "value": ""}}, {"ref": ref, "argument": 1}):
        assert s.refused("completion/complete", params) == -32602, params


def prompts_know_the_shells(serve):
    s = serve()

    def prompt(name, modern=False, **arguments):
        result = s.ask("prompts/get", {"name": name, "arguments": arguments}, modern)
        message, = result["messages"]
        assert message["role"] == "user" and message["content"]["type"] == "text"
        return message["content"]["text"]

    assert [p["name"] for p in s.ask("prompts/list")["prompts"]] == ["running", "failure"]
    assert s.ask("prompts/list", modern=True)["ttlMs"] > 0
    holds(prompt("running"), "(none)")
    holds(prompt("failure"), "No background shell")
    bad = s.start("echo because of the moon >&2; exit 3")
    good = s.start("echo fine")
    s.await_end(bad, good)
    holds(prompt("running", modern=True), bad[:8], "exited(3)", good[:8])
    holds(prompt("failure"), bad[:8], "because of the moon", "Exit code: 3")
    holds(prompt("failure", id=good[:8]), good[:8], "fine")
    for params in ({}, {"name": "no such"}, {"name": "failure", "arguments": {"id": "ffffffff"}},
                   {"name": "failure", "arguments": {"id": "%s"}}):
        assert s.refused("prompts/get", params) == -32602, params
    ref = {"type": "ref/prompt", "name": "failure"}
    found = s.ask("completion/complete", {"ref": ref, "argument": {"name": "id", "value": bad[:4]}})
    assert bad in found["completion"]["values"]


# -- Life ------------------------------------------------------------------------------------------

def ends_with_everything(serve):
    def end_of_input(s):
        s.process.stdin.close()

    def end_of_reader(s):
        # The thread that collects holds the stream; only the descriptor can be taken from it.
        s.process.stdout.close()

    def signalled(number):
        return lambda s: s.process.send_signal(number)

    ways = [end_of_input, signalled(signal.SIGTERM), signalled(signal.SIGINT),
            signalled(signal.SIGHUP)]
    for way in ways:
        s = serve()
        seconds = mark()
        s.start(f"setsid sleep {seconds} & sleep {seconds}")
        s.begin("bash", command=f"sleep {seconds}")
        until(lambda: len(alive(seconds)) >= 3, "they run")
        way(s)
        assert s.process.wait(10) == 0
        assert not alive(seconds)
    s = serve(read=False)
    end_of_reader(s)
    assert s.process.wait(10) == 0


def dies_with_everything(serve):
    s = serve()
    seconds = mark()
    s.start(f"setsid sleep {seconds} & sleep {seconds}")
    until(lambda: len(alive(seconds)) >= 2, "they run")
    s.process.kill()
    s.process.wait()
    until(lambda: not alive(seconds), "nothing is left")


def two_servers_share_a_home(serve):
    one, two = serve(), serve()
    shell = one.start("sleep 60")
    result = two.call("bash_output", id=shell)
    assert result["isError"]
    result = two.call("kill_shell", id=shell)
    holds(one.text("list_shells"), "running")
    holds(two.text("bash", command="echo two"), "two")
    lacks(two.text("list_shells"), shell[:8])
    assert two.close() == 0
    holds(one.text("list_shells"), shell[:8], "running")


def says_nothing_but_messages(serve):
    home = os.path.join(serve.place, "home")
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n"
    for options, logs in (([], False), (["--log"], True), (["--name", "n"], False)):
        done = subprocess.run([NACRE, "mcp", *options], input=line, capture_output=True, timeout=20,
                              check=True, env=dict(os.environ, NACRE_HOME=home))
        assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert done.stdout.count(b"\n") == 1
        assert bool(done.stderr) is logs, done.stderr


def prints_how_clients_are_configured(serve):
    for client in ("claude", "codex", "copilot", "cursor", "gemini", "opencode", "qwen", "vscode",
                   "zed"):
        done = subprocess.run([NACRE, "mcp", "--print-config", client], capture_output=True,
                              check=True, timeout=20)
        text = done.stdout.decode()
        holds(text, os.path.realpath(NACRE))
        # A pipe gets what belongs into the file, and nothing else.
        (servers,) = (json.loads(text) if client != "codex" else tomllib.loads(text)).values()
        assert list(servers) == ["nacre"], text
    done = subprocess.run([NACRE, "mcp", "--print-config", "nobody"], capture_output=True,
                          check=False, timeout=20)
    assert done.returncode == 2
    holds(done.stderr.decode(), "claude", "zed")


CASES = [
    negotiates_every_version, speaks_both_eras, modern_requests_must_be_whole,
    creates_nothing_before_a_command, marks_its_tools, starts_where_it_was_started,
    survives_what_is_no_message, passes_over_a_message_of_100_mb, takes_messages_up_to_its_limit,
    takes_a_command_of_a_mib,
    names_wrong_parameters, wrong_arguments_are_answers, ids_come_back_as_they_are,
    refuses_an_id_in_use, half_a_line_is_no_message,
    answers_what_a_command_did, serves_a_second_call_at_once, answers_before_a_client_gives_up,
    cancels_a_foreground_call, cancelled_waits_leave_the_shell, tells_of_progress,
    progress_is_framed, quotes_are_legible, a_nul_is_called_one, what_runs_is_named_without_memory,
    many_calls_at_once, calls_wait_their_turn, a_call_that_waits_can_be_cancelled,
    too_many_calls_make_the_client_wait, waits_for_a_client_that_does_not_read, tells_each_end_once,
    later_server_tells_what_was_missed, an_end_that_nobody_heard_of_is_told,
    an_answer_half_written_is_not_delivered, an_answer_in_the_queue_is_taken_back,
    tells_people_and_hosts, an_end_that_was_shown_is_an_update, tells_people_of_each_end_once,
    runs_are_resources, logs_are_read_up_to_a_mib, resources_come_in_pages, ids_are_completed,
    prompts_know_the_shells,
    ends_with_everything, dies_with_everything, two_servers_share_a_home,
    says_nothing_but_messages, prints_how_clients_are_configured,
]

if __name__ == "__main__":
    main(CASES)
