/* SPDX-License-Identifier: MIT */
/* What the files of timerhub-relay need of each other. */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <relay/keys.h>
#include <relay/wire.h>

#define STEP_NS UINT64_C(5000000000) /* for an answer of a server */

enum status { GOOD = 0, REFUSED = 1, WRONG_USE = 2, FAILED = 3 };

struct options {
	const char *redis; /* the server's address; NULL: the library's default */
	bool json;
	bool metrics; /* of stat */
	bool replace;
	bool repair;
	uint64_t interval_ms; /* of top; 0: 1 s */
	uint64_t count;       /* of readings of top; 0: for ever */
	uint64_t horizon_ms;  /* 0: the library's default, as for the next two */
	uint64_t grace_ms;
	uint64_t batch;
};

/* Serve the queues until SIGTERM or SIGINT. */
enum status daemon_run(const struct options *options, char **queues, int count);

/* Show what goes on in the queues, again and again. */
enum status top_run(const struct options *options, char **queues, int count);

/* How the tool is used, and then what was wrong with which word, NULL: none. */
enum status misused(const char *what, const char *word);

/* ---- call.c ---- */

/* A connection to one of a queue's servers, and the names of its keys. */
struct call {
	const struct options *options;
	struct keys keys;
	struct address addresses[KEYS_SHARDS_MAX];
	uint32_t shards;
	uint32_t shard; /* connected to */
	struct wire *wire;
	bool may_be_elsewhere; /* not found here is no refusal yet */
};

/* What of a queue must be there before it is asked. */
enum needs { NEEDS_NOTHING, NEEDS_FUNCTIONS, NEEDS_QUEUE };

/* Reads addresses and name: connects to none. GOOD, or it is told. To be closed in any case. */
enum status open_call(struct call *call, const struct options *options, const char *queue);
int connect_call(struct call *call, uint32_t shard);

/* Connect, and see whether what is needed is there. GOOD, or it is told, as of `what`. */
enum status reach(struct call *call, uint32_t shard, enum needs needs, const char *what);
void close_call(struct call *call);

/* Encode a call of a function, and the arguments that follow. */
void begin(struct call *call, const char *function, const char *keys, unsigned arguments);
void add(struct call *call, const char *word);

/*
 * Ask. GOOD: the reply is the caller's, to be freed. What the queue refuses is told, and so is a
 * failure.
 */
enum status ask_reply(struct call *call, const char *what, struct reply **ret_reply);

/* Ask, and let `print` have the reply. What the queue refuses is told, and is no failure. */
enum status ask(struct call *call, const char *what,
                void (*print)(const struct reply *reply, bool json));

/* Nothing in plain text. */
enum status say_done(const struct call *call);

/* Say what went wrong, by a negative errno, with the server that the call is connected to. */
enum status complain(const struct call *call, const char *what, int error);

/* The words for it. */
const char *failure_words(int error);

enum status out_of_memory(void);

/* ---- commands.c ---- */

/* A number without sign; false: it is none. */
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

/* Wait until no task is left. */
enum status do_drain(struct call *call, char **words, int count);

/* ---- metrics.c ---- */

/* stat, as OpenMetrics text. */
enum status do_metrics(struct call *call, char **words, int count);

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
