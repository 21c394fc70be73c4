"""What must be true after a deed, and after a storm. Nothing here believes nacre: what a command
did is read from its journal, who lives from /proc, what is kept from the directories."""
import json
import os
import re
import struct
import time

import traces
from hosts import SANITIZED, Finding, cli

GRACE = 0.3
SLACK = 10        # beyond deadline and grace
CLOSE = 8         # a session closes within this, whatever its shells did
LINE = 32
MEMORY_KIB = 6144  # a server may have more of it than after its first commands


class Journal:
    """What a command really did, as it wrote it down itself."""

    def __init__(self, path, mark):
        self.path, self.mark = path, mark
        with open(path, "w", encoding="ascii"):
            os.chmod(path, 0o666)  # a command may become another user

    def lines(self):
        try:
            with open(self.path, encoding="ascii") as file:
                return [line.split() for line in file]
        except FileNotFoundError:
            return []

    def begun(self):
        """(pid, start) of the command, or None."""
        return next(((int(w[1]), int(w[2])) for w in self.lines() if w[:1] == ["B"]), None)

    def id(self):
        """The id that its shell had in its environment."""
        return next((w[1] for w in self.lines() if w[:1] == ["I"] and len(w) > 1), "")

    def exit_code(self):
        """What its shell was about to return, or None if it did not come so far."""
        return next((int(w[1]) for w in self.lines() if w[:1] == ["X"]), None)

    def living(self):
        """Some process that it noted and that is not dead, the latest first; or None."""
        for word in reversed(self.lines()):
            process = traces.look_at(int(word[1])) if word[:1] == ["P"] and len(word) > 2 else None
            if process and process.start == int(word[2]) and not process.dead:
                return process
        return None

    def printed(self):
        """Bytes that were taken of stdout and stderr."""
        try:
            with open(f"{self.path}.{self.mark}", "rb") as file:
                return struct.unpack("2q", file.read(16))
        except (FileNotFoundError, struct.error):
            return (0, 0)


def await_true(condition, limit):
    bound = traces.Bound(limit)
    while not condition():
        if bound.over():
            return False
        time.sleep(0.03)
    return True


def word_of(record):
    """The outcome without its number, and without what lingers."""
    return re.split(r"[(,]", record["status"])[0]


# -- After a deed ----------------------------------------------------------------------------------


def check_outcome(deed, record):
    """It is a word that is allowed, and no exit code was invented."""
    word = word_of(record)
    if word not in deed.allowed:
        raise Finding(f"outcome: {record['status']}, but only {', '.join(sorted(deed.allowed))} may be")
    if word == "exited" and deed.journal.exit_code() != record["exit_code"]:
        raise Finding(f"lie: {record['status']}, but its journal says {deed.journal.exit_code()}")


def who_lives(place, deed):
    """Those of a deed that are not dead. All of /proc is looked at only if the journal knows of nobody."""
    noted = deed.journal.living()
    return [noted] if noted else traces.marked(place.root_pid, deed.mark)


def check_survivors(place, deed, limit=2.0):
    """Nobody with its mark is alive."""
    if await_true(lambda: not who_lives(place, deed), limit):
        return
    left = traces.marked(place.root_pid, deed.mark)
    if left:
        raise Finding(f"survivors: {len(left)} alive, such as {left[0]}")


def record_of(place, deed):
    """What any front end says of a run by its id."""
    answer = cli(place, "show", deed.id, "--json")
    if answer.status != 0:
        raise Finding(f"record: nacre show: {answer.err.strip()}")
    return json.loads(answer.out)


def lines_of(place, deed, stream, letter):
    """The numbers of its lines in a stream, in order, and the bytes of the whole."""
    answer = cli(place, "output", deed.id, "--raw", "--stream", stream)
    if answer.status != 0:
        raise Finding(f"output: nacre output: {answer.err.strip()}")
    return [int(n) for n in re.findall(rf"{deed.mark} +{letter} (\d{{16}})\r?\n", answer.out)]


def check_output(place, deed):
    """Each line that the command wrote is there once, in its place, or the gap says how many bytes it
    has. Who lost its keeper may lose what was in the pipes, and nothing before that."""
    record, printed = record_of(place, deed), deed.journal.printed()
    lost_end = "keeper" in deed.row.hurts or word_of(record) == "lost"
    for index, letter in enumerate("oe"):
        stream = "out" if letter == "o" or deed.row.tty else "err"  # a terminal has one
        name = "stdout" if stream == "out" else "stderr"
        omitted = record["omitted"][name]
        if record["bytes"][name] < printed[index] and not lost_end:
            raise Finding(f"lost: {name} has {record['bytes'][name]} bytes of {printed[index]}, and no gap")
        numbers = lines_of(place, deed, stream, letter)
        holes = sum(1 for a, b in zip([0, *numbers], numbers) if b != a + 1)
        if holes > (1 if omitted else 0):
            raise Finding(f"lost: {name} has {holes} holes, and {omitted} bytes are said to be omitted")
        if not omitted and not lost_end and len(numbers) < printed[index] // LINE:
            raise Finding(f"lost: {name} has {len(numbers)} lines of {printed[index] // LINE}")


# -- After a storm ---------------------------------------------------------------------------------


def ended_with_session(place):
    """The beginnings of the ids of what was ended because its session was: no news to a later one."""
    records = json.loads(cli(place, "list", "--all", "--json", bound=20).out or "[]")
    return {record["id"][:8] for record in records if record["reason"] == "owner"}


def check_completions(place, told):
    """told: (short id, repeated) of all servers. Each background shell of a server was told once, or an
    answer showed its end, or it was ended with its session; what was told more often says that it is
    repeated."""
    no_news = ended_with_session(place)
    known = {id[:8] for id in place.ids} | {deed.journal.id()[:8] for deed in place.deeds}
    for short, _ in told:
        if short not in known and short not in place.listed():
            yield f"forged: a completion of {short}, which is no shell"
    for deed in place.owed:
        short = deed.id[:8]
        plain = sum(1 for id, repeated in told if id == short and not repeated)
        total = sum(1 for id, _ in told if id == short)
        if plain > 1:
            yield f"told twice: the end of {short} ({deed}) {plain} times without being marked as repeated"
        if total == 0 and short not in place.shown and short not in no_news:
            yield f"never told: the end of {short} ({deed})"


def check_catalog(place):
    """What is listed is what there is."""
    answer = cli(place, "list", "--all", "--json", bound=20)
    if answer.status != 0:
        yield f"catalog: nacre list: {answer.err.strip()}"
        return
    records = json.loads(answer.out)
    listed, there = {record["id"] for record in records}, place.run_directories()
    damaged = {deed.journal.id() for deed in place.deeds if "record" in deed.row.hurts}
    if (there ^ listed) - damaged:
        yield (f"catalog: not listed {short_ids(there - listed - damaged)},"
               f" without directory {short_ids(listed - there - damaged)}")
    alive = [r["id"] for r in records if r["status"] == "running" or "lingering" in r["status"]]
    alive = [id for id in alive if id not in damaged and id not in place.beyond]
    if alive:
        yield f"catalog: {short_ids(alive)} are said to be alive after the end of everything"


def short_ids(ids):
    return " ".join(sorted(id[:8] for id in ids)) or "none"


def check_server(server, fds, memory):
    """It has what it had after its first commands; the socket of a keeper that is not wanted goes with it."""
    await_true(lambda: len(traces.fds_of(server.process.pid)) <= len(fds), 5)
    now = traces.fds_of(server.process.pid)
    if len(now) > len(fds):
        new = sorted(now[name] for name in now if name not in fds)
        yield f"leak: server {server.name} has {len(now)} descriptors, and had {len(fds)}: {new[:6]}"
    grown = traces.memory_of(server.process.pid) - memory
    if grown > MEMORY_KIB and not SANITIZED:
        yield f"leak: server {server.name} has {grown} KiB more of memory"


def whose_is(place, process):
    """The deed that a process belongs to, by its mark or that of somebody below it."""
    for one in (process, *traces.descendants(process.pid)):
        words = set(one.cmdline.split(" "))
        for deed in [*place.deeds, *place.trial_deeds]:
            if deed.mark in words:
                return deed
    return None


def check_nothing_left(place, spared, limit=4.0):
    """No process below us but those spared, and no leaf."""
    last = {}

    def left():
        last.clear()
        for process in traces.descendants(place.root_pid):
            deed = whose_is(place, process)
            if process.pid not in spared and not traces.is_pace(process) and not (deed and deed.out_of_reach):
                last[process] = deed
        return last

    await_true(lambda: not left(), limit)
    by_deed = {}
    for process, deed in last.items():
        by_deed.setdefault(deed, []).append(process)
    for deed, processes in by_deed.items():
        yield f"survivors: {len(processes)} of {deed or 'nobody'}: {'; '.join(map(str, processes[:4]))}"
    if place.cgroup and not by_deed and not await_true(lambda: not place.leaves(), 2.0):
        yield f"leaves: {', '.join(place.leaves())[:200]}"


def check_precious(place):
    with open(place.precious, "rb") as file:
        if file.read() != place.precious_bytes:
            yield "link followed: the file that links in run directories led to was written to"
    if os.stat(place.precious).st_mode & 0o7777 != 0o640:
        yield "link followed: the file that links in run directories led to has other rights now"
