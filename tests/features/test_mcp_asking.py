#!/usr/bin/env python3
"""`nacre mcp`: the person behind a client is asked about what the rules leave open, by a form; and
where that cannot be, nothing starts.
usage: [NACRE=build/nacre] test_mcp_asking.py [CASE...]"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import MODERN, NACRE, PREFIX, holds, lacks, main, text_of, until  # noqa: E402

RULES = json.dumps([{"ask": ["mkdir"], "because": "new places are for people"},
                    {"deny": ["touch"]}])


def begin(serve, version="2025-11-25", capabilities=None, **more):
    s = serve(NACRE_POLICY=RULES, **more)
    s.ask("initialize", {"protocolVersion": version, "clientInfo": {"name": "test", "version": "1"},
                         "capabilities": {"elicitation": {}} if capabilities is None
                         else capabilities})
    s.notify("notifications/initialized")
    return s


def asked_in(s, count=1):
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
        form = asked_in(s)
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
                ("accept", {"decision": "always"}, 'change "ask" in it')), 2):
            call = s.begin("bash", command="mkdir never")
            answer(s, asked_in(s, count), action, **content)
            result = s.answer(call)["result"]
            assert result["isError"], result
            holds(text_of(result), "nothing was started", says)
        assert not made(serve, "never")
        s.close()


def others_go_on_while_a_person_thinks(serve):
    s = begin(serve)
    call = s.begin("bash", command="mkdir later")
    form = asked_in(s)
    holds(s.text("bash", command="echo meanwhile"), "meanwhile")
    assert not s.answers(call)
    answer(s, form, decision="session")
    s.answer(call)
    call = s.begin("bash", command="mkdir later; echo again")
    answer(s, asked_in(s, 2), decision="session")
    s.answer(call)
    holds(s.text("bash", command="mkdir later; echo again"), "again")
    assert len(s.notifications("elicitation/create")) == 2


def an_answer_counts_once(serve):
    s = begin(serve)
    call = s.begin("bash", command="mkdir once")
    form = asked_in(s)
    answer(s, dict(form, id="nacre-ask-77"), decision="once")
    answer(s, dict(form, id=form["id"] + "x"), decision="once")
    answer(s, dict(form, id=1), decision="once")
    answer(s, form, decision="no")
    answer(s, form, decision="once")
    holds(text_of(s.answer(call)["result"]), "said no")
    call = s.begin("bash", command="mkdir once")
    again = asked_in(s, 2)
    assert again["id"] != form["id"]
    answer(s, form, decision="once")
    s.ask("ping")
    assert not s.answers(call) and not made(serve, "once")
    s.send({"jsonrpc": "2.0", "id": again["id"], "error": {"code": -1, "message": "no forms here"}})
    holds(text_of(s.answer(call)["result"]), 'change "ask" in it to "allow"')


def a_call_is_answered_before_the_person_is(serve):
    s = begin(serve, NACRE_WAIT="1s")

    def waits(command, **arguments):
        result = s.call("bash", command=command, env={"V": "w x"}, **arguments)
        assert not result["isError"], result
        holds(text_of(result), "Not started yet: the user is asked (question ")
        return text_of(result).split("(question ")[1].split(")")[0]

    slow = waits("mkdir slow; echo $V; cat; pwd", stdin="given", cwd="/tmp", name="late",
                 timeout=50)
    result = s.call("bash_output", id=slow)
    assert result["isError"]
    holds(text_of(result), f"the user has not answered question {slow} yet")
    assert not made(serve, "slow") and not os.path.exists("/tmp/slow")
    answer(s, asked_in(s), decision="no")
    holds(s.text("list_shells"), f"[Question {slow}: nothing was started: the user was asked, and "
          "said no: mkdir slow; echo $V; cat; pwd]")
    lacks(s.text("list_shells"), "Question")
    holds(text_of(s.call("bash_output", id=slow)), "said no")
    slow = waits("mkdir slow; echo $V; cat; pwd", stdin="given", cwd=serve.place, name="late")
    answer(s, asked_in(s, 2), decision="once")
    until(lambda: made(serve, "slow"), "it starts when the person has answered")
    until(lambda: "w x\ngiven" in s.text("bash_output", id=slow), "its question leads to it")
    holds(s.text("bash_output", id="late"), "exited")
    # Who answers elsewhere is heard as well; and what was told once is not told again.
    other = waits("mkdir other")
    subprocess.run([os.path.abspath(NACRE), "allow", other], env=s.surroundings, check=True,
                   stdout=subprocess.DEVNULL)
    until(lambda: made(serve, "other"), "it starts")
    told = s.text("bash", command="true")
    holds(told, f"[Question {other}: the user said yes; background shell ")
    lacks(s.text("bash", command="true"), "Question")
    # Withdrawn, an answer does nothing.
    gone = waits("mkdir gone")
    form = asked_in(s, 4)
    holds(s.text("kill_shell", id=gone), "the question was withdrawn")
    answer(s, form, decision="once")
    s.ask("ping")
    holds(text_of(s.call("bash_output", id=gone)), "was withdrawn")
    # Cancelled while it waits: likewise.
    call = s.begin("bash", command="mkdir gone", background=True)
    form = asked_in(s, 5)
    s.notify("notifications/cancelled", {"requestId": call})
    s.ask("ping")
    answer(s, form, decision="once")
    s.ask("ping")
    assert not s.answers(call) and not made(serve, "gone")
    # A client that leaves: nobody is left to want it.
    waits("mkdir gone")
    assert s.close() == 0 and not made(serve, "gone")


def a_client_that_leaves_allows_nothing(serve):
    s = begin(serve)
    s.begin("bash", command="mkdir gone")
    asked_in(s)
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
    s = serve(NACRE_POLICY=RULES)
    for capabilities in ({}, {"elicitation": {"url": {}}}):
        result = modern(s, "mkdir never", capabilities=capabilities)["result"]
        assert result["isError"] and result["resultType"] == "complete", result
        holds(text_of(result), 'change "ask" in it to "allow"', "or for this once: nacre allow ")
    assert not made(serve, "never")
    long = json.dumps([{"ask": ["mkdir", ["x" * 90, "y" * 90]], "because": "z\u00e9" * 60}])
    s = serve(home="home2", NACRE_POLICY=long)
    text = text_of(modern(s, "mkdir " + "x" * 90, capabilities={})["result"])
    holds(text, "; or for this once: nacre allow ", ", and then it is started again")


def modern(s, command, capabilities=None, state=None, responses=None, **arguments):
    """What a call of the modern era is answered."""
    capabilities = {"elicitation": {}} if capabilities is None else capabilities
    params = {"name": "bash", "arguments": dict(arguments, command=command),
              "_meta": dict(MODERN, **{PREFIX + "clientCapabilities": capabilities})}
    if state is not None:
        params["requestState"] = state
    if responses is not None:
        params["inputResponses"] = responses
    return s.answer(s.request("tools/call", params))


def chosen(decision, action="accept"):
    return {"decision": {"action": action, "content": {"decision": decision}}}


def a_modern_call_comes_again_with_the_answer(serve):
    s = serve(NACRE_POLICY=RULES)
    asked = modern(s, "mkdir a && echo done", description="a place")["result"]
    assert asked["resultType"] == "input_required" and "content" not in asked, asked
    form = asked["inputRequests"]["decision"]
    assert form["method"] == "elicitation/create", form
    assert form["params"]["requestedSchema"]["properties"]["decision"]["enum"] == [
        "once", "session", "no"], form
    holds(form["params"]["message"], "mkdir a && echo done", "The model says about it: a place")
    assert not made(serve, "a")
    state = asked["requestState"]
    result = modern(s, "mkdir a && echo done", state=state, responses=chosen("once"),
                    description="a place")["result"]
    holds(text_of(result), "done")
    assert made(serve, "a") and result["resultType"] == "complete"
    for decision, action, says in (("no", "accept", "said no"), ("once", "decline", "said no"),
                                   ("once", "cancel", "did not answer")):
        state = modern(s, "mkdir b")["result"]["requestState"]
        result = modern(s, "mkdir b", state=state, responses=chosen(decision, action))["result"]
        assert result["isError"], result
        holds(text_of(result), says)
    state = modern(s, "mkdir -p b")["result"]["requestState"]
    modern(s, "mkdir -p b", state=state, responses=chosen("session"))
    assert modern(s, "mkdir -p b")["result"]["resultType"] == "complete" and made(serve, "b")


def a_state_counts_once_for_what_it_was_given_for(serve):
    s = serve(NACRE_POLICY=RULES)
    state = modern(s, "mkdir a")["result"]["requestState"]
    other = modern(s, "mkdir b")["result"]["requestState"]

    def refused(says, command="mkdir a", **more):
        message = modern(s, command, **dict({"responses": chosen("once")}, **more))
        assert message.get("error", {}).get("code") == -32602, message
        holds(message["error"]["message"], says)

    def other_digit(digit):
        return "0" if digit != "0" else "1"

    for bad in (state[:-1] + other_digit(state[-1]), other_digit(state[0]) + state[1:], state[:-2], state + "00", "", "x" * len(state),
                other, state.upper(), "\u0000" * 10, "0" * len(state)):
        refused("none that was given out" if "\u0000" not in bad else "must be a string", state=bad)
    # The clock in it, a byte after the other.
    for at in range(32, 48):
        bad = state[:at] + other_digit(state[at]) + state[at + 1:]
        refused("none that was given out", state=bad)
    refused("none that was given out", command="mkdir c", state=state)
    refused("none that was given out", state=state, cwd="/")
    refused("none that was given out", state=state, timeout=5)
    refused("none that was given out", state=state, description="other words")
    refused("must be a string", state=7)
    again = serve(home="home2", NACRE_POLICY=RULES)
    message = modern(again, "mkdir a", state=state, responses=chosen("once"))
    assert message["error"]["code"] == -32602, message
    assert not made(serve, "a") and not made(serve, "c")
    assert modern(s, "mkdir a", state=state, responses=chosen("once"))["result"]["isError"] is False
    os.rmdir(os.path.join(serve.place, "a"))
    refused("was used before", state=state)
    assert not made(serve, "a")
    # What is no answer to what was asked is no yes.
    for responses in (None, {}, {"other": {"action": "accept"}}):
        state = modern(s, "mkdir a")["result"]["requestState"]
        message = modern(s, "mkdir a", state=state, responses=responses)
        assert message["error"]["code"] == -32602, message
    for response in ({}, {"action": 1}, {"action": "accept"}, [], "yes", {"action": "accept",
                     "content": {"decision": "always"}}):
        state = modern(s, "mkdir a")["result"]["requestState"]
        message = modern(s, "mkdir a", state=state, responses={"decision": response})
        assert message.get("result", {}).get("isError"), message
    assert not made(serve, "a")


def who_is_asked_by_a_form_can_answer_elsewhere(serve):
    s = serve(NACRE_POLICY=RULES)
    env = dict(s.surroundings)

    def nacre(*words):
        return subprocess.run([os.path.abspath(NACRE), *words], env=env, check=True,
                              stdout=subprocess.PIPE, encoding="utf-8").stdout

    def waiting():
        return json.loads(nacre("pending", "--json"))

    asked = modern(s, "mkdir a")["result"]
    one, = waiting()
    assert one["command"] == "mkdir a", one
    nacre("allow", one["id"])
    assert modern(s, "mkdir a")["result"]["isError"] is False and made(serve, "a")
    assert waiting() == []
    os.rmdir(os.path.join(serve.place, "a"))
    # The form is answered too late, but for a command that is asked about anew it is good.
    modern(s, "mkdir a", state=asked["requestState"], responses=chosen("no"))
    assert not made(serve, "a")
    # A client that can show nothing.
    text = text_of(modern(s, "mkdir c", capabilities={})["result"])
    id = text.split("nacre allow ")[1].split(",")[0]
    nacre("allow", id)
    assert modern(s, "mkdir c", capabilities={})["result"]["isError"] is False
    assert modern(s, "mkdir c", capabilities={})["result"]["isError"] and made(serve, "c")
    legacy = begin(serve, home="home")
    call = legacy.begin("bash", command="mkdir d")
    asked_form = asked_in(legacy)
    asked_id = [q["id"] for q in waiting() if q["command"] == "mkdir d"][0]
    nacre("allow", asked_id)
    assert legacy.answer(call)["result"]["isError"] is False and made(serve, "d")
    answer(legacy, asked_form, decision="no")
    legacy.ask("ping")
    log = nacre("log")
    holds(log, "once, by nacre allow", "question")


def what_is_denied_is_not_asked(serve):
    s = begin(serve)
    text = s.text("bash", command="mkdir x; touch y")
    holds(text, 'denied by rule {"deny": ["touch"]}')
    assert not s.notifications("elicitation/create") and not made(serve, "x")
    lacks(s.text("bash", command="echo fine"), "nothing was started")


def a_flood_of_questions_is_stopped(serve):
    s = begin(serve)
    calls = [s.begin("bash", command=f"mkdir f{n}") for n in range(70)]
    s.wait(lambda _: len(s.notifications("elicitation/create")) >= 64)
    for call in calls[64:]:
        result = s.answer(call)["result"]
        assert result["isError"], result
        holds(text_of(result), "64 questions wait for the user already")
    holds(s.text("bash", command="echo meanwhile"), "meanwhile")
    shown = subprocess.run([os.path.abspath(NACRE), "pending", "--json"], env=s.surroundings,
                           check=True, stdout=subprocess.PIPE).stdout
    assert len(json.loads(shown)) == 64
    forms = s.notifications("elicitation/create")
    for n in range(63, -1, -1):
        answer(s, forms[n], decision="once" if n == 7 else "no")
    for n in range(64):
        assert s.answer(calls[n])["result"]["isError"] == (n != 7)
    assert [n for n in os.listdir(serve.place) if n.startswith("f")] == ["f7"]


def what_turns_out_when_it_runs_is_asked_about(serve):
    s = begin(serve)
    call = s.begin("bash", command="X=mkdir; $X hidden && echo done", description="nothing much")
    form = asked_in(s)
    holds(form["params"]["message"], "mkdir hidden", "a program in shell ")
    lacks(form["params"]["message"], "nothing much")
    lacks(form["params"]["message"], "The model says")
    answer(s, form, decision="no")
    lacks(text_of(s.answer(call)["result"]), "done")
    # Also when its call was answered long ago.
    s.call("bash", command="X=mkdir; $X later; sleep 100", background=True)
    answer(s, asked_in(s, 2), decision="once")
    until(lambda: made(serve, "later"), "it goes on when the person has answered")
    assert not made(serve, "hidden")


def a_long_text_is_shown_whole(serve):
    s = begin(serve, NACRE_POLICY_GATE="off")
    long = "mkdir long; : " + "x\u0001y\u200b" * 60000 + "; touch end"
    call = s.begin("bash", command=long)
    form = asked_in(s)
    holds(form["params"]["message"], "x\\x01y\\u200bx", "; touch end\n")
    shown = subprocess.run([os.path.abspath(NACRE), "pending", "--json"], env=s.surroundings,
                           check=True, stdout=subprocess.PIPE).stdout
    assert len(json.loads(shown)[0]["command"]) > 600000
    answer(s, form, decision="no")
    assert s.answer(call)["result"]["isError"]
    result = s.call("bash", command="mkdir nul\0; true")
    assert result["isError"] and not s.notifications("elicitation/create")[1:], result
    # What is too long to be shown is not asked.
    result = s.call("bash", command="mkdir huge; : " + "\u0001" * 1100000)
    assert result["isError"] and not s.notifications("elicitation/create")[1:], result
    assert not made(serve, "huge") and not made(serve, "long")


def more_than_the_sandbox_gives_is_asked_for(serve):
    ws, out = os.path.join(serve.place, "ws"), tempfile.mkdtemp(prefix="nacre-out-", dir="/var/lib")
    config = os.path.join(serve.place, "config.json")
    os.mkdir(ws)
    with open(config, "w", encoding="utf-8") as file:
        file.write('{"sandbox": "workspace-write"}')
    s = serve(cwd=ws, NACRE_CONFIG=config)
    s.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
                         "clientInfo": {"name": "test", "version": "1"}})
    try:
        if s.call("bash", command="true")["isError"]:
            print("skipped more_than_the_sandbox_gives_is_asked_for: there is no sandbox here")
            return

        def wanting(count, decision, **permissions):
            call = s.begin("bash", command=f"touch {out}/x && echo made", permissions=permissions,
                           justification="it belongs\u202e there")
            form = asked_in(s, count)
            answer(s, form, decision=decision)
            return form["params"], text_of(s.answer(call)["result"])

        form, text = wanting(1, "no", write=[out])
        holds(form["message"], f"it wants more than its sandbox gives: to write {out}",
              "The model says about it: it belongs\\u202e there", f'"sandbox_write": ["{out}"]')
        holds(text, "said no")
        form, text = wanting(2, "always", full=True)
        assert form["requestedSchema"]["properties"]["decision"]["enum"] == ["once", "session", "no"]
        holds(text, '"sandbox": "off"')
        assert os.listdir(out) == []
        form, text = wanting(3, "always", write=[out])
        holds(text, "made")
        with open(config, encoding="utf-8") as file:
            assert json.load(file) == {"sandbox": "workspace-write", "sandbox_write": [out]}
        result = s.call("bash", command=f"touch {out}/x && echo made", permissions={"write": [out]})
        holds(text_of(result), "made")
    finally:
        shutil.rmtree(out)


CASES = [
    a_flood_of_questions_is_stopped, what_turns_out_when_it_runs_is_asked_about,
    a_long_text_is_shown_whole,
    more_than_the_sandbox_gives_is_asked_for,
    a_yes_starts_it_and_a_no_does_not, others_go_on_while_a_person_thinks, an_answer_counts_once,
    a_call_is_answered_before_the_person_is, a_client_that_leaves_allows_nothing,
    who_cannot_be_asked_is_told_what_to_do, what_is_denied_is_not_asked,
    a_modern_call_comes_again_with_the_answer, a_state_counts_once_for_what_it_was_given_for,
    who_is_asked_by_a_form_can_answer_elsewhere,
]

if __name__ == "__main__":
    main(CASES)
