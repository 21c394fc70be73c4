#!/usr/bin/env python3
"""`nacre mcp`: the shapes of messages. Batches, errors without an id, log messages, and what those
who listen are told at the end.
usage: [NACRE=build/nacre] test_mcp_messages.py [CASE...]"""
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import PREFIX, Gate, alive, holds, lacks, main, mark, text_of, until  # noqa: E402


def entry(id, method, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def tool(id, name, **arguments):
    return entry(id, "tools/call", name=name, arguments=arguments)


def cancelled(id):
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}


def arrays(s):
    return [line for line in s.lines if isinstance(line, list)]


def ids(array):
    return [message.get("id") for message in array]


# -- Batches ---------------------------------------------------------------------------------------

def a_batch_is_answered_by_one_array(serve):
    s = serve()
    s.initialize("2025-03-26")
    s.send([entry("b1", "ping"), {"jsonrpc": "2.0", "method": "notifications/x"},
            tool("b2", "bash", command="sleep 0.5; echo slow"), entry("b3", "tools/list"),
            entry("b4", "no/such"), tool("b5", "bash", command="echo quick"), 7,
            {"jsonrpc": "2.0", "id": {}, "method": "ping"}])
    # Whoever waits in a batch holds up nobody else.
    assert s.ask("ping") == {} and not arrays(s)
    s.answer("b2")
    assert len(arrays(s)) == 1
    array = arrays(s)[0]
    assert ids(array) == ["b1", "b2", "b3", "b4", "b5", None, None], ids(array)
    assert array[0]["result"] == {} and array[2]["result"]["tools"]
    holds(text_of(array[1]["result"]), "slow")
    holds(text_of(array[4]["result"]), "quick")
    assert [m["error"]["code"] for m in array if "error" in m] == [-32601, -32600, -32600]


def batches_belong_to_one_version(serve):
    s = serve()
    batch = [entry("b1", "ping")]

    def refused(value):
        before = len(s.lines)
        s.send(value)
        s.wait(lambda m: len(s.lines) > before)
        assert s.lines[before]["error"]["code"] == -32600, s.lines[before]
        return s.lines[before]

    refused(batch)
    for version in ("2024-11-05", "2025-06-18", "2025-11-25"):
        s.initialize(version)
        refused(batch)
    s.initialize("2025-03-26")
    assert refused([])["id"] is None
    refused([entry(i, "ping") for i in range(129)])
    s.send([{"jsonrpc": "2.0", "method": "notifications/x"}] * 3)
    s.send([{"jsonrpc": "2.0", "id": 1, "result": {}}])
    s.ask("ping")
    assert not arrays(s)
    s.send([entry("m", "tools/list", _meta={PREFIX + "protocolVersion": "2026-07-28",
                                            PREFIX + "clientCapabilities": {}}),
            entry("i", "initialize", protocolVersion="2025-11-25")])
    s.answer("i")
    assert [m["error"]["code"] for m in arrays(s)[0]] == [-32600, -32600]
    s.send(batch)
    s.answer("b1")


def what_was_cancelled_is_not_in_the_array(serve):
    s = serve()
    s.initialize("2025-03-26")
    seconds, other = mark(), mark()
    gate = Gate(serve)
    s.send([tool("c1", "bash", command=f"sleep {seconds}"), entry("c2", "ping"),
            tool("c3", "bash", command=f"{gate.passing}; echo third")])
    until(lambda: alive(seconds), "it runs")
    for id in ("c1", "c2"):
        s.notify("notifications/cancelled", {"requestId": id})
    s.ask("ping")
    until(lambda: not alive(seconds), "it was ended")
    assert not arrays(s)
    gate.open()
    s.answer("c3")
    assert ids(arrays(s)[0]) == ["c3"]
    # Nothing left to say: nothing is said. A batch may cancel what is in it.
    s.send([tool("d1", "bash", command=f"sleep {other}"), cancelled("d1")])
    s.ask("ping")
    until(lambda: not alive(other), "it was ended")
    s.ask("ping")
    assert len(arrays(s)) == 1 and not s.answers("c1") + s.answers("c2") + s.answers("d1")


def ids_in_a_batch_are_in_use(serve):
    s = serve()
    s.initialize("2025-03-26")
    gate = Gate(serve)
    s.send([entry("u", "ping"), entry("u", "ping"),
            tool("v", "bash", command=f"{gate.passing}; echo done")])
    for id in ("u", "v"):
        s.request("ping", id=id)
        assert s.answer(id)["error"]["code"] == -32600
    gate.open()
    s.wait(lambda m: m.get("id") == "v" and "result" in m)
    array = arrays(s)[0]
    assert ids(array) == ["u", "u", "v"]
    assert "result" in array[0] and array[1]["error"]["code"] == -32600
    s.request("ping", id="u")
    s.wait(lambda m: m is s.messages[-1] and m.get("result") == {})


def a_batch_holds_a_bounded_amount(serve):
    s = serve()
    s.initialize("2025-03-26")
    shell = s.start("seq 1 400000")
    s.text("bash_output", id=shell, wait=5)
    gate = Gate(serve)
    uri = f"nacre://run/{shell}/log"
    s.send([entry(f"r{i}", "resources/read", uri=uri) for i in range(20)] +
           [tool("last", "bash", command=f"{gate.passing}; echo last")])
    s.ask("ping")
    s.stays_below(64)
    gate.open()
    s.answer("last")
    codes = [m["error"]["code"] if "error" in m else 0 for m in arrays(s)[0]]
    assert len(codes) == 21 and 5 <= codes.count(0) <= 9 and set(codes) == {0, -32603}, codes


def completions_in_a_batch_are_told_once(serve):
    s = serve()
    s.initialize("2025-03-26")
    gate, end = Gate(serve), Gate(serve, "end")
    shell = s.start(f"{end.passing}; exit 4")
    end.open()
    s.await_end(shell)
    s.send([tool("e1", "list_shells"), tool("e2", "bash", command=f"{gate.passing}; echo e2")])
    s.ask("ping")
    # Not delivered before the whole batch is: cancelled, it comes again.
    s.notify("notifications/cancelled", {"requestId": "e1"})
    s.ask("ping")
    gate.open()
    holds(text_of(s.answer("e2")["result"]), "e2", f"[Background task {shell[:8]}", "exit_code: 4")
    assert not s.answers("e1")
    lacks(s.text("list_shells"), "[Background task")


# -- Errors without an id --------------------------------------------------------------------------

def an_unknown_id_is_told_as_the_version_has_it(serve):
    s = serve()

    def error():
        before = len(s.lines)
        s.raw(b"nonsense\n")
        s.wait(lambda m: len(s.lines) > before)
        assert s.lines[before]["error"]["code"] == -32700
        return s.lines[before]

    assert error()["id"] is None
    for version in ("2024-11-05", "2025-03-26", "2025-06-18"):
        s.initialize(version)
        assert error()["id"] is None, version
    s.initialize("2025-11-25")
    assert "id" not in error()
    s = serve()
    s.ask("server/discover", modern=True)
    assert "id" not in error()
    s.send({"jsonrpc": "2.0", "id": None, "method": "ping"})
    s.wait(lambda m: len(s.lines) > 2)
    assert "id" not in s.lines[-1] and s.lines[-1]["error"]["code"] == -32600


# -- Log messages ----------------------------------------------------------------------------------

def requests_may_ask_for_log_messages(serve):
    s = serve()
    assert s.ask("server/discover", modern=True)["capabilities"]["logging"] == {}
    gates = [Gate(serve, f"gate{i}") for i in range(3)]
    shells = [s.start(f"{gate.passing}; exit {i}") for i, gate in enumerate(gates)]

    def ask(level, command):
        return s.request("tools/call", {"name": "bash", "arguments": {"command": command},
                                        "_meta": {PREFIX + "logLevel": level}}, modern=True)

    def told():
        return [m["params"]["data"].split(": ")[0] for m in s.notifications("notifications/message")]

    # Who did not ask is told nothing, nor who asked for worse.
    gates[0].open()
    s.await_end(shells[0])
    s.ask("resources/list", modern=True)
    s.answer(ask("warning", "true"))
    assert told() == []
    # What ended before the request, and what ends while it is under way; each before its answer.
    gates[1].open()
    s.await_end(shells[1])
    id = ask("info", f"{gates[2].opening}; sleep 2; echo answered")
    holds(text_of(s.answer(id)["result"]), "answered", f"[Background task {shells[1][:8]}",
          f"[Background task {shells[2][:8]}")
    answer = s.messages.index(s.answers(id)[0])
    messages = s.notifications("notifications/message")
    assert [line.split()[1] for line in told()] == [shells[1][:8], shells[2][:8]], told()
    assert all(s.messages.index(m) < answer and m["params"]["level"] == "info" for m in messages)
    s.answer(ask("debug", "true"))
    assert len(told()) == 2
    for level in ("loud", 3, None, ["info"]):
        assert s.answer(ask(level, "true"))["error"]["code"] == -32602, level


# -- Those who listen ------------------------------------------------------------------------------

def listeners_are_told_of_the_end(serve):
    for way in ("input", signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        s = serve()
        shell = s.start("sleep 60")
        for id in ("listen:0", 7, "gone"):
            s.request("subscriptions/listen",
                      {"notifications": {"resourceSubscriptions": [f"nacre://run/{shell}/log"]}},
                      modern=True, id=id)
        s.notify("notifications/cancelled", {"requestId": "gone"})
        s.ask("ping")
        assert not s.answers("listen:0") + s.answers(7)
        if way == "input":
            s.process.stdin.close()
        else:
            s.process.send_signal(way)
        assert s.process.wait(10) == 0
        s.reader.join(5)
        for id in ("listen:0", 7):
            assert len(s.answers(id)) == 1, (way, id)
            result = s.answers(id)[0]["result"]
            assert result["resultType"] == "complete"
            assert result["_meta"][PREFIX + "subscriptionId"] == id
        assert not s.answers("gone")


CASES = [
    a_batch_is_answered_by_one_array, batches_belong_to_one_version,
    what_was_cancelled_is_not_in_the_array, ids_in_a_batch_are_in_use,
    a_batch_holds_a_bounded_amount, completions_in_a_batch_are_told_once,
    an_unknown_id_is_told_as_the_version_has_it, requests_may_ask_for_log_messages,
    listeners_are_told_of_the_end,
]

if __name__ == "__main__":
    main(CASES)
