/* SPDX-License-Identifier: MIT */
/* Declares the functions and types that the files of timerhub-relay share. */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <relay/keys.h>
#include <relay/wire.h>

#define STEP_NS UINT64_C(5000000000) /* timeout of a server's reply */

enum status { GOOD = 0, REFUSED = 1, WRONG_USE = 2, FAILED = 3 };

struct options {
	const char *redis; /* the server's address; NULL: the library's default */
	bool json;
	bool metrics; /* option of stat */
	bool replace;
	bool repair;
	uint64_t interval_ms; /* option of top; 0: 1 s */
	uint64_t count;       /* number of readings of top; 0: no limit */
	uint64_t horizon_ms;  /* 0: the library's default, as for the next two */
	uint64_t grace_ms;
	uint64_t batch;
};

/* Serve the queues until SIGTERM or SIGINT. */
enum status daemon_run(const struct options *options, char **queues, int count);

/* Show the state of the queues again and again. */
enum status top_run(const struct options *options, char **queues, int count);

/* Print the usage, and then the error and the wrong word, which may be NULL. */
enum status misused(const char *what, const char *word);

/* ---- call.c ---- */

/* A connection to one of a queue's servers, and the names of its keys. */
struct call {
	const struct options *options;
	struct keys keys;
	struct address addresses[KEYS_SHARDS_MAX];
	uint32_t shards;
	uint32_t shard; /* the connected server */
	struct wire *wire;
	bool may_be_elsewhere; /* -ENOENT is no error: the next server is asked */
};

/* The parts of a queue that must exist before a call. */
enum needs { NEEDS_NOTHING, NEEDS_FUNCTIONS, NEEDS_QUEUE };

/*
 * Read addresses and name, without connecting. Returns GOOD, or prints the error. Close the call in
 * both cases.
 */
enum status open_call(struct call *call, const struct options *options, const char *queue);
int connect_call(struct call *call, uint32_t shard);

/*
 * Connect, and check that the needed parts exist. Returns GOOD, or prints the error with `what` in
 * it.
 */
enum status reach(struct call *call, uint32_t shard, enum needs needs, const char *what);
void close_call(struct call *call);

/* Encode a call of a function, with its arguments. */
void begin(struct call *call, const char *function, const char *keys, unsigned arguments);
void add(struct call *call, const char *word);

/*
 * Send the call and read the reply. If the result is GOOD, the caller frees the reply. If the
 * result is not GOOD, the error or the refusal was printed.
 */
enum status ask_reply(struct call *call, const char *what, struct reply **ret_reply);

/*
 * Send the call, and pass the reply to `print`. A refusal of the queue is printed, and is not a
 * failure.
 */
enum status ask(struct call *call, const char *what,
                void (*print)(const struct reply *reply, bool json));

/* A printer for calls without output, which prints only in JSON. */
enum status say_done(const struct call *call);

/* Print the text for a negative errno, with the address of the connected server. */
enum status complain(const struct call *call, const char *what, int error);

/* Returns the text for a negative errno. */
const char *failure_words(int error);

enum status out_of_memory(void);

/* ---- commands.c ---- */

/* Read an unsigned number. Returns false if the text is not one. */
bool read_number(const char *text, uint64_t *ret_number);

enum status do_create(struct call *call, char **words, int count);
enum status do_put(struct call *call, char **words, int count);
enum status do_cancel(struct call *call, char **words, int count);
enum status do_move(struct call *call, char **words, int count);
enum status do_done(struct call *call, char **words, int count);
enum status do_peek(struct call *call, char **words, int count);
enum status do_list(struct call *call, char **words, int count);
enum status do_dead(struct call *call, char **words, int count);
enum status do_revive(struct call *call, char **words, int count);

/* Encode the call of stat. */
void begin_stat(struct call *call);
enum status do_stat(struct call *call, char **words, int count);
enum status do_load(struct call *call, char **words, int count);
enum status do_check(struct call *call, char **words, int count);

/* ---- drain.c ---- */

/* Wait until the queue has no task left. */
enum status do_drain(struct call *call, char **words, int count);

/* ---- metrics.c ---- */

/* Print the reply to stat as OpenMetrics text. */
enum status do_metrics(struct call *call, char **words, int count);

/* ---- print.c: to standard output ---- */

void print_text(const char *text, size_t len, bool json);

/* Print alternate names and values, from one element of the reply to its end. */
void print_pairs(const struct reply *reply, size_t from, bool json);

/*
 * Print rows of `columns` elements each, from one element to the end. `names` has a name for each
 * column.
 */
void print_rows(const struct reply *reply, size_t from, const char *const *names, size_t columns,
                bool json);

/* Print the entries of a stream: their ids, and their fields as pairs. */
void print_entries(const struct reply *reply, bool json);

#endif
