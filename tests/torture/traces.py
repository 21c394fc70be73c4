"""What a storm leaves on the machine, found without asking nacre: processes by descent, by mark and
by journal; cgroup leaves; descriptors and memory of a process. The storm is a subreaper, so whoever
lost its parents in it is still its descendant, with whatever environment, session, namespace or
user."""
import ctypes
import os
import signal
import subprocess
import threading
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CGROUP2 = "/sys/fs/cgroup"
libc = ctypes.CDLL(None, use_errno=True)


class Process:
    """A process as /proc has it at one moment."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/stat", encoding="latin1") as file:
            name, _, rest = file.read().rpartition(")")
        fields = rest.split()
        self.pid, self.comm = pid, name.partition("(")[2]
        self.state, self.parent, self.start = fields[0], int(fields[1]), int(fields[19])

    @property
    def dead(self):
        return self.state in "ZX"

    @property
    def cmdline(self):
        try:
            with open(f"/proc/{self.pid}/cmdline", "rb") as file:
                return file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def __str__(self):
        return f"{self.pid} {self.state} {self.comm} [{self.cmdline[-160:]}]"


def look_at(pid):
    try:
        return Process(pid)
    except (OSError, IndexError):
        return None


def all_processes():
    found = (look_at(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process]


def descendants(root):
    """Everybody below root who is not dead."""
    below = {}
    for process in all_processes():
        below.setdefault(process.parent, []).append(process)
    found, queue = [], [root]
    while queue:
        for process in below.get(queue.pop(), []):
            queue.append(process.pid)
            if not process.dead:
                found.append(process)
    return found


def marked(root, mark):
    """Descendants of root with a mark among their arguments."""
    return [process for process in descendants(root) if mark in process.cmdline.split(" ")]


def send(process, number):
    """A signal to a process, and to nobody who got its pid meanwhile."""
    try:
        fd = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        now = look_at(process.pid)
        if now and now.start == process.start:
            signal.pidfd_send_signal(fd, number)
    except OSError:
        pass
    finally:
        os.close(fd)


def end_all(root, spared=(), limit=20):
    """Ends whoever is below root; returns who does not end."""
    until = time.monotonic() + limit
    while True:
        left = [process for process in descendants(root) if process.pid not in spared]
        if not left or time.monotonic() > until:
            return left
        for process in left:
            send(process, signal.SIGKILL)
        time.sleep(0.02)


def adopt_orphans():
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


# -- Time ------------------------------------------------------------------------------------------


class Pace(threading.Thread):
    """How long this machine kept everybody waiting: a program that does nothing is started again and
    again, in a session of its own as keepers are. Bounds are stretched by what it took too long, so
    that a machine that others keep busy is no finding. Rows whose matter is just that have theirs
    stretched only by what others took, see Others (Row.stretched)."""

    USUAL = 0.25

    def __init__(self):
        super().__init__(daemon=True)
        self.before, self.since = 0.0, 0.0

    def run(self):
        while True:
            self.since = time.monotonic()
            try:
                subprocess.run(["true"], start_new_session=True, check=False)
            except OSError:  # no process can be made
                time.sleep(self.USUAL)
            self.before, self.since = self.lost, 0.0
            time.sleep(0.2)

    @property
    def lost(self):
        """Seconds, those of the one that is under way too."""
        since = self.since
        took = time.monotonic() - since if since else 0.0
        return self.before + (took if took > self.USUAL else 0.0)


pace = Pace()


class Others:
    """The processor time that those had who are not of the storm: all that was used, without what our
    own cgroup used. A storm that wants every processor for a time has them all that much later,
    whatever it does. Without a cgroup of our own nothing is known, and nobody has taken anything."""

    FIELDS = (1, 2, 3, 6, 7, 8)  # of the first line of /proc/stat: all but who waits

    def __init__(self):
        self.stat, self.tick = None, os.sysconf("SC_CLK_TCK") * (os.cpu_count() or 1)

    def watch(self, folder):
        """folder: a cgroup in which the whole storm is, and nobody else."""
        path = f"{folder}/cpu.stat" if folder else ""
        self.stat = path if os.path.exists(path) else None

    @property
    def taken(self):
        """Seconds of the whole machine, all of its processors together."""
        if not self.stat:
            return 0.0
        with open(self.stat, encoding="ascii") as file:
            ours = next(int(line.split()[1]) for line in file if line.startswith("usage_usec"))
        with open("/proc/stat", encoding="ascii") as file:
            words = file.readline().split()
        return sum(int(words[i]) for i in self.FIELDS) / self.tick - ours / 1e6 / (os.cpu_count() or 1)


others = Others()


def is_pace(process):
    """What the pace has started, before or after its exec."""
    return process.parent == os.getpid() and process.cmdline in ("", "true")


class Bound:
    """A time that is over when so many seconds have passed, without those that the machine took; or, of
    what is not stretched by those, without what others took of the machine, up to thrice its length:
    who hangs wants no processor, and may have none for ever."""

    def __init__(self, seconds, stretched=True):
        self.began, self.lost, self.taken = time.monotonic(), pace.lost, others.taken
        self.seconds, self.stretched = seconds, stretched

    def left(self):
        more = pace.lost - self.lost if self.stretched else min(others.taken - self.taken, 3 * self.seconds)
        return self.began + self.seconds + more - time.monotonic()

    def over(self):
        return self.left() <= 0


# -- Descriptors and memory ------------------------------------------------------------------------


def fds_of(pid):
    try:
        return {name: os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return {}


def memory_of(pid):
    """Resident KiB that are its own."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))


# -- Cgroups ---------------------------------------------------------------------------------------


def own_cgroup():
    """The folder of this process in the cgroup v2 tree, or None."""
    with open("/proc/mounts", encoding="utf-8") as file:
        mounts = [line.split()[1] for line in file if line.split()[2] == "cgroup2"]
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        paths = [line[3:].strip() for line in file if line.startswith("0::")]
    folder = mounts[0] + paths[0].rstrip("/") if mounts and paths else ""
    return folder if os.path.isdir(folder) else None


class Cgroup:
    """A cgroup of the storm's own, where this user may make one: every leaf in it is the storm's."""

    def __init__(self):
        above, self.path = own_cgroup(), None
        self.above = above
        if not above:
            return
        path = f"{above}/nacre-storm-{os.getpid()}"
        try:
            os.mkdir(path)
        except OSError:
            return
        try:
            write_to(f"{path}/cgroup.procs", os.getpid())
            self.path = path
        except OSError:
            os.rmdir(path)

    def leaves(self):
        return sorted(entry.name for entry in os.scandir(self.path) if entry.is_dir())

    def remove(self, limit=5):
        """Moves us out and takes it away with all that is in it; what could not be removed."""
        if not self.path:
            return []
        write_to(f"{self.above}/cgroup.procs", os.getpid())
        until = time.monotonic() + limit
        while os.path.isdir(self.path):
            for folder, _, _ in os.walk(self.path, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    pass
            if time.monotonic() > until:
                return [self.path]
            time.sleep(0.01)
        return []


def write_to(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))
