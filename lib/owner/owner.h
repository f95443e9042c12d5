/* SPDX-License-Identifier: MIT */
/* In a manual hub the owner is the caller of timerhub_advance(). */
#ifndef TIMERHUB_OWNER_H
#define TIMERHUB_OWNER_H

#include <pthread.h>

#include "base/clock.h"
#include "base/counter_board.h"
#include "base/deadline_fd.h"
#include "owner/early_wake.h"
#include "owner/inbox.h"
#include "owner/promise.h"
#include "owner/sleeper.h"
#include "queue/publisher.h"
#include "schedule/schedule.h"
#include "timer/arena.h"

#define OWNER_QUEUES_MAX BOARD_QUEUES_MAX

/* Shared with callers; set by hub/open.c. */
struct owner_world {
	struct arena *arena;
	struct inbox *inbox;
	struct promise *promise;
	struct clock *clock;
	atomic_ptr *queues; /* by index; NULL: no queue */
	int bell;
	struct board_owner *counts;
};

struct owner {
	struct owner_world world;
	struct board_owner *counts;
	struct schedule schedule;
	uint64_t now_ns;     /* clock, read once in a pass; timers due by then expire */
	uint64_t crowd_ns;   /* when owner_gather() began to count */
	uint64_t crowd_told; /* published before that */
	uint64_t true_ns;    /* earliest instant that this rest has checked, or UINT64_MAX */
	bool crowded;        /* coalesce the next passes' events */
	bool gathers;        /* may coalesce; fixed before the thread starts */

	struct sleeper sleeper;
	struct deadline_fd deadline_fd; /* ends a sleep, if the clock needs it */
	struct early_wake early_wake;
	struct timerhub_config config; /* thread_name: only in owner_start() */
	unsigned sleep_failures;       /* sleeps in a row that failed in io_uring */
	int opener;                    /* gettid(2) of the thread that starts the owner */
	pthread_t thread;
	bool running;       /* there is a thread to join */
	int tid;            /* valid when `started` */
	atomic_u32 started; /* futex: 1 when start_result and tid are written */
	int start_result;   /* 0 or a negative errno */
	atomic_u32 stop;    /* 1: the thread must end */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 passes_begun; /* futex; wraps */
	atomic_u32 pass_waiters;                            /* threads in owner_wait_pass() */
	/* the owner's */
	uint64_t swept; /* handles that this compaction has read */
	struct publisher publisher;
};

/* 0 or -ENOMEM. */
int owner_open(struct owner *owner, const struct owner_world *world);
void owner_close(struct owner *owner);

/* Until the thread's sleeper has started. 0 or a negative errno. */
int owner_start(struct owner *owner, const struct timerhub_config *config);

/* 0: no thread. Thread-safe. */
int owner_tid(const struct owner *owner);

/* `alive` is false in a forked child, which has no such thread. */
void owner_stop(struct owner *owner, bool alive);

/* By the owner. Returns the promise, the time of the next drain. */
uint64_t owner_run_passes(struct owner *owner);

/* By the owner: what the next expiry will touch, before it is due. */
void owner_fetch_next(const struct owner *owner);

/* Any thread but the owner: wake it, and wait until the pass in progress has ended. */
void owner_wait_pass(struct owner *owner);

#endif
