#!/usr/bin/env python3
"""`nacre mcp` and keepers that are stopped: whatever waits for one of them, the other requests are
answered in the meantime. Each case asserts the order of answers, never a time.
usage: [NACRE=build/nacre] test_mcp_keepers.py [CASE...]"""
import ctypes
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import alive, holds, main, mark, processes, text_of, until  # noqa: E402

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000
PR_SET_CHILD_SUBREAPER = 36
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Held:
    """Holds a keeper, as a debugger does: SIGCONT does not make it go on, SIGKILL ends it."""

    def __init__(self, keeper):
        self.keeper = keeper
        self.trace(PTRACE_SEIZE)
        self.trace(PTRACE_INTERRUPT)
        os.waitpid(keeper, WALL)

    def trace(self, request):
        if libc.ptrace(request, self.keeper, None, None) < 0:
            raise OSError(ctypes.get_errno(), f"ptrace of the keeper {self.keeper}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.trace(PTRACE_DETACH)
        except ProcessLookupError:
            os.waitpid(self.keeper, WALL)


def keeper_of(id):
    """The keeper of a shell: what the processes with its mark descend from."""
    for pid in processes(f"NACRE_ID={id}", "environ"):
        with open(f"/proc/{pid}/stat", encoding="latin1") as file:
            parent = int(file.read().rpartition(") ")[2].split()[1])
        with open(f"/proc/{parent}/comm", encoding="ascii") as file:
            if file.read().strip() == "nacre-keeper":
                return parent
    raise AssertionError(f"shell {id} has no keeper")


def stop(keeper):
    os.kill(keeper, signal.SIGSTOP)
    with open(f"/proc/{keeper}/stat", encoding="latin1") as file:
        until(lambda: file.seek(0) == 0 and ") T " in file.read(), "it is stopped")


def stubborn(tag):
    """A command that SIGTERM does not end, with a process that is found by its mark."""
    return f"trap '' TERM; sleep {tag} & wait; wait; sleep {tag}"


def places(s, *ids):
    """Where the answers to these requests stand among all messages."""
    for id in ids:
        s.answer(id, 50)
    return [next(i for i, m in enumerate(s.messages) if "method" not in m and m.get("id") == id)
            for id in ids]


def shell_of(tag):
    """The id of the foreground shell with a mark, once its processes are there."""
    words = f"sleep\0{tag}"
    until(lambda: alive(words), "it runs")
    with open(f"/proc/{alive(words)[0]}/environ", encoding="latin1") as file:
        return next(e for e in file.read().split("\0") if e.startswith("NACRE_ID="))[9:]


# -- Kills ------------------------------------------------------------------------------------


def a_kill_holds_up_nobody(serve):
    tag = mark()
    s = serve()
    s.initialize()
    other = s.start(f"sleep {mark()}")
    id = s.start(stubborn(tag))
    with Held(keeper_of(id)):
        kill = s.begin("kill_shell", id=id, grace=1)
        ping, listed = s.request("ping"), s.begin("list_shells")
        ran, killed = s.begin("bash", command="echo meanwhile"), s.begin("kill_shell", id=other)
        at = places(s, kill, ping, listed, ran, killed)
        assert at[0] == max(at), s.messages
        holds(text_of(s.answer(listed)["result"]), id[:8])
        holds(text_of(s.answer(ran)["result"]), "meanwhile")
    holds(text_of(s.answer(kill)["result"]), f"killed background shell {id[:8]}", "0 survivors")
    assert not alive(tag)


def a_kill_that_was_cancelled_goes_on(serve):
    tag = mark()
    s = serve()
    s.initialize()
    id = s.start(stubborn(tag))
    with Held(keeper_of(id)):
        kill = s.begin("kill_shell", id=id, grace=1)
        s.ask("ping")
        s.notify("notifications/cancelled", {"requestId": kill})
        s.ask("ping")
        assert alive(tag)
        until(lambda: not alive(tag), "it was ended", 40)
    s.ask("ping")
    assert not s.answers(kill)


def a_cancelled_command_holds_up_nobody(serve):
    tag = mark()
    s = serve()
    s.initialize()
    call = s.begin("bash", command=stubborn(tag), timeout=100)
    with Held(keeper_of(shell_of(tag))):
        s.notify("notifications/cancelled", {"requestId": call})
        s.ask("ping")
        assert alive(tag), "the server was not heard of before the tree was ended"
        until(lambda: not alive(tag), "it was ended", 40)
    holds(s.text("bash", command="echo next"), "next")
    assert not s.answers(call)


def one_that_was_merely_stopped_is_killed(serve):
    tag = mark()
    s = serve()
    id = s.start(f"sleep {tag}")
    stop(keeper_of(id))
    holds(s.text("kill_shell", id=id), "its status is killed", "0 survivors")
    assert not alive(tag)


# -- Other words to a keeper ------------------------------------------------------------------


def a_yield_holds_up_nobody(serve):
    tag = mark()
    s = serve()
    s.initialize()
    call = s.begin("bash", command=stubborn(tag), yield_time_ms=2000)
    with Held(keeper_of(shell_of(tag))):
        # The first becomes a background shell, which its keeper has to note, while the second runs.
        other = s.begin("bash", command="sleep 2.2; echo done", timeout=100)
        at = places(s, call, other)
        assert at[0] == max(at), s.messages
    holds(text_of(s.answer(other)["result"]), "done")


def input_holds_up_nobody(serve):
    s = serve()
    s.initialize()
    id = s.start("cat", keep_stdin=True)
    with Held(keeper_of(id)):
        fed, ping = s.begin("bash_input", id=id, input="x\n"), s.request("ping")
        interrupted, listed = s.begin("bash_input", id=id, keys="C-c"), s.begin("list_shells")
        at = places(s, fed, interrupted, ping, listed)
        assert max(at[2:]) < min(at[:2]), s.messages
        assert s.answer(fed)["result"]["isError"] and s.answer(interrupted)["result"]["isError"]


def one_that_was_merely_stopped_takes_input(serve):
    s = serve()
    id = s.start("cat", keep_stdin=True)
    stop(keeper_of(id))
    holds(s.text("bash_input", id=id, input="heard\n"), "wrote 6 bytes")
    holds(s.text("bash_output", id=id, until="heard"), "heard")


def more_than_can_wait_hold_up_nobody(serve):
    s = serve()
    s.initialize()
    id = s.start(f"sleep {mark()}")
    with Held(keeper_of(id)):
        waits = [s.begin("bash_output", id=id, wait=4) for _ in range(80)]
        ping = s.request("ping")
        at = places(s, ping, *waits)
        assert at[0] == min(at), s.messages
    holds(s.text("kill_shell", id=id), "0 survivors")


def a_start_does_not_wait_for_the_keeper_before(serve):
    """Which makes the next one, and may be stopped by its own command before it does."""
    s = serve()
    rival = s.begin("bash", command="sleep 4")
    id = s.start(f"kill -STOP $PPID; sleep {mark()}")
    at = places(s, s.begin("bash", command="echo meanwhile"), rival)
    assert at[0] < at[1], s.messages
    holds(s.text("kill_shell", id=id), "0 survivors")


CASES = [
    a_kill_holds_up_nobody, a_kill_that_was_cancelled_goes_on,
    a_cancelled_command_holds_up_nobody, one_that_was_merely_stopped_is_killed,
    a_yield_holds_up_nobody, input_holds_up_nobody, one_that_was_merely_stopped_takes_input,
    more_than_can_wait_hold_up_nobody, a_start_does_not_wait_for_the_keeper_before,
]

if __name__ == "__main__":
    # Who has no parent any more is ours, and may be held by us everywhere.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    main(CASES)
