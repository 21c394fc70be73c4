#!/usr/bin/env python3
"""What tools fetch inside a sandbox: by the gate from hosts that three lines of the configuration name,
and later without any network from the private caches of the workspace.
usage: [NACRE_TEST_BUILD=build] test_fence_fetches.py [CASE...]"""
import os
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gate_rig import make_certificate  # noqa: E402
from registry import WHEEL, need, serve_site  # noqa: E402

NACRE = os.path.abspath(os.path.join(os.environ.get("NACRE_TEST_BUILD", "build"), "nacre"))
PLACE = os.getcwd()
SITE = os.path.join(PLACE, "site")


class Fenced:
    """A workspace, whose commands run in a sandbox."""

    def __init__(self, name, port):
        self.workspace = os.path.join(PLACE, name)
        self.port = port
        os.makedirs(self.workspace, exist_ok=True)
        config = os.path.join(PLACE, "config", "nacre")
        os.makedirs(config, exist_ok=True)
        with open(os.path.join(config, "config.json"), "w", encoding="ascii") as file:
            file.write('{\n  "sandbox": "workspace-write",\n'
                       f'  "sandbox_network": ["localhost:{port}"]\n}}\n')

    def run(self, text, *flags):
        env = dict(os.environ, XDG_CONFIG_HOME=os.path.join(PLACE, "config"), GIT_SSL_NO_VERIFY="1",
                   GIT_CONFIG_GLOBAL="/dev/null", PORT=str(self.port))
        done = subprocess.run([NACRE, "run", *flags, "--", text], cwd=self.workspace, env=env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=200, check=False)
        return done.returncode, done.stdout, done.stderr

    def does(self, text, *flags):
        code, out, err = self.run(text, *flags)
        assert code == 0, (text, code, out, err)
        return out

    def does_offline(self, text):
        return self.does(text, "--network", "off")


NPM = "npm install small --no-audit --no-fund --no-update-notifier --fetch-retries=0"


def npm_installs(plain, _):
    if not need("npm", "npm in a sandbox"):
        return
    f = Fenced("npm", plain)
    with open(os.path.join(f.workspace, "package.json"), "w", encoding="ascii") as file:
        file.write('{"name":"project","version":"1.0.0","private":true}')
    f.does(NPM + " --registry http://localhost:$PORT/ && test -e node_modules/small/index.js")
    f.does_offline(f"rm -rf node_modules; {NPM} --offline --registry http://localhost:$PORT/ && test -e node_modules/small/index.js")
    assert not os.path.exists(os.path.expanduser("~/.npm")), "the user's own cache is not touched"
    code, out, err = f.run(NPM + " --force --registry http://localhost:1/")
    assert code != 0 and "refused to connect to localhost:1" in err, (out, err)


def pip_installs(plain, _):
    if not need("pip3", "pip in a sandbox"):
        return
    f = Fenced("pip", plain)
    pip = "PYTHONWARNINGS=ignore pip3 --disable-pip-version-check"
    index = "--index-url http://localhost:$PORT/simple --trusted-host localhost"
    f.does(f"{pip} install -q --target got {index} small && {pip} download -q -d $PIP_CACHE_DIR/wheels {index} small")
    out = f.does_offline(f"rm -rf got; {pip} install -q --target got --no-index --find-links $PIP_CACHE_DIR/wheels "
                         "small && cd got && python3 -c 'import small; print(small.value)'; ls $PIP_CACHE_DIR/wheels")
    assert out == f"7\n{WHEEL}\n", out
    assert not os.path.exists(os.path.expanduser("~/.cache/pip")), "the user's own cache is not touched"


def commit(name, files):
    """A repository of the site, as it is served without git."""
    work, bare = os.path.join(PLACE, "work-" + name), os.path.join(SITE, name + ".git")
    os.makedirs(os.path.join(work, "src"))
    for path, text in files.items():
        with open(os.path.join(work, path), "w", encoding="ascii") as file:
            file.write(text)
    for words in (["init", "-q", "-b", "main", work], ["-C", work, "add", "."], ["-C", work, "commit", "-qm", "first"],
                  ["clone", "-q", "--bare", work, bare], ["-C", bare, "update-server-info"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)


def git_clones(_, secure):
    if not need("git", "git in a sandbox"):
        return
    commit("source", {"file": "text"})
    f = Fenced("git", secure)
    assert f.does("git clone -q https://localhost:$PORT/source.git copy && cat copy/file") == "text"
    code, out, err = f.run("git ls-remote https://localhost:1/source.git")
    assert code != 0 and "refused to connect to localhost:1" in err, (out, err)


def cargo_builds(_, secure):
    if not need("cargo", "cargo in a sandbox") or not need("git", "cargo in a sandbox"):
        return
    commit("small", {"Cargo.toml": '[package]\nname = "small"\nversion = "1.0.0"\n', "src/lib.rs": "pub const VALUE: i32 = 7;\n"})
    f = Fenced("cargo", secure)
    os.makedirs(os.path.join(f.workspace, "src"))
    with open(os.path.join(f.workspace, "Cargo.toml"), "w", encoding="ascii") as file:
        file.write('[package]\nname = "big"\nversion = "1.0.0"\n[dependencies]\n'
                   f'small = {{ git = "https://localhost:{secure}/small.git" }}\n')
    with open(os.path.join(f.workspace, "src", "main.rs"), "w", encoding="ascii") as file:
        file.write('fn main() { println!("{}", small::VALUE); }\n')
    f.does("CARGO_NET_GIT_FETCH_WITH_CLI=true cargo fetch -q")
    assert f.does_offline("cargo build -q --offline && ./target/debug/big") == "7\n"
    assert not os.path.exists(os.path.expanduser("~/.cargo")), "the user's own cache is not touched"


def loopback_is_two_things(plain, _):
    """Where a rule names localhost, that is the machine's; by its address it is the sandbox's own."""
    if not need("curl", "loopback of a sandbox"):
        return
    f = Fenced("loopback", plain)
    with open(os.path.join(SITE, "page"), "w", encoding="ascii") as file:
        file.write("outside")
    assert f.does("curl -sS http://localhost:$PORT/page") == "outside"
    with open(os.path.join(f.workspace, "page"), "w", encoding="ascii") as file:
        file.write("inside")
    out = f.does("python3 -m http.server --bind 127.0.0.1 $PORT >/dev/null 2>&1 & "
                 "curl -sS --retry 50 --retry-delay 0 --retry-connrefused http://127.0.0.1:$PORT/page; kill %1")
    assert out == "inside", out


def main(cases):
    os.makedirs(SITE)
    servers = [serve_site("127.0.0.1", 0, SITE), serve_site("127.0.0.1", 0, SITE, make_certificate(PLACE))]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    wanted, passed, failed = sys.argv[1:], 0, 0
    for case in cases:
        if wanted and case.__name__ not in wanted:
            continue
        try:
            case(*[server.server_address[1] for server in servers])
            passed += 1
        except AssertionError as error:
            failed += 1
            print(f"FAIL {case.__name__}: {error}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main([npm_installs, pip_installs, git_clones, cargo_builds, loopback_is_two_things])
