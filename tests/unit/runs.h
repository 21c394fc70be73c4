/* Run directories made by hand: a spec of known strings, a state, and files beside them. */
#ifndef TESTS_UNIT_RUNS_H
#define TESTS_UNIT_RUNS_H

#include "unit.h"

#include "base/buf.h"
#include "run/rundir.h"
#include "run/spec.h"
#include "run/state.h"
#include "sys/fd.h"

static nacre_id runs_id = {{0xab, 0xcd, 0xef, 0x01, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}};

/* Sweeps look for the id in every process: two test programs at once must not meet. */
__attribute__((constructor)) static void runs_own_id(void)
{
    pid_t pid = getpid();
    memcpy(&runs_id.bytes[12], &pid, sizeof pid);
}

static const nacre_id runs_session = {{0x5e, 0x55, 0x10, 0x17}};

UNIT uint32_t runs_put(struct buf *out, const char *s)
{
    uint32_t at = (uint32_t)out->len;
    assert_int_equal(buf_append(out, s, strlen(s) + 1), 0);
    return at;
}

/* The bytes of a spec that holds; the caller frees them. */
UNIT char *runs_spec(size_t *ret_size)
{
    struct buf out;
    struct spec_head head;
    out = BUF_UP_TO(1 << 20);
    spec_head_init(&head);
    head.id = runs_id;
    head.session = runs_session;
    head.timeout_ms = 1500;
    head.grace_ms = 2000;
    head.quota = 1 << 20;
    head.kind = SPEC_BASH;
    head.input = NACRE_STDIN_NULL;
    assert_int_equal(buf_append(&out, &head, sizeof head), 0);
    head.program = runs_put(&out, "/bin/bash");
    assert_int_equal(buf_str(&out, SPEC_TEXT_NAME), 0);
    head.text = runs_put(&out, "echo hello | cat");
    head.text_size = (uint32_t)strlen("echo hello | cat");
    head.cwd = runs_put(&out, "/tmp");
    head.run_path = runs_put(&out, "/nowhere/runs/x");
    head.name = runs_put(&out, "a name");
    head.description = runs_put(&out, "");
    head.session_name = runs_put(&out, "");
    head.session_cwd = runs_put(&out, "");
    head.argv = runs_put(&out, "bash");
    head.argc = 1;
    head.env = runs_put(&out, "HOME=/root");
    runs_put(&out, "EMPTY=");
    runs_put(&out, "PATH=/bin");
    head.envc = 3;
    runs_put(&out, "");
    head.size = (uint32_t)out.len;
    spec_head_seal(&head);
    memcpy(out.data, &head, sizeof head);
    *ret_size = out.len;
    return buf_take(&out);
}

UNIT void runs_write(int dir, const char *name, const void *data, size_t size)
{
    int fd = unit_file(dir, name);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(fd_write_all(fd, data, size), 0);
    close(fd);
}

/* A directory of a run with all its files, open. state becomes the state in it. */
UNIT int runs_make(int runs_fd, const nacre_id *id, struct run_state *state)
{
    nacre_id_text name = nacre_id_format(id);
    size_t size;
    assert_int_equal(mkdirat(runs_fd, name.s, 0700), 0);
    int dir = openat(runs_fd, name.s, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    char *spec = runs_spec(&size);
    runs_write(dir, "spec", spec, size);
    free(spec);
    runs_write(dir, "log", "", 0);
    runs_write(dir, "spans", "", 0);
    runs_write(dir, "state", "", 0);
    int fd = unit_file(dir, "state");
    assert_int_equal(state_write(fd, state), 0);
    close(fd);
    return dir;
}

#endif
