/* SPDX-License-Identifier: MIT */
/* The functions and types that are common to the files of timerhub-relay. */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <console.h>
#include <relay/keys.h>
#include <relay/wire.h>

#define STEP_NS UINT64_C(5000000000) /* time within which a server must reply */

struct options {
	const char *redis; /* addresses of the servers, or NULL for the default */
	bool json;
	bool is_answered; /* --help or --version was given, and is printed */
	bool metrics;     /* option of stat: print OpenMetrics text */
	bool replace;
	bool repair;
	uint64_t interval_ms; /* time between two readings of `top`. 0 means 1 s. */
	uint64_t count;       /* number of readings of `top`. 0 means no limit. */
	uint64_t horizon_ms;  /* 0 in horizon_ms, grace_ms or batch means the library's default */
	uint64_t grace_ms;
	uint64_t batch;
};

/* Serve the queues until SIGTERM or SIGINT. */
enum status daemon_run(const struct options *options, char **queues, int count);

/* Print the state of the queues again and again. */
enum status top_run(const struct options *options, char **queues, int count);

/* ---- call.c ---- */

/* A connection to one of a queue's servers, and the names of the queue's keys. */
struct call {
	const struct options *options;
	struct keys keys;
	struct address addresses[KEYS_SHARDS_MAX];
	uint32_t shards;
	uint32_t shard; /* index of the connected server in `addresses` */
	struct wire *wire;
	bool may_be_elsewhere; /* after -ENOENT, print nothing and ask the next server */
	uint64_t until_us;     /* of a change: when it has no effect any more, on Redis's clock */
	uint64_t until_ns;     /* that time or later, on CLOCK_MONOTONIC; 0: no change */
};

/* The needs of a command: nothing, the Redis functions, or the functions and the queue. */
enum needs { NEEDS_NOTHING, NEEDS_FUNCTIONS, NEEDS_QUEUE };

/*
 * Prepare a call: read the servers' addresses and the queue's name, without connecting. Returns
 * GOOD, or prints the error and returns another status. Call close_call() also after an error.
 */
enum status open_call(struct call *call, const struct options *options, const char *queue);
int connect_call(struct call *call, uint32_t shard);

/*
 * Connect to server number `shard`, and check that the needed parts exist. Returns GOOD. If an
 * error occurs, prints the argument `what` and the error, and returns another status.
 */
enum status reach(struct call *call, uint32_t shard, enum needs needs, const char *what);
void close_call(struct call *call);

/*
 * Begin to encode the call of a Redis function with `arguments` arguments. add() encodes each
 * argument.
 */
void begin(struct call *call, const char *function, const char *keys, unsigned arguments);
void add(struct call *call, const char *word);

/*
 * begin(), for a change, with the arguments that add_caller() adds at their end. Asks for Redis's
 * time, and prints an error.
 */
enum status begin_change(struct call *call, const char *what, const char *function,
                         const char *keys, unsigned arguments);
void add_caller(struct call *call);

/*
 * Send the encoded call and read the reply. If the status is GOOD, the caller frees the reply. For
 * any other status, the error or the refusal has been printed.
 */
enum status ask_reply(struct call *call, const char *what, struct reply **ret_reply);

/*
 * Send the encoded call, and pass the reply to `print`. If the queue refuses the call, print the
 * refusal and return REFUSED. If the server fails, return FAILED.
 */
enum status ask(struct call *call, const char *what,
                void (*print)(const struct reply *reply, bool json));

/*
 * Report the success of a command that prints nothing itself. With the option --json, print a
 * result of 0. Without --json, print nothing.
 */
enum status say_done(const struct call *call);

/* Print an error: `what`, the connected server's address, and the text for the negative errno. */
enum status complain(const struct call *call, const char *what, int error);

/* Returns the text for the negative errno of a server or a connection. */
const char *failure_words(int error);

enum status out_of_memory(void);

/* ---- commands.c ---- */

enum status do_create(struct call *call, char **words, int count);
enum status do_put(struct call *call, char **words, int count);
enum status do_cancel(struct call *call, char **words, int count);
enum status do_move(struct call *call, char **words, int count);
enum status do_done(struct call *call, char **words, int count);
enum status do_peek(struct call *call, char **words, int count);
enum status do_list(struct call *call, char **words, int count);
enum status do_dead(struct call *call, char **words, int count);
enum status do_revive(struct call *call, char **words, int count);

/* Encode a call of the Redis function timerhub_stat. */
void begin_stat(struct call *call);
enum status do_stat(struct call *call, char **words, int count);
enum status do_load(struct call *call, char **words, int count);
enum status do_check(struct call *call, char **words, int count);

/* ---- wait_until_empty.c ---- */

/* Wait until the queue has no task left. words[0] is the queue's name. */
enum status do_drain(struct call *call, char **words, int count);

/* ---- metrics.c ---- */

/* Ask all servers for their statistics, and print the statistics as OpenMetrics text. */
enum status do_metrics(struct call *call, char **words, int count);

/* ---- print.c: to standard output ---- */

void print_text(const char *text, size_t len, bool json);

/* Print the elements of a reply, from index `from` to the end, as pairs of a name and a value. */
void print_pairs(const struct reply *reply, size_t from, bool json);

/*
 * Print the elements of a reply as a table, from index `from` to the end. Each row has `columns`
 * elements. The array `names` has a name for each column.
 */
void print_rows(const struct reply *reply, size_t from, const char *const *names, size_t columns,
                bool json);

/* Print the entries of a stream, each with its id and its pairs of a field and a value. */
void print_entries(const struct reply *reply, bool json);

#endif
