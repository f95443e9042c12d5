/* SPDX-License-Identifier: MIT */
/*
 * What the files of the tool timerhub-store share: its options, and the functions that carry out
 * its commands.
 */
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

/* Prints `what` (a file or a task) and the text of an errno. Returns FAILED. */
enum status tool_complain(const char *what, int error);

/* Prints `what` (a file or a task) and why the request was refused. Returns REFUSED. */
enum status tool_refuse(const char *what, const char *why);

/* ---- changes.c: commands that change a task, by the library ---- */

/* Each of these functions carries out a command. A NULL follows the last argument. */

enum status tool_put(char **arguments);
enum status tool_cancel(char **arguments);
enum status tool_move(char **arguments);

/* A task as the user has named it on the command line: by its id, or by its key as =KEY. */
struct named_task {
	uint64_t id;
	const char *key; /* NULL: by its id */
};

bool tool_read_task(const char *text, struct named_task *ret_task);

/* ---- looks.c: commands that only read, on a read-only connection ---- */

enum status tool_list(char **arguments);
enum status tool_show(char **arguments);
enum status tool_stat(char **arguments);
enum status tool_check(char **arguments);

#endif
