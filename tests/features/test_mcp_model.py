#!/usr/bin/env python3
"""`nacre mcp`: what a model meets in a day. How few bytes say it, that a name is an id, that what was
left out can be had back in one call, and that what it cannot know is told.
usage: [NACRE=build/nacre] test_mcp_model.py [CASE...]"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mcp_client import NACRE, Gate, holds, lacks, main, mark, text_of, until  # noqa: E402


def bash(s, command, **arguments):
    return s.text("bash", command=command, **arguments)


def same(got, wanted):
    assert got == wanted, f"{got!r} is not {wanted!r}"


# -- What stands around the output -----------------------------------------------------------------

def only_what_needs_a_frame_gets_one(serve):
    s = serve()
    same(bash(s, "true"), "Exit code: 0\n")
    same(bash(s, "echo hi"), "Exit code: 0\nhi\n")
    same(bash(s, "echo no >&2; exit 3"), "Exit code: 3\nno\n")
    same(bash(s, "echo a; echo b >&2; echo c"),
         "Exit code: 0\n--- stderr (1 line) ---\nb\n--- stdout (2 lines) ---\na\nc\n")
    same(bash(s, "printf 'a\\n\\n\\n\\n\\nb\\n'"), "Exit code: 0\na\n\n\n\n\nb\n")


def twenty_commands_cost_twenty_bytes_each(serve):
    s = serve()
    commands = ["pwd", "ls -l /", "cat /etc/passwd", "grep -n root /etc/passwd", "echo done", "uname -a",
                "wc -l /etc/passwd", "head -5 /etc/group", "find /etc -maxdepth 1 -name 'p*'", "true",
                "git --version", "env | sort | head -5", "date +%Y", "ls /nonexistent", "false", "id -u",
                "sort /etc/group | tail -3", "sed -n 1,3p /etc/passwd", "cd / && ls", "test -f /etc/none"]
    around = 0
    for command in commands:
        plain = subprocess.run(command, shell=True, capture_output=True, check=False)
        around += max(0, len(bash(s, command).encode()) - len(plain.stdout + plain.stderr))
    assert around <= 20 * len(commands), around


def both_streams_can_be_merged(serve):
    s = serve()
    # Each line is read before the next one comes.
    text = bash(s, "for i in 1 2 3; do echo o$i; sleep 0.1; echo e$i >&2; sleep 0.1; done",
                order="merged")
    same(text, "Exit code: 0\no1\ne1\no2\ne2\no3\ne3\n")


def binary_output_is_counted(serve):
    text = bash(serve(), "head -c 3000 /dev/urandom; echo 'and this' >&2")
    same(text, "Exit code: 0\n--- stderr (1 line) ---\nand this\n"
               "--- stdout (binary: 3000 bytes, not shown) ---\n")
    s = serve()
    text = bash(s, "head -c 3000 /dev/urandom; exec sleep 60", name="noise", background=True)
    if "binary" not in text:
        text = s.text("bash_output", id="noise", wait=5)
    holds(text, "--- stdout (binary: 3000 bytes, not shown) ---")
    lacks(text, "\ufffd")


def prompts_do_not_pile_up(serve):
    s = serve()
    bash(s, "exec python3 -i -q", name="repl", keep_stdin=True, background=True)
    sizes = [len(s.text("bash_input", id="repl", input=f"print({n})\n", until=f"^{n}$"))
             for n in range(100, 140)]
    assert max(sizes[20:]) < 120, sizes


# -- What cannot be seen otherwise -----------------------------------------------------------------

def what_python_prints_is_there_at_a_timeout(serve):
    s = serve(PYTHONUNBUFFERED="")
    text = bash(s, "python3 -c 'print(42); import time; time.sleep(60)'", timeout=2)
    holds(text, "Timed out after 2s", "\n42\n")
    same(bash(s, "echo $PYTHONUNBUFFERED $EDITOR $VISUAL"), "Exit code: 0\n1 false false\n")


def what_may_be_lost_is_said(serve):
    s = serve()
    held = "Perhaps lost: what its programs held back"
    text = bash(s, "(echo held; sleep 60) | grep held", timeout=1)
    holds(text, "Timed out after 1s", held, "stdbuf -oL", "grep --line-buffered")
    lacks(text, "\nheld\n")
    lacks(bash(s, "seq 2000; sleep 60", timeout=1), held)
    lacks(bash(s, "true"), held)
    holds(bash(s, "(echo held; sleep 60) | stdbuf -oL grep held", timeout=1), "\nheld\n")


def a_pipeline_that_failed_is_told(serve):
    s = serve()
    holds(bash(s, "sh -c 'echo x; exit 2' | cat"), "Exit code: 0 (pipeline: 2 | 0)\nx\n")
    same(bash(s, "yes | head -1"), "Exit code: 0\ny\n")
    same(bash(s, "echo x | cat"), "Exit code: 0\nx\n")
    gate = Gate(serve)
    shell = s.start(f"{gate.passing}; sh -c 'exit 7' | cat")
    gate.open()
    s.await_end(shell)
    holds(s.text("list_shells"), "status: exited(0) (pipeline: 7 | 0)\n")
    holds(s.text("bash_output", id=shell), "exited(0) (pipeline: 7 | 0)]")


def what_was_withheld_is_told(serve):
    s = serve(MY_TOKEN="x", OTHER_SECRET="y")
    text = bash(s, "echo ${MY_TOKEN}")
    holds(text, "withheld from commands as secrets: MY_TOKEN;", '"env_allow"')
    lacks(text, "OTHER_SECRET")
    lacks(bash(s, "echo fine"), "withheld")
    lacks(bash(s, "echo $MY_TOKEN", env={"MY_TOKEN": "mine"}), "withheld")
    holds(bash(s, "false"), "OTHER_SECRET")
    same(bash(s, "false"), "Exit code: 1\n")


def who_wants_a_terminal_is_named(serve):
    holds(bash(serve(), "echo 'top: failed tty get' >&2; exit 1"),
          '[nacre: "top: failed tty get": it wants a terminal, and has none]')


def a_yield_that_was_cut_is_told(serve):
    text = bash(serve(NACRE_WAIT="300ms"), "sleep 60", **{"yield": 50})
    holds(text, "Still running after 0.3 s", "it was left after 0.3 s, the longest that one call waits")


def a_damaged_configuration_is_answered(serve):
    config = os.path.join(serve.place, "config.json")
    with open(config, "w", encoding="ascii") as file:
        file.write('{"sandbox": "read-only", "timeout": "soon"}')
    s = serve(NACRE_CONFIG=config)
    path = os.path.join(serve.place, "touched")
    for tool, arguments in (("bash", {"command": f"touch {path}"}), ("list_shells", {})):
        result = s.call(tool, **arguments)
        assert result["isError"], result
        holds(text_of(result), "nothing was done", "config.json:1: timeout takes a time", '"soon"')
    assert not os.path.exists(path)


# -- Names -----------------------------------------------------------------------------------------

def a_name_is_an_id_everywhere(serve):
    s = serve()
    s.text("bash", command="cat", name="pet", keep_stdin=True, background=True)
    holds(s.text("bash_input", id="pet", input="meow\n", wait=10), "meow\n")
    holds(s.text("bash_output", id="pet"), "(no new output)")
    holds(s.text("recall", id="pet", lines="1-1"), ", stdout]\n1: meow\n")
    holds(s.text("kill_shell", id="pet"), "killed background shell")
    holds(s.text("kill_shell", id="pet"), "had ended already: killed")
    result = s.call("kill_shell", id="nobody")
    assert result["isError"]
    holds(text_of(result), 'no shell has the id or name "nobody"')


def a_name_can_be_taken_over(serve):
    s = serve()
    first = s.start(f"sleep {mark()}", name="web")
    result = s.call("bash", command=f"sleep {mark()}", name="web", background=True)
    assert result["isError"]
    second = s.start(f"sleep {mark()}", name="web", replace=True)
    assert first != second
    holds(s.text("list_shells", state="running"), second[:8])
    lacks(s.text("list_shells", state="running"), first[:8])


def kept_shells_of_the_directory_are_there(serve):
    s = serve()
    shell = s.start("cat", keep_stdin=True, lifetime="keep")
    other = s.start("cat", keep_stdin=True, lifetime="keep", cwd="/")
    s.close()
    s = serve()
    text = s.text("list_shells")
    holds(text, f"running {shell[:8]}, ", "kept by an ended session")
    lacks(text, other[:8])
    holds(s.text("bash_input", id=shell, input="hello\n", until="hel+o"), "hello\n")
    holds(s.text("kill_shell", id=shell), "killed background shell")
    result = s.call("kill_shell", id=other)
    assert result["isError"]
    s.text("bash_output", id=other, adopt=True)
    holds(s.text("kill_shell", id=other), "killed background shell")


def list_says_ports_and_directories(serve):
    s = serve()
    shell = s.start("exec python3 -m http.server 0 --bind 127.0.0.1", cwd="/")
    until(lambda: "port " in s.text("bash_output", id=shell, offset=0), "it serves")
    port = re.search(r"port (\d+)", s.text("bash_output", id=shell, offset=0))[1]
    holds(s.text("list_shells"), f"listening on {port}", ", in /: ")


# -- Getting back what was left out ----------------------------------------------------------------

def an_offset_is_a_window(serve):
    s = serve()
    wanted = "".join(f"{n}\n" for n in range(1, 9001))
    shell = re.search(r'id: "(\w+)"', bash(s, "seq 9000"))[1]
    offset, got, calls = 0, "", 0
    while offset is not None:
        text = s.text("bash_output", id=shell, offset=offset)
        assert len(text) <= 10240, len(text)
        got += "".join(line for line in text.splitlines(keepends=True) if line[0] != "[")
        following = re.search(r"the next are at offset: (\d+)\]", text)
        offset, calls = int(following[1]) if following else None, calls + 1
    same(got, wanted)
    assert calls <= 6, calls


def a_long_line_can_be_had_by_its_offset(serve):
    s = serve()
    shell = re.search(r'id: "(\w+)"', bash(s, "echo one; seq 20000 | tr '\\n' ' '"))[1]
    text = s.text("recall", id=shell, lines="1-2")
    offset = re.search(r"bash_output\(offset: (\d+)\)", text)[1]
    same(offset, "4")
    holds(s.text("bash_output", id=shell, offset=4 + 8888), "]\n2000 2001 2002 ")


def a_range_names_what_fits_next(serve):
    s = serve()
    shell = re.search(r'id: "(\w+)"', bash(s, "seq 9000"))[1]
    lines, seen, calls = "100-5000", [], 0
    while lines:
        text = s.text("recall", id=shell, lines=lines)
        seen += [int(number) for number in re.findall(r"^(\d+): \1$", text, re.M)]
        more = re.search(r'the next that do are lines: "(\d+)-(\d+)"', text)
        lines = f"{more[1]}-5000" if more else None
        calls += 1
    same(seen, list(range(100, 5001)))
    assert calls <= 9, calls


# -- Talking to it ---------------------------------------------------------------------------------

def one_call_for_each_line_typed(serve):
    s = serve()
    shell = s.start("while read -r line; do echo \"got $line\"; printf '> '; done", keep_stdin=True)
    for line in ("one", "two", "three"):
        text = s.text("bash_input", id=shell, input=line + "\n", until="> $")
        holds(text, f"got {line}\n")
    holds(s.text("bash_input", id=shell, input="four\n", idle=0.2), "got four\n")
    text = s.text("bash_input", id=shell, input="five\n", until="never", wait=0.3)
    holds(text, "got five\n", '"until" has not matched yet')
    same(s.text("bash_input", id=shell, input="six\n"), f"[shell {shell[:8]} — running]\nwrote 4 bytes\n")


def the_environment_takes_numbers(serve):
    s = serve()
    same(bash(s, "echo $A $B $C", env={"A": 1, "B": True, "C": 1.5}), "Exit code: 0\n1 true 1.5\n")
    result = s.call("bash", command="true", env={"GOOD": 1, "BAD": [1]})
    assert result["isError"]
    holds(text_of(result), "env.BAD must be")
    same(bash(s, "pwd", cwd="~"), f"Exit code: 0\n{os.environ['HOME']}\n")


# -- Ends ------------------------------------------------------------------------------------------

def an_end_says_what_is_new(serve):
    s = serve()
    gate = Gate(serve)
    shell = s.start(f"echo early; {gate.passing}; echo late")
    holds(s.text("bash_output", id=shell, offset=0), "early")
    gate.open()
    s.await_end(shell)
    text = s.text("list_shells").split("exited(0) " + shell[:8], maxsplit=1)[0]
    holds(text, f"[Background task {shell[:8]} completed]\n", "\nlate\n")
    lacks(text, "\nearly\n")


def who_killed_it_is_told(serve):
    s = serve()
    shell = s.start(f"sleep {mark()}")
    subprocess.run([NACRE, "kill", shell], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "NACRE_HOME": os.path.join(serve.place, "home")})
    s.await_end(shell)
    holds(s.text("list_shells"), "status: killed, by somebody outside of this session\n")


def ends_of_an_ended_session_are_its_own(serve):
    s = serve()
    gate = Gate(serve)
    done = s.start(f"{gate.passing}; exit 4")
    gone = s.start(f"sleep {mark()}")
    gate.open()
    s.await_end(done)
    s.close()
    s = serve()
    text = s.text("list_shells")
    holds(text, f"[Background task {done[:8]} completed]\nstatus: exited(4), started by an earlier session\n")
    lacks(text, gone[:8])
    until(lambda: "completed]" not in s.text("list_shells"), "nothing more is told")


CASES = [
    only_what_needs_a_frame_gets_one, twenty_commands_cost_twenty_bytes_each,
    both_streams_can_be_merged, binary_output_is_counted, prompts_do_not_pile_up,
    what_python_prints_is_there_at_a_timeout, what_may_be_lost_is_said, a_pipeline_that_failed_is_told, what_was_withheld_is_told,
    who_wants_a_terminal_is_named, a_yield_that_was_cut_is_told,
    a_damaged_configuration_is_answered, a_name_is_an_id_everywhere, a_name_can_be_taken_over,
    kept_shells_of_the_directory_are_there, list_says_ports_and_directories, an_offset_is_a_window,
    a_long_line_can_be_had_by_its_offset, a_range_names_what_fits_next,
    one_call_for_each_line_typed, the_environment_takes_numbers, an_end_says_what_is_new,
    who_killed_it_is_told, ends_of_an_ended_session_are_its_own,
]

if __name__ == "__main__":
    main(CASES)
