/* SPDX-License-Identifier: MIT */
/* What the files of timerhub-relay need of each other. */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <wire.h>

enum status { GOOD = 0, REFUSED = 1, WRONG_USE = 2, FAILED = 3 };

struct options {
	const char *redis; /* the server's address; NULL: the library's default */
	bool json;
	bool replace;
	uint64_t horizon_ms; /* 0: the library's default, as for the next two */
	uint64_t grace_ms;
	uint64_t batch;
};

/* Serve the queues until SIGTERM or SIGINT. */
enum status daemon_run(const struct options *options, char **queues, int count);

/* Say on standard error what went wrong, by a negative errno. */
enum status complain(const char *what, int error);

/* ---- print.c: to standard output ---- */

void print_text(const char *text, size_t len, bool json);

/* Names and values in turn, from an element of the reply on. */
void print_pairs(const struct reply *reply, size_t from, bool json);

/* Rows of `columns` elements each, from an element on; a name is given for each column. */
void print_rows(const struct reply *reply, size_t from, const char *const *names, size_t columns,
                bool json);

/* Entries of a stream: their ids, and fields as pairs. */
void print_entries(const struct reply *reply, bool json);

#endif
