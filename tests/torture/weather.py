"""Trials beside the storm, each in a home of its own: an unlucky machine (no disk, no inodes, no
memory, no descriptors, another clock, no home any more), and many shells at once that attacked
their keepers. A trial is a function of a place; what it finds it raises."""
import glob
import json
import os
import random
import signal
import subprocess
import threading
import time

import model
import traces
from attacks import Row, has, words
from hosts import SANITIZED, Finding, Gone, Mcp, cli
from lanes import Deed, Steady, text_of
from model import CLOSE, GRACE, SLACK
from place import VICTIM, Place

TRIALS = {}


def trial(needs="", long=False, alone=False):
    """alone: when nothing else goes on any more."""
    def note(function):
        function.needs, function.long, function.alone = words(needs), long, alone
        TRIALS[function.__name__] = function
        return function
    return note


# -- What trials are made of -----------------------------------------------------------------------


def command(place, text, **more):
    """A deed of this place that no lane does."""
    deed = Deed(place, len(place.deeds) + 2000, Row("trial", text, **more), "fg", None, Steady())
    place.deeds.append(deed)
    return deed


def says(result, wanted):
    if result.get("isError") or wanted not in text_of(result):
        raise Finding(f"answer: {wanted!r} is not in {text_of(result)[:400]!r}")


def ends_well(place, server, limit=CLOSE):
    seconds, status = server.stop(limit)
    if status is None:
        server.die()
        raise Finding(f"hang: the server did not close within {limit} s")
    if status != 0:
        raise Finding(f"crash: the server ended with {status}, after {seconds:.1f} s")
    nobody_lives(place)


def nobody_lives(place, limit=3):
    for deed in place.deeds:
        model.check_survivors(place, deed, limit)


def nothing_unlisted(place):
    for text in model.check_catalog(place):
        raise Finding(text)


# -- Shells that attacked their keepers ------------------------------------------------------------

ATTACKERS = (
    "kill -STOP $PPID; ({v} -sdt sit); {v} -t sit",
    "({v} -st tracer $PPID &); ({v} -sdt sit); {v} -t sit",
    "rm -rf $R; ({v} -sdt sit); exec {v} -t sit",
    "rm -f $R/state $R/ctl; mkfifo $R/state $R/ctl; kill -STOP $PPID; {v} -t sit",
    "mkfifo $R/pipestatus; ({v} -sdt sit); echo X 0 >>{journal} | cat",
    "({v} -sdt stopper $PPID); ({v} -sdt sit); {v} -t sit",
    "mv $R $R.away; {v} -t bomb 30",
    "head -c 4096 /dev/urandom >$R/state; ({v} -sd rabbit 500); {v} -t sit",
)


def start_attackers(place, server):
    deeds = [command(place, text, raw=True) for text in ATTACKERS]
    for deed in deeds:
        server.tool("bash", command=deed.text, background=True)
    for deed in deeds:
        if not model.await_true(deed.journal.begun, 5):
            raise Finding(f"answer: a shell did not begin: {deed.row.text}")
    time.sleep(0.3)
    return deeds


@trial()
def a_session_closes_whatever_its_shells_did(place):
    server = Mcp(place, "trial")
    start_attackers(place, server)
    ends_well(place, server)


@trial()
def the_next_look_ends_what_a_dead_owner_left(place):
    server = Mcp(place, "trial")
    start_attackers(place, server)
    server.die()
    for verb in ("list", "sessions", "gc"):
        cli(place, verb, bound=GRACE + SLACK)
    nobody_lives(place, GRACE + SLACK)


@trial()
def shells_that_lost_their_directory_give_their_places_back(place):
    server = Mcp(place, "trial", NACRE_SHELLS="4")
    for _ in range(4):
        deed = command(place, "rm -rf $R; exec {v} -t sit")
        record = server.tool("bash", command=deed.text, background=True).get("_meta", {}).get("nacre/run")
        model.await_true(deed.journal.begun, 5)
        server.tool("kill_shell", GRACE + SLACK, id=record["id"] if record else deed.journal.id())
        model.check_survivors(place, deed)
    says(server.tool("bash", command="echo fifth", background=True), "fifth")
    ends_well(place, server)


@trial()
def a_shell_that_adopted_itself_ends_with_its_session(place):
    server = Mcp(place, "trial")
    for text in ("{nacre} adopt $NACRE_ID; ({v} -sdt sit); {v} -t sit",
                 "{nacre} start -- '{v} -sdt sit'; {v} sit",
                 "setsid {nacre} adopt $NACRE_ID; env -u NACRE_ID {nacre} adopt $NACRE_ID; {v} sit"):
        deed = command(place, text)
        server.tool("bash", command=deed.text, background=True)
        if not model.await_true(lambda: model.who_lives(place, deed), 5):
            raise Finding("answer: a shell did not begin")
    ends_well(place, server)


# Whoever writes to the catalog has this byte; a program that waits for it gives up.
HOLDS = "({v} -sdt holder $NACRE_HOME/catalog.db-shm 120); "


def await_held(deed):
    if not model.await_true(lambda: any(w[:1] == ["held"] for w in deed.journal.lines()), 5):
        raise Finding("suite: the catalog could not be held")


@trial()
def a_command_holds_the_catalog(place):
    """Others go on, and its session and the next look end it all the same."""
    server, other = Mcp(place, "trial"), Mcp(place, "other")
    says(server.tool("bash", command="echo before"), "before")
    cli(place, "list", "--all")  # which makes it, if nobody had a use for it yet
    deeds = [command(place, HOLDS + rest) for rest in ("{v} -t sit", "kill -STOP $PPID; {v} -t sit")]
    server.tool("bash", command=deeds[0].text, background=True)
    await_held(deeds[0])
    says(other.tool("bash", command="echo during"), "during")
    id = cli(place, "start", "--timeout", "1", "--", "kill -STOP $PPID; sleep 60").out.strip()
    cli(place, "list")
    server.tool("kill_shell", GRACE + SLACK, id=deeds[0].journal.id())
    nobody_lives(place)
    other.tool("bash", command=deeds[1].text, background=True)
    await_held(deeds[1])
    other.die()
    for verb in ("list", "sessions", "gc"):
        cli(place, verb, bound=GRACE + SLACK)
    nobody_lives(place, GRACE + SLACK)
    if cli(place, "wait", id, "--timeout", "10", bound=20).status != 0:
        raise Finding("hang: a shell of those days did not end")
    ends_well(place, server)
    nothing_unlisted(place)


def lost_from_sight(place, damage):
    """A kept shell that no file and no row lead to, and whose keeper does nothing."""
    says(cli_run(place, "echo before"), "before")
    holder = command(place, HOLDS + "{v} -t sit")
    held = cli(place, "start", "--", holder.text).out.strip()
    await_held(holder)
    deed = command(place, damage + "; kill -STOP $PPID; ({v} -sdt sit); {v} -t sit")
    cli(place, "start", "--timeout", "1", "--", deed.text)
    if not model.await_true(deed.journal.begun, 5):
        raise Finding("answer: a shell did not begin")
    cli(place, "kill", held, bound=GRACE + SLACK)
    time.sleep(1.5)
    cli(place, "list", bound=GRACE + SLACK)
    nobody_lives(place)


def cli_run(place, text):
    answer = cli(place, "run", "--", text)
    return {"content": [{"text": answer.out}], "isError": answer.status != 0}


@trial()
def a_kept_shell_moved_its_directory_before_anybody_knew_of_it(place):
    lost_from_sight(place, "mv $R $R.away")


@trial()
def a_kept_shell_removed_the_home(place):
    lost_from_sight(place, "rm -rf $NACRE_HOME")


# -- The home --------------------------------------------------------------------------------------


def vanish(place, how):
    """A home that is gone while shells run; afterwards everything goes on in a new one."""
    server = Mcp(place, "trial")
    deeds = [command(place, "({v} -sdt sit); {v} -t sit") for _ in range(3)]
    for deed in deeds:
        server.tool("bash", command=deed.text, background=True)
        model.await_true(deed.journal.begun, 5)
    subprocess.run(["sh", "-c", how, place.home], check=True)
    says(server.tool("bash", command="echo first"), "first")
    says(server.tool("bash", command="echo second", background=True), "second")
    for deed in deeds:
        server.tool("kill_shell", GRACE + SLACK, id=deed.journal.id())
        model.check_survivors(place, deed)
    if cli(place, "run", "--", "echo third").out != "third\n":
        raise Finding("answer: nacre run does not work after the home was gone")
    ends_well(place, server)


@trial()
def the_home_was_removed(place):
    vanish(place, "rm -rf $0")


@trial()
def the_home_was_moved(place):
    vanish(place, "mv $0 $0.away")


@trial()
def the_runs_were_removed(place):
    vanish(place, "rm -rf $0/runs")


@trial()
def the_catalog_was_damaged(place):
    server = Mcp(place, "trial")
    server.tool("bash", command="echo one", background=True)
    for how in ("head -c 9000 /dev/urandom >$0/catalog.db", "rm -f $0/catalog.db*",
                "mkfifo $0/x; mv $0/x $0/catalog.db", ": >$0/catalog.db",
                "rm -f $0/catalog.lock; mkfifo $0/catalog.lock"):
        subprocess.run(["sh", "-c", how, place.home], check=True)
        says(server.tool("bash", command="echo two"), "two")
        cli(place, "list", "--all")
        away = "rm -f $0/catalog.lock; test -f $0/catalog.db || rm -f $0/catalog.db"
        subprocess.run(["sh", "-c", away, place.home], check=True)
    ends_well(place, server)
    nothing_unlisted(place)


@trial()
def the_quota_of_the_home_counts_what_is_on_the_disk(place):
    server = Mcp(place, "trial", NACRE_HOME_QUOTA="1MiB")
    large = {"LARGE": "x" * 60000}
    for _ in range(40):
        server.tool("bash", command=":", env=large)
    ends_well(place, server)
    cli(place, "gc", env={"NACRE_HOME_QUOTA": "1MiB"})
    du = subprocess.run(["du", "-sk", place.home + "/runs"], capture_output=True, check=True)
    used = int(du.stdout.split()[0])
    if used > 1536:
        raise Finding(f"quota: {used} KiB on the disk under a quota of 1024 KiB")


class Mounted:
    """A small file system at the home, which only front ends in its mount namespace see."""

    def __init__(self, place, options):
        os.mkdir(place.home)
        self.deed = command(place, "")
        script = f'mount -t tmpfs -o mode=700,{options} storm "$0" && exec "$@"'
        self.process = subprocess.Popen(["unshare", "-m", "sh", "-c", script, place.home, VICTIM,
                                         self.deed.journal.path, "holder", "sit"])
        if not model.await_true(self.deed.journal.lines, 5):
            raise Finding("suite: the small file system could not be mounted")
        self.prefix = ["nsenter", "-t", str(self.process.pid), "-m", "--"]
        self.home = f"/proc/{self.process.pid}/root{place.home}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def full(place, options, fill, free):
    with Mounted(place, options) as disk:
        server = Mcp(place, "trial", prefix=disk.prefix)
        says(server.tool("bash", command="echo before"), "before")
        fill(disk.home)
        says(server.tool("bash", command="echo during"), "during")
        cli(place, "list", prefix=disk.prefix)
        if "also" not in cli(place, "run", "--", "echo also", prefix=disk.prefix).out:
            raise Finding("answer: nacre run does not work in a full home")
        says(server.tool("bash", command=f"{free.replace('HOME', place.home)}; echo freed"), "freed")
        says(server.tool("bash", command="echo after"), "after")
        ends_well(place, server)
        nothing_in_memory(place, disk)


def nothing_in_memory(place, disk):
    """What is kept in a spare goes with its runs; nobody else would clear it away."""
    ids = [record["id"] for record in json.loads(cli(place, "list", "--all", "--json", prefix=disk.prefix).out)]
    for id in ids:
        cli(place, "rm", id, prefix=disk.prefix)
    left = [name for name in glob.glob("/dev/shm/nacre-spare-*/*") if os.path.basename(name) in ids]
    if left:
        raise Finding(f"spare: {left[0]} is still there after nacre rm")


def fill_bytes(home):
    with open(home + "/fill", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1024))
        except OSError:
            pass


def fill_inodes(home):
    try:
        for i in range(10000):
            os.mkdir(f"{home}/fill.{i}")
    except OSError:
        pass


@trial("root unshare nsenter")
def the_disk_of_the_home_is_full(place):
    full(place, "size=2m", fill_bytes, "rm -f HOME/fill")


@trial("root unshare nsenter")
def the_home_has_no_inodes_left(place):
    full(place, "size=8m,nr_inodes=120", fill_inodes, "rm -rf HOME/fill.*")


# -- The machine -----------------------------------------------------------------------------------


@trial("prlimit")
def the_front_end_has_narrow_limits(place):
    """It says what it lacks, or does it; it is not killed by a signal and leaves nothing."""
    for limit in ("--fsize=0", "--fsize=4096", "--nofile=4", "--nofile=8", "--nofile=12",
                  "--nofile=16", "--nofile=24", "--nproc=1", "--stack=131072"):
        for words_ in (("run", "--timeout", "5", "--", "echo hi"), ("start", "--timeout", "5", "--", "echo hi"),
                       ("list",), ("recall", "hi")):
            answer = cli(place, *words_, prefix=["prlimit", limit, "--"])
            if words_[0] == "run" and answer.status == 0 and "hi" not in answer.out:
                raise Finding(f"lie: under {limit} nacre run returned 0 without its output: {answer.err[:200]}")
            if answer.status not in (0, 1) and "hi" not in answer.out:
                raise Finding(f"answer: under {limit} nacre {words_[0]}: {answer.status} {answer.err[:200]}")
        place.guard(place.name, serve_under, place, limit)
    time.sleep(0.5)
    nothing_unlisted(place)


def serve_under(place, limit):
    """A server under a limit says that it cannot start; or each request is answered, with an error if need be."""
    try:
        server = Mcp(place, "trial", prefix=["prlimit", limit, "--"])
    except (AssertionError, Gone):
        status = place.servers[-1].process.wait()
        if status != 1:
            raise Finding(f"crash: under {limit} the server does not start: {status}") from None
        return
    for _ in range(3):
        server.tool("bash", command="echo hi")
    ends_well(place, server)


def memory_places(pid):
    """Where a cgroup with a limit of memory may be made, and the file of the limit."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        path = next((line.strip().split(":")[2] for line in file if ":memory:" in line), "")
    yield f"/sys/fs/cgroup/memory{path}/nacre-storm-memory-{pid}", "memory.limit_in_bytes"
    yield f"{traces.own_cgroup()}/nacre-storm-memory-{pid}", "memory.max"


def memory_cgroup():
    """A new cgroup with a limit of 80 MB, of whichever version has the controller here; or None."""
    for folder, limit in memory_places(os.getpid()):
        try:
            os.mkdir(folder)
        except OSError:
            continue
        try:
            traces.write_to(f"{folder}/{limit}", 80 << 20)
            return folder
        except OSError:
            os.rmdir(folder)
    return None


def remove_memory_cgroups(pid):
    for folder, _ in memory_places(pid):
        if os.path.isdir(folder):
            model.await_true(lambda: remove_folder(folder), 5)


@trial("root")
def memory_is_short(place):
    folder = None if SANITIZED else memory_cgroup()
    if not folder:
        return
    prefix = ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', folder]
    try:
        server = Mcp(place, "trial", prefix=prefix)
        says(server.tool("bash", command="echo before"), "before")
        many = command(place, "for i in $(seq 900); do {v} sit & done; wait")
        result = server.tool("bash", 6 + GRACE + SLACK, command=many.text, timeout=6)
        # If its shell was the one that was ended, what that has left has the memory still.
        server.tool("kill_shell", GRACE + SLACK, id=result.get("_meta", {}).get("nacre/run", {}).get("id", "0000"))
        # Who was killed gives its memory back when it has a processor for that.
        model.await_true(lambda: len(members_of(folder)) < 10, SLACK)
        says(server.tool("bash", command="echo after"), "after")
        ends_well(place, server)
    except Gone:
        raise Finding("crash: the server was ended, and not the command that took the memory") from None
    finally:
        for deed in place.deeds:
            for process in model.who_lives(place, deed):
                traces.send(process, signal.SIGKILL)
        model.await_true(lambda: remove_folder(folder), 5)


def members_of(folder):
    with open(f"{folder}/cgroup.procs", encoding="ascii") as procs:
        return procs.read().split()


def remove_folder(folder):
    try:
        os.rmdir(folder)
        return True
    except OSError:
        return not os.path.isdir(folder)


@trial("root unshare")
def a_front_end_has_another_clock(place):
    """A monotonic clock that is ten days ahead: of the front end, and of keeper and command."""
    ahead = ["unshare", "-T", "--monotonic", "864000", "--boottime", "864000", "--"]
    if subprocess.run([*ahead, "true"], check=False).returncode != 0:
        return
    deed = command(place, "({v} -sdt sit); {v} -t sit")
    id = cli(place, "start", "--", deed.text).out.strip()
    record = next(r for r in json.loads(cli(place, "list", "--json", prefix=ahead).out) if r["id"] == id)
    if record["status"] != "running" or not 0 <= record["elapsed_ms"] < 60000:
        raise Finding(f"lie: seen with another clock it is {record['status']} after {record['elapsed_ms']} ms")
    if cli(place, "wait", id, "--timeout", "0.5", prefix=ahead).status != 124:
        raise Finding("lie: a wait with another clock is over before the shell is")
    if not model.who_lives(place, deed):
        raise Finding("lie: a look with another clock ended a shell")
    answer = cli(place, "kill", id, prefix=ahead, bound=GRACE + SLACK)
    if answer.status != 0:
        raise Finding(f"kill: {answer.err.strip()}")
    other = command(place, "({v} -sdt sit); {v} -t sit", timeout=1)
    answer = cli(place, "run", "--timeout", "1", "--", other.text, prefix=ahead, bound=1 + GRACE + SLACK)
    if answer.status != 124:
        raise Finding(f"lie: a timeout under another clock returned {answer.status}")
    nobody_lives(place)


@trial()
def many_calls_wait_their_turn(place):
    server = Mcp(place, "trial")
    requests = [server.begin("bash", command=f"echo call-{i}.") for i in range(300)]
    failed = 0
    for i, request in enumerate(requests):
        answer = server.await_answer(request, 60, "bash")
        failed += f"call-{i}." not in text_of(answer.get("result") or {})
    if failed:
        raise Finding(f"answer: {failed} of 300 calls at once were not answered with their output")
    ends_well(place, server)


@trial()
def many_variables_hold_nobody_up(place):
    server = Mcp(place, "trial")
    names = {f"NAME_{i}": "x" for i in range(20000)}
    bound = traces.Bound(2.0, False)
    request, ping = server.begin("bash", command="echo done", env=names), server.request("ping")
    server.await_answer(ping, SLACK, "ping")
    held_up = bound.over()
    # bash needs a second and a half for them by itself.
    says(server.await_answer(request, 3 * SLACK, "bash").get("result") or {}, "done")
    if held_up and not SANITIZED:
        raise Finding("hang: 20,000 variables held up a ping for more than 2 s")
    ends_well(place, server)


@trial()
def starts_that_fail_leave_nothing(place):
    """A keeper without descriptors: no directory, no process; and no leaf, as is seen when all is over."""
    for count in range(6, 40, 2):
        cli(place, "run", "--timeout", "5", "--", "true", prefix=["prlimit", f"--nofile={count}", "--"])
    nothing_unlisted(place)


# Without a leaf an ordinary user gets no processor beside them: docs/containment.md has how long that takes.
@trial("root", long=True, alone=True)
def five_thousand_processes(place):
    """All of them want the processor when the deadline comes; they are given the time to be there."""
    for timeout in (10, 20, 40):
        deed = command(place, "{v} bomb 5200")
        answer = cli(place, "run", "--timeout", str(timeout), "--", deed.text, bound=timeout + GRACE + SLACK,
                     stretched=False)
        there = sum(words_[0] == "P" for words_ in deed.journal.lines())
        if answer.status != 124:
            raise Finding(f"lie: nacre run returned {answer.status}")
        nobody_lives(place, 0.5)
        if there >= 5000:
            return
    raise Finding(f"suite: only {there} of 5,000 processes could be made in time")


# -- Running them ----------------------------------------------------------------------------------


def run_trial(main, function):
    place = Place(main.seed, main.root_pid, main.cgroup)
    place.tier, place.name = main.tier, function.__name__
    place.can_unshare_user = main.can_unshare_user
    began = time.monotonic()
    try:
        function(place)
    except (Finding, Gone, AssertionError) as finding:
        place.find(place.name, str(finding))
    except Exception as mistake:
        place.find(place.name, f"answer: {type(mistake).__name__}: {mistake}")
    for finding in place.findings:
        main.find(*finding)
    if place.findings:
        abandon(place)
    main.trials_done.append((place.name, time.monotonic() - began, len(place.findings)))
    main.trial_deeds += place.deeds
    place.put_away()


def abandon(place):
    """Ends what a trial left that found something: it was said, and is not to be said again."""
    for server in place.servers:
        server.die()
    for process in traces.descendants(place.root_pid):
        if model.whose_is(place, process):
            traces.send(process, signal.SIGKILL)


def begin(place, seed, options):
    """Starts the trials, two at a time, in the order of the seed."""
    chosen = [f for name, f in TRIALS.items() if (options.long or not f.long or options.trials == name) and
              all(has(place, need) for need in f.needs) and (not options.trials or options.trials in name)]
    random.Random(seed).shuffle(chosen)
    place.alone = [function for function in chosen if function.alone]
    beside = [function for function in chosen if not function.alone]
    lock = threading.Lock()

    def next_one():
        with lock:
            return beside.pop() if beside else None

    def go():
        while function := next_one():
            run_trial(place, function)

    place.trials = [threading.Thread(target=go, daemon=True) for _ in range(2)]
    for thread in place.trials:
        thread.start()


def end(place):
    for thread in place.trials:
        thread.join()
    for function in place.alone:
        run_trial(place, function)
