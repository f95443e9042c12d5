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

/* NEEDS_QUEUE: the keys and the functions */
enum needs { NEEDS_NOTHING, NEEDS_KEYS, NEEDS_FUNCTIONS, NEEDS_QUEUE };

/*
 * A function that returns another status than GOOD has printed why: `what`, the server, the error.
 * open_call() connects to nothing, and wants close_call() even if it fails.
 */
enum status open_call(struct call *call, const char *queue);
int connect_call(struct call *call, uint32_t shard);

enum status reach(struct call *call, uint32_t shard, enum needs needs, const char *what);
void close_call(struct call *call);

/* A list of words for the functions below. */
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Encodes the call of a Redis function with these words as arguments. */
void begin(struct call *call, const char *function, const char *keys, const char *const *words);

/* Encodes another command. */
void begin_plain(struct call *call, const char *const *words);

/* Asks for Redis's time, and sets until_us and until_ns. */
int ask_time(struct call *call);

/*
 * Encodes the call of a Redis function that changes a queue. The arguments are the words, then the
 * data unless it is NULL, and then a time limit: after until_us the function changes nothing.
 */
enum status begin_change(struct call *call, const char *what, const char *function,
                         const char *keys, const char *const *words, const char *data, size_t len);

/* Encodes a call as begin_change() does, and sends it. */
enum status change(struct call *call, const char *what, const char *function, const char *keys,
                   const char *const *words, const char *data, size_t len);

/* Send the encoded call. REFUSED: by the queue. The caller frees the reply if GOOD. */
enum status ask_reply(struct call *call, const char *what, struct reply **ret_reply);

/* Without `print`: say_done(). */
enum status ask(struct call *call, const char *what, void (*print)(const struct reply *reply));

/*
 * Between these calls, what say_done() and tell_error() print is one array, if --json is given and
 * there are several servers.
 */
void begin_array(const struct call *call);
void end_array(void);

/* For a command that prints nothing itself: with --json, a result of 0. */
enum status say_done(void);

void tell_error(const struct call *call, const char *what, int error, const char *words);
enum status complain(const struct call *call, const char *what, int error);
enum status refuse(const struct call *call, const char *what, int error, const char *words);

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

/* Connects to a server and calls the function, as reach() and ask_reply() do. */
enum status ask_stat(struct call *call, uint32_t shard, const char *queue,
                     struct reply **ret_reply);

/* Returns the value of this name, or NULL. */
const char *stat_value(const struct reply *reply, const char *name);

/* Reads the pair at *at, which is 0 for the first, and moves *at. False behind the last pair. */
bool stat_next(const struct reply *reply, size_t *at, const char **ret_name,
               const char **ret_value);

/* A relay's last message, which is the value of "relay:NAME". */
enum { RELAY_RANK, RELAY_SENT_US, RELAY_LOOKS, RELAY_BELLS, RELAY_NUMBERS };

/* Returns the relay's name if the pair is one of a relay, else NULL. */
const char *stat_relay(const char *name, const char *value, uint64_t ret_numbers[RELAY_NUMBERS]);

/* Adds a pair to a histogram of lateness if it is one of its buckets. */
void stat_add_late(const char *name, const char *value, uint64_t *buckets, unsigned count);

/* ---- wait_until_empty.c, metrics.c: all servers ---- */

enum status do_drain(struct call *call, char **words);
enum status do_metrics(struct call *call, char **words);

/* ---- print.c: to standard output ---- */

/* Prints a text, with --json in quotes. */
void print_string(const char *text);

/* Print the replies of the Redis functions peek, list and stat. */
void print_peek(const struct reply *reply);
void print_list(const struct reply *reply);
void print_stat(const struct reply *reply);

/* The entries of a stream. */
void print_entries(const struct reply *reply);

#endif
