#!/usr/bin/env python3
"""Programs of others go through nacre-gate, with the variables that a fenced command gets: curl, git,
npm and node.
usage: [NACRE_TEST_BUILD=build] test_gate_peers.py [CASE...]"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gate_rig import *  # noqa: E402,F403
from registry import serve_site, need  # noqa: E402

ID = "0123456789abcdef0123456789abcdef"
SITE, SECURE = 8081, 8443


@contextlib.contextmanager
def site(networks, far, files):
    """Serves the directory on the far side."""
    with networks.being(networks.far):
        servers = [serve_site("0.0.0.0", SITE, files), serve_site("0.0.0.0", SECURE, files, far.certificate)]
    pid = os.fork()
    if pid == 0:
        libc.prctl(1, signal.SIGKILL)
        for server in servers:
            threading.Thread(target=server.serve_forever).start()
        threading.Event().wait()
    for server in servers:
        server.server_close()
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def run(networks, gate, words, place, **more):
    """Inside, with the proxy in its environment."""
    web, socks = f"http://{ID}:x@127.0.0.1:{gate.port}", f"socks5h://{ID}:x@127.0.0.1:{gate.port}"
    env = {"PATH": os.environ["PATH"], "HOME": place, "LC_ALL": "C.UTF-8", "http_proxy": web,
           "HTTPS_PROXY": web, "https_proxy": web, "HTTP_PROXY": web, "ALL_PROXY": socks,
           "NO_PROXY": "localhost,127.0.0.1,::1", "GIT_SSL_NO_VERIFY": "1", "GIT_TERMINAL_PROMPT": "0",
           "NODE_USE_ENV_PROXY": "1", "NODE_TLS_REJECT_UNAUTHORIZED": "0", **more}
    done = subprocess.run(words, env=env, cwd=place, capture_output=True, text=True, timeout=120,
                          check=False, preexec_fn=lambda: networks.enter(networks.inside))
    return done.returncode, done.stdout, done.stderr


def curl(networks, _, place):
    if not need("curl", "curl through the gate"):
        return
    with Gate(networks) as gate, Door(ID.encode()) as door:
        ask = lambda *words: run(networks, gate, ["curl", "-sS", *words], place)  # noqa: E731
        code, out, err = ask("http://public.example/a")
        assert code == 0 and out.startswith("GET /a HTTP/1.1\nHost: public.example\n"), (out, err)
        assert ID not in out and "Proxy" not in out, "who asks is not told to the host"
        code, out, err = ask("-k", "https://public.example/b")
        assert code == 0 and out.startswith("GET /b "), (out, err)
        proxy = f"socks5h://{ID}:x@127.0.0.1:{gate.port}"
        for url in "http://public.example/c", "https://a.sub.example/c":
            code, out, err = ask("-k", "-x", proxy, url)
            assert code == 0 and out.startswith("GET /c "), (url, out, err)
        big = os.path.join(place, "big")
        with open(big, "w", encoding="ascii") as file:
            file.write("x" * 2000000)  # so large that curl asks first whether it may come
        for more in [], ["-H", "Transfer-Encoding: chunked"]:
            code, out, err = ask("--data-binary", "@" + big, *more, "http://public.example/")
            assert code == 0 and out.count("x") > 2000000, err
        assert door.is_quiet()
        code, out, err = ask("http://other.example/")
        assert code == 0 and "no rule of sandbox_network names this host" in out, (out, err)
        assert door.hear()[1] == "other.example:80"
        code, out, err = ask("https://other.example/")
        assert code == 56 and "403" in err, (code, err)
        assert door.hear()[1] == "other.example:443"
        code, out, err = ask("-x", proxy, "https://other.example/")
        assert code == 97 and door.hear()[1] == "other.example:443", (code, err)
        code, out, err = ask("-k", "--connect-to", "public.example:443:a.sub.example:443", "https://public.example/")
        assert code == 35 and door.hear()[1:] == ["a.sub.example:443", "SNI says public.example"], (code, err)
        code, out, err = ask("--noproxy", "*", "http://93.184.216.34:8080/")
        assert code == 7, "there is no other way out"


def git(networks, far, place):
    if not need("git", "git through the gate"):
        return
    files = os.path.join(place, "site")
    source = os.path.join(files, "source.git")
    for words in (["init", "-q", "-b", "main", "work"], ["-C", "work", "commit", "-q", "--allow-empty", "-m", "first"],
                  ["clone", "-q", "--bare", "work", source], ["-C", source, "update-server-info"]):
        os.makedirs(files, exist_ok=True)
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=place, check=True)
    with site(networks, far, files), Gate(networks) as gate:
        code, _, err = run(networks, gate, ["git", "clone", "-q", f"https://any.example:{SECURE}/source.git", "copy"], place)
        # The certificate of the site has another name; the gate looks at what the client asks for.
        assert code == 0, err
        log = subprocess.run(["git", "log", "--format=%s"], cwd=os.path.join(place, "copy"),
                             capture_output=True, text=True, check=True)
        assert log.stdout == "first\n"
        code, _, err = run(networks, gate, ["git", "ls-remote", "https://other.example/source.git"], place)
        assert code != 0 and "403" in err, err


def npm(networks, far, place):
    if not need("npm", "npm through the gate"):
        return
    work = os.path.join(place, "project")
    os.makedirs(work)
    with open(os.path.join(work, "package.json"), "w", encoding="ascii") as file:
        file.write('{"name":"project","version":"1.0.0","private":true}')
    words = ["npm", "install", "small", "--no-audit", "--no-fund", "--no-update-notifier",
             "--fetch-retries=0", "--registry"]
    with site(networks, far, place), Gate(networks) as gate:
        code, out, err = run(networks, gate, words + [f"http://any.example:{SITE}/"], work, HOME=place)
        assert code == 0 and os.path.exists(os.path.join(work, "node_modules/small/index.js")), (out, err)
        code, out, err = run(networks, gate, words + ["https://other.example/", "--force"], work, HOME=place)
        assert code != 0 and ("403" in err or "Blocked by nacre" in err), (out, err)


def node(networks, far, place):
    if not need("node", "node through the gate"):
        return
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, version[1:].split(".")[:2])) < (22, 21):
        print(f"skipped: node's own fetch through the gate: {version.strip()} knows no NODE_USE_ENV_PROXY")
        return
    with Gate(networks) as gate:
        for url in "http://public.example/d", "https://public.example/d":
            code, out, err = run(networks, gate, ["node", "-e", f"fetch('{url}').then(r => r.text()).then(console.log)"], place)
            assert code == 0 and out.startswith("GET /d "), (url, out, err)


if __name__ == "__main__":
    main([curl, git, npm, node])
