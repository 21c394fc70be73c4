#!/usr/bin/env python3
"""`nacre mcp`: the person behind a client is asked about what the rules leave open, by a form; and
where that cannot be, nothing starts.
usage: [NACRE=build/nacre] test_mcp_asking.py [CASE...]"""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import MODERN, PREFIX, holds, lacks, main, text_of  # noqa: E402

RULES = json.dumps([{"ask": ["mkdir"], "because": "new places are for people"},
                    {"deny": ["touch"]}])


def begin(serve, version="2025-11-25", capabilities=None, **more):
    s = serve(NACRE_POLICY=RULES, **more)
    s.ask("initialize", {"protocolVersion": version, "clientInfo": {"name": "test", "version": "1"},
                         "capabilities": {"elicitation": {}} if capabilities is None
                         else capabilities})
    s.notify("notifications/initialized")
    return s


def asked(s, count=1):
    """The count-th form that the client was sent."""
    s.wait(lambda _: len(s.notifications("elicitation/create")) >= count)
    return s.notifications("elicitation/create")[count - 1]


def answer(s, form, action="accept", **content):
    result = {"action": action}
    if content:
        result["content"] = content
    s.send({"jsonrpc": "2.0", "id": form["id"], "result": result})


def made(serve, name):
    return os.path.isdir(os.path.join(serve.place, name))


def a_yes_starts_it_and_a_no_does_not(serve):
    for n, version in enumerate(("2025-06-18", "2025-11-25")):
        s = begin(serve, version)
        call = s.begin("bash", command=f"mkdir made{n} && echo done", description="a place")
        form = asked(s)
        assert not made(serve, f"made{n}") and not s.answers(call)
        message = form["params"]["message"]
        holds(message, f"mkdir made{n} && echo done", f"Commands in it:\nmkdir made{n}\necho done",
              "new places are for people", "The model says about it: a place")
        assert form["params"].get("mode") == ("form" if n else None), form
        schema = form["params"]["requestedSchema"]
        assert schema["properties"]["decision"]["enum"] == ["once", "session", "no"], schema
        answer(s, form, decision="once")
        holds(text_of(s.answer(call)["result"]), "done")
        assert made(serve, f"made{n}")
        for count, (action, content, says) in enumerate((
                ("accept", {"decision": "no"}, "said no"), ("decline", {}, "said no"),
                ("cancel", {}, "did not answer"), ("accept", {}, "said no"),
                ("accept", {"decision": "always"}, "said no")), 2):
            call = s.begin("bash", command="mkdir never")
            answer(s, asked(s, count), action, **content)
            result = s.answer(call)["result"]
            assert result["isError"], result
            holds(text_of(result), "nothing was started", says)
        assert not made(serve, "never")
        s.close()


def others_go_on_while_a_person_thinks(serve):
    s = begin(serve)
    call = s.begin("bash", command="mkdir later")
    form = asked(s)
    holds(s.text("bash", command="echo meanwhile"), "meanwhile")
    assert not s.answers(call)
    answer(s, form, decision="session")
    s.answer(call)
    call = s.begin("bash", command="mkdir later; echo again")
    answer(s, asked(s, 2), decision="session")
    s.answer(call)
    holds(s.text("bash", command="mkdir later; echo again"), "again")
    assert len(s.notifications("elicitation/create")) == 2


def an_answer_counts_once(serve):
    s = begin(serve)
    call = s.begin("bash", command="mkdir once")
    form = asked(s)
    answer(s, dict(form, id="nacre-ask-77"), decision="once")
    answer(s, dict(form, id=form["id"] + "x"), decision="once")
    answer(s, dict(form, id=1), decision="once")
    answer(s, form, decision="no")
    answer(s, form, decision="once")
    holds(text_of(s.answer(call)["result"]), "said no")
    call = s.begin("bash", command="mkdir once")
    again = asked(s, 2)
    assert again["id"] != form["id"]
    answer(s, form, decision="once")
    s.ask("ping")
    assert not s.answers(call) and not made(serve, "once")
    s.send({"jsonrpc": "2.0", "id": again["id"], "error": {"code": -1, "message": "no forms here"}})
    holds(text_of(s.answer(call)["result"]), 'change "ask" in it to "allow"')


def who_does_not_answer_is_waited_for_a_while(serve):
    s = begin(serve, NACRE_WAIT="1s")
    result = s.call("bash", command="mkdir slow")
    assert result["isError"]
    holds(text_of(result), "has not answered within 1 s")
    answer(s, asked(s), decision="once")
    s.ask("ping")
    call = s.begin("bash", command="mkdir slow", background=True)
    form = asked(s, 2)
    s.notify("notifications/cancelled", {"requestId": call})
    s.ask("ping")
    answer(s, form, decision="once")
    s.ask("ping")
    assert not s.answers(call) and not made(serve, "slow")


def a_client_that_leaves_allows_nothing(serve):
    s = begin(serve)
    s.begin("bash", command="mkdir gone")
    asked(s)
    assert s.close() == 0
    assert not made(serve, "gone")


def who_cannot_be_asked_is_told_what_to_do(serve):
    for version, capabilities in (("2025-11-25", {}), ("2025-11-25", {"elicitation": {"url": {}}}),
                                  ("2025-03-26", {"elicitation": {}}),
                                  ("2025-11-25", {"elicitation": None})):
        s = begin(serve, version, capabilities)
        result = s.call("bash", command="mkdir never")
        assert result["isError"], result
        holds(text_of(result), 'change "ask" in it to "allow"')
        assert not s.notifications("elicitation/create")
        s.close()
    s = begin(serve)
    params = {"name": "bash", "arguments": {"command": "mkdir never"},
              "_meta": dict(MODERN, **{PREFIX + "clientCapabilities": {"elicitation": {}}})}
    result = s.answer(s.request("tools/call", params))["result"]
    assert result["isError"] and not s.notifications("elicitation/create"), result
    assert not made(serve, "never")


def what_is_denied_is_not_asked(serve):
    s = begin(serve)
    text = s.text("bash", command="mkdir x; touch y")
    holds(text, 'denied by rule {"deny": ["touch"]}')
    assert not s.notifications("elicitation/create") and not made(serve, "x")
    lacks(s.text("bash", command="echo fine"), "nothing was started")


CASES = [
    a_yes_starts_it_and_a_no_does_not, others_go_on_while_a_person_thinks, an_answer_counts_once,
    who_does_not_answer_is_waited_for_a_while, a_client_that_leaves_allows_nothing,
    who_cannot_be_asked_is_told_what_to_do, what_is_denied_is_not_asked,
]

if __name__ == "__main__":
    main(CASES)
