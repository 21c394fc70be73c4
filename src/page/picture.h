/* The screen of a shell with a terminal, as those who look at it are told of it: rows of stretches
 * that are drawn alike. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <nacre/id.h>

#include "base/buf.h"

struct live_page;
struct picture;

/* NULL if it cannot be drawn. */
struct picture *picture_new(struct live_page *p, const nacre_id *id);
void picture_free(struct picture *pic);

/* There is more of its log. */
void picture_doubt(struct picture *pic);

/* Draws on: true if it is time to tell what changed. */
bool picture_step(struct picture *pic, int64_t now_ns);
int64_t picture_deadline(const struct picture *pic);

/* An event with all of it, or with what changed since picture_write() last told that; nothing if
 * nothing did. 0 or -errno. */
int picture_write(struct picture *pic, bool all, struct buf *out);
