#!/usr/bin/env python3
"""A storm of hostile commands against several front ends on one home, and what must be true afterwards. All
that is chosen comes from a seed, so a storm can be had again (moments of a busy machine cannot).

usage: storm.py [--seed N] [--deeds N] [--seconds S] [--only N,N] [--row NAME] [--long] [--trials NAME|none]
  --seed     the first storm's; NACRE_TEST_STORM_SEED, else 1
  --deeds    in each storm
  --seconds  storms of the seeds from there on, for so long; NACRE_TEST_STORM_SECONDS, else one storm
  --only     of the schedule of that seed only these deeds;   --row  only rows whose names have this part
  --long     with the rows and the trials of the long form;   --trials  only these, or none
  --list     prints the rows, and runs nothing"""
import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import attacks  # noqa: E402
import model  # noqa: E402
import traces  # noqa: E402
import weather  # noqa: E402
from hosts import Mcp, cli  # noqa: E402
from lanes import Deed, Lane, Looker, Witness  # noqa: E402
from place import new_place, remove_tree  # noqa: E402

SHORT_DEEDS = 130


# -- The schedule: everything that chance decides --------------------------------------------------


def schedule(place, seed, count, options):
    """The deeds of a storm. First each row once, in the order of the seed; rows are joined with deeds from
    outside, and go to front ends, as the seed says."""
    chance = random.Random(seed)
    rows = [row for row in attacks.usable(place) if options.long or not row.long]
    plain = [(row, deed) for row in attacks.usable(place, attacks.PLAIN) for deed in attacks.DEEDS]
    deck = [(row, None) for row in rows] + plain
    if options.long:
        deck += [(row, chance.choice(list(attacks.DEEDS))) for row in rows if row.deeds]
    chance.shuffle(deck)
    deeds = []
    for number, (row, outside) in enumerate(deck):
        way = chance.choice([w for w in row.ways if not (w == "start" and outside == "host-sigkill")])
        deeds.append(Deed(place, number, row, way, outside, chance))
    if options.row:
        deeds = [deed for deed in deeds if options.row in deed.row.name]
    deeds = deeds[:count]
    return [deed for deed in deeds if not options.only or deed.number in options.only]


def deal(deeds, place, servers):
    """Two lanes to each of two servers, two to the command line: what goes on at a time."""
    lanes = [Lane(place, f"{name}{i}", holder) for name, holder in servers.items() for i in (1, 2)]
    for deed in deeds:
        group = [lane for lane in lanes if bool(lane.holder) == (deed.way in ("fg", "bg"))]
        min(group, key=lambda lane: sum(d.row.timeout + 0.3 for d in lane.deeds)).deeds.append(deed)
    return lanes


class Holder:
    """A place of a server that is made anew when it was killed; with what it had at first."""

    def __init__(self, place, name):
        self.place, self.name, self.lock = place, name, threading.Lock()
        self.old, self.server = [], None
        self.renew()

    def renew(self):
        self.server = Mcp(self.place, self.name)
        self.server.tool("bash", command="true")
        self.server.tool("bash", command="true", background=True)
        self.server.tool("bash", command="true")
        self.server.tool("list_shells")
        pid = self.server.process.pid
        self.fds, self.memory = traces.fds_of(pid), traces.memory_of(pid)

    def get(self):
        with self.lock:
            if self.server.condemned:
                self.old.append(self.server)
                self.renew()
            return self.server

    def all(self):
        return [*self.old, self.server]


# -- One storm -------------------------------------------------------------------------------------


def run_storm(seed, options):
    """The findings of one storm."""
    place = new_place(seed, os.getppid(), options.root)
    try:
        if options.trials != "none":
            weather.begin(place, seed, options)
        if options.trials in (None, "none"):
            place.deeds = schedule(place, seed, options.deeds, options)
            blow(place)
        else:
            weather.end(place)
            report_left(place)
    except Exception:  # a mistake of the suite itself is a finding, too
        place.find("suite", traceback.format_exc())
    finally:
        place.clean_up()
    return place


def report_left(place):
    for text in model.check_nothing_left(place, place.spared()):
        place.find("end", text)


def blow(place):
    holders = {key: Holder(place, "storm") for key in ("alpha", "beta")}  # two sessions of one name
    lanes = deal(place.deeds, place, dict(holders, cli=None))
    others = [Witness(place, "witness"), Looker(place, "looker")]
    for lane in [*lanes, *others]:
        lane.start()
    for lane in lanes:
        lane.join()
    for other in others:
        other.stop()
    weather.end(place)
    finish(place, holders, others)


def finish(place, holders, others):
    """What must be true when all is over."""
    servers = [holder.get() for holder in holders.values()]
    place.settle_kept()
    end_lingering(place)
    hear_the_rest(place, holders)
    for deed in place.deferred:
        place.guard(deed, model.check_output, place, deed)
    for holder, server in zip(holders.values(), servers):
        for text in model.check_server(server, holder.fds, holder.memory):
            place.find("end", text)
    claimer = Mcp(place, "storm")
    claimer.tool("list_shells")
    for server in [*servers, claimer, *(other.server for other in others if other.server)]:
        seconds, status = server.stop(model.CLOSE)
        if status is None:
            place.find("end", f"hang: server {server.name} did not close within {model.CLOSE} s")
            server.die()
        elif status != 0:
            place.find("end", f"crash: server {server.name} ended with {status}")
    place.guard("end", cli, place, "list", "--all", bound=20)
    told = claimer.completions()
    for server in [server for holder in holders.values() for server in holder.all()]:
        told += server.completions()
    for check in (model.check_nothing_left(place, place.spared()), model.check_completions(place, told),
                  model.check_catalog(place), model.check_precious(place)):
        for text in check:
            place.find("end", text)
    for other in others:
        other.check_again()


def end_lingering(place):
    """What commands of a living server left behind."""
    for deed in place.lingering:
        if not deed.server.condemned:
            place.guard(deed, deed.server.tool, "kill_shell", model.GRACE + model.SLACK, id=deed.id)
            if not deed.out_of_reach:
                place.guard(deed, model.check_survivors, place, deed)


def hear_the_rest(place, holders, limit=12):
    """Any answer tells of what has ended: until nothing is owed."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        told = set(place.shown)
        for holder in holders.values():
            server = holder.get()
            place.guard("end", server.tool, "list_shells")
            told |= {id for s in holder.all() for id, _ in s.completions()}
        told |= place.guard("end", model.ended_with_session, place) or set()
        if all(deed.id[:8] in told for deed in place.owed):
            return
        time.sleep(0.2)


# -- The program -----------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    env = os.environ
    parser.add_argument("--seed", type=int, default=int(env.get("NACRE_TEST_STORM_SEED", "1")))
    parser.add_argument("--deeds", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float(env.get("NACRE_TEST_STORM_SECONDS", "0")))
    parser.add_argument("--only", type=lambda text: {int(n) for n in text.split(",")}, default=None)
    parser.add_argument("--row", default=None)
    parser.add_argument("--trials", default=None)
    parser.add_argument("--long", action="store_true", default=env.get("NACRE_TEST_LONG") == "1")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    usual = 2 * SHORT_DEEDS if options.long else SHORT_DEEDS
    options.deeds = options.deeds or (10000 if options.row else usual)
    if (options.row or options.only) and options.trials is None:
        options.trials = "none"
    return options


def print_storm(place, seed, options):
    for deed in place.deeds if place.findings or options.verbose else []:
        print(f"  {deed.number:3} {deed.lane:8} {deed} {deed.verdict}")
    for name, seconds, found in place.trials_done if place.findings or options.verbose else []:
        print(f"  trial {name} {'FOUND' if found else 'ok'} {seconds:.1f} s")
    for whose, text in place.findings:
        print(f"FOUND  seed {seed}: {whose}: {text}", flush=True)
    if not place.findings:
        return
    again = f"--seed {seed} --deeds {options.deeds}" + (" --long" if options.long else "")
    again += f" --row {options.row}" if options.row else ""
    numbers = sorted({whose.number for whose, _ in place.findings if isinstance(whose, Deed)})
    again += f" --only {','.join(map(str, numbers))}" if numbers else ""
    print(f"to have it again: storm.py {again}")
    for name, _, found in place.trials_done:
        if found:
            print(f"                  storm.py --seed {seed} --trials {name}")
    print(f"its log: {place.log_path}")


def work(options):
    """All storms; the exit status."""
    traces.pace.start()
    began, seed, good, bad, deeds = time.monotonic(), options.seed, 0, 0, 0
    while True:
        place = run_storm(seed, options)
        print_storm(place, seed, options)
        bad += bool(place.findings)
        good += not place.findings
        deeds += sum(deed.verdict != "" for deed in place.deeds)
        print(f"{'FAILED' if place.findings else 'ok    '} seed {seed}: {len(place.deeds)} deeds,"
              f" {len(place.findings)} findings, {place.tier}, {place.seconds():.1f} s;"
              f" the machine was away for {traces.pace.lost:.1f} s", flush=True)
        seed += 1
        if time.monotonic() - began >= options.seconds:
            break
    print(f"{deeds} deeds, seeds {options.seed} to {seed - 1}, {time.monotonic() - began:.0f} s")
    print(f"{good} passed, {bad} failed")
    return 1 if bad else 0


def supervise(options):
    """The storm is our child, and whoever loses its parents in it becomes ours: whatever happens, nothing
    of it is left when we are done."""
    traces.adopt_orphans()
    options.root = cgroup = traces.Cgroup()
    traces.others.watch(cgroup.path or cgroup.above)
    tempfile.tempdir = tempfile.mkdtemp(prefix="nacre-storm-")
    os.chmod(tempfile.tempdir, 0o755)
    worker = os.fork()
    if worker == 0:
        traces.die_with_parent()
        signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
        sys.exit(work(options))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(worker, signal.SIGKILL))
    status = None
    while status is None:
        pid, code = os.wait()
        if pid == worker:
            status = os.waitstatus_to_exitcode(code)
    reaper = threading.Thread(target=reap_all, daemon=True)
    reaper.start()
    left = traces.end_all(os.getpid())
    remove_tree(tempfile.tempdir)
    weather.remove_memory_cgroups(worker)
    for what in [*left, *cgroup.remove()]:
        print(f"left behind: {what}")
    return status if status >= 0 else 128 - status


def reap_all():
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.01)


def main():
    options = parse()
    if options.list:
        for row in (*attacks.ROWS, *attacks.PLAIN):
            print(f"{row.name:36} {'long ' if row.long else 'short'} {row.finding:3} {row.text[:100]}")
        print("trials: " + " ".join(weather.TRIALS))
        return 0
    return supervise(options)


if __name__ == "__main__":
    sys.exit(main())
