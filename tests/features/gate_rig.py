"""nacre-gate between three networks of the tests' own: `inside`, where a fenced command would be;
here, where the gate is; and `far`, which stands for the internet. Names come from a hosts file of
the test. Needs root, or namespaces of an ordinary user."""
import array
import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.environ.get("NACRE_TEST_BUILD", "build")
GATE = os.path.abspath(os.path.join(BUILD, "nacre-gate"))
with open(GATE, "rb") as program:
    SANITIZED = b"__asan_init" in program.read()
NEWNS, NEWUSER, NEWNET = 0x20000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
FORMAT, DENIED, GATE_HELLO, GATE_READY, FD_OWNER = 5, 16, 32, 33, 2
RULES = """public.example
*.sub.example:443
public.example:22
any.example:*
93.184.216.34:8080
[2606:2800::34]:8080
"""
FAR, HERE = "93.184.216.34", "93.184.216.1"
FAR_SIX, HERE_SIX = "2606:2800::34", "2606:2800::1"
HOSTS = f"""127.0.0.1 localhost loop.sub.example
{FAR} public.example a.sub.example a.b.sub.example any.example other.example
10.1.2.3 private.sub.example mixed.sub.example
{FAR} mixed.sub.example
169.254.169.254 meta.sub.example
100.64.0.1 nat.sub.example
fd00::1 local.sub.example
::1 six.sub.example
64:ff9b::a01:203 nat64.sub.example
2002:7f00:1:: 6to4.sub.example
{HERE} own.sub.example
"""
libc = ctypes.CDLL(None, use_errno=True)


def call(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def scale():
    """How much longer things take here than on a machine that has nothing else to do."""
    return 4 if SANITIZED else 1


def until(condition, what, seconds=10):
    end = time.monotonic() + seconds * scale() * 3
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"it never came true: {what}")
        time.sleep(0.005)


# -- Networks ---------------------------------------------------------------------------------------


def bring_up(name=b"lo"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh22x", name, 0x1)  # IFF_UP
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS


def become_root_of_namespaces():
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        call(libc.unshare(NEWNS | NEWNET))
        return
    call(libc.unshare(NEWUSER | NEWNS | NEWNET))
    for file, text in ("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1"):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as to:
            to.write(text)


def open_network():
    """The descriptor of the network of this thread."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Networks:
    def __init__(self, place):
        become_root_of_namespaces()
        call(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        for file, text in ("hosts", HOSTS), ("nsswitch.conf", "hosts: files\n"):
            own = os.path.join(place, file)
            with open(own, "w", encoding="ascii") as to:
                to.write(text)
            call(libc.mount(own.encode(), f"/etc/{file}".encode(), None, MS_BIND, None))
        bring_up()
        self.here = open_network()
        self.inside, self.far = self.make(), self.make()
        self.connect_far()

    def make(self):
        call(libc.unshare(NEWNET))
        bring_up()
        made = open_network()
        self.enter(self.here)
        return made

    @staticmethod
    def enter(network):
        call(libc.setns(network, NEWNET))

    @contextlib.contextmanager
    def being(self, network):
        self.enter(network)
        try:
            yield
        finally:
            self.enter(self.here)

    def connect_far(self):
        far = f"/proc/{os.getpid()}/fd/{self.far}"
        ip(f"link add veth0 type veth peer name veth1 netns {far}")
        setup(HERE, HERE_SIX, "veth0")
        with self.being(self.far):
            setup(FAR, FAR_SIX, "veth1")


def setup(four, six, link):
    ip(f"addr add {four}/24 dev {link}")
    ip(f"addr add {six}/64 dev {link} nodad")
    ip(f"link set {link} up")


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


# -- The far side -------------------------------------------------------------------------------------


class Far:
    """Servers: on 80 and 8080 one that answers with what it was sent, on 443 the same behind TLS, on 22
    one that speaks first, and echoes."""

    def __init__(self, networks, place):
        self.counts = mmap.mmap(-1, 4096)
        self.certificate = make_certificate(place)
        listeners = []
        with networks.being(networks.far):
            for port, serve in (80, self.web), (443, self.secure), (22, self.banner), (8080, self.echo):
                for family, address in (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"):
                    s = socket.socket(family)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    if family == socket.AF_INET6:
                        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    s.bind((address, port))
                    s.listen(300)
                    listeners.append((s, serve))
        self.pid = os.fork()
        if self.pid == 0:
            libc.prctl(1, signal.SIGKILL)
            networks.enter(networks.far)
            for listener, serve in listeners:
                threading.Thread(target=self.accept, args=(listener, serve)).start()
            threading.Event().wait()
        for listener, _ in listeners:
            listener.close()

    def accept(self, listener, serve):
        while True:
            client, _ = listener.accept()
            self.add(0, 1)
            threading.Thread(target=self.guard, args=(serve, client), daemon=True).start()

    @staticmethod
    def guard(serve, client):
        with contextlib.suppress(OSError), client:
            serve(client)

    def add(self, at, n):
        with lock:
            value, = struct.unpack_from("q", self.counts, 8 * at)
            struct.pack_into("q", self.counts, 8 * at, value + n)

    def read(self, client):
        data = client.recv(65536)
        self.add(1, len(data))
        return data

    def seen(self):
        """Connections, and bytes that came by them."""
        return struct.unpack_from("qq", self.counts, 0)

    def web(self, client):
        data = self.read(client)
        while b"\r\n\r\n" not in data:
            more = self.read(client)
            if not more:
                return
            data += more
        if b"Expect: 100-continue" in data:
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        want = length_of(data)
        while want(data):
            more = self.read(client)
            if not more:
                break
            data += more
        if b"/slow" in data.split(b"\r\n")[0]:
            client.settimeout(0.3)
            with contextlib.suppress(TimeoutError):
                data += self.read(client)
        client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(data)
                       + data)

    def secure(self, client):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        first = client.recv(1, socket.MSG_PEEK)
        self.add(1, len(first))
        if first == b"\x16":
            with context.wrap_socket(client, server_side=True) as secure:
                self.web(secure)

    def banner(self, client):
        client.sendall(b"SSH-2.0-far\r\n")
        self.echo(client)

    def echo(self, client):
        while data := self.read(client):
            client.sendall(data)
        client.sendall(b"<end>")

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


lock = threading.Lock()


def length_of(data):
    """A function that says whether more of the request is to come."""
    head, _, _ = data.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"transfer-encoding" in fields:
        return lambda all: not all.endswith(b"\r\n0\r\n\r\n")
    size = len(head) + 4 + int(fields.get(b"content-length", 0))
    return lambda all: len(all) < size


def make_certificate(place):
    path = os.path.join(place, "far.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=public.example", "-addext", "subjectAltName=DNS:public.example,DNS:localhost",
                    "-keyout", path, "-out", path + ".crt"], check=True, stderr=subprocess.DEVNULL)
    with open(path, "a", encoding="ascii") as to, open(path + ".crt", encoding="ascii") as crt:
        to.write(crt.read())
    return path


# -- The gate -------------------------------------------------------------------------------------------


class Gate:
    def __init__(self, networks, rules=RULES, patience_ms=0, owner=None, listen=None):
        self.networks = networks
        if listen is None:
            with networks.being(networks.inside):
                listen = socket.socket()
            listen.bind(("127.0.0.1", 0))
            listen.listen(256)
        self.listen = listen
        self.port = listen.getsockname()[1] if listen.family == socket.AF_INET else 0
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.line, keepers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fds = [listen.fileno(), keepers.fileno()] + ([owner] if owner is not None else [])
        text = rules if isinstance(rules, bytes) else rules.encode()
        hello = struct.pack("<IIIiII", GATE_HELLO, FORMAT, FD_OWNER if owner is not None else 0,
                            os.getpid(), patience_ms, len(text)) + text
        self.sock.sendmsg([hello], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        # What Popen itself opens must not lie where the socket has to.
        null = os.open("/dev/null", os.O_RDONLY)
        held = null if null == 3 else None
        self.process = subprocess.Popen(
            [GATE], executable=GATE, env={}, pass_fds=(3, theirs.fileno()),
            preexec_fn=lambda: os.dup2(theirs.fileno(), 3))  # pylint: disable=W1509
        if held is None:
            os.close(null)
        else:
            os.close(held)
        theirs.close()
        keepers.close()

    def ready(self):
        self.sock.settimeout(20)
        word = self.sock.recv(4096)
        if not word:
            raise AssertionError("the gate ended without a word")
        kind, number, error, pid = struct.unpack_from("<IIiI", word)
        assert (kind, number) == (GATE_READY, FORMAT), word
        assert len(word) == 24 and pid == self.process.pid, word
        return error

    def __enter__(self):
        assert self.ready() == 0
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.sock.close()
        self.line.close()
        self.listen.close()
        self.process.wait(20)

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]

    def connect(self):
        with self.networks.being(self.networks.inside):
            client = socket.socket()
        client.settimeout(20)
        client.connect(("127.0.0.1", self.port))
        return client

    def ask(self, data, shut=False):
        """Sends it, and reads to the end."""
        with self.connect() as client:
            client.sendall(data)
            if shut:
                client.shutdown(socket.SHUT_WR)
            return read_all(client)


def read_all(client):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while more := client.recv(65536):
            data += more
    return data


def read_some(client, size):
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            break
        data += more
    return data


class Door:
    """The door of a run, as its keeper has it."""

    def __init__(self, id):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.bind(b"\0nacre/" + id)
        self.sock.listen(16)
        self.sock.settimeout(10 * scale())

    def hear(self):
        with self.sock.accept()[0] as peer:
            word = peer.recv(4096)
        kind, number, what, pid = struct.unpack_from("<IIIi", word)
        assert (kind, number, what, pid, len(word)) == (DENIED, FORMAT, 0, 0, 464), word
        texts = struct.unpack_from("64s256s128s", word, 16)
        return [text.split(b"\0")[0].decode() for text in texts]

    def is_quiet(self):
        self.sock.setblocking(False)
        try:
            self.sock.accept()
        except BlockingIOError:
            self.sock.settimeout(10 * scale())
            return True
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()


# -- TLS -------------------------------------------------------------------------------------------------


def client_hello(name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def in_records(hello, size):
    """The same handshake in records of so many bytes."""
    message, records = hello[5:], b""
    for at in range(0, len(message), size):
        part = message[at:at + size]
        records += b"\x16\x03\x01" + struct.pack(">H", len(part)) + part
    return records


# -- Cases ------------------------------------------------------------------------------------------------


def main(cases):
    """Runs each case with the networks and the far side; exits with their result."""
    if os.environ.get("GATE_RIG") is None:
        # Namespaces are for a process without threads, and for nobody who comes later.
        done = subprocess.run([sys.executable, *sys.argv], env=dict(os.environ, GATE_RIG="1"),
                              check=False)
        sys.exit(done.returncode)
    import traceback
    wanted, passed, failed = sys.argv[1:], 0, 0
    with tempfile.TemporaryDirectory(prefix="nacre-gate-") as place:
        try:
            networks = Networks(place)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"skipped: the gate between networks: none can be made here ({error})")
            print("0 passed, 0 failed")
            sys.exit(0)
        far = Far(networks, place)
        for case in cases:
            if wanted and case.__name__ not in wanted:
                continue
            began = time.monotonic()
            try:
                case(networks, far, place)
                passed += 1
                print(f"ok     {case.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED {case.__name__}", flush=True)
                traceback.print_exc(file=sys.stdout)
        far.stop()
    left = subprocess.run(["pgrep", "-x", "nacre-gate", "-s", "0"], capture_output=True, text=True,
                          check=False).stdout if passed else ""
    if left:
        failed += 1
        print("FAILED nothing is left:", left)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


__all__ = [name for name in dir() if not name.startswith("_")] + ["json"]
