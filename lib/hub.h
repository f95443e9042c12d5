/* SPDX-License-Identifier: MIT */
/*
 * The hub: everything put together, and what the files of the public calls need of each other.
 * timerhub.c opens and closes, submit.c arms, re-arms and cancels, consume.c delivers.
 */
#ifndef TIMERHUB_HUB_H
#define TIMERHUB_HUB_H

#include <timerhub.h>

#include "arena.h"
#include "board.h"
#include "callback.h"
#include "clock.h"
#include "inbox.h"
#include "owner.h"
#include "promise.h"
#include "queue.h"

/* A caller's option struct may be as large as this; a later version's will not be larger. */
#define TIMERHUB_OPTIONS_MAX_BYTES 4096u

/* What a forked child must not have: zero there. Written at open. */
struct hub_living {
	struct timer_hot *hot; /* the arena's */
	uint32_t capacity;     /* slots in the arena; 0: the owner is not in this process */
};

struct timerhub {
	struct arena arena;
	struct inbox inbox;
	struct clock clock;
	struct callbacks callbacks; /* that dispatching threads run now */
	struct hub_living *living;  /* zeroed by the kernel in a forked child */
	atomic_ptr *queues;         /* OWNER_QUEUES_MAX queues by index, or NULL */
	struct board *board;        /* the counters of all the others */
	struct memory living_memory;
	struct memory queues_memory; /* holds the table */
	int board_fd;                /* an observable hub's board; else -1 */
	int bell;                    /* wakes the owner; a manual hub's timerhub_wake_fd */
	struct promise promise;
	struct owner owner;
	atomic_u32 queues_end; /* no queue was ever at this index or above */
	atomic_u32 advancing;  /* manual: odd while a thread is inside advance */
};

/* Is the owner (or, of a manual hub, this process) still there? */
static inline bool hub_alive(const struct timerhub *hub)
{
	return hub->living->capacity != 0;
}

/*
 * To be called after a CAS that left `word`, with WORD_INBOX, at the slot: pushes the slot if that
 * CAS claimed to, and wakes the owner if the deadline, as it then is, is earlier than its promise.
 */
void hub_submit(struct timerhub *hub, uint32_t slot, uint64_t word, bool push);

/*
 * To be called after a CAS from `before` to `after` on the word of another life than the handle's.
 * If the handle's life ended after the CAS, returns false. If the word had come back while we were
 * held up, we hit a later life: restores that life's word, also if the owner has looked at it or
 * expired it since, and returns true. An expiry is repeated.
 */
bool hub_undo(struct timerhub *hub, uint32_t slot, uint64_t before, uint64_t after);

/*
 * Is the slot's life the handle's? To be asked after a CAS on its word.
 * Model: tests/models/word.pml, with -DTAGS=1.
 */
static inline bool hub_hit(const struct timer_hot *hot, timerhub_timer timer)
{
	return identity_generation(u64_load_relaxed(&hot->identity) ^ timer) == 0;
}

/*
 * Cancel the timer, if `only` is not NULL only if it is of that queue. Its slot must be one of the
 * arena's. 0 or -ENOENT.
 */
int hub_cancel(struct timerhub *hub, timerhub_timer timer, const struct timerhub_queue *only);

#endif
