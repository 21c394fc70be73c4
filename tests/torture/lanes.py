"""Who does the deeds of a storm: lanes, each a thread that does one deed after another through its
front end; a witness, whose harmless commands must come out right whatever others do; and a looker,
who lists, reads and searches meanwhile."""
import json
import os
import re
import secrets
import signal
import threading
import time

import attacks
import model
import traces
from hosts import PROGRAM, Finding, Gone, Mcp, begin_cli, cli, end_cli
from model import GRACE, SLACK
from place import VICTIM

EXIT_TIMEOUT = 15
WAITS = 5  # for a command to begin


class Deed:
    """One row of the table, through one way, joined with one deed from outside or none."""

    def __init__(self, place, number, row, way, outside, chance):
        self.place, self.number, self.row, self.way, self.outside = place, number, row, way, outside
        self.moment, self.ending = chance.uniform(0, 0.5), chance.choice(("wait", "kill", "leave"))
        self.is_removed = chance.choice((False, False, False, True))
        self.mark = f"m{number:03d}{secrets.token_hex(4)}"[:12]
        self.journal = model.Journal(os.path.join(place.journals, str(number)), self.mark)
        self.id, self.lane, self.verdict = "", "", ""
        self.timeout = row.timeout or EXIT_TIMEOUT
        self.bound = self.timeout + GRACE + SLACK
        self.allowed = set(row.outcomes)
        if outside:
            self.allowed |= attacks.DEEDS[outside] or attacks.words("killed cancelled signaled")
        in_background = way in ("bg", "start")
        is_killed = outside in ("kill", "kill-twice", "cancel") or (in_background and self.ending == "kill")
        if is_killed:
            self.allowed.add("killed")
        if "deaf" in row.hurts and (is_killed or in_background):
            self.allowed.add("lost")

    @property
    def keeper_dies(self):
        return "keeper" in self.row.hurts or self.outside in ("keeper-sigkill", "keeper-stop-kill")

    @property
    def out_of_reach(self):
        """Whether containment.md says that somebody of it cannot be found."""
        held = self.place.tier == "cgroup"
        if self.row.reach == "cgroup" and not held:
            return True
        fades = attacks.fades(self.row)
        return self.keeper_dies and (fades == "left" or (fades == "wiped" and not held))

    @property
    def text(self):
        place, victim = self.place, f"{VICTIM} {self.journal.path} {self.mark}"
        body = self.row.text
        values = {"v": victim, "journal": self.journal.path, "precious": place.precious, "nacre": PROGRAM,
                  "outside": place.outside_init, "cgroup": place.cgroup.path if place.cgroup else ""}
        for name, value in values.items():
            body = body.replace("{" + name + "}", str(value))
        trap = "" if self.row.raw else f"trap 'echo \"X $?\" >>{self.journal.path}' EXIT; "
        return f"{trap}R=$NACRE_HOME/runs/$NACRE_ID; {victim} up\n{body}\n"

    def keeper(self):
        begun = self.journal.begun()
        main = begun and traces.look_at(begun[0])
        keeper = main and traces.look_at(main.parent)
        return keeper if keeper and keeper.comm.startswith("nacre-keeper") else None

    def await_begun(self):
        model.await_true(self.journal.begun, WAITS)
        time.sleep(self.moment)

    def __str__(self):
        ending = f" {self.ending}" if self.way in ("bg", "start") else ""
        outside = f" + {self.outside}@{self.moment:.2f}" if self.outside else ""
        return f"{self.row.name} ({self.way}{ending}{outside})"


class Lane(threading.Thread):
    def __init__(self, place, name, holder):
        super().__init__(daemon=True)
        self.place, self.label, self.holder, self.deeds = place, name, holder, []

    def run(self):
        for deed in self.deeds:
            deed.lane, began = self.label, time.monotonic()
            try:
                deed.verdict = "under way"
                self.do(deed)
                deed.verdict = "ok"
            except Finding as finding:
                deed.verdict = "FOUND"
                self.place.find(deed, str(finding))
            except Gone as gone:
                self.orphaned(deed, gone)
            except Exception as mistake:  # one deed that the suite cannot read is no reason to stop
                deed.verdict = "FOUND"
                self.place.find(deed, f"answer: {type(mistake).__name__}: {mistake}")
            deed.verdict += f" {time.monotonic() - began:.1f} s"

    def orphaned(self, deed, gone):
        """Its server was killed by a deed of another lane; or it died."""
        if not deed.server.condemned:
            deed.verdict = "FOUND"
            deed.server.condemned = True
            deed.server.process.wait()
            self.place.find(deed, f"crash: {gone}, status {deed.server.process.returncode}")
            return
        deed.verdict = "orphaned"
        if not deed.out_of_reach:
            self.place.guard(deed, model.check_survivors, self.place, deed, GRACE + SLACK)

    def do(self, deed):
        deed.server = self.holder.get() if self.holder else None
        {"fg": self.do_fg, "bg": self.do_bg, "run": self.do_run, "start": self.do_start}[deed.way](deed)

    # -- Ways --------------------------------------------------------------------------------------

    def arguments_of(self, deed):
        arguments = dict(deed.row.arguments, command=deed.text, timeout=deed.timeout)
        return dict(arguments, tty=True) if deed.row.tty else arguments

    def do_fg(self, deed):
        arguments = self.arguments_of(deed)
        arguments["yield"] = deed.bound
        request = deed.server.begin("bash", **arguments)
        if deed.outside:
            deed.await_begun()
            self.from_outside(deed, request)
        if deed.outside == "cancel" and deed.journal.exit_code() is not None:
            return None  # it was answered before it was cancelled: what it left lives as long as the session
        if deed.outside in ("cancel", "host-sigkill"):
            return self.nobody_lives(deed, GRACE + SLACK)
        message = deed.server.await_answer(request, deed.bound, "bash", deed.row.stretched)
        self.judge(deed, self.record_in(message.get("result") or {}))
        return None

    def do_bg(self, deed):
        arguments = dict(self.arguments_of(deed), background=True)
        record = self.record_in(deed.server.tool("bash", **arguments))
        self.note_id(deed, record)
        if record["status"] == "running":
            self.place.owed.append(deed)
        else:
            self.place.shown.add(deed.id[:8])
        if deed.outside:
            deed.await_begun()
            self.from_outside(deed, None)
        if deed.outside == "host-sigkill":
            return self.nobody_lives(deed, GRACE + SLACK)
        if deed.ending == "leave":
            return self.left_alone(deed)
        if deed.ending == "kill":
            time.sleep(deed.moment)
            result = deed.server.tool("kill_shell", GRACE + SLACK, id=deed.id)
            if result["isError"] and not deed.out_of_reach:
                raise Finding(f"kill: {text_of(result)[:300]}")
            if not result["isError"]:
                self.place.shown.add(deed.id[:8])  # the answer says how it ended
        self.judge(deed, self.await_end(deed))
        return None

    def await_end(self, deed):
        bound = traces.Bound(deed.bound, deed.row.stretched)
        while True:
            result = deed.server.tool("bash_output", 2 + SLACK, id=deed.id, wait=1)
            record = self.record_in(result)
            if record["status"] != "running":
                self.place.shown.add(deed.id[:8])
                return record
            if bound.over():
                raise Finding(f"hang: still running {deed.bound:.1f} s after its start,"
                              f" timeout {deed.timeout} s")

    def left_alone(self, deed):
        """It ends by itself. Only time is awaited here: nobody looks. The deadline ends with the command: what
        one leaves that got SIGKILL lives on, as what any other leaves."""
        if deed.outside == "main-sigkill":
            return
        if "deaf" not in deed.row.hurts and "keeper" not in deed.row.name and not deed.keeper_dies:
            ended = model.await_true(lambda: deed.journal.exit_code() is not None or
                                     not model.who_lives(self.place, deed), deed.bound)
            if not ended:
                raise Finding(f"survivors: {model.who_lives(self.place, deed)[0]} after {deed.bound:.1f} s")

    def do_run(self, deed):
        line = ("run", "--json", "--timeout", str(deed.timeout), "--", deed.text)
        process = begin_cli(self.place, *line)
        if deed.outside:
            deed.await_begun()
            self.from_outside(deed, process)
        ends = deed.outside in ("host-sigkill", "cancel")
        answer = end_cli(process, ("run", str(deed)), deed.bound, ends, deed.row.stretched)
        if ends:
            return self.nobody_lives(deed, GRACE + SLACK)
        if not answer.out.startswith("{"):
            raise Finding(f"answer: status {answer.status}, {answer.err.strip()[:300] or 'and no sentence'}")
        record = json.loads(answer.out)
        word = model.word_of(record)
        if word == "exited" and answer.status != record["exit_code"]:
            raise Finding(f"lie: {record['status']}, but nacre run returned {answer.status}")
        if word != "exited" and answer.status == 0:
            raise Finding(f"lie: {record['status']}, but nacre run returned 0")
        if word == "timed_out" and answer.status != 124:
            raise Finding(f"lie: timed out, but nacre run returned {answer.status}")
        self.judge(deed, dict(record, status=word))
        return None

    def do_start(self, deed):
        how = ("--tty",) if deed.row.tty else ()
        answer = cli(self.place, "start", *how, "--timeout", str(deed.timeout), "--", deed.text)
        if answer.status != 0:
            raise Finding(f"answer: nacre start: {answer.err.strip()[:300]}")
        deed.id = answer.out.strip()
        self.place.ids.add(deed.id)
        self.place.kept.append(deed)
        if deed.outside:
            deed.await_begun()
            self.from_outside(deed, None)
        if deed.ending == "leave":
            return self.left_alone(deed)
        if deed.ending == "kill":
            time.sleep(deed.moment)
            answer = cli(self.place, "kill", deed.id, bound=GRACE + SLACK)
        else:
            answer = self.await_kept(deed)
        if "record" in deed.row.hurts:  # who did not start it may know little of it; it can be ended
            cli(self.place, "kill", deed.id, bound=GRACE + SLACK)
            return self.nobody_lives(deed, deed.bound)
        if answer.status != 0 and not deed.out_of_reach:
            said = (answer.err or answer.out).strip()
            raise Finding(f"{deed.ending}: status {answer.status}, {said[:200]}")
        self.judge(deed, model.record_of(self.place, deed))
        return None

    def await_kept(self, deed):
        """It is over within its bound."""
        bound = traces.Bound(deed.bound, deed.row.stretched)
        while True:
            limit = str(max(bound.left(), 1))
            answer = cli(self.place, "wait", deed.id, "--timeout", limit, bound=bound.left() + SLACK)
            if answer.status != 124 or bound.over():
                return answer

    # -- Judging -----------------------------------------------------------------------------------

    def note_id(self, deed, record):
        deed.id = record["id"]
        self.place.ids.add(deed.id)

    def record_in(self, result):
        record = result.get("_meta", {}).get("nacre/run")
        if not record:
            last = {"content": result.get("content", [])[-1:]}
            raise Finding(f"answer: {text_of(last)[:300] or result}")
        return record

    def judge(self, deed, record):
        self.note_id(deed, record)
        model.check_outcome(deed, record)
        lingers = "lingering" in record["status"]
        if not lingers:
            self.nobody_lives(deed, 2)
        elif deed.server:
            self.place.lingering.append(deed)
        if deed.row.hurts & {"output", "record"}:
            return
        if lingers or deed.way in ("bg", "start"):
            self.place.deferred.append(deed)
            return
        model.check_output(self.place, deed)
        if deed.is_removed:
            self.remove(deed)

    def remove(self, deed):
        """`nacre rm` of what has ended, while others look."""
        answer = cli(self.place, "rm", deed.id)
        if answer.status != 0:
            raise Finding(f"rm: {answer.err.strip()}")
        if deed.id in self.place.run_directories():
            raise Finding("rm: its directory is still there")

    def nobody_lives(self, deed, limit):
        if deed.keeper_dies:
            cli(self.place, "list", bound=SLACK)  # the next look, which sweeps
        if deed.out_of_reach:
            self.place.beyond.add(deed.id)
        else:
            model.check_survivors(self.place, deed, limit)

    # -- Deeds from outside ------------------------------------------------------------------------

    def from_outside(self, deed, handle):
        getattr(self, "out_" + deed.outside.replace("-", "_"))(deed, handle)

    def out_kill(self, deed, _):
        id = deed.journal.id()
        if id:
            cli(self.place, "kill", id, bound=GRACE + SLACK)

    def out_kill_twice(self, deed, _):
        id = deed.journal.id()
        if id:
            both = [begin_cli(self.place, "kill", id) for _ in range(2)]
            for process in both:
                end_cli(process, ("kill", id), GRACE + SLACK)

    def out_cancel(self, deed, handle):
        if deed.way == "fg":
            deed.server.notify("notifications/cancelled", {"requestId": handle})
        elif deed.way == "run":
            handle.send_signal(signal.SIGINT)
        else:
            self.out_kill(deed, handle)

    def to_keeper(self, deed, number):
        keeper = deed.keeper()
        if keeper:
            traces.send(keeper, number)

    def out_keeper_sigkill(self, deed, _):
        self.to_keeper(deed, signal.SIGKILL)

    def out_keeper_sigstop(self, deed, _):
        self.to_keeper(deed, signal.SIGSTOP)

    def out_keeper_stop_kill(self, deed, _):
        keeper = deed.keeper()
        if keeper:
            traces.send(keeper, signal.SIGSTOP)
            time.sleep(0.2)
            traces.send(keeper, signal.SIGKILL)

    def out_main_sigkill(self, deed, _):
        begun = deed.journal.begun()
        main = begun and traces.look_at(begun[0])
        if main and main.start == begun[1]:
            traces.send(main, signal.SIGKILL)

    def out_host_sigkill(self, deed, handle):
        if deed.server:
            deed.server.die()
        elif handle:
            handle.kill()

    def out_host_sigstop(self, deed, handle):
        process = deed.server.process if deed.server else handle
        if process:
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.3 + deed.moment)
            process.send_signal(signal.SIGCONT)

    def out_looked_at(self, deed, _):
        id = deed.journal.id() or "0000"
        recall = ("recall", "--id", id, "--lines", "1-3")
        for line in (("show", id), ("output", id), ("list",), recall, ("gc",)):
            cli(self.place, *line)


def text_of(result):
    return "".join(item.get("text", "") for item in result.get("content", []))


class Other(threading.Thread):
    """Goes round until it is stopped."""

    server = None

    def __init__(self, place, name):
        super().__init__(daemon=True)
        self.place, self.label, self.round, self.over = place, name, 0, threading.Event()

    def run(self):
        while not self.over.is_set():
            try:
                self.go_round()
            except (Finding, Gone) as finding:
                self.place.find(self.label, str(finding))
                if isinstance(finding, Gone):
                    return
            except Exception as mistake:
                self.place.find(self.label, f"answer: {type(mistake).__name__}: {mistake}")
            self.round += 1
            self.over.wait(0.25)

    def stop(self):
        self.over.set()
        self.join()

    def check_again(self):
        pass


class Witness(Other):
    """Harmless commands on the same home. Their output is looked at again when all is over."""

    def __init__(self, place, name):
        super().__init__(place, name)
        self.server, self.done = Mcp(place, "witness"), []
        self.row = attacks.Row("witness", "{v} print 30 20 0; exit 5")

    def go_round(self):
        deed = Deed(self.place, 900 + self.round, self.row, "fg", None, Steady())
        result = self.server.tool("bash", deed.bound, command=deed.text, timeout=60, **{"yield": 60})
        record = result.get("_meta", {}).get("nacre/run")
        if not record:
            raise Finding(f"a harmless command: {text_of(result)[:300]}")
        deed.id = record["id"]
        self.place.ids.add(deed.id)
        model.check_outcome(deed, record)
        self.done.append(deed)

    def check_again(self):
        for deed in self.done[:5] + self.done[-5:]:
            self.place.guard(f"witness {deed.id[:8]}", model.check_output, self.place, deed)
        for deed in self.done[:1]:
            answer = self.place.guard("recall", cli, self.place, "recall", "-F", deed.mark, bound=30)
            found = len(re.findall(rf"{deed.mark} +[oe] ", answer.out)) if answer else 0
            if found != 50:
                said = answer.err[:200] if answer else ""
                self.place.find("recall", f"lost: {found} of 50 lines of a witness; {said}")


class Steady:
    """No chance."""

    def uniform(self, low, _):
        return low

    def choice(self, items):
        return items[0]


class Looker(Other):
    """Reads everything that there is, damaged or not: it may be told so, and must not wait or die."""

    LINES = (("list",), ("list", "--all", "--json"), ("sessions", "--all"), ("gc",),
             ("recall", "-F", "no such line"), ("list", "--all"), ("sessions", "--json"),
             ("recall", "witness"))

    def __init__(self, place, name):
        super().__init__(place, name)
        self.said = set()

    def go_round(self):
        line = self.LINES[self.round % len(self.LINES)]
        answer = cli(self.place, *line, bound=20)
        failed = answer.status == 1 and answer.err.strip() and "could not be searched" not in answer.err
        if failed and line[0] not in self.said:
            self.said.add(line[0])
            raise Finding(f"a look at all of the home: nacre {' '.join(line)}:"
                          f" {answer.err.strip()[:200]}")
        ids = sorted(self.place.run_directories())
        if ids:
            id = ids[self.round * 7 % len(ids)]
            cli(self.place, "show", id)
            cli(self.place, "output", id)
            cli(self.place, "screen", id, bound=20)
