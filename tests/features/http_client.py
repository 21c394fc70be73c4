"""A raw client of `nacre serve`: requests byte by byte, streams event by event."""
import json
import os
import re
import signal
import socket
import subprocess
import time

from mcp_client import MODERN, NACRE, PREFIX, home_parent

LIMIT = 20


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self):
        """The one with the answer, as JSON or among events."""
        if self.fields["content-type"] == "application/json":
            return self.json
        for line in self.body.decode().split("\n"):
            if line.startswith("data: "):
                message = json.loads(line[6:])
                if isinstance(message, dict) and "id" in message and "method" not in message:
                    return message
        raise AssertionError(f"no answer in {self}")

    def __repr__(self):
        return f"{self.status} {self.fields} {self.body[:300]!r}"


class Connection:
    """One connection; what comes is read as answers, or as the events of one."""

    def __init__(self, place):
        family = socket.AF_UNIX if isinstance(place, str) else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.settimeout(LIMIT)
        self.socket.connect(place)
        self.buffer = b""
        self.chunked = False
        self.events_text = b""

    def send(self, data):
        self.socket.sendall(data)

    def close(self):
        self.socket.close()

    def more(self):
        data = self.socket.recv(65536)
        self.buffer += data
        return len(data) > 0

    def head(self):
        """The status and the fields of the next answer; informational ones are passed over."""
        while b"\r\n\r\n" not in self.buffer:
            if not self.more():
                raise EOFError(f"no answer, only {self.buffer!r}")
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        status = int(first.split(" ")[1])
        if status == 100:
            return self.head()
        fields = {}
        for line in lines:
            name, _, value = line.partition(": ")
            assert name.lower() not in fields, f"{name} stands twice"
            fields[name.lower()] = value
        self.chunked = fields.get("transfer-encoding") == "chunked"
        return status, fields

    def chunk(self):
        """The next chunk; b"" behind the last one."""
        while b"\r\n" not in self.buffer:
            if not self.more():
                raise EOFError("a chunk was not whole")
        size, _, rest = self.buffer.partition(b"\r\n")
        size = int(size, 16)
        while len(rest) < size + 2:
            self.buffer = size_line(size) + rest
            if not self.more():
                raise EOFError("a chunk was not whole")
            rest = self.buffer.partition(b"\r\n")[2]
        assert rest[size:size + 2] == b"\r\n"
        self.buffer = rest[size + 2:]
        return rest[:size]

    def answer(self, head_only=False):
        status, fields = self.head()
        if head_only or status in (204, 304):
            return Answer(status, fields, b"")
        if self.chunked:
            body = b""
            while piece := self.chunk():
                body += piece
            return Answer(status, fields, body)
        if "content-length" in fields:
            size = int(fields["content-length"])
            while len(self.buffer) < size:
                if not self.more():
                    raise EOFError("the body was not whole")
            body, self.buffer = self.buffer[:size], self.buffer[size:]
            return Answer(status, fields, body)
        while self.more():
            pass
        body, self.buffer = self.buffer, b""
        return Answer(status, fields, body)

    def event(self):
        """The next event of a stream as (id, data); None at its end. Comments are passed over."""
        while b"\n\n" not in self.events_text:
            piece = self.chunk()
            if not piece:
                return None
            self.events_text += piece
        text, _, self.events_text = self.events_text.partition(b"\n\n")
        id, data = None, None
        for line in text.decode().split("\n"):
            if line.startswith("id: "):
                id = line[4:]
            elif line.startswith("data:"):
                data = line[5:].lstrip(" ")
        return self.event() if data is None else (id, json.loads(data) if data else None)

    def ended(self):
        """Whether the other side has closed it, and says nothing more."""
        try:
            return not self.more()
        except ConnectionResetError:
            return True


def size_line(size):
    return b"%x\r\n" % size


class House:
    """A server process, and ways to ask it."""

    def __init__(self, home, *options, listen="127.0.0.1:0", cwd=None, **env):
        self.surroundings = dict(os.environ, NACRE_HOME=home, MCP_TEST_CASE=home, **env)
        self.process = subprocess.Popen(
            [os.path.abspath(NACRE), "serve", "--listen", listen, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=self.surroundings,
            cwd=cwd or home_parent(home))
        self.where = self.process.stdout.readline().decode().strip()
        self.home = home
        self.next_id = 0
        found = re.match(r"http://(.*):(\d+)$", self.where)
        self.port = int(found.group(2)) if found else 0
        self.place = ("127.0.0.1", self.port) if found else self.where
        path = os.path.join(home, "http-token")
        self.token = ""
        if os.path.exists(path):
            with open(path, encoding="ascii") as file:
                self.token = file.read().strip()

    def connect(self):
        return Connection(self.place)

    def usual(self, **more):
        fields = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}",
                  "Accept": "application/json, text/event-stream",
                  "Content-Type": "application/json"}
        fields.update({name.replace("_", "-"): value for name, value in more.items()})
        return {name: value for name, value in fields.items() if value is not None}

    def text(self, method, path, body=b"", **more):
        """The bytes of a request."""
        fields = self.usual(**more)
        if body or method == "POST":
            fields.setdefault("Content-Length", str(len(body)))
        lines = [f"{method} {path} HTTP/1.1"] + [f"{n}: {v}" for n, v in fields.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def ask(self, method, path, body=b"", connection=None, **more):
        c = connection or self.connect()
        c.send(self.text(method, path, body, **more))
        answer = c.answer(head_only=method == "HEAD")
        if not connection:
            c.close()
        return answer

    def client(self, version="2025-11-25", path="/mcp", capabilities=None):
        return Client(self, version, path, capabilities or {})

    def modern(self, method, params=None, path="/mcp", connection=None, send_only=False, **more):
        """The answer to a modern request; what is sent alone is answered on the connection."""
        self.next_id += 1
        params = dict(params or {})
        params["_meta"] = dict(MODERN, **params.get("_meta", {}))
        fields = {"MCP_Protocol_Version": params["_meta"][PREFIX + "protocolVersion"],
                  "Mcp_Method": method}
        if "name" in params or "uri" in params:
            fields["Mcp_Name"] = params.get("name", params.get("uri"))
        fields.update(more)
        body = json.dumps({"jsonrpc": "2.0", "id": self.next_id, "method": method,
                           "params": params}).encode()
        if send_only:
            connection.send(self.text("POST", path, body, **fields))
            return None
        return self.ask("POST", path, body, connection, **fields)

    def close(self, limit=20):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(limit)


class Client:
    """A client of the legacy era, with its session."""

    def __init__(self, house, version, path, capabilities):
        self.house, self.path, self.next_id, self.session = house, path, 0, None
        answer = self.post("initialize", {"protocolVersion": version, "capabilities": capabilities,
                                          "clientInfo": {"name": "test", "version": "1"}})
        assert answer.status == 200, answer
        self.session = answer.fields["mcp-session-id"]
        self.hello = answer.json["result"]
        assert self.note("notifications/initialized").status == 202

    def message(self, method, params=None):
        self.next_id += 1
        return json.dumps({"jsonrpc": "2.0", "id": self.next_id, "method": method,
                           "params": params or {}}).encode()

    def post(self, method, params=None, **more):
        return self.house.ask("POST", self.path, self.message(method, params),
                              Mcp_Session_Id=self.session, **more)

    def note(self, method, params=None):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode()
        return self.house.ask("POST", self.path, body, Mcp_Session_Id=self.session)

    def result(self, method, params=None):
        """The result of a request, however it is answered."""
        answer = self.post(method, params)
        assert answer.status == 200, answer
        return answer.message["result"]

    def call(self, tool, **arguments):
        return self.result("tools/call", {"name": tool, "arguments": arguments})

    def begin(self, tool, token=None, **arguments):
        """A connection on which a call is answered by a stream; its head was read."""
        c = self.house.connect()
        params = {"name": tool, "arguments": arguments}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        c.send(self.house.text("POST", self.path, self.message("tools/call", params),
                               Mcp_Session_Id=self.session))
        status, fields = c.head()
        assert status == 200 and fields["content-type"] == "text/event-stream", fields
        return c

    def listen(self, last=None):
        """A connection on which events come; its head was read."""
        c = self.house.connect()
        c.send(self.house.text("GET", self.path, Mcp_Session_Id=self.session, Last_Event_ID=last,
                               Content_Type=None))
        status, _ = c.head()
        if status != 200:
            raise AssertionError(f"listening was answered with {status}")
        return c

    def start(self, command, **arguments):
        result = self.call("bash", command=command, background=True, **arguments)
        assert not result["isError"], result
        return result["_meta"]["nacre/run"]["id"]

    def leave(self):
        return self.house.ask("DELETE", self.path, Mcp_Session_Id=self.session, Content_Type=None)


def eventually_gone(connection, limit=10):
    deadline = time.monotonic() + limit
    connection.socket.settimeout(limit)
    while time.monotonic() < deadline:
        if connection.ended():
            return True
    return False
