/*
 * The files of the catalog in its home, as files: made, locked, and moved aside. What is in them
 * is not looked at here; they are never opened here either, since closing any descriptor of a
 * database file takes away the locks that SQLite has on it in this process.
 *
 * Functions return >= 0 or -errno.
 */
#pragma once

#define CATALOG_DB      "catalog.db"
#define CATALOG_SHM     "catalog.db-shm"
#define CATALOG_LOCK    "catalog.lock"
#define CATALOG_DAMAGED CATALOG_DB ".damaged-"
#define CATALOG_KEPT    2 /* damaged catalogs that are kept, the newest ones */

/* 1 if there is a catalog, 0 if not; -EINVAL if it is no regular file. */
int catalog_file_exists(int home_fd);

/* Who makes or moves files holds this lock: a descriptor to close, or -EAGAIN after wait_ms. */
int catalog_file_lock(int home_fd, int wait_ms);

/* With the lock held: an empty file for SQLite, 0600, if there is none. */
int catalog_file_make(int home_fd);

/* With the lock held: the catalog and what belongs to it get another name, and of those that were
 * moved before only the newest stay. */
int catalog_file_set_aside(int home_fd);
