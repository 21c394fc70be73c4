#!/usr/bin/env python3
"""`nacre serve` and its sessions: both eras over HTTP, streams that are cut and resumed, who hangs up,
who never comes back, and what is left when the server is killed.
usage: [NACRE=build/nacre] test_serve.py [CASE...]"""
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from http_client import Connection, House, eventually_gone  # noqa: E402
from mcp_client import NACRE, PREFIX, alive, holds, lacks, main, mark, text_of, until  # noqa: E402

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def which_are_alive(marks):
    """Those of the marks that a process has; one look for all of them."""
    lines = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True).stdout
    living = [line for line in lines.split("\n") if line[:1] not in ("Z", "X")]
    return [i for i, seconds in enumerate(marks) if any(seconds in line for line in living)]


def text(client, tool, **arguments):
    return text_of(client.call(tool, **arguments))


# -- Eras ------------------------------------------------------------------------------------------

def every_version_is_served(serve):
    house = serve()
    for version in LEGACY:
        client = house.client(version)
        assert client.hello["protocolVersion"] == version
        assert len(client.session) == 32
        assert client.result("ping") == {}
        holds(text(client, "bash", command="echo of $((40+2))"), "of 42")
        assert client.leave().status == 204
        assert client.post("ping").status == 404
    answer = house.modern("tools/call", {"name": "bash", "arguments": {"command": "echo new"}})
    assert answer.status == 200 and answer.message["result"]["resultType"] == "complete"
    assert "mcp-session-id" not in answer.fields
    holds(text_of(answer.message["result"]), "new")


def legacy_requests_need_their_session(serve):
    house = serve()
    client = house.client()
    body = client.message("ping")
    assert house.ask("POST", "/mcp", body).status == 400
    assert house.ask("POST", "/mcp", body, Mcp_Session_Id="0" * 32).status == 404
    assert house.ask("POST", "/mcp", body, Mcp_Session_Id="").status == 404
    for version, wanted in (("2025-06-18", 200), (None, 200), ("1999-01-01", 400)):
        assert client.post("ping", MCP_Protocol_Version=version).status == wanted
    assert client.post("no/such").message["error"]["code"] == -32601
    assert client.post("no/such").status == 200
    answer = house.ask("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                                                  "params": {}}).encode())
    assert "mcp-session-id" not in answer.fields or \
        house.ask("POST", "/mcp", body, Mcp_Session_Id=answer.fields["mcp-session-id"]).status == 404


def batches_are_spoken_once(serve):
    house = serve()

    def batch(client, *messages):
        return house.ask("POST", "/mcp", json.dumps(messages).encode(),
                         Mcp_Session_Id=client.session)

    client = house.client("2025-03-26")
    ping = {"jsonrpc": "2.0", "id": 70, "method": "ping"}
    note = {"jsonrpc": "2.0", "method": "notifications/x"}
    call = {"jsonrpc": "2.0", "id": 71, "method": "tools/call",
            "params": {"name": "bash", "arguments": {"command": "sleep 0.2; echo batch"}}}
    answer = batch(client, ping, note)
    assert [m["id"] for m in answer.json] == [70]
    assert batch(client, note, note).status == 202
    lines = [line for line in batch(client, call, ping).body.decode().split("\n")
             if line.startswith("data: ")]
    assert [m["id"] for m in json.loads(lines[-1][6:])] == [71, 70]
    assert batch(house.client("2025-11-25"), ping).status == 400


def modern_fields_must_agree(serve):
    house = serve()
    assert house.modern("tools/list").status == 200
    for fields in ({"MCP_Protocol_Version": None}, {"MCP_Protocol_Version": "2025-11-25"},
                   {"Mcp_Method": None}, {"Mcp_Method": "tools/call"}, {"Mcp_Method": "Tools/list"}):
        answer = house.modern("tools/list", **fields)
        assert answer.status == 400 and answer.message["error"]["code"] == -32020, (fields, answer)
        assert answer.message["id"] == house.next_id
    call = {"name": "list_shells", "arguments": {}}
    for name, wanted in (("list_shells", 200), (" list_shells ", 200),
                         ("=?base64?bGlzdF9zaGVsbHM=?=", 200), ("bash", 400), (None, 400),
                         ("=?base64?%%%?=", 400), ("LIST_SHELLS", 400)):
        assert house.modern("tools/call", call, Mcp_Name=name).status == wanted, name
    answer = house.modern("tools/list", {"_meta": {PREFIX + "protocolVersion": "2099-01-01"}})
    assert answer.status == 400 and answer.message["error"]["code"] == -32022
    # What the message does not say cannot differ from a field.
    for meta in ({PREFIX + "protocolVersion": None}, {PREFIX + "protocolVersion": 7}):
        answer = house.modern("tools/list", {"_meta": meta}, MCP_Protocol_Version="2026-07-28")
        assert answer.status == 400 and answer.message["error"]["code"] == -32602, answer
    answer = house.modern("resources/read", {"uri": "nacre://none"})
    assert answer.message["error"]["data"] == {"uri": "nacre://none"}, answer
    answer = house.modern("no/such")
    assert answer.status == 404 and answer.message["error"]["code"] == -32601
    answer = house.modern("ping")
    assert answer.status == 404
    answer = house.modern("tools/call", {"name": "none", "arguments": {}})
    assert answer.status == 200 and answer.message["error"]["code"] == -32602


def names_are_sessions(serve):
    house = serve()
    shell = {"name": "bash", "arguments": {"command": "sleep 30", "background": True}}
    one = house.modern("tools/call", shell, path="/mcp/one").message["result"]["_meta"]["nacre/run"]["id"]
    listing = {"name": "list_shells", "arguments": {}}
    holds(text_of(house.modern("tools/call", listing, path="/mcp/one").message["result"]), one[:4])
    lacks(text_of(house.modern("tools/call", listing, path="/mcp/two").message["result"]), one[:4])
    lacks(text_of(house.modern("tools/call", listing).message["result"]), one[:4])
    for path in ("/mcp/a%20b", "/mcp/a~b"):
        assert house.modern("tools/list", path=path).status in (400, 404)


def commands_start_where_they_are_told(serve):
    where = os.path.join(serve.place, "work")
    other = os.path.join(serve.place, "other")
    os.mkdir(where)
    os.mkdir(other)
    house = serve("home", "--cwd", where)
    pwd = {"name": "bash", "arguments": {"command": "pwd"}}
    holds(text_of(house.modern("tools/call", pwd).message["result"]), where)
    holds(text_of(house.modern("tools/call", pwd, path="/mcp?cwd=" + other).message["result"]), other)
    holds(text(house.client(path="/mcp/x?cwd=" + other), "bash", command="pwd"), other)
    assert house.modern("tools/list", path="/mcp?cwd=relative").status == 400
    assert house.modern("tools/list", path="/mcp?cwd=/no/such/place").status == 400


# -- Streams ---------------------------------------------------------------------------------------

def a_long_call_is_a_stream(serve):
    house = serve()
    client = house.client()
    c = client.begin("bash", token="t", command="echo one; sleep 2.5; echo two")
    assert c.event() == ("2-0", None), "the first event tells by what to come back"
    kinds = []
    while (event := c.event()):
        kinds.append(event[1].get("method", "answer"))
    assert kinds[-1] == "answer" and "notifications/progress" in kinds
    # The connection is there for the next request.
    c.send(house.text("POST", "/mcp", client.message("ping"), Mcp_Session_Id=client.session))
    assert c.answer().message["result"] == {}
    old = house.client("2025-06-18").begin("bash", command="sleep 0.3")
    assert old.event()[1] is not None, "earlier revisions know no event without data"


def messages_of(connection):
    """All that come until the end."""
    found = []
    while (event := connection.event()):
        if event[1] is not None:
            found.append(event)
    return found


def a_stream_cut_at_every_message_is_whole(serve):
    """A client that loses its connection behind each message, and comes back by the last it had."""
    house = serve()
    client = house.client()
    gate = os.path.join(serve.place, "gate")
    os.mkfifo(gate)
    c = client.begin("bash", token="p", command=f": <{gate}; echo done")
    heard, last = [], c.event()[0]
    deadline = time.monotonic() + 40
    while not any("result" in message for _, message in heard):
        assert time.monotonic() < deadline
        event = c.event()
        assert event is not None
        c.close()
        if event[1] is not None:
            heard.append(event)
            last = event[0]
        if len(heard) == 2:
            os.close(os.open(gate, os.O_WRONLY))
        c = client.listen(last)
        assert c.event() == (last, None)
    numbers = [int(id.split("-")[1]) for id, _ in heard]
    assert numbers == list(range(1, len(heard) + 1)), numbers
    holds(text_of(heard[-1][1]["result"]), "done")
    assert messages_of(c) == [], "behind the answer there is nothing"
    # All of it once more, from the beginning.
    again = client.listen(heard[0][0].split("-")[0] + "-0")
    assert messages_of(again) == heard


def a_stream_waits_for_who_comes_back(serve):
    """Nobody listens while the call ends: its answer is kept."""
    house = serve()
    client = house.client()
    c = client.begin("bash", command="sleep 0.6; echo kept")
    first, _ = c.event()
    c.close()
    time.sleep(1.2)
    c = client.listen(first)
    assert c.event() == (first, None)
    _, message = c.event()
    holds(text_of(message["result"]), "kept")
    assert c.event() is None


def what_cannot_be_resumed_is_refused(serve):
    house = serve()
    client, other = house.client(), house.client()
    c = client.begin("bash", command="sleep 0.2")
    messages_of(c)
    for last in ("99-1", "x", "2", "2-", "-1", "2-999", "18446744073709551616-1"):
        answer = house.ask("GET", "/mcp", Mcp_Session_Id=client.session, Last_Event_ID=last)
        assert answer.status == 400, last
    assert house.ask("GET", "/mcp", Mcp_Session_Id=other.session, Last_Event_ID="2-0").status == 400
    assert house.ask("GET", "/mcp", Mcp_Session_Id="0" * 32, Last_Event_ID="2-0").status == 404


def one_stream_listens(serve):
    """Ends of shells are told there, and wait for it."""
    house = serve()
    client = house.client()
    c = client.listen()
    assert c.event() == ("0-0", None)
    assert house.ask("GET", "/mcp", Mcp_Session_Id=client.session).status == 409
    client.start("sleep 1; echo told")
    id, message = c.event()
    assert message["method"] == "notifications/message" and id == "0-1"
    c.close()
    later = client.start("sleep 1; echo later")
    subprocess.run([NACRE, "wait", later, "--timeout", "30"], check=True, env=house.surroundings,
                   stdout=subprocess.DEVNULL)
    time.sleep(1.2)  # completions are looked at once a second
    c = client.listen("0-1")
    assert c.event() == ("0-1", None)
    holds(c.event()[1]["params"]["data"], "later")


def legacy_calls_outlive_their_connection(serve):
    house = serve()
    client = house.client()
    seconds = mark()
    c = client.begin("bash", command=f"sleep {seconds}")
    until(lambda: alive(seconds), "it runs")
    c.close()
    time.sleep(0.5)
    assert alive(seconds), "to hang up is no cancel"
    client.note("notifications/cancelled", {"requestId": client.next_id})
    until(lambda: not alive(seconds), "it was cancelled")


def a_cancelled_call_ends_its_stream(serve):
    house = serve()
    client = house.client()
    seconds = mark()
    c = client.begin("bash", command=f"sleep {seconds}")
    until(lambda: alive(seconds), "it runs")
    client.note("notifications/cancelled", {"requestId": client.next_id})
    assert messages_of(c) == []
    until(lambda: not alive(seconds), "nothing is left")


def who_hangs_up_cancels(serve):
    """In the modern era: its call, and no other; a shell in the background goes on."""
    house = serve()
    for closes in (lambda c: c.close(), lambda c: c.socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0") or c.close()):
        mine, theirs, shell = mark(), mark(), mark()
        house.modern("tools/call", {"name": "bash", "arguments": {"command": f"sleep {shell}",
                                                                  "background": True}})
        one, two = house.connect(), house.connect()
        for c, seconds in ((one, mine), (two, theirs)):
            house.next_id = 500  # the same id twice is no fault: each stands alone
            house.modern("tools/call", {"name": "bash", "arguments": {"command": f"sleep {seconds}"}},
                         connection=c, send_only=True)
        until(lambda: alive(mine) and alive(theirs), "both run")
        closes(one)
        until(lambda: not alive(mine), "who hung up cancelled", 5)
        assert alive(theirs) and alive(shell)
        closes(two)
        until(lambda: not alive(theirs), "the other, too", 5)
        assert alive(shell)


def who_only_stops_sending_is_answered(serve):
    house = serve()
    c = house.connect()
    house.modern("tools/call", {"name": "bash", "arguments": {"command": "sleep 0.5; echo heard"}},
                 connection=c, send_only=True)
    c.socket.shutdown(socket.SHUT_WR)
    status, fields = c.head()
    assert status == 200 and fields["content-type"] == "text/event-stream"
    holds(text_of(c.event()[1]["result"]), "heard")


def subscriptions_are_streams(serve):
    house = serve()
    start = {"name": "bash", "arguments": {"command": "sleep 0.7", "background": True}}
    shell = house.modern("tools/call", start).message["result"]["_meta"]["nacre/run"]["id"]
    uri = f"nacre://run/{shell}/log"
    c = house.connect()
    house.modern("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}},
                 connection=c, send_only=True)
    assert c.head()[0] == 200
    assert c.event()[1]["method"] == "notifications/subscriptions/acknowledged"
    message = c.event()[1]
    assert message["method"] == "notifications/resources/updated" and message["params"]["uri"] == uri


# -- Sessions --------------------------------------------------------------------------------------

def one_of_fifty_leaves(serve):
    house = serve()
    marks = [mark() for _ in range(50)]
    clients = [house.client() for _ in marks]
    starts = [threading.Thread(target=client.start, args=(f"sleep {seconds}",))
              for client, seconds in zip(clients, marks)]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    assert which_are_alive(marks) == list(range(50))
    assert clients[17].leave().status == 204
    assert clients[17].post("ping").status == 404
    until(lambda: not alive(marks[17]), "its shells die")
    assert which_are_alive(marks) == list(range(17)) + list(range(18, 50))
    for client in clients[:17] + clients[18:]:
        assert client.result("ping") == {}


def a_stubborn_session_holds_up_nobody(serve):
    """Its shell ignores SIGTERM, so it takes the grace to end; others are answered meanwhile."""
    house = serve()
    stubborn, other = house.client(), house.client()
    seconds = mark()
    stubborn.start(f"trap '' TERM; while :; do sleep {seconds}; done")
    until(lambda: alive(seconds), "it runs")
    began = time.monotonic()
    assert stubborn.leave().status == 204
    assert other.result("ping") == {}
    assert time.monotonic() - began < 1.5, "the grace is two seconds"
    until(lambda: not alive(seconds), "it is ended")


def a_killed_server_leaves_nothing(serve):
    house = serve()
    marks = [mark() for _ in range(3)]
    house.client().start(f"sleep {marks[0]}")
    house.client().begin("bash", command=f"sleep {marks[1]} & sleep {marks[2]}")
    until(lambda: all(alive(seconds) for seconds in marks), "they run")
    house.process.send_signal(signal.SIGKILL)
    house.process.wait()
    until(lambda: not any(alive(seconds) for seconds in marks), "nothing is left")


def a_server_that_ends_ends_all(serve):
    house = serve()
    marks = [mark() for _ in range(4)]
    clients = [house.client() for _ in marks]
    for client, seconds in zip(clients, marks):
        client.start(f"trap '' TERM; sleep {seconds}; sleep {seconds}")
    listening = clients[0].listen()
    began = time.monotonic()
    assert house.close() == 0
    assert not any(alive(seconds) for seconds in marks)
    assert time.monotonic() - began < 15, "they end at the same time"
    assert listening.event() is not None or eventually_gone(listening)
    again = serve()
    body = clients[0].message("ping")
    assert again.ask("POST", "/mcp", body, Mcp_Session_Id=clients[0].session).status == 404


def a_list_says_when_an_idle_session_ends(serve):
    house = serve("home", "--idle", "300", "--gone", "100")
    shell = {"command": f"exec sleep {mark()}", "background": True}
    house.modern("tools/call", {"name": "bash", "arguments": shell}, path="/mcp/idler")
    client = house.client("2025-06-18", path="/mcp/talker")
    holds(text(client, "bash", **shell), "Started")

    def listed(*options):
        return subprocess.run([NACRE, "sessions", *options], capture_output=True, text=True,
                              env=house.surroundings, check=True).stdout

    def left():
        sessions = json.loads(listed("--json"))
        return {s["name"]: s["ends_ms"] and s["ends_ms"] / 1000 - time.time() for s in sessions}

    until(lambda: all(left().values()), "both are idle")
    for name, seconds in left().items():
        assert 250 < seconds <= 301, (name, seconds)
    assert len(left()) == 2


def who_never_comes_back_is_forgotten(serve):
    house = serve("home", "--gone", "1", "--idle", "2")
    quiet, seconds, stays = house.client(), mark(), house.client()
    quiet.start(f"sleep {seconds}")
    listening = stays.listen()
    kept = mark()
    stays.start(f"sleep {kept}")
    until(lambda: not alive(seconds), "who asks for nothing is forgotten")
    assert quiet.post("ping").status == 404
    time.sleep(1)
    assert alive(kept), "who listens is there"
    listening.close()
    until(lambda: not alive(kept), "until his stream is gone")
    assert stays.post("ping").status == 404


def a_call_under_way_is_life(serve):
    house = serve("home", "--gone", "1", "--idle", "1")
    client = house.client()
    c = client.begin("bash", command="sleep 3; echo alive")
    holds(text_of(messages_of(c)[-1][1]["result"]), "alive")


def many_ask_at_once(serve):
    """While children are being started that have copies of each other's connections."""
    house = serve()
    faults = []

    def work(i):
        try:
            for _ in range(3):
                client = house.client(LEGACY[i % 4])
                for n in range(3):
                    holds(text(client, "bash", command=f"echo {i}-{n}"), f"{i}-{n}")
                client.leave()
        except Exception as fault:  # noqa: BLE001
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults


# -- Places ----------------------------------------------------------------------------------------

def a_socket_is_for_its_owner(serve):
    path = os.path.join(serve.place, "s")
    house = serve(listen=path)
    assert house.where == path
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    c = Connection(path)
    answer = house.modern("tools/list", connection=c, Host="anything", Authorization=None)
    assert answer.status == 200
    if os.geteuid() == 0:
        os.chmod(path, 0o777)
        os.chmod(serve.place, 0o755)
        probe = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
                 "s.sendall(b'GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); print(s.recv(9))")
        seen = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "python3", "-c",
                               probe, path], capture_output=True, text=True)
        lacks(seen.stdout, "HTTP")
    house.process.kill()
    house.process.wait()
    assert os.path.exists(path)
    again = serve("again", listen=path)
    assert again.where == path, "what a killed server left is taken away"


def tokens_are_secrets(serve):
    house = serve()
    path = os.path.join(house.home, "http-token")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert len(house.token) == 64
    house.close()
    again = serve()
    assert again.token == house.token, "clients have it in their configuration"
    again.close()
    subprocess.run([NACRE, "serve", "--rotate"], check=True, env=house.surroundings,
                   stderr=subprocess.DEVNULL)
    assert serve().token != house.token
    os.chmod(path, 0o644)
    refused = subprocess.run([NACRE, "serve", "--listen", "127.0.0.1:0"], env=house.surroundings,
                             capture_output=True, text=True)
    assert refused.returncode == 1
    holds(refused.stderr, path, "chmod 600")


def other_places_are_refused(serve):
    house = serve()

    def refused(*options):
        done = subprocess.run([NACRE, "serve", *options], env=house.surroundings,
                              capture_output=True, text=True, timeout=20)
        assert done.returncode != 0, options
        return done.stderr

    holds(refused("--listen", "0.0.0.0:0"), "--listen-anywhere")
    holds(refused("--listen", "[::]:0"), "--listen-anywhere")
    holds(refused("--listen", "0.0.0.0:0", "--listen-anywhere", "--no-token"), "--no-token")
    holds(refused("--listen", f"127.0.0.1:{house.port}"), "in use")
    holds(refused("--listen", "nonsense"), "ADDRESS:PORT")
    holds(refused("--listen", "127.0.0.1:99999"), "ADDRESS:PORT")


def no_token_is_asked_if_it_is_said(serve):
    house = serve("home", "--no-token")
    assert house.modern("tools/list", Authorization=None).status == 200
    assert house.modern("tools/list", Authorization=None, Host="evil.example").status == 403


CASES = [
    every_version_is_served, legacy_requests_need_their_session, batches_are_spoken_once,
    modern_fields_must_agree, names_are_sessions, commands_start_where_they_are_told,
    a_long_call_is_a_stream, a_stream_cut_at_every_message_is_whole,
    a_stream_waits_for_who_comes_back, what_cannot_be_resumed_is_refused, one_stream_listens,
    legacy_calls_outlive_their_connection, a_cancelled_call_ends_its_stream, who_hangs_up_cancels,
    who_only_stops_sending_is_answered, subscriptions_are_streams, one_of_fifty_leaves,
    a_stubborn_session_holds_up_nobody, a_killed_server_leaves_nothing, a_server_that_ends_ends_all,
    who_never_comes_back_is_forgotten, a_list_says_when_an_idle_session_ends, a_call_under_way_is_life, many_ask_at_once,
    a_socket_is_for_its_owner, tokens_are_secrets, other_places_are_refused,
    no_token_is_asked_if_it_is_said,
]

if __name__ == "__main__":
    main(CASES, House)
