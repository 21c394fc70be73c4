#!/usr/bin/env python3
"""What `nacre serve` answers to requests that are malformed, hostile, slow or too much: a table with
the one right answer for each. After each of them the server serves a good request.
usage: [NACRE=build/nacre] test_http.py [CASE...]"""
import json
import socket
import sys
import time

sys.dont_write_bytecode = True
import os  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from http_client import House, eventually_gone  # noqa: E402
from mcp_client import main  # noqa: E402

PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {
    "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
              "io.modelcontextprotocol/clientCapabilities": {}}}}).encode()
MIB = 1 << 20


def request(first="POST /mcp HTTP/1.1", body=PING, drop=(), **fields):
    """A good request with something changed: fields by name, with _ for -; None leaves one out. A
    list is a field that stands several times."""
    usual = {"Host": "127.0.0.1:{port}", "Authorization": "Bearer {token}",
             "Accept": "application/json, text/event-stream", "Content-Type": "application/json",
             "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover",
             "Content-Length": str(len(body))}
    usual.update({name.replace("_", "-"): value for name, value in fields.items()})
    lines = [first]
    for name, value in usual.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None and name not in drop:
                lines.append(f"{name}: {one}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def chunked(body, **fields):
    return request(body=body, Content_Length=None, Transfer_Encoding="chunked", **fields)


def in_chunks(data, size):
    pieces = [data[i:i + size] for i in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


def head(line):
    """A good request with one more line in its head, as it is."""
    first, rest = request().split(b"\r\n", 1)
    return first + b"\r\n" + line + b"\r\n" + rest


def with_origin(origin):
    return request(Origin=origin)


LONG = b"x" * 17000

# Status, or None: the connection ends without an answer.
TABLE = [
    # Good ones, in odd clothes.
    ("a good request", request(), 200),
    ("chunked", chunked(in_chunks(PING, 7)), 200),
    ("chunked, byte by byte", chunked(in_chunks(PING, 1)), 200),
    ("chunks with a field behind them", chunked(in_chunks(PING, 50)[:-2] + b"X: y\r\n\r\n"), 200),
    ("field names in capitals", request().replace(b"Content-Type", b"CONTENT-TYPE"), 200),
    ("blanks around a value", request(Mcp_Method="  server/discover\t "), 200),
    ("types in the other order", request(Accept="text/event-stream;q=0.5 , application/json"), 200),
    ("anything accepted", request(Accept="*/*"), 200),
    ("called localhost", request(Host="localhost:{port}"), 200),
    ("called LOCALHOST", request(Host="LOCALHOST:{port}"), 200),
    ("called [::1]", request(Host="[::1]:{port}"), 200),
    ("from a page of our own", request(Origin="http://127.0.0.1:{port}",
                                       Sec_Fetch_Site="same-origin"), 200),
    ("an awaited body", request(Expect="100-continue"), 200),
    ("HTTP/1.0", request("POST /mcp HTTP/1.0"), 200),
    # Lines.
    ("no HTTP", b"hello\r\n\r\n", 400),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64), 400),
    ("a bare LF", request().replace(b"\r\n", b"\n"), 400),
    ("one bare LF", head(b"X: y\nZ: w"), 400),
    ("a bare CR in a value", head(b"X: a\rb"), 400),
    ("a NUL in a value", head(b"X: a\0b"), 400),
    ("a NUL in a name", head(b"X\0Y: a"), 400),
    ("a control byte in a value", head(b"X: a\x01b"), 400),
    ("a folded line", head(b"X: a\r\n b"), 400),
    ("a field without a colon", head(b"Nonsense"), 400),
    ("a field without a name", head(b": y"), 400),
    ("a blank before the colon", head(b"X : y"), 400),
    ("a blank before the name", head(b" X: y"), 400),
    ("an empty line first", b"\r\n" + request(), 400),
    ("two blanks in the first line", request("POST  /mcp HTTP/1.1"), 400),
    ("a first line of two words", request("POST /mcp"), 400),
    ("a method in small letters", request("post /mcp HTTP/1.1"), 501),
    ("a method of nobody", request("BREW /mcp HTTP/1.1"), 501),
    ("CONNECT", request("CONNECT 127.0.0.1:22 HTTP/1.1"), 501),
    ("TRACE", request("TRACE /mcp HTTP/1.1"), 501),
    ("HTTP/2.0", request("POST /mcp HTTP/2.0"), 505),
    ("the greeting of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("HTTP/1.2", request("POST /mcp HTTP/1.2"), 505),
    ("HTTP in small letters", request("POST /mcp http/1.1"), 400),
    ("a head of 17,000 bytes", head(b"X: " + LONG), 431),
    ("a target of 17,000 bytes", request("POST /" + LONG.decode() + " HTTP/1.1"), 431),
    ("65 fields", head(b"\r\n".join(b"X-%d: y" % i for i in range(64))), 431),
    # Targets.
    ("an absolute target", request("POST http://127.0.0.1/mcp HTTP/1.1"), 400),
    ("a foreign absolute target", request("POST http://evil.example/mcp HTTP/1.1"), 400),
    ("a target without a slash", request("POST mcp HTTP/1.1"), 400),
    ("dots in a path", request("POST /mcp/../mcp HTTP/1.1"), 400),
    ("an escape in a path", request("POST /%6dcp HTTP/1.1"), 400),
    ("two slashes", request("POST //mcp HTTP/1.1"), 400),
    ("a fragment", request("POST /mcp#x HTTP/1.1"), 400),
    ("a path of nobody", request("POST /nothing HTTP/1.1"), 404),
    ("a name that is too long", request("POST /mcp/" + "n" * 65 + " HTTP/1.1"), 404),
    ("a name of two parts", request("POST /mcp/a/b HTTP/1.1"), 404),
    ("where tokens are given out elsewhere", request("GET /.well-known/oauth-protected-resource "
                                                     "HTTP/1.1", body=b""), 404),
    # Lengths.
    ("two lengths that differ", request(Content_Length=["5", "6"]), 400),
    ("two lengths that agree", request(Content_Length=[str(len(PING))] * 2), 400),
    ("a list of lengths", request(Content_Length="5, 5"), 400),
    ("a length and chunks", request(body=in_chunks(PING, 9), Transfer_Encoding="chunked"), 400),
    ("a length with a sign", request(Content_Length="+5"), 400),
    ("a length below 0", request(Content_Length="-1"), 400),
    ("a length in hex", request(Content_Length="0x10"), 400),
    ("an empty length", request(Content_Length=""), 400),
    ("a length beyond all", request(Content_Length="9" * 30), 400),
    ("a length of 8 MiB and one", request(Content_Length=str(8 * MIB + 1)), 413),
    ("xchunked", chunked(in_chunks(PING, 9)).replace(b": chunked", b": xchunked"), 501),
    ("gzip, chunked", chunked(in_chunks(PING, 9)).replace(b": chunked", b": gzip, chunked"), 501),
    ("chunked twice", chunked(in_chunks(PING, 9)).replace(
        b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
     400),
    ("chunks in HTTP/1.0", chunked(in_chunks(PING, 9), first="POST /mcp HTTP/1.0"), 400),
    ("a chunk without a size", chunked(b"\r\nabc\r\n0\r\n\r\n"), 400),
    ("a chunk with a sign", chunked(b"+5\r\nabcde\r\n0\r\n\r\n"), 400),
    ("a chunk with an extension", chunked(b"5;x=y\r\nabcde\r\n0\r\n\r\n"), 400),
    ("a chunk longer than it says", chunked(b"3\r\nabcde\r\n0\r\n\r\n"), 400),
    ("a chunk beyond all", chunked(b"fffffffffffffffff\r\n"), 400),
    ("bare LFs between chunks", chunked(b"5\nabcde\n0\n\n"), 400),
    # Whom it is for, and from whom.
    ("no Host", request(Host=None), 400),
    ("two Hosts", request(Host=["127.0.0.1:{port}", "127.0.0.1:{port}"]), 400),
    ("a Host that is not ours", request(Host="evil.example.com"), 403),
    ("a Host that begins as ours", request(Host="localhost.evil.com:{port}"), 403),
    ("a Host that ends as ours", request(Host="evil-localhost:{port}"), 403),
    ("an address as a name of somebody", request(Host="127.0.0.1.nip.io:{port}"), 403),
    ("0.0.0.0", request(Host="0.0.0.0:{port}"), 403),
    ("a trailing dot", request(Host="localhost.:{port}"), 403),
    ("another port", request(Host="127.0.0.1:1"), 403),
    ("no port", request(Host="127.0.0.1"), 403),
    ("a login in Host", request(Host="x@127.0.0.1:{port}"), 403),
    ("an Origin that is not ours", with_origin("http://evil.example.com"), 403),
    ("the Origin null", with_origin("null"), 403),
    ("an Origin of https", with_origin("https://127.0.0.1:{port}"), 403),
    ("an Origin that begins as ours", with_origin("http://127.0.0.1:{port}.evil.com"), 403),
    ("an Origin with a path", with_origin("http://127.0.0.1:{port}/"), 403),
    ("two Origins", with_origin(["http://127.0.0.1:{port}", "http://evil.example"]), 403),
    ("from another site", request(Sec_Fetch_Site="cross-site"), 403),
    ("from another port of ours", request(Sec_Fetch_Site="same-site"), 403),
    # Tokens.
    ("no token", request(Authorization=None), 401),
    ("an empty token", request(Authorization="Bearer "), 401),
    ("a wrong token", request(Authorization="Bearer " + "0" * 64), 401),
    ("half a token", request(Authorization="Bearer {half}"), 401),
    ("a token and more", request(Authorization="Bearer {token}0"), 401),
    ("a token of another scheme", request(Authorization="Basic {token}"), 401),
    ("two tokens", request(Authorization=["Bearer {token}", "Bearer {token}"]), 401),
    ("a token in the target", request("POST /mcp?token={token} HTTP/1.1", Authorization=None), 401),
    ("a path of nobody without a token", request("GET /nothing HTTP/1.1", body=b"",
                                                 Authorization=None), 401),
    # Types and methods.
    ("a body of another type", request(Content_Type="text/plain"), 415),
    ("a body of a form", request(Content_Type="application/x-www-form-urlencoded"), 415),
    ("no type", request(Content_Type=None), 415),
    ("one type accepted", request(Accept="application/json"), 406),
    ("no type accepted", request(Accept=None), 406),
    ("what a page asks before it asks", request("OPTIONS /mcp HTTP/1.1", body=b"",
                                                Origin="http://127.0.0.1:{port}"), 405),
    ("HEAD", request("HEAD /mcp HTTP/1.1", body=b""), 405),
    ("a stream without a session", request("GET /mcp HTTP/1.1", body=b""), 405),
    ("an end without a session", request("DELETE /mcp HTTP/1.1", body=b""), 405),
    ("a demand of nobody", request(Expect="200-ok"), 417),
    # Messages.
    ("no body", request(body=b""), 400),
    ("no JSON", request(body=b"{"), 400),
    ("no UTF-8", request(body=b'{"a":"\xff"}'), 400),
    ("a number", request(body=b"1"), 400),
    ("brackets without end", request(body=b"[" * 100000), 400),
]


def fill(house, data):
    return (data.replace(b"{port}", str(house.port).encode())
            .replace(b"{token}", house.token.encode()).replace(b"{half}", house.token[:32].encode()))


def check_row(house, name, data, wanted):
    c = house.connect()
    try:
        c.send(fill(house, data))
    except (BrokenPipeError, ConnectionResetError):
        pass
    answer = c.answer(head_only=b"HEAD " in data[:5])
    assert answer.status == wanted, f"{name}: {answer}"
    assert "access-control-allow-origin" not in answer.fields, name
    assert house.token.encode() not in answer.body, name
    if wanted >= 400 and wanted not in (404, 405) and answer.fields.get("connection") == "close":
        assert eventually_gone(c), f"{name}: the connection stays"
    c.close()


def every_request_has_its_answer(serve):
    house = serve()
    assert len(TABLE) >= 60
    for name, data, wanted in TABLE:
        if wanted == 401:
            time.sleep(0.06)  # no more than twenty in a second
        check_row(house, name, data, wanted)
    check_row(house, "a good request after all of them", request(), 200)


def wrong_tokens_are_slowed_and_harm_nobody(serve):
    house = serve()
    seen = set()
    for _ in range(60):
        c = house.connect()
        c.send(fill(house, request(Authorization="Bearer " + "1" * 64)))
        seen.add(c.answer().status)
        c.close()
    assert seen == {401, 429}, seen
    check_row(house, "who has the token", request(), 200)


def bodies_of_8_mib(serve):
    house = serve()
    filler = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"y" * 100
    for size, wanted in ((8 * MIB - 1, 400), (8 * MIB, 400)):
        body = filler + b"z" * (size - len(filler) - 4) + b'"}} '
        assert len(body) == size
        # It is read whole, and only then found to belong to no session.
        answer = house.ask("POST", "/mcp", body)
        assert answer.status == wanted and b"Mcp-Session-Id" in answer.body, answer
    c = house.connect()
    body = in_chunks(filler + b"z" * (8 * MIB), 65536)
    try:
        c.send(fill(house, chunked(body)))
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert c.answer().status == 413
    check_row(house, "a good request", request(), 200)


def requests_come_in_pieces(serve):
    house = serve()
    data = fill(house, chunked(in_chunks(PING, 11)))
    c = house.connect()
    c.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for i in range(len(data)):
        c.send(data[i:i + 1])
    assert c.answer().status == 200


def requests_come_at_once(serve):
    house = serve()
    good = fill(house, request())
    c = house.connect()
    c.send(good * 50 + fill(house, chunked(in_chunks(PING, 5))) + good)
    for _ in range(52):
        answer = c.answer()
        assert answer.status == 200 and answer.json["id"] == 1
    c.send(good + b"nonsense\r\n\r\n" + good)
    assert [c.answer().status, c.answer().status] == [200, 400]
    assert eventually_gone(c), "what follows nonsense is not read"


def half_closed_clients_are_answered(serve):
    house = serve()
    for data in (request(), chunked(in_chunks(PING, 30)), request("POST /nothing HTTP/1.1")):
        c = house.connect()
        c.send(fill(house, data))
        c.socket.shutdown(socket.SHUT_WR)
        assert c.answer().status in (200, 404)
        assert eventually_gone(c)
    c = house.connect()
    c.send(fill(house, request())[:40])
    c.socket.shutdown(socket.SHUT_WR)
    assert eventually_gone(c)


def a_refusal_can_be_read_while_it_is_sent_to(serve):
    house = serve()
    for _ in range(20):
        c = house.connect()
        try:
            c.send(fill(house, request(Content_Length=str(9 * MIB)))[:-1] + b"x" * 300000)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert c.answer().status == 413


def strangers_have_few_places(serve):
    house = serve()
    strangers = [house.connect() for _ in range(100)]
    refused = [c for c in strangers[64:] if eventually_gone(c, 5)]
    assert len(refused) == 36
    for c in strangers:
        c.close()
    deadline = time.monotonic() + 10
    while True:
        try:
            check_row(house, "when they have gone", request(), 200)
            return
        except (EOFError, ConnectionResetError):
            assert time.monotonic() < deadline


def slow_heads_end(serve):
    """Ten seconds for a head, however slowly it comes."""
    house = serve()
    c = house.connect()
    c.send(b"POST /mcp HTTP/1.1\r\n")
    began = time.monotonic()
    c.socket.settimeout(0.5)
    while True:
        try:
            assert c.answer().status == 408
            break
        except TimeoutError:
            c.send(b"X: y\r\n")
    assert 8 < time.monotonic() - began < 30


CASES = [every_request_has_its_answer, wrong_tokens_are_slowed_and_harm_nobody, bodies_of_8_mib,
         requests_come_in_pieces, requests_come_at_once, half_closed_clients_are_answered,
         a_refusal_can_be_read_while_it_is_sent_to, strangers_have_few_places, slow_heads_end]

if __name__ == "__main__":
    main(CASES, House)
