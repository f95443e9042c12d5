/* SPDX-License-Identifier: MIT */
/*
 * The owner is the thread that keeps the timers of a hub. In a manual hub it is the thread that
 * advances. owner.c says what a pass is. Between passes the owner sleeps.
 */
#ifndef TIMERHUB_OWNER_H
#define TIMERHUB_OWNER_H

#include <pthread.h>

#include "base/board.h"
#include "base/clock.h"
#include "base/deadline_fd.h"
#include "owner/early_wake.h"
#include "owner/inbox.h"
#include "owner/promise.h"
#include "owner/sleeper.h"
#include "queue/publisher.h"
#include "schedule/schedule.h"
#include "timer/arena.h"

#define OWNER_QUEUES_MAX BOARD_QUEUES_MAX

/* The parts of the hub that the owner shares with callers. The hub sets them up. */
struct owner_world {
	struct arena *arena;
	struct inbox *inbox;
	struct promise *promise;
	struct clock *clock;
	atomic_ptr *queues; /* OWNER_QUEUES_MAX queues by index, or NULL */
	int bell;           /* the eventfd that wakes the owner */
	struct board_owner *counts;
};

struct owner {
	struct owner_world world;
	struct board_owner *counts; /* on the board; only the owner writes */
	struct schedule schedule;
	uint64_t now_ns;     /* this pass's reading of the clock: timers due by it expire */
	uint64_t crowd_ns;   /* start of the current millisecond; see owner_gather() */
	uint64_t crowd_told; /* events published by then */
	uint64_t true_ns;    /* earliest entry checked since it last slept; UINT64_MAX: none */
	bool crowded;        /* coalesce the events of the next passes */
	bool gathers;        /* may coalesce; fixed before the thread starts */

	struct sleeper sleeper;
	struct deadline_fd deadline_fd; /* if the clock is not monotonic: also ends its sleep */
	struct early_wake early_wake;   /* the early-wake margin */
	struct timerhub_config config;  /* the hub's; its name is valid only during the start */
	unsigned sleep_failures;        /* in a row */
	pthread_t thread;
	bool running;       /* there is a thread to join */
	int tid;            /* its id, as gettid(2) returns it; written like start_result */
	atomic_u32 started; /* futex: 1 when start_result is written */
	int start_result;   /* 0, or why the thread could not start */
	atomic_u32 stop;    /* 1: the thread must end */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 passes_begun; /* futex; wraps around */
	atomic_u32 pass_waiters;                            /* threads in owner_wait_pass() */
	/* Only the owner uses the remaining members. */
	uint64_t swept; /* handles read in this compaction of an outbox */
	struct publisher publisher;
};

/* Reserve the schedule's memory. Returns 0, or -ENOMEM. */
int owner_open(struct owner *owner, const struct owner_world *world);
void owner_close(struct owner *owner);

/* Start the thread and wait until it has started its sleeper. Returns 0, or a negative errno. */
int owner_start(struct owner *owner, const struct timerhub_config *config);

/* Returns the thread's id, as gettid(2); 0: there is none. Any thread, while the owner runs. */
int owner_tid(const struct owner *owner);

/* End the thread. `alive` is false in a forked child, which has no such thread. */
void owner_stop(struct owner *owner, bool alive);

/*
 * Make one pass, then more while owner_pass() returns true. Returns the promise. The owner's thread
 * calls it. For a manual hub, one thread at a time may call it.
 */
uint64_t owner_run_passes(struct owner *owner);

/* Wake the owner, and wait until the pass in progress has ended. Any thread but the owner. */
void owner_wait_pass(struct owner *owner);

#endif
