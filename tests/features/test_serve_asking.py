#!/usr/bin/env python3
"""`nacre serve`: the person behind a client over HTTP is asked, in both eras, and others of the same
user can answer.
usage: [NACRE=build/nacre] test_serve_asking.py [CASE...]"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from http_client import House  # noqa: E402
from mcp_client import NACRE, PREFIX, holds, main, text_of, until  # noqa: E402

RULES = json.dumps([{"ask": ["mkdir"]}])


def begin(house, version="2025-11-25"):
    return house.client(version, capabilities={"elicitation": {}})


def call(client, command):
    """A call whose stream is open; the connection, and the form that came on it."""
    connection = client.begin("bash", command=command)
    return connection, next_message(connection)


def next_message(connection):
    while True:
        _, data = connection.event()
        if data is not None:
            return data


def answer(client, form, decision, session=None, action="accept"):
    body = json.dumps({"jsonrpc": "2.0", "id": form["id"],
                       "result": {"action": action, "content": {"decision": decision}}}).encode()
    return client.house.ask("POST", "/mcp", body, Mcp_Session_Id=session or client.session)


def made(serve, name):
    return os.path.isdir(os.path.join(serve.place, name))


def a_form_comes_on_the_stream_of_the_call(serve):
    house = serve(NACRE_POLICY=RULES)
    for version in "2025-06-18", "2025-11-25":
        client = begin(house, version)
        connection, form = call(client, f"mkdir {version}; echo done")
        assert form["method"] == "elicitation/create", form
        assert answer(client, form, "once").status == 202
        holds(text_of(next_message(connection)["result"]), "done")
        assert made(serve, version)
        connection, form = call(client, "mkdir never")
        assert answer(client, form, "once", action="decline").status == 202
        holds(text_of(next_message(connection)["result"]), "said no")
        # The first answer counts.
        assert answer(client, form, "once").status == 202
    assert not made(serve, "never")


def another_client_answers_nothing(serve):
    house = serve(NACRE_POLICY=RULES)
    client, other = begin(house), begin(house)
    connection, form = call(client, "mkdir a")
    assert answer(other, form, "once").status == 202
    assert answer(client, form, "once", session="0" * 32).status == 404
    theirs, their_form = call(other, "mkdir b")
    assert their_form["id"] == form["id"]
    answer(other, their_form, "no")
    holds(text_of(next_message(theirs)["result"]), "said no")
    assert not made(serve, "a") and not made(serve, "b")
    answer(client, form, "once")
    next_message(connection)
    assert made(serve, "a")


def a_client_that_comes_back_is_asked_still(serve):
    house = serve(NACRE_POLICY=RULES)
    client = begin(house)
    connection, form = call(client, "mkdir a")
    connection.close()
    assert not made(serve, "a")
    answer(client, form, "once")
    until(lambda: made(serve, "a"), "it goes on though nobody listens")
    # One whose session ends is asked nothing any more.
    connection, form = call(client, "mkdir b")
    assert client.leave().status == 204
    assert answer(client, form, "once").status == 404 and not made(serve, "b")


def modern(house, command, path="/mcp", **more):
    params = {"name": "bash", "arguments": {"command": command},
              "_meta": {PREFIX + "clientCapabilities": {"elicitation": {}}}, **more}
    return house.modern("tools/call", params, path=path).message


def a_modern_call_comes_again(serve):
    house = serve(NACRE_POLICY=RULES)
    yes = {"decision": {"action": "accept", "content": {"decision": "once"}}}
    result = modern(house, "mkdir a")["result"]
    assert result["resultType"] == "input_required", result
    state = result["requestState"]
    assert modern(house, "mkdir a", path="/mcp/other", requestState=state,
                  inputResponses=yes)["error"]["code"] == -32602
    assert not made(serve, "a")
    assert modern(house, "mkdir a", requestState=state,
                  inputResponses=yes)["result"]["resultType"] == "complete"
    assert made(serve, "a")
    assert modern(house, "mkdir a", requestState=state,
                  inputResponses=yes)["error"]["code"] == -32602


def others_can_answer(serve):
    house = serve(NACRE_POLICY=RULES)
    client = begin(house)

    def nacre(*words):
        return subprocess.run([os.path.abspath(NACRE), *words], env=house.surroundings, check=True,
                              stdout=subprocess.PIPE, encoding="utf-8").stdout

    connection, _ = call(client, "mkdir a")
    modern(house, "mkdir b")
    ids = {q["command"]: q["id"] for q in json.loads(nacre("pending", "--json"))}
    assert set(ids) == {"mkdir a", "mkdir b"}, ids
    nacre("deny", ids["mkdir a"])
    holds(text_of(next_message(connection)["result"]), "said no")
    nacre("allow", ids["mkdir b"])
    assert modern(house, "mkdir b")["result"]["resultType"] == "complete"
    assert made(serve, "b") and not made(serve, "a")


CASES = [
    a_form_comes_on_the_stream_of_the_call, another_client_answers_nothing,
    a_client_that_comes_back_is_asked_still, a_modern_call_comes_again, others_can_answer,
]

if __name__ == "__main__":
    main(CASES, House)
