/* SPDX-License-Identifier: MIT */
/*
 * Changes that nobody waits for: those in flight, and those that are completed and that nobody has
 * taken yet. Any thread may call these functions.
 */
#ifndef RELAY_SUBMISSIONS_H
#define RELAY_SUBMISSIONS_H

#include "relay/request.h"

/* The largest number of changes that are in flight or completed. */
#define SUBMISSIONS_MAX 1024u

struct submitted;

struct submissions {
	struct lock lock; /* protects all fields; taken within the relay's lock, never before it */
	struct submitted *all;
	struct submitted *first, *last; /* completions that nobody has taken */
	unsigned count;                 /* how many changes `all` has */
	int fd_plus_one;                /* 0: nobody has asked for the descriptor */
};

/* One change that was submitted, with copies of all that the caller's struct pointed at. */
struct submitted {
	struct request request;
	struct submitted *before, *after; /* all that are not taken yet */
	struct submitted *next;           /* completions */
	struct submissions *submissions;
	uint64_t tag;
	uint32_t index;
	char id[TIMERHUB_RELAY_ID_BYTES];
	char delivery[TIMERHUB_RELAY_DELIVERY_BYTES];
	char data[];
};
_Static_assert(offsetof(struct submitted, request) == 0,
               "submissions_complete() casts the request");

/*
 * Takes room for `count` changes, which are linked by `next`, before they are queued. Returns
 * false, and takes none, if there would be more than SUBMISSIONS_MAX.
 */
bool submissions_reserve(struct submissions *all, struct submitted *first, unsigned count);

/*
 * Adds a finished request to the completions. Each submitted request has this function as
 * `completed`. Any thread may call it, with or without the relay's lock.
 */
void submissions_complete(struct request *request);

/* Takes the oldest completion, which the caller frees, or returns NULL if there is none. */
struct submitted *submissions_take(struct submissions *all);

/*
 * Returns a descriptor that is readable while there are completions to take, or a negative errno.
 */
int submissions_fd(struct submissions *all);

/*
 * Frees all changes that were submitted, and closes the descriptor. In a forked child (is_copy) it
 * only closes the descriptor.
 */
void submissions_fini(struct submissions *all, bool is_copy);

#endif
