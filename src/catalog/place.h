/*
 * The files of the catalog in its home, as files: made, locked, and moved aside. What is in them
 * is not looked at here; they are never opened here either, since closing any descriptor of a
 * database file takes away the locks that SQLite has on it in this process.
 *
 * Functions return >= 0 or -errno.
 */
#ifndef NACRE_CATALOG_PLACE_H
#define NACRE_CATALOG_PLACE_H

#define PLACE_DB      "catalog.db"
#define PLACE_LOCK    "catalog.lock"
#define PLACE_DAMAGED PLACE_DB ".damaged-"
#define PLACE_KEPT    2 /* damaged catalogs that are kept, the newest ones */

/* 1 if there is a catalog, 0 if not; -EINVAL if it is no regular file. */
int place_exists(int home_fd);

/* Who makes or moves files holds this lock: a descriptor to close, or -EAGAIN after wait_ms. */
int place_lock(int home_fd, int wait_ms);

/* With the lock held: an empty file for SQLite, 0600, if there is none. */
int place_make(int home_fd);

/* With the lock held: the catalog and what belongs to it get another name, and of those that were
 * moved before only the newest stay. */
int place_set_aside(int home_fd);

#endif
