/*
 * Programs that read, and programs that do not, with what is expected of each; see test_reads.c.
 * SEEN were looked at while the rule was made; the others were written down here before the rule
 * met them, and what was expected of them is what stood here then, unless a note says otherwise.
 */
#ifndef TESTS_READS_PROGRAMS_H
#define TESTS_READS_PROGRAMS_H

#include <nacre/reads.h>
#include <stdbool.h>

#define L NACRE_READS_BIT(NACRE_READS_LINE)
#define K NACRE_READS_BIT(NACRE_READS_KEYS)
#define P NACRE_READS_BIT(NACRE_READS_PASSWORD)
#define S NACRE_READS_BIT(NACRE_READS_LISTENS)
#define N NACRE_READS_BIT(NACRE_READS_NO)
#define U NACRE_READS_BIT(NACRE_READS_UNKNOWN)

enum reads_where { TTY, PIPE };

struct reads_program {
    const char *name;
    const char *needs; /* programs, with blanks between; "" = none */
    const char *text;
    unsigned expected; /* any of them */
    enum reads_where where;
    bool seen;
};

#define SEEN true
#define NEW  false

/* What many of them print first. */
#define PY(code)   "exec python3 -c '" code "'"
#define NODE(code) "exec node -e '" code "'"

static const struct reads_program programs_that_read[] = {
    /* -- Looked at while the rule was made -- */
    {"bash read", "", "read x", L, TTY, SEEN},
    {"bash read -s", "", "read -s x", P, TTY, SEEN},
    {"bash read -t", "", "read -t 300 x", L, TTY, SEEN},
    {"bash select", "", "select x in a b; do break; done", L, TTY, SEEN},
    {"bash -i", "", "exec bash --norc -i", K, TTY, SEEN},
    {"python input()", "python3", PY("input()"), L | K, TTY, SEEN},
    {"python getpass", "python3", PY("import getpass; getpass.getpass()"), P, TTY, SEEN},
    {"python REPL", "python3", "exec python3 -q", L | K, TTY, SEEN},
    {"python breakpoint", "python3", PY("breakpoint(); x = 1"), L | K, TTY, SEEN},
    {"python curses", "python3", PY("import curses; curses.wrapper(lambda w: w.getch())"), K, TTY,
     SEEN},
    {"cat", "", "exec cat", L, TTY, SEEN},
    {"wc", "", "exec wc", L, TTY, SEEN},
    {"tee", "", "exec tee copy", L, TTY, SEEN},
    {"awk", "", "exec awk 1", L, TTY, SEEN},
    {"ed", "ed", "exec ed", L, TTY, SEEN},
    {"tclsh", "tclsh", "exec tclsh", L, TTY, SEEN},
    {"perl -de0", "perl", "exec perl -de0", L | K, TTY, SEEN},
    {"perl", "perl", "exec perl -e '<STDIN>'", L, TTY, SEEN},
    {"sqlite3", "sqlite3", "exec sqlite3", L | K, TTY, SEEN},
    {"node REPL", "node", "exec node", K, TTY, SEEN},
    {"node readline", "node",
     NODE("require(\"readline\").createInterface(process.stdin, process.stdout)"
          ".question(\"? \", () => 0)"),
     L | K, TTY, SEEN},
    {"vim", "vim", "exec vim -N -u NONE -i NONE file", K, TTY, SEEN},
    {"less", "less", "seq 300 >file; exec less file", K, TTY, SEEN},
    {"more", "more", "seq 300 >file; exec more file", K, TTY, SEEN},
    {"top", "top", "exec top -d 100", K, TTY, SEEN},
    {"gdb", "gdb", "exec gdb -q -nx", L | K, TTY, SEEN},
    {"ssh-keygen", "ssh-keygen", "exec ssh-keygen -t ed25519 -f key", P, TTY, SEEN},
    {"openssl passwd", "openssl", "exec openssl passwd", P, TTY, SEEN},
    {"rm -i", "", "touch file; exec rm -i file", L, TTY, SEEN},
    {"cp -i", "", "touch a b; exec cp -i a b", L, TTY, SEEN},
    {"xargs -p", "", "echo a >names; exec xargs -p -a names echo", L, TTY, SEEN},
    {"git add -p", "git", "git init -q . && echo a >f && git add f && echo b >f && exec git add -p",
     L, TTY, SEEN},
    {"su", "su", "exec setpriv --reuid=65534 --clear-groups -- su -c true", P, TTY, SEEN},
    /* -- New -- */
    {"dash read", "dash", "exec dash -c 'read x'", L, TTY, NEW},
    {"dash -i", "dash", "exec dash -i", L, TTY, NEW},
    {"zsh -i", "zsh", "exec zsh -f -i", K, TTY, NEW},
    {"zsh read -k", "zsh", "exec zsh -f -c 'read -k 1 x'", K, TTY, NEW},
    {"zsh vared", "zsh", "exec zsh -f -c 'x=a; vared x'", K, TTY, NEW},
    /* K was expected: fish also waits for a pipe that others write to. */
    {"fish read", "fish", "exec fish --no-config -c 'read x'", K | S, TTY, NEW},
    {"bash read -n1", "", "read -n1 x", K, TTY, NEW},
    {"bash read -e", "", "read -e x", K, TTY, NEW},
    {"bash mapfile", "", "mapfile x", L, TTY, NEW},
    {"while read", "", "while read -r x; do echo $x; done", L, TTY, NEW},
    {"read of /dev/tty", "", "sort <(read x </dev/tty; echo $x)", L, TTY, NEW},
    {"a function in a pipeline", "", "ask() { read -p 'Name: ' x; echo $x; }; ask | cat", L, TTY,
     NEW},
    {"beside a sleep", "", "cat | sleep 300", L, TTY, NEW},
    {"sort", "", "exec sort", L, TTY, NEW},
    {"head", "", "exec head -n 1", L, TTY, NEW},
    {"tail", "", "exec tail -n 1", L, TTY, NEW},
    {"od", "", "exec od -c", L, TTY, NEW},
    {"cut", "", "exec cut -c1", L, TTY, NEW},
    {"tr", "", "exec tr a b", L, TTY, NEW},
    {"uniq", "", "exec uniq", L, TTY, NEW},
    {"tac", "", "exec tac", L, TTY, NEW},
    {"base64", "", "exec base64", L, TTY, NEW},
    {"sha256sum", "", "exec sha256sum", L, TTY, NEW},
    {"cksum", "", "exec cksum -", L, TTY, NEW},
    {"fold", "", "exec fold -w 5", L, TTY, NEW},
    {"nl", "", "exec nl", L, TTY, NEW},
    {"paste", "", "exec paste -s -", L, TTY, NEW},
    {"shuf", "", "exec shuf", L, TTY, NEW},
    {"factor", "", "exec factor", L, TTY, NEW},
    {"numfmt", "", "exec numfmt --to=iec", L, TTY, NEW},
    {"dd", "", "exec dd of=file bs=1 count=5", L, TTY, NEW},
    {"split", "", "exec split -", L, TTY, NEW},
    {"grep", "", "exec grep x", L, TTY, NEW},
    {"sed", "", "exec sed p", L, TTY, NEW},
    {"diff", "diff", "touch file; exec diff file -", L, TTY, NEW},
    {"cmp", "cmp", "echo a >file; exec cmp file -", L, TTY, NEW},
    {"mv -i", "", "touch a b; exec mv -i a b", L, TTY, NEW},
    {"ln -i", "", "touch a b; exec ln -i a b", L, TTY, NEW},
    {"find -ok", "", "touch a; exec find a -ok rm {} \\;", L, TTY, NEW},
    {"git clean -i", "git", "git init -q . && touch a && exec git clean -i", L, TTY, NEW},
    {"git rebase -i with vim", "git vim",
     "git init -q . && git config user.email a@b && git config user.name a && "
     "git commit -q --allow-empty -m a && git commit -q --allow-empty -m b && "
     "GIT_SEQUENCE_EDITOR='vim -N -u NONE -i NONE' git rebase -i --root",
     K, TTY, NEW},
    {"openssl genpkey", "openssl", "exec openssl genpkey -algorithm ED25519 -aes256 -out key", P,
     TTY, NEW},
    {"openssl req", "openssl", "exec openssl req -new -newkey ed25519 -nodes -keyout key -out csr",
     L, TTY, NEW},
    {"ssh-keygen -p", "ssh-keygen",
     "ssh-keygen -q -t ed25519 -N secret -f key; exec ssh-keygen -p -f key", P, TTY, NEW},
    {"python code.interact", "python3", PY("import code; code.interact()"), L | K, TTY, NEW},
    {"python cmd.Cmd", "python3", PY("import cmd; cmd.Cmd().cmdloop()"), L | K, TTY, NEW},
    {"python stdin.read", "python3", PY("import sys; sys.stdin.read()"), L, TTY, NEW},
    {"python fileinput", "python3", PY("import fileinput; list(fileinput.input())"), L, TTY, NEW},
    {"python tty.setraw", "python3", PY("import os, tty; tty.setraw(0); os.read(0, 1)"), K, TTY,
     NEW},
    {"python selectors", "python3",
     PY("import selectors, sys; s = selectors.DefaultSelector(); s.register(sys.stdin, 1); "
        "s.select()"),
     L, TTY, NEW},
    {"python select with a timeout", "python3",
     PY("import select\nwhile not select.select([0], [], [], 0.3)[0]: pass"), L, TTY, NEW},
    {"python input in a thread that is waited for", "python3",
     PY("import threading; t = threading.Thread(target=input); t.start(); t.join()"), L | K, TTY,
     NEW},
    {"python asyncio of stdin", "python3",
     PY("import asyncio, sys\n"
        "async def main():\n"
        "  r = asyncio.StreamReader()\n"
        "  await asyncio.get_running_loop().connect_read_pipe("
        "lambda: asyncio.StreamReaderProtocol(r), sys.stdin)\n"
        "  await r.readline()\n"
        "asyncio.run(main())"),
     L, TTY, NEW},
    {"python asyncio REPL", "python3", "exec python3 -m asyncio", L | K, TTY, NEW},
    {"node raw keys", "node",
     NODE("process.stdin.setRawMode(true); process.stdin.on(\"data\", () => 0)"), K, TTY, NEW},
    {"node readSync", "node", NODE("require(\"fs\").readSync(0, Buffer.alloc(1))"), L, TTY, NEW},
    {"node readline/promises", "node",
     NODE("require(\"readline/promises\").createInterface({input: process.stdin, "
          "output: process.stdout}).question(\"? \")"),
     L | K, TTY, NEW},
    {"perl select", "perl", "exec perl -e 'vec(my $r, 0, 1) = 1; select($r, undef, undef, undef)'",
     L, TTY, NEW},
    {"vim -R", "vim", "seq 9 >file; exec vim -N -u NONE -i NONE -R file", K, TTY, NEW},
    {"vim -E", "vim", "exec vim -N -u NONE -i NONE -E file", K | L, TTY, NEW},
    {"less of a pipe", "less", "seq 300 | less", K, TTY, NEW},
    {"whiptail --yesno", "whiptail", "exec whiptail --yesno really 8 30", K, TTY, NEW},
    {"whiptail --passwordbox", "whiptail", "exec whiptail --passwordbox secret 8 30", K, TTY, NEW},
    {"sdiff", "sdiff", "seq 3 >a; seq 4 >b; exec sdiff -o c a b", L, TTY, NEW},
    {"bash -i in bash -i", "", "exec bash --norc -ic 'read x; exit'", L | K, TTY, NEW},
    {"script", "script", "exec script -q -c cat log", S, TTY, NEW},
    /* S was expected: the server of tmux reads, which has left for a session of its own. */
    {"tmux", "tmux", "exec tmux -L $$ -f /dev/null new 'exec cat'", S | N, TTY, NEW},
    {"chsh", "chsh", "exec setpriv --reuid=65534 --clear-groups -- chsh", P | N, TTY, NEW},
    /* -- At a pipe that is kept open -- */
    {"pipe: cat", "", "exec cat", L, PIPE, SEEN},
    {"pipe: bash read", "", "read x", L, PIPE, SEEN},
    {"pipe: python input()", "python3", PY("input()"), L, PIPE, NEW},
    {"pipe: python -i", "python3", "exec python3 -i -q", L, PIPE, NEW},
    {"pipe: node", "node", "exec node -i", L, PIPE, NEW},
    {"pipe: sqlite3", "sqlite3", "exec sqlite3", L, PIPE, NEW},
    {"pipe: bash -s", "", "exec bash -s", L, PIPE, NEW},
    {"pipe: sort in a pipeline", "", "sort | head", L, PIPE, NEW},
    {"pipe: select", "python3", PY("import select; select.select([0], [], [])"), L, PIPE, NEW},
    {"pipe: wc in the background", "", "wc <&0 & wait", L, PIPE, NEW},
};

/* Setuid programs, of an ordinary user. */
static const struct reads_program programs_that_hide[] = {
    {"su of a user", "su", "exec su -c true", P, TTY, SEEN},
    {"su - of a user, behind a shell", "su", "su - -c true; echo over", P, TTY, NEW},
    {"sudo of a user", "sudo", "exec sudo -k true", P, TTY, SEEN},
};

static const struct reads_program programs_that_do_not[] = {
    /* -- Looked at while the rule was made -- */
    {"sleep", "", "exec sleep 300", N, TTY, SEEN},
    {"wait", "", "sleep 300 & wait", N, TTY, SEEN},
    {"tail -f", "", "touch file; exec tail -f file", N, TTY, SEEN},
    {"sleep | cat", "", "sleep 300 | cat", N, TTY, SEEN},
    {"cat <(sleep)", "", "cat <(sleep 300)", N, TTY, SEEN},
    {"a busy loop", "", "while :; do :; done", N, TTY, SEEN},
    {"http.server", "python3", "exec python3 -m http.server 0 --bind 127.0.0.1", N, TTY, SEEN},
    {"a server of node", "node", NODE("require(\"http\").createServer().listen(0, \"127.0.0.1\")"),
     N, TTY, SEEN},
    {"watch", "watch", "exec watch -n 100 true", N, TTY, SEEN},
    {"make", "make", "printf 'all:\\n\\tsleep 300\\n' >Makefile; exec make", N, TTY, SEEN},
    {"cat of a fifo", "", "mkfifo p; exec cat p", N, TTY, SEEN},
    {"coproc", "", "coproc sleep 300; read x <&${COPROC[0]}", N, TTY, SEEN},
    {"stty -echo; sleep", "", "stty -echo; exec sleep 300", N, TTY, SEEN},
    {"Password: and a sleep", "", "printf 'Password: '; exec sleep 300", N, TTY, SEEN},
    {"Proceed? [y/N] and a sleep", "", "printf 'Proceed? [y/N] '; exec sleep 300", N, TTY, SEEN},
    /* -- New -- */
    {"login: and tail", "", "printf 'login: '; exec tail -f /dev/null", N, TTY, NEW},
    {"> and a pause", "perl", "exec perl -e '$| = 1; print \"> \"; sleep 300'", N, TTY, NEW},
    {"passphrase, echo off, and a pause", "",
     "stty -echo; printf 'Enter passphrase for key: '; read x < <(sleep 300)", N, TTY, NEW},
    {"raw, and a sleep", "", "stty raw -echo; exec sleep 300", N, TTY, NEW},
    {"tail -F", "", "exec tail -F nothing", N, TTY, NEW},
    {"python sleep", "python3", PY("import time; time.sleep(300)"), N, TTY, NEW},
    {"python Event.wait", "python3", PY("import threading; threading.Event().wait()"), N, TTY, NEW},
    {"python accept", "python3",
     PY("import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); s.accept()"),
     N, TTY, NEW},
    {"python asyncio sleep", "python3", PY("import asyncio; asyncio.run(asyncio.sleep(300))"), N,
     TTY, NEW},
    {"python asyncio server", "python3",
     PY("import asyncio\n"
        "async def main():\n"
        "  await (await asyncio.start_server(lambda r, w: 0, \"127.0.0.1\", 0)).serve_forever()\n"
        "asyncio.run(main())"),
     N, TTY, NEW},
    {"python sigwait", "python3", PY("import signal; signal.sigwait([10])"), N, TTY, NEW},
    {"python multiprocessing", "python3",
     PY("import multiprocessing, time\n"
        "if __name__ == \"__main__\":\n"
        "  multiprocessing.Pool(2).map(time.sleep, [300, 300])"),
     N, TTY, NEW},
    {"python subprocess with a pipe", "python3",
     PY("import subprocess; subprocess.run([\"sleep\", \"300\"], capture_output=True)"), N, TTY,
     NEW},
    {"python computing", "python3", PY("while True: pass"), N, TTY, NEW},
    {"python epoll of a pipe", "python3",
     PY("import os, select; r, w = os.pipe(); e = select.epoll(); e.register(r); e.poll()"), N, TTY,
     NEW},
    {"node timer", "node", NODE("setInterval(() => 0, 1000)"), N, TTY, NEW},
    {"node child", "node", NODE("require(\"child_process\").spawn(\"sleep\", [\"300\"])"), N, TTY,
     NEW},
    {"node spawnSync, stdin inherited", "node",
     NODE("require(\"child_process\").spawnSync(\"sleep\", [\"300\"], {stdio: \"inherit\"})"), N,
     TTY, NEW},
    {"node worker", "node",
     NODE("new (require(\"worker_threads\").Worker)(\"setInterval(() => 0, 1000)\", "
          "{eval: true})"),
     N, TTY, NEW},
    {"npm run", "npm",
     "echo '{\"scripts\": {\"dev\": \"sleep 300\"}}' >package.json; exec npm run dev", N, TTY, NEW},
    {"timeout", "", "exec timeout 300 sleep 300", N, TTY, NEW},
    {"nohup cat", "", "nohup cat; exec sleep 300", N, TTY, NEW},
    {"flock", "flock", "exec 9>lock; flock 9; flock lock sleep 300", N, TTY, NEW},
    {"xargs sleep", "", "echo 300 | xargs sleep", N, TTY, NEW},
    {"a trap and a loop", "", "trap : WINCH; while :; do sleep 0.2; done", N, TTY, NEW},
    {"sha256sum /dev/zero", "", "exec sha256sum /dev/zero", N, TTY, NEW},
    {"yes into nothing", "", "yes >/dev/null", N, TTY, NEW},
    {"top -b", "top", "exec top -b -d 100", N, TTY, NEW},
    {"gdb runs a program", "gdb", "exec gdb -q -nx -batch -ex run --args sleep 300", N, TTY, NEW},
    {"git waits for a lock that an editor holds", "git",
     "git init -q . && GIT_EDITOR='sleep 300;:' git -c user.name=a -c user.email=a@b commit "
     "--allow-empty",
     N, TTY, NEW},
    {"ssh-agent", "ssh-agent", "exec ssh-agent -D -a agent", N, TTY, NEW},
    {"sqlite3 that waits for a lock", "sqlite3",
     "sqlite3 db 'create table t(x)'; (echo 'begin exclusive;'; sleep 300) | sqlite3 db & "
     "sleep 0.3; exec sqlite3 -cmd '.timeout 300000' db 'insert into t values(1)'",
     N, TTY, NEW},
    {"perl waitpid", "perl", "exec perl -e 'unless (fork) { sleep 300 } wait'", N, TTY, NEW},
    {"zsh -c", "zsh", "exec zsh -f -c 'sleep 300; :'", N, TTY, NEW},
    {"fish -c", "fish", "exec fish --no-config -c 'sleep 300; true'", N, TTY, NEW},
    {"a reader that is stopped", "", "cat & kill -STOP $!; exec sleep 300", N, TTY, NEW},
    {"tmux wait-for", "tmux",
     "tmux -L $$ -f /dev/null new -d 'sleep 300'; exec tmux -L $$ wait-for never", N, TTY, NEW},
    /* -- Beside a pipe that is kept open -- */
    {"pipe: sleep", "", "exec sleep 300", N, PIPE, SEEN},
    {"pipe: cat of another", "", "sleep 300 | cat", N, PIPE, NEW},
    {"pipe: python sleep", "python3", PY("import time; time.sleep(300)"), N, PIPE, NEW},
    {"pipe: node timer", "node", NODE("setInterval(() => 0, 1000)"), N, PIPE, NEW},
    {"pipe: stdin closed", "", "exec <&-; exec sleep 300", N, PIPE, NEW},
    {"pipe: a server", "python3", "exec python3 -m http.server 0 --bind 127.0.0.1", N, PIPE, NEW},
    {"pipe: head of a file", "", "mkfifo p; head -n 1 p", N, PIPE, NEW},
};

#endif
