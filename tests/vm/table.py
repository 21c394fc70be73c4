"""Prints what machines have brought out, as a table of situations and promises, and the sum.
usage: table.py LOGS MACHINE...
"""
import pathlib
import re
import sys

PROMISES = ["outlives", "lost", "hangs", "lies", "bloats", "limits", "sandbox", "terminal"]
OF_TEST = {
    "test_containment": "outlives", "test_kill": "outlives", "test_output": "lost",
    "test_hang": "hangs", "test_truth": "lies", "test_limits": "limits", "test_tty": "terminal",
}


def results(place):
    """(passed, failed, promise, name) of each line."""
    file = place / "results"
    for line in file.read_text().splitlines() if file.exists() else []:
        passed, failed, *_, name = line.split()
        yield int(passed), int(failed), OF_TEST.get(name, name.split(":")[0]), name


def found(place, pattern):
    file = place / "promises"
    match = re.search(pattern, file.read_text() if file.exists() else "", re.M)
    return match.group(1) if match else "?"


def memory(place):
    held = found(place, r"^  (?:yes|no) +memory +(.*)$")
    return "cgroup" if "controller" in held else "keeper" if "keeper" in held else "no"


def sandbox(place):
    held = found(place, r"^  (yes|no) +P1 ")
    return {"yes": "yes", "no": "none"}.get(held, "?")


def row(place):
    counts = {promise: [0, 0] for promise in PROMISES}
    sums = [0, 0]
    for passed, failed, promise, _ in results(place):
        for count in (sums, counts.get(promise, [0, 0])):
            count[0] += passed
            count[1] += failed
    cells = [f"{p}" if not f else f"{p} ({f} failed)" for p, f in counts.values()]
    tier = found(place, r"^containment: (\w+)")
    return [place.name, tier, memory(place), sandbox(place), *cells, str(sums[0]), str(sums[1])], sums


def begun(place):
    """Situations follow one another as they were tried."""
    where = place / "where"
    return (where if where.exists() else place).stat().st_mtime


def show(rows):
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(r, widths)) + " |")


def machine(logs):
    header = ["situation", "tier", "memory by", "sandbox", *PROMISES, "passed", "failed"]
    file = logs / "machine"
    if not file.exists():
        print(f"\n{logs.name}: nothing came out of it; what it said is in {logs}")
        return 0, 1
    print(f"\n{logs.name}: {file.read_text().strip()}")
    places = sorted((p for p in logs.iterdir() if p.is_dir()), key=begun)
    made = [row(place) for place in places]
    cells = [r for r, _ in made]
    show([header, ["-" * len(h) for h in header], *cells])
    for place in places:
        for _, failed, _, name in results(place):
            if failed:
                print(f"failed: {logs.name} {place.name} {name}")
    return sum(s[0] for _, s in made), sum(s[1] for _, s in made)


def main(logs, names):
    passed = failed = 0
    for name in names:
        p, f = machine(pathlib.Path(logs) / name)
        passed, failed = passed + p, failed + f
    print(f"\nthe logs are in build/vm-logs\n{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


sys.exit(main(sys.argv[1], sys.argv[2:]))
