/* SPDX-License-Identifier: MIT */
/*
 * The owner: the one thread of a hub that keeps its timers in a schedule, makes them expire and
 * puts the events into the queues. It works in passes. In a pass it reads each timer whose slot
 * callers have put into the inbox, expires what is due, and then sleeps until the next timer is
 * due, or until a caller rings its bell (an eventfd, see base/bell.h).
 *
 * A manual hub has no such thread. There, whoever calls timerhub_advance() is the owner while the
 * call lasts. owner.c has the passes, and owner_thread.c the thread and its sleep.
 */
#ifndef TIMERHUB_OWNER_H
#define TIMERHUB_OWNER_H

#include <pthread.h>

#include "base/clock.h"
#include "base/deadline_fd.h"
#include "board/counter_board.h"
#include "owner/early_wake.h"
#include "owner/inbox.h"
#include "owner/promise.h"
#include "owner/sleeper.h"
#include "queue/publisher.h"
#include "schedule/schedule.h"
#include "timer/arena.h"

#define OWNER_QUEUES_MAX BOARD_QUEUES_MAX
_Static_assert(OWNER_QUEUES_MAX <= 1u << TIMER_QUEUE_BITS, "a record has room for each index");

/*
 * What the owner shares with the threads that use the hub. The hub fills this in before it opens
 * the owner.
 */
struct owner_world {
	struct arena *arena;
	struct inbox *inbox;
	struct promise *promise;
	struct clock *clock;
	atomic_ptr *queues; /* the hub's queues by index; NULL where there is none */
	int bell;           /* eventfd with which a caller wakes the owner */
	struct board_owner *counts;
	bool is_observable; /* another process may read the counts */
};

struct owner {
	struct owner_world world;
	struct board_owner *counts;
	struct schedule schedule;
	uint64_t now_ns;     /* the time of the pass: what is due by then expires */
	uint64_t crowd_ns;   /* when owner_gather() began to count events */
	uint64_t crowd_told; /* how many events had been published by `crowd_ns` */
	uint64_t true_ns;    /* earliest time that owner_rest() has checked, or UINT64_MAX */
	bool crowded;        /* whether passes are put off, so that events are coalesced */
	bool gathers;        /* whether passes may be put off; fixed before the thread starts */

	struct sleeper sleeper;
	struct deadline_fd deadline_fd; /* timerfd that ends a sleep, if the clock needs one */
	struct early_wake early_wake;
	struct timerhub_config config; /* `thread_name` is valid only during owner_start() */
	unsigned sleep_failures;       /* how many sleeps in a row have failed in io_uring */
	int opener;                    /* gettid(2) of the thread that starts the owner */
	pthread_t thread;
	bool running;       /* whether there is a thread to join */
	int tid;            /* the thread's gettid(2); valid once `started` is 1 */
	atomic_u32 started; /* futex: 1 when start_result and tid are written */
	int start_result;   /* why the thread could not start, a negative errno; else 0 */
	atomic_u32 stop;    /* 1 if the thread must end */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 passes_begun; /* futex: number of passes; wraps */
	atomic_u32 pass_waiters; /* how many threads are in owner_wait_pass() */

	/* Only the owner uses the following fields. */
	uint64_t swept; /* how many handles the present compaction has read */
	struct publisher publisher;
};

/* Sets up the owner and its schedule, but starts no thread. Returns 0 or -ENOMEM. */
int owner_open(struct owner *owner, const struct owner_world *world);
void owner_close(struct owner *owner);

/*
 * Starts the owner's thread, and waits until it runs. Returns 0, or a negative errno if the thread
 * or one of its descriptors could not be created.
 */
int owner_start(struct owner *owner, const struct timerhub_config *config);

/* Returns the gettid(2) of the owner's thread, or 0 if there is none. Any thread may call it. */
int owner_tid(const struct owner *owner);

/*
 * Ends the owner's thread, waits for its end, and closes the io_uring ring and the timerfd. In a
 * forked child, which has no such thread, `alive` must be false.
 */
void owner_stop(struct owner *owner, bool alive);

/*
 * Expires timers until none is due and the inbox is empty. Returns the time by which the owner will
 * read the inbox again. Only the owner may call it.
 */
uint64_t owner_run_passes(struct owner *owner);

/*
 * Prefetches the memory that the next expiry will touch, so that it has no cache misses. Only the
 * owner may call it, while it is not inside owner_run_passes().
 */
void owner_fetch_next(const struct owner *owner);

/*
 * Wakes the owner and waits until it has begun a new pass (round of work). Then what earlier passes
 * have used may be freed. Not for the owner itself.
 */
void owner_wait_pass(struct owner *owner);

#endif
