"""Where a storm takes place: a home, journals outside of it, the environment of all front ends, and
what was found. One place is one storm."""
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

import model
import traces
from hosts import PROGRAM, Finding, Gone, cli, is_hex

# Beside us, if we are where it was built; NACRE may be of another folder.
VICTIM = next(path for path in (os.path.join(os.path.dirname(os.path.abspath(__file__)), "victim"),
                                os.path.join(os.path.dirname(PROGRAM), "tests", "torture", "victim"), "victim")
              if os.path.exists(path) or path == "victim")
KEPT = ("PATH", "HOME", "TMPDIR", "LC_ALL", "NACRE_TIER", "NACRE_KEEPER", "NACRE_TEST_MARK", "ASAN_OPTIONS",
        "UBSAN_OPTIONS")


class Place:
    def __init__(self, seed, root_pid, cgroup):
        self.seed, self.root_pid, self.began = seed, root_pid, time.monotonic()
        self.cgroup = cgroup if cgroup and cgroup.path else None
        self.path = tempfile.mkdtemp(prefix=f"storm-{seed}-")
        self.home, self.work, self.journals = (os.path.join(self.path, name)
                                               for name in ("home", "work", "journals"))
        os.chmod(self.path, 0o755)
        for folder in (self.work, self.journals):
            os.mkdir(folder)
            os.chmod(folder, 0o1777)
        self.log_path = os.path.join(self.path, "log")
        self.log = open(self.log_path, "ab")
        self.env = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.env |= {"NACRE_HOME": self.home, "NACRE_GRACE": f"{int(model.GRACE * 1000)}ms",
                     "NACRE_QUOTA": "1MiB", "NACRE_SHELLS": "64", "NACRE_CONFIG": ""}
        self.lock = threading.Lock()
        self.findings, self.deeds, self.owed, self.deferred, self.kept = [], [], [], [], []
        self.ids, self.shown, self.beyond = set(), set(), set()
        self.outside, self.outside_init = None, 0
        self.servers, self.lingering = [], []
        self.trials, self.alone, self.trials_done, self.trial_deeds = [], [], [], []
        self.make_precious()

    def make_precious(self):
        """A file that links in run directories lead to."""
        self.precious, self.precious_bytes = os.path.join(self.path, "precious"), b"precious\n" * 100
        with open(self.precious, "wb") as file:
            file.write(self.precious_bytes)
        os.chmod(self.precious, 0o640)

    def find_out(self):
        """The tier, and what this user may do."""
        answer = cli(self, "run", "--json", "--", "true", bound=20)
        if answer.status != 0:
            raise Finding(f"nacre run -- true: {answer.status} {answer.err}")
        self.tier = json.loads(answer.out)["containment"]
        self.can_unshare_user = shutil.which("unshare") is not None and subprocess.run(
            ["unshare", "-Urpf", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        if os.geteuid() == 0 and shutil.which("nsenter"):
            self.make_outside()

    def make_outside(self):
        """A pid namespace whose init is below no keeper."""
        journal = model.Journal(os.path.join(self.journals, "init"), "init")
        self.outside = subprocess.Popen(["unshare", "-pf", "--kill-child", VICTIM, journal.path, "init", "init"],
                                        stdin=subprocess.DEVNULL)

        def first():
            return [p for p in traces.descendants(self.outside.pid) if p.comm == "victim"]
        if model.await_true(first, 5):
            self.outside_init = first()[0].pid

    def run_directories(self):
        """The ids of the directories in runs/."""
        try:
            names = os.listdir(os.path.join(self.home, "runs"))
        except OSError:
            return set()
        return {name for name in names if len(name) == 32 and is_hex(name)}

    def listed(self):
        """The beginnings of all ids that there ever were, as far as directories say."""
        return {name[:8] for name in self.run_directories()}

    def leaves(self):
        return self.cgroup.leaves() if self.cgroup else []

    def spared(self):
        """Who may live when all is over."""
        return {os.getpid(), self.outside.pid if self.outside else 0, self.outside_init}

    def find(self, whose, text):
        with self.lock:
            self.findings.append((whose, text))

    def guard(self, whose, function, *args, **more):
        """What it returns; or None, and a finding."""
        try:
            return function(*args, **more)
        except (Finding, Gone) as finding:
            self.find(whose, str(finding))
            return None

    def settle_kept(self):
        """Ends what `nacre start` started; of what was damaged only the survivors count."""
        for deed in self.kept:
            answer = self.guard(deed, cli, self, "kill", deed.id, bound=model.GRACE + model.SLACK)
            if answer and answer.status != 0 and "record" not in deed.row.hurts and not deed.out_of_reach:
                self.find(deed, f"kill: {answer.err.strip() or answer.out.strip()}")

    def seconds(self):
        return time.monotonic() - self.began

    def clean_up(self):
        """Ends whoever is left, and keeps a log of a storm that found something."""
        traces.end_all(self.root_pid, {os.getpid()})
        if self.outside:
            self.outside.wait()
        if self.findings:
            self.keep_log()
        self.put_away()

    def keep_log(self):
        folder = os.environ.get("TEST_LOGS", "/tmp")
        if not os.access(folder, os.W_OK):
            folder = "/tmp"
        keep = os.path.join(folder, f"nacre-storm-{self.seed}-{os.getpid()}.log")
        with open(keep, "w", encoding="utf-8") as file:
            for deed in [*self.deeds, *self.trial_deeds]:
                file.write(f"{deed.number} {deed.lane} {deed} {deed.verdict} {deed.journal.id()}\n{deed.text}\n")
            for whose, text in self.findings:
                file.write(f"{whose}: {text}\n")
            with open(self.log_path, encoding="utf-8", errors="replace") as log:
                file.write(log.read())
        self.log_path = keep

    def put_away(self):
        self.log.close()
        remove_tree(self.path)


def remove_tree(path):
    """Also what has no rights left."""
    for folder, names, _ in os.walk(path):
        for name in names:
            inner = os.path.join(folder, name)
            if not os.path.islink(inner):
                os.chmod(inner, 0o700)
    shutil.rmtree(path, ignore_errors=True)


def new_place(seed, root_pid, cgroup):
    place = Place(seed, root_pid, cgroup)
    place.find_out()
    return place
