#!/usr/bin/env python3
"""nacre-gate: what gets through, what does not, and what is said of it. A row of the table is what a
client sends and how the answer begins.
usage: [NACRE_TEST_BUILD=build] test_gate.py [CASE...]"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gate_rig import *  # noqa: E402,F403

ID = b"0123456789abcdef0123456789abcdef"
LOGIN = b"Proxy-Authorization: Basic MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY6eA==\r\n"
SIX = socket.inet_pton(socket.AF_INET6, "::1")
HELLO = client_hello("public.example")


def connect(host, more=b"", version=b"1.1"):
    return b"CONNECT " + host + b" HTTP/" + version + b"\r\nHost: " + host + b"\r\n" + LOGIN + b"\r\n" + more


def get(url, fields=b"", version=b"1.1"):
    host = url.split(b"/")[2]
    return b"GET " + url + b" HTTP/" + version + b"\r\nHost: " + host + b"\r\n" + fields + b"\r\n"


def post(fields, body=b""):
    return b"POST http://public.example/ HTTP/1.1\r\nHost: public.example\r\n" + fields + b"\r\n" + body


def socks(address, port=443, command=1, kind=3, more=b""):
    if kind == 3:
        address = bytes([len(address)]) + address
    return (b"\5\1\0" + bytes([5, command, 0, kind]) + address + struct.pack(">H", port)) + more


def web(data):
    """In a tunnel on port 80."""
    return connect(b"public.example:80", data)


def tls(name, host=b"public.example:443"):
    return connect(host, client_hello(name))


B, O, OK = b"HTTP/1.1 403 Blocked by nacre", b"HTTP/1.1 400 ", b"HTTP/1.1 200 "
T = b"HTTP/1.1 200 Connection established\r\n\r\n"
CUT = T + b"\x15\3\3\0\2\2\x31"  # an alert, access denied
S = b"\5\0"  # how a SOCKS answer begins, and what follows
GRANTED, FAILED, DENIED_, NO_COMMAND, NO_TYPE = (S + b"\5" + bytes([n]) for n in (0, 1, 2, 7, 8))

# Name, what is sent, how the answer begins. None of it may bring a byte to the far side.
HOSTILE = [
    ("other host", connect(b"other.example:443"), B),
    ("other host, GET", get(b"http://other.example/"), B),
    ("other port", connect(b"public.example:25"), B),
    ("other port, GET", get(b"http://public.example:8080/"), B),
    ("the wildcard itself", connect(b"sub.example:443"), B),
    ("the wildcard's other port", connect(b"a.sub.example:80"), B),
    ("ends alike", connect(b"evilpublic.example:443"), B),
    ("goes on behind", connect(b"public.example.evil.example:443"), B),
    ("v4 of a named host", connect(b"93.184.216.34:443"), B),
    ("v4 of a rule, other port", connect(b"93.184.216.34:80"), B),
    ("v6 of no rule", connect(b"[2606:2800::35]:8080"), B),
    ("v4 mapped", connect(b"[::ffff:93.184.216.34]:443"), B),
    ("loopback", connect(b"127.0.0.1:443"), B),
    ("loopback v6", connect(b"[::1]:443"), B),
    ("short loopback", connect(b"127.1:443"), B),
    ("one number", connect(b"2130706433:443"), B),
    ("hexadecimal", connect(b"0x7f000001:443"), B),
    ("hexadecimal parts", connect(b"0x7f.1:443"), B),
    ("octal", connect(b"0177.0.0.1:443"), B),
    ("v4 of a rule, in octal", connect(b"0135.0270.0330.042:8080"), B),
    ("v4 of a rule, as a number", connect(b"1572395042:8080"), B),
    ("v4 of a rule, a dot behind and hex", connect(b"0x5d.0xb8.0xd8.0x22.:8080"), B),
    ("metadata", get(b"http://169.254.169.254/latest/meta-data/"), B),
    ("localhost", connect(b"localhost:443"), B),
    ("name to loopback", connect(b"loop.sub.example:443"), B),
    ("name to private", connect(b"private.sub.example:443"), B),
    ("name to link-local", connect(b"meta.sub.example:443"), B),
    ("name to NAT", connect(b"nat.sub.example:443"), B),
    ("name to unique local", connect(b"local.sub.example:443"), B),
    ("name to ::1", connect(b"six.sub.example:443"), B),
    ("name to NAT64 of private", connect(b"nat64.sub.example:443"), B),
    ("name to 6to4 of loopback", connect(b"6to4.sub.example:443"), B),
    ("name to this machine", connect(b"own.sub.example:443"), B),
    ("name to nowhere", connect(b"none.sub.example:443"), b"HTTP/1.1 502 Name Not Resolved"),
    ("a login in the host", get(b"http://public.example@other.example/"), O),
    ("a login in CONNECT", connect(b"public.example:443@other.example:443"), O),
    ("no port", connect(b"public.example"), O),
    ("port 0", connect(b"public.example:0"), O),
    ("port too high", connect(b"public.example:65979"), O),
    ("port with a sign", connect(b"public.example:+443"), O),
    ("zone", connect(b"[fe80::1%25lo]:443"), O),
    ("percent", connect(b"public%2eexample:443"), O),
    ("NUL", connect(b"public.example\0.evil.example:443"), O),
    ("not ASCII", connect("públic.example:443".encode()), O),
    ("fullwidth", connect("public\uff0eexample:443".encode()), O),
    ("two dots", connect(b"public..example:443"), O),
    ("long label", connect(b"a" * 64 + b".sub.example:443"), O),
    ("blank before the colon", connect(b"public.example :443"), O),
    ("https without CONNECT", b"GET https://public.example/ HTTP/1.1\r\nHost: public.example\r\n\r\n", O),
    ("ftp", b"GET ftp://public.example/ HTTP/1.1\r\nHost: public.example\r\n\r\n", O),
    ("a file of the proxy", b"GET / HTTP/1.1\r\nHost: public.example\r\n\r\n", O),
    ("star", b"OPTIONS * HTTP/1.1\r\nHost: public.example\r\n\r\n", O),
    ("backslash", get(b"http://public.example\\@other.example/"), O),
    ("fragment", get(b"http://public.example#@other.example/"), O),
    ("Host of another", b"GET http://public.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n", B),
    ("Host with another port", b"GET http://public.example/ HTTP/1.1\r\nHost: public.example:8080\r\n\r\n", B),
    ("two Hosts", get(b"http://public.example/", b"Host: other.example\r\n"), O),
    ("no Host", b"GET http://public.example/ HTTP/1.1\r\n\r\n", O),
    ("HTTP/0.9", b"GET http://public.example/\r\n\r\n", O),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", O),
    ("bare LF", b"GET http://public.example/ HTTP/1.1\nHost: public.example\n\n", O),
    ("bare CR", b"GET http://public.example/ HTTP/1.1\r\nHost: public.example\rX: y\r\n\r\n", O),
    ("folded", get(b"http://public.example/", b"X: y\r\n Host: other.example\r\n"), O),
    ("blank in a name", get(b"http://public.example/", b"Host : other.example\r\n"), O),
    ("no name", get(b"http://public.example/", b": x\r\n"), O),
    ("blank first line", b"\r\nGET http://public.example/ HTTP/1.1\r\n\r\n", O),
    ("two blanks", b"GET  http://public.example/ HTTP/1.1\r\nHost: public.example\r\n\r\n", O),
    ("length and chunks", post(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"), O),
    ("two lengths", post(b"Content-Length: 5\r\nContent-Length: 6\r\n", b"123456"), O),
    ("list of lengths", post(b"Content-Length: 5, 6\r\n", b"123456"), O),
    ("length below 0", post(b"Content-Length: -1\r\n"), O),
    ("length beyond all", post(b"Content-Length: 99999999999999999999\r\n"), O),
    ("two encodings", post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"), O),
    ("odd encoding", post(b"Transfer-Encoding: xchunked\r\n"), O),
    ("encoding hidden by a tab", post(b"Transfer-Encoding:\x0bchunked\r\n"), O),
    ("a length that Connection takes away", post(b"Content-Length: 5\r\nConnection: content-length\r\n", b"12345"), O),
    ("CONNECT with a body", b"CONNECT public.example:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345", O),
    ("head without end", b"GET http://public.example/ HTTP/1.1\r\n" + b"X: " + b"y" * 70000, b"HTTP/1.1 431 "),
    ("TLS to the proxy", HELLO, O),
    ("SOCKS4", b"\4\1\1\xbb\x5d\xb8\xd8\x22\0", b"\0\x5b"),
    ("SOCKS6", b"\6\1\0", O),
    ("SOCKS, other host", socks(b"other.example"), DENIED_),
    ("SOCKS, loopback", socks(b"\x7f\0\0\1", kind=1), DENIED_),
    ("SOCKS, ::1", socks(SIX, kind=4), DENIED_),
    ("SOCKS, mapped", socks(b"\0" * 10 + b"\xff\xff\x7f\0\0\1", kind=4), DENIED_),
    ("SOCKS, digits", socks(b"0x7f.1"), DENIED_),
    ("SOCKS, private name", socks(b"private.sub.example"), DENIED_),
    ("SOCKS, NUL", socks(b"public.example\0.evil"), FAILED),
    ("SOCKS, nothing", socks(b""), FAILED),
    ("SOCKS, port 0", socks(b"public.example", 0), FAILED),
    ("SOCKS, BIND", socks(b"public.example", command=2), NO_COMMAND),
    ("SOCKS, UDP", socks(b"public.example", command=3), NO_COMMAND),
    ("SOCKS, RESOLVE", socks(b"public.example", command=0xf0), NO_COMMAND),
    ("SOCKS, type 2", socks(b"\0\0\0\0", kind=2), NO_TYPE),
    ("SOCKS, GSSAPI only", b"\5\1\1", b"\5\xff"),
    ("SOCKS, no method", b"\5\0", b"\5\xff"),
    ("SOCKS, other login version", b"\5\1\2\2\1a\1b", b"\5\2" + FAILED[2:3] + b"\1"),
    ("SNI of another", tls("other.example"), CUT),
    ("SNI of a name below", tls("a.public.example"), CUT),
    ("no SNI", tls(None), CUT),
    ("no TLS on 443", connect(b"public.example:443", b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"), CUT),
    ("SSL 2 on 443", connect(b"public.example:443", b"\x80\x2e\1\3\1" + b"\0" * 43), CUT),
    ("SNI of another, in pieces", connect(b"public.example:443", in_records(client_hello("other.example"), 7)), CUT),
    ("SNI of another, by SOCKS", socks(b"public.example", more=client_hello("other.example")), S + b"\5\0\0\1" + b"\0" * 6 + CUT[-7:]),
    ("SNI of another, on port 80", web(client_hello("other.example")), CUT),
    ("SNI of another, on any port", connect(b"any.example:8080", client_hello("other.example")), CUT),
    ("a record of nothing", connect(b"public.example:443", b"\x16\3\1\0\0" + HELLO), CUT),
    ("Host of another in a tunnel", web(b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"), T + B),
    ("no Host in a tunnel", web(b"GET / HTTP/1.1\r\n\r\n"), T + O),
    ("a proxy in a tunnel", web(get(b"http://public.example/")), T + O),
    ("CONNECT in a tunnel", web(connect(b"other.example:443")), T + O),
    ("no HTTP in a tunnel on 80", web(b"SSH-2.0-x\r\n\r\n"), T + O),
]


def hostile_requests(networks, far, _):
    assert len(HOSTILE) >= 60 and len({name for name, _, _ in HOSTILE}) == len(HOSTILE)
    wrong = []
    with Gate(networks) as gate:
        for name, sent, wanted in HOSTILE:
            before = far.seen()[1]
            got = gate.ask(sent)
            if not got.startswith(wanted):
                wrong.append((name, wanted, got[:300]))
            if far.seen()[1] != before:
                wrong.append((name, "it reached the far side"))
        until(lambda: not gate.children(), "all visits are over")
    assert not wrong, "\n".join(map(str, wrong))


def without_end(networks, far, _):
    """What breaks off in the middle brings nothing to the far side, wherever it does."""
    with Gate(networks) as gate:
        for whole in connect(b"public.example:443", HELLO), get(b"http://public.example/"), socks(b"public.example"):
            before = far.seen()[1]
            for at in sorted({*range(0, min(len(whole) - 1, 90)), *range(90, len(whole) - 1, 37)}):
                gate.ask(whole[:at], shut=True)
            assert far.seen()[1] == before, whole


def body_of(answer):
    assert answer.startswith(OK), answer
    return answer.partition(b"\r\n\r\n")[2]


def requests_pass(networks, _, place):
    with Gate(networks) as gate:
        got = body_of(gate.ask(get(b"HTTP://PUBLIC.example.:80/a?b", b"X-Y: z\r\nTE: trailers\r\nUpgrade: h2c\r\n"
                                   b"Connection: keep-alive, TE, upgrade\r\nProxy-Connection: x\r\n" + LOGIN)))
        assert got == (b"GET /a?b HTTP/1.1\r\nHost: public.example\r\nX-Y: z\r\nConnection: close\r\n\r\n"), got
        got = body_of(gate.ask(b"GET http://public.example?q HTTP/1.0\r\n\r\n"))
        assert got.startswith(b"GET /?q HTTP/1.0\r\n"), got
        got = body_of(gate.ask(get(b"http://any.example:80/")))
        assert got.startswith(b"GET / HTTP/1.1\r\nHost: any.example\r\n"), got


def bodies_pass(networks, _, place):
    more = get(b"http://other.example/")
    with Gate(networks) as gate:
        got = body_of(gate.ask(b"POST http://public.example/slow HTTP/1.1\r\nHost: public.example\r\n"
                               b"Content-Length: 5\r\n\r\nhello" + more))
        assert got.endswith(b"\r\n\r\nhello"), got
        big = os.urandom(300000)
        got = body_of(gate.ask(post(b"Content-Length: 300000\r\n", big)))
        assert got.endswith(big)
        chunks = b"".join(b"%X\r\n%s\r\n" % (n, b"x" * n) for n in (1, 15, 16, 70000)) + b"0\r\nX: y\r\n\r\n"
        got = body_of(gate.ask(post(b"Transfer-Encoding: chunked\r\n", chunks + more)))
        assert got.count(b"x") == 1 + 15 + 16 + 70000 + len(b"x") and b"other.example" not in got, got[-200:]
        for odd in b"g\r\n", b"5;a=b\r\nhello\r\n0\r\n\r\n", b"5\r\nhelloo\r\n0\r\n\r\n", b"ffffffffffffffff\r\n":
            got = gate.ask(post(b"Transfer-Encoding: chunked\r\n", odd))
            assert got == b"", got


def continue_passes(networks, _, place):
    with Gate(networks) as gate, gate.connect() as client:
        client.sendall(post(b"Content-Length: 5\r\nExpect: 100-continue\r\n"))
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"hello")
        assert body_of(read_all(client)).endswith(b"hello")


def talk_tls(client, name, data):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(client, server_hostname=name) as secure:
        secure.sendall(data)
        return read_all(secure)


def tunnels_pass(networks, _, place):
    request = b"GET /x HTTP/1.1\r\nHost: public.example\r\n\r\n"
    with Gate(networks) as gate:
        for host in b"public.example:443", b"PUBLIC.example.:443":
            with gate.connect() as client:
                client.sendall(connect(host))
                assert read_some(client, len(T)) == T
                assert body_of(talk_tls(client, "public.example", request)) == request
        for kind, address in (3, b"a.b.sub.example"), (3, b"mixed.sub.example"):
            with gate.connect() as client:
                client.sendall(b"\5\2\0\2")
                assert read_some(client, 2) == b"\5\2"
                client.sendall(b"\1\x20" + ID + b"\1x")
                assert read_some(client, 2) == b"\1\0"
                client.sendall(socks(address, kind=kind)[3:])
                assert read_some(client, 10) == b"\5\0\0\1" + b"\0" * 6
                assert body_of(talk_tls(client, address.decode(), request)) == request
        got = gate.ask(web(b"GET /x HTTP/1.1\r\nHost: public.example\r\nConnection: keep-alive\r\n\r\n" + request))
        assert got.startswith(T + OK) and b"Connection: close" in got and got.count(b"GET /x") == 1, got


def addresses_of_rules_pass(networks, _, place):
    four, six = socket.inet_aton(FAR), socket.inet_pton(socket.AF_INET6, FAR_SIX)
    with Gate(networks) as gate:
        for first in (connect(b"93.184.216.34:8080"), connect(b"[2606:2800:0::34]:8080"),
                      connect(b"[::ffff:93.184.216.34]:8080"), socks(four, 8080, kind=1), socks(six, 8080, kind=4)):
            got = gate.ask(first + b"ping", shut=True)
            assert got.endswith(b"ping<end>"), (first, got)
    hello = client_hello(None)
    with Gate(networks, rules=FAR) as gate:
        got = gate.ask(connect(FAR.encode() + b":443", hello), shut=True)
        assert got.startswith(T) and len(got) > len(T) + 7, got
    with Gate(networks, rules=FAR) as gate:
        assert gate.ask(connect(FAR.encode() + b":443", HELLO)) == CUT


def hello_in_pieces(networks, _, place):
    """However a ClientHello comes, it is read to its end, and the server gets it as it was."""
    with Gate(networks) as gate:
        for data in HELLO, in_records(HELLO, 1), in_records(HELLO, 100):
            with gate.connect() as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.sendall(connect(b"public.example:443"))
                assert read_some(client, len(T)) == T
                for at in range(0, len(data), 11):
                    client.sendall(data[at:at + 11])
                assert read_some(client, 1) in (b"\x16", b"\x15"), "the server answers"


def servers_may_speak_first(networks, _, place):
    with Gate(networks) as gate, gate.connect() as client:
        client.sendall(connect(b"public.example:22"))
        assert read_some(client, len(T)) == T
        assert read_some(client, 13) == b"SSH-2.0-far\r\n"
        for word in b"one", b"two":
            client.sendall(word)
            assert read_some(client, 3) == word
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b"<end>"


def localhost_is_what_it_says(networks, _, place):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with Gate(networks, rules=f"localhost:{port}\n*.sub.example:{port}") as gate:
            with gate.connect() as client:
                client.sendall(connect(b"localhost:%d" % port))
                assert read_some(client, len(T)) == T
            server.accept()[0].close()
            assert gate.ask(connect(b"loop.sub.example:%d" % port)).startswith(B)
            assert gate.ask(connect(b"127.0.0.1:%d" % port)).startswith(B)


def denials_are_told(networks, _, place):
    login = b"\1\x20" + ID + b"\1x"
    rows = [
        (connect(b"other.example:443"), "other.example:443", "no rule"),
        (connect(b"public.example:25"), "public.example:25", "other ports"),
        (connect(b"127.1:443"), "127.1:443", "usual form"),
        (connect(b"private.sub.example:443"), "private.sub.example:443", "10.1.2.3 (private)"),
        (connect(b"[fe80::1]:443"), "[fe80::1]:443", "no rule"),
        (tls("other.example"), "public.example:443", "SNI says other.example"),
        (tls(None), "public.example:443", "names no host"),
        (b"GET http://public.example/ HTTP/1.1\r\nHost: other.example\r\n" + LOGIN + b"\r\n",
         "public.example:80", "Host says other.example:80"),
        (b"\5\1\2" + login + socks(b"other.example")[3:], "other.example:443", "no rule"),
    ]
    with Gate(networks) as gate, Door(ID) as door:
        for sent, target, why in rows:
            got = gate.ask(sent)
            what, told, reason = door.hear()
            assert (what, told) == ("", target) and why in reason, (sent, what, told, reason)
            if got.startswith(B):
                assert got.endswith(f"nacre: {target} was blocked: {reason}.\n".encode()), got
        # Nobody's denial is not told, nor is what is no denial.
        gate.ask(get(b"http://other.example/"))
        gate.ask(get(b"http://other.example/", b"Proxy-Authorization: Basic !\r\n"))
        gate.ask(connect(b"none.sub.example:443"))
        until(lambda: not gate.children(), "all visits are over")
        assert door.is_quiet()
    with Gate(networks) as gate:
        assert gate.ask(connect(b"other.example:443")).startswith(B), "also without a keeper"


def slow_clients_are_cut_off(networks, far, _):
    before = far.seen()[1]
    with Gate(networks, patience_ms=600 * scale()) as gate:
        for data in connect(b"public.example:443"), socks(b"public.example"), connect(b"public.example:443", HELLO):
            began, got = time.monotonic(), b""
            with gate.connect() as client, contextlib.suppress(OSError):
                client.sendall(data[:-40] if HELLO in data else b"")
                client.settimeout(0.05)
                for byte in data * 100:
                    client.sendall(bytes([byte]) if HELLO not in data else b"")
                    try:
                        more = client.recv(4096)
                    except TimeoutError:
                        continue
                    got += more
                    if not more:
                        break
                    if time.monotonic() - began > 20:
                        break
            took = time.monotonic() - began
            assert took < 15 * scale(), (data, took, got)
            assert got.startswith(b"HTTP/1.1 408 ") or got.startswith(b"\5") or HELLO in data, got
        until(lambda: not gate.children(), "nobody is waited for any more")
    assert far.seen()[1] == before


def a_crowd_is_told(networks, _, place):
    with Gate(networks) as gate:
        slow = [gate.connect() for _ in range(128)]
        until(lambda: len(gate.children()) == 128, "each has its process")
        began = time.monotonic()
        assert gate.ask(get(b"http://public.example/")).startswith(b"HTTP/1.1 503 ")
        assert gate.ask(socks(b"public.example")).startswith(FAILED)
        assert time.monotonic() - began < 10 * scale()
        more = [gate.connect() for _ in range(60)]
        for client in more:
            assert client.recv(100)[:13] in (b"HTTP/1.1 408 ", b""), "they are let go soon"
        slow.pop().close()
        until(lambda: len(gate.children()) == 127, "its place is free")
        assert gate.ask(get(b"http://public.example/")).startswith(OK)
        for client in slow + more:
            client.close()
        until(lambda: not gate.children(), "all have gone")


def is_alive(pid):
    """There, and not only waiting to be reaped by whoever adopts orphans."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin1") as file:
            return file.read().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def open_tunnel(gate):
    client = gate.connect()
    client.sendall(connect(b"public.example:22"))
    assert read_some(client, len(T) + 13).startswith(T)
    return client


def start_owner():
    owner = subprocess.Popen(["sleep", "1000"])
    return owner, os.pidfd_open(owner.pid)


def it_ends_with_each(networks, _, place):
    for which in "sock", "line", "owner", "listen and sock", "kill":
        owner, pidfd = start_owner()
        with Gate(networks, owner=pidfd) as gate:
            client, idle = open_tunnel(gate), gate.connect()
            until(lambda: len(gate.children()) == 2, "two visits")
            visits = gate.children()
            if which == "owner":
                owner.kill()
            elif which == "kill":
                gate.process.kill()
            else:
                if "listen" in which:
                    gate.listen.close()
                (gate.line if which == "line" else gate.sock).close()
            gate.process.wait(20)
            assert read_all(client) == b"" and read_all(idle) == b"", which
            until(lambda: not any(map(is_alive, visits)), "visits go with it")
            client.close()
            idle.close()
        owner.kill()
        owner.wait()
        os.close(pidfd)


def what_it_is(networks, _, place):
    with Gate(networks) as gate, open_tunnel(gate):
        pid, visit = gate.process.pid, gate.children()[0]
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            assert file.read() == "nacre-gate\n"
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
        assert status["NoNewPrivs"] == "1", status
        assert os.stat(f"/proc/{visit}/environ").st_uid == 0
        if os.getuid() == 0 and not SANITIZED:
            with contextlib.suppress(PermissionError):
                count = [len(os.listdir(f"/proc/{p}/fd")) for p in (pid, visit)]
                assert count == [8, 5] or count == [7, 5], count
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1:
            os.kill(pid, number)
        assert gate.ask(get(b"http://public.example/")).startswith(OK), "nobody ends it by a signal"


def odd_hellos(networks, _, place):
    for rules, error in ("a b", 22), ("public.example\0", 22), ("x" * 16385, 90), ("*", 22):
        gate = Gate(networks, rules=rules)
        assert gate.ready() == error, (rules[:20], error)
        gate.process.wait(20)
        gate.end()
    with socket.socket() as deaf:
        gate = Gate(networks, listen=deaf)
        assert gate.ready() == 22
        gate.end()
    by_hand = subprocess.run([GATE], capture_output=True, check=False)
    assert by_hand.returncode == 2 and b"not by hand" in by_hand.stderr


if __name__ == "__main__":
    main([hostile_requests, without_end, requests_pass, bodies_pass, continue_passes, tunnels_pass,
          addresses_of_rules_pass, hello_in_pieces, servers_may_speak_first, localhost_is_what_it_says,
          denials_are_told, slow_clients_are_cut_off, a_crowd_is_told, it_ends_with_each, what_it_is,
          odd_hellos])
