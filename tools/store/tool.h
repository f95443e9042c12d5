/* SPDX-License-Identifier: MIT */
/* What the files of timerhub-store share. */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include <console.h>
#include <timerhub_store.h>

extern struct options {
	const char *queue; /* NULL: the empty name; list, stat and check: all queues */
	const char *key;
	uint64_t interval_ns;
	bool json, metrics, replace;
} options;

/* Prints what the tool was about, and the text of an errno. */
enum status tool_complain(const char *what, int error);

/* Prints what the tool was about, and why it was refused. */
enum status tool_refuse(const char *what, const char *why);

/* ---- changes.c: commands that change a task, by the library ---- */

/* In each command, the argument after the last is NULL. */

enum status tool_put(char **arguments);
enum status tool_cancel(char **arguments);
enum status tool_move(char **arguments);

/* Reads a task's id, or its key from =KEY, and leaves the other as it is. False if neither. */
bool tool_read_task(const char *text, uint64_t *ret_id, const char **ret_key);

/* ---- looks.c: commands that only read, on a read-only connection ---- */

enum status tool_list(char **arguments);
enum status tool_show(char **arguments);
enum status tool_stat(char **arguments);
enum status tool_check(char **arguments);

#endif
