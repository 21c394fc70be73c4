"""A site for tests: files, and a registry of one package, `small`, for npm and for pip."""
import base64
import hashlib
import http.server
import io
import json
import shutil
import ssl
import tarfile
import zipfile

WHEEL = "small-1.0.0-py3-none-any.whl"


def need(program, what):
    """Whether it is installed; if not, it is said that WHAT is not tried."""
    if shutil.which(program):
        return True
    print(f"skipped: {what}: {program} is not installed")
    return False


def tarball():
    """A package of npm, and its hash."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in ("package.json", '{"name":"small","version":"1.0.0"}'), ("index.js", "module.exports = 7\n"):
            info = tarfile.TarInfo("package/" + name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    data = buffer.getvalue()
    return data, "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def wheel():
    """The same for pip."""
    buffer = io.BytesIO()
    files = {"small.py": "value = 7\n",
             "small-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: small\nVersion: 1.0.0\n",
             "small-1.0.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             "small-1.0.0.dist-info/RECORD": ""}
    with zipfile.ZipFile(buffer, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
    return buffer.getvalue()


class Site(http.server.SimpleHTTPRequestHandler):
    package, integrity = tarball()
    wheel = wheel()

    def do_GET(self):
        scheme = "https" if isinstance(self.connection, ssl.SSLSocket) else "http"
        url = f"{scheme}://{self.headers['Host']}/small/-/small-1.0.0.tgz"
        dist = {"tarball": url, "integrity": self.integrity}
        if self.path == "/small":
            self.send(json.dumps({"name": "small", "dist-tags": {"latest": "1.0.0"}, "versions": {
                "1.0.0": {"name": "small", "version": "1.0.0", "dist": dist}}}).encode())
        elif self.path.endswith(".tgz"):
            self.send(self.package)
        elif self.path == "/simple/small/":
            self.send(f'<a href="/{WHEEL}">{WHEEL}</a>'.encode(), "text/html")
        elif self.path == f"/{WHEEL}":
            self.send(self.wheel)
        else:
            super().do_GET()

    def send(self, data, kind="application/octet-stream"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def serve_site(address, port, files, certificate=None):
    """A server of that directory, which is not served yet; with a certificate by TLS."""
    server = http.server.ThreadingHTTPServer((address, port), lambda *a: Site(*a, directory=files))
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    return server
