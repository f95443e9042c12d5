/* SPDX-License-Identifier: MIT */
/*
 * The owner: the one thread (of a manual hub: the one that advances) that keeps the timers, and its
 * pass: look at the inbox, expire what is due, publish, rest, promise when to look again. Between
 * passes its thread sleeps.
 */
#ifndef TIMERHUB_OWNER_H
#define TIMERHUB_OWNER_H

#include <pthread.h>

#include "base/board.h"
#include "base/clock.h"
#include "base/deadline_fd.h"
#include "owner/inbox.h"
#include "owner/lead.h"
#include "owner/promise.h"
#include "owner/sleeper.h"
#include "queue/teller.h"
#include "schedule/schedule.h"
#include "timer/arena.h"

#define OWNER_QUEUES_MAX BOARD_QUEUES_MAX
#define OWNER_NAME_MAX 16

/* What the owner shares with callers. Set up by the hub. */
struct owner_world {
	struct arena *arena;
	struct inbox *inbox;
	struct promise *promise;
	struct clock *clock;
	atomic_ptr *queues; /* OWNER_QUEUES_MAX queues by index, or NULL */
	int bell;           /* the eventfd that wakes the owner */
	struct board_owner *counts;
};

enum owner_sleeper { OWNER_SLEEPER_AUTO, OWNER_SLEEPER_URING, OWNER_SLEEPER_POLL };

struct owner_config {
	enum owner_sleeper sleeper;
	unsigned cpu_plus_one; /* 0: not pinned */
	uint64_t spin_ns;
	const char *name;
};

struct owner {
	struct owner_world world;
	struct board_owner *counts; /* on the board; written by the owner alone */
	struct schedule schedule;
	uint64_t now_ns;     /* this pass's reading of the clock: what is due by it expires */
	uint64_t crowd_ns;   /* when crowd_told was last set; see owner_gather() */
	uint64_t crowd_told; /* events told by then */
	uint64_t true_ns;    /* the earliest instant found true since it last slept; UINT64_MAX */
	bool crowded;
	bool gathers; /* may be late for a crowd; fixed before the thread starts */

	struct sleeper sleeper;
	struct deadline_fd
		deadline_fd; /* what it sleeps on, beside the bell, if the clock is not monotonic */
	struct lead lead;    /* how much earlier than due to ask to be woken */
	struct owner_config config;
	char name[OWNER_NAME_MAX];
	unsigned sleep_failures; /* in a row */
	pthread_t thread;
	bool running;       /* there is a thread to join */
	int tid;            /* its id, as gettid(2) tells; with start_result */
	atomic_u32 started; /* futex: 1 when the thread has told start_result */
	int start_result;   /* 0, or why the thread could not start */
	atomic_u32 stop;    /* 1: the thread is to end */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 passes_begun; /* futex; wraps */
	atomic_u32 pass_waiters;                            /* threads in owner_wait_pass() */
	/* The owner's alone. */
	uint64_t swept; /* handles looked at by this compaction of an outbox */
	struct teller teller;
};

/* Reserve the schedule's memory. 0, or -ENOMEM. */
int owner_open(struct owner *owner, const struct owner_world *world);
void owner_close(struct owner *owner);

/* Start the thread and wait until it sleeps soundly. 0, or a negative errno. */
int owner_start(struct owner *owner, const struct owner_config *config);

/* The thread's id, as gettid(2) tells; 0 if there is none. Any thread, while the owner runs. */
int owner_tid(const struct owner *owner);

/* End the thread. `alive` is false in a forked child, which has none. */
void owner_stop(struct owner *owner, bool alive);

/*
 * One pass, then more while the second look finds something or the rest is not over; returns the
 * promise made. The owner's thread, or on a manual hub one thread at a time.
 */
uint64_t owner_run_passes(struct owner *owner);

/*
 * Wait until the pass in progress, if any, is over. Any thread but the owner; it wakes the owner.
 */
void owner_wait_pass(struct owner *owner);

#endif
