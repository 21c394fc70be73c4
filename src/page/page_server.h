/* The page, for the server that it is a part of: see page/page.h. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include <nacre/error.h>
#include <nacre/id.h>
#include <nacre/settings.h>

#include "http/http_conn.h"

struct live_page;

struct page_options {
    const nacre_settings *settings;
    /* Something was written to a connection while another one was served. */
    void (*touched)(struct http_conn *c);
};

/* 0 or -errno. options are borrowed. */
int page_new(const struct page_options *options, struct live_page **ret_page);
void page_free(struct live_page *p);

/* A file of the page, or NULL if it has none of that path. */
struct web_file;
const struct web_file *page_file(struct stretch path);
void page_answer_file(struct http_conn *c, const struct web_file *file);

/* A request below /api. acts: it may change something. */
void page_answer(struct live_page *p, struct http_conn *c, bool acts);

/* A connection whose `later` is the page's has gone. */
void page_gone(struct http_conn *c);

/* What it waits for, into room for count descriptors: how many there are. */
size_t page_poll_count(const struct live_page *p);
void page_poll(const struct live_page *p, struct pollfd *fds);
int64_t page_deadline(const struct live_page *p);
void page_step(struct live_page *p);
