/* SPDX-License-Identifier: MIT */
/*
 * What the files of the tool timerhub-relay share: its options, a call to a server of a queue, and
 * the functions that carry out commands.
 */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <console.h>
#include <relay/keys.h>
#include <relay/wire.h>

#define STEP_NS UINT64_C(5000000000) /* time within which a server must reply */

#define OPTION_BEHIND "options stand before QUEUE, unlike"

extern struct options {
	const char *redis; /* addresses of the servers, or NULL for the default */
	const char *given; /* the same, or @FILE if they are in a file */
	bool json;
	bool metrics; /* option of stat: print OpenMetrics text */
	bool replace;
	bool repair;
	uint64_t interval_ms; /* time between two readings of `top`. 0 means 1 s. */
	uint64_t count;       /* number of readings of `top`. 0 means no limit. */
	uint64_t horizon_ms;  /* 0 in horizon_ms, grace_ms or batch means the library's default */
	uint64_t grace_ms;
	uint64_t batch;
} options;

enum status daemon_run(char **queues, int count);
enum status top_run(char **queues, int count);

/* ---- call.c ---- */

struct call {
	struct keys keys;
	struct address addresses[KEYS_SHARDS_MAX];
	uint32_t shards;
	uint32_t shard; /* index of the connected server in `addresses` */
	struct wire *wire;
	bool may_be_elsewhere; /* after -ENOENT, print nothing and ask the next server */
	uint64_t until_us;     /* of a change: when it has no effect any more, on Redis's clock */
	uint64_t until_ns;     /* that time or later, on CLOCK_MONOTONIC; 0: no change */
};

/*
 * What must be on a server before a command can be sent there: the keys of the queue, the Redis
 * functions of this version, or both (NEEDS_QUEUE).
 */
enum needs { NEEDS_NOTHING, NEEDS_KEYS, NEEDS_FUNCTIONS, NEEDS_QUEUE };

/*
 * Prepare a call, but do not connect yet. close_call() must follow, even if this fails. All
 * functions here that return an enum status have printed the error if it is not GOOD: `what`, the
 * server, and the reason.
 */
enum status open_call(struct call *call, const char *queue);
int connect_call(struct call *call, uint32_t shard);

enum status reach(struct call *call, uint32_t shard, enum needs needs, const char *what);
void close_call(struct call *call);

/* A list of strings for the functions below, which ends with NULL. */
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/*
 * Encodes a call of a Redis function. `keys` names the keys that it uses, and `words` are its
 * arguments.
 */
void begin(struct call *call, const char *function, const char *keys, const char *const *words);

/* Encodes a command that is not a call of a function. */
void begin_plain(struct call *call, const char *const *words);

/*
 * Asks the server for its time, and sets until_us and until_ns, after which the change to come has
 * no effect any more.
 */
int ask_time(struct call *call);

/*
 * Calls a Redis function that changes a task. Its arguments are `words`, and `data` unless that is
 * NULL. Further arguments make sure that the change has no effect after call->until_us.
 */
enum status change(struct call *call, const char *what, const char *function, const char *keys,
                   const char *const *words, const char *data, size_t len);

/*
 * Sends the encoded call and waits for the reply. Returns GOOD, and then the caller must free the
 * reply; or REFUSED if the queue has refused the request; or FAILED.
 */
enum status ask_reply(struct call *call, const char *what, struct reply **ret_reply);

/* Sends the encoded call and prints the reply by `print`, or if that is NULL, by say_done(). */
enum status ask(struct call *call, const char *what, void (*print)(const struct reply *reply));

/* Ends a command that prints nothing itself. With --json, it prints a result of 0. */
enum status say_done(void);

void tell_error(const struct call *call, const char *what, int error, const char *words);
enum status complain(const struct call *call, const char *what, int error);

const char *failure_words(int error);

enum status out_of_memory(void);

static inline enum status worse(enum status a, enum status b)
{
	return a > b ? a : b;
}

/* ---- commands.c: words[0] is the queue, and NULL follows the last ---- */

enum status do_create(struct call *call, char **words);
enum status do_put(struct call *call, char **words);
enum status do_move(struct call *call, char **words);
enum status do_done(struct call *call, char **words);
enum status do_list(struct call *call, char **words);
enum status do_dead(struct call *call, char **words);
enum status do_pause(struct call *call, char **words);
enum status do_load(struct call *call, char **words);
enum status do_check(struct call *call, char **words);

/* ---- stat.c: the reply of the function stat, which has names and values ---- */

#define STAT_KEYS "due task ready dead past state seats seen"

/* Encodes the call of the Redis function stat. */
void begin_stat(struct call *call);

/*
 * Connects to a server and calls stat. The results and the reply are as for reach() and
 * ask_reply().
 */
enum status ask_stat(struct call *call, uint32_t shard, const char *queue,
                     struct reply **ret_reply);

/* Returns the value that the reply of stat has for a name, or NULL if it has none. */
const char *stat_value(const struct reply *reply, const char *name);

/*
 * Reads a name and its value from the reply of stat, and moves *at to the next pair. *at must be 0
 * for the first. Returns false if there are no more.
 */
bool stat_next(const struct reply *reply, size_t *at, const char **ret_name,
               const char **ret_value);

/* The numbers in the value of "relay:NAME", which are from the last message of that relay. */
enum { RELAY_RANK, RELAY_SENT_US, RELAY_LOOKS, RELAY_BELLS, RELAY_NUMBERS };

/*
 * Returns the relay's name and its numbers if the name of the pair is "relay:NAME". Otherwise
 * returns NULL.
 */
const char *stat_relay(const char *name, const char *value, uint64_t ret_numbers[RELAY_NUMBERS]);

/* If the pair is a bucket of the histogram of lateness, adds its count to `buckets`. */
void stat_add_late(const char *name, const char *value, uint64_t *buckets, unsigned count);

/* ---- wait_until_empty.c, metrics.c: all servers ---- */

enum status do_drain(struct call *call, char **words);
enum status do_metrics(struct call *call, char **words);

/* ---- print.c: to standard output ---- */

void print_text(const char *text, size_t len);

/*
 * Prints a string up to its zero byte. With --json, both functions print a JSON string in quotes.
 */
void print_string(const char *text);

/* Print the reply of the Redis function of this name. */
void print_peek(const struct reply *reply);
void print_list(const struct reply *reply);
void print_stat(const struct reply *reply);

/* Prints entries of a Redis stream, as XRANGE returns them. */
void print_entries(const struct reply *reply);

#endif
