/* SPDX-License-Identifier: MIT */
/*
 * One run of the simulation: a hub and its queues, the workers that call it, and if the hub is
 * manual, an actor that advances it. simulated_run.c makes the choices that hold for the whole run,
 * operations.c those of each operation.
 */
#ifndef SIMULATION_SIMULATED_RUN_H
#define SIMULATION_SIMULATED_RUN_H

#include "kernel.h"
#include "oracle.h"

#define WORKERS_MAX 5
#define OPERATIONS_MAX 4096
#define OPERATION_KINDS 100

/* --focus; with FOCUS_NONE each seed chooses its own mixture. */
enum focus {
	FOCUS_NONE,
	FOCUS_WAITS, /* callbacks, and cancellers that wait for callbacks */
	FOCUS_LATE,  /* the close of queues, and calls on queues that are being closed */
	FOCUS_CLOCK, /* a wall clock that is often set back to a time before an expiry */
	FOCUS_PUSH,  /* near deadlines and many cancels, so the inbox gets many pushes */
	FOCUS_TINY,  /* a hub of one or two slots, and timers with equal deadlines */
	FOCUS_STOP,  /* a stopped queue whose outbox is full of stale handles */
	FOCUS_FULL,  /* calls race for a slot; threads are stopped, or the inbox is not emptied */
};

/* From the command line. */
struct plan {
	uint64_t seed;
	unsigned operations;
	enum memory_mode memory;
	enum focus focus;
};

struct world_queue {
	/* NULL: not open */
	struct timerhub_queue *queue;
	int fd;         /* the queue's eventfd */
	unsigned users; /* number of calls that must return before the queue is closed */
	bool closing;
	/* workers dispatch, so each timer needs a callback */
	bool dispatched;
	/* the only worker that takes; -1: all do */
	int consumer;
	uint64_t closed; /* stamp at which the last close of the queue returned */
	/* from the opener to callers, and from callers to the closer */
	struct memory_view opened, left;
	bool stopping;       /* true if a stop of the queue has begun since the queue was opened */
	bool stopped;        /* true if a stop of the queue has returned */
	uint64_t stopped_at; /* stamp at which the last stop returned */
};

struct worker {
	struct actor *actor;
	unsigned index;
	struct dice dice;   /* random numbers of the operation in progress */
	unsigned operation; /* number of the operation in progress */
	/* by queue: writes to its eventfd when the worker's last edge poll returned */
	uint64_t edges[QUEUES_MAX];
	struct taking *taking; /* the worker's dispatch in progress, or NULL */
	bool consumes;         /* the worker is inside timerhub_drain() or timerhub_wait() */
	/* index of the queue that the worker waits on, and of the one that it polls; or -1 */
	int blocked_on, polls_edge;
	struct walk walk;      /* the worker's call of timerhub_each() in progress */
	struct life *works_on; /* the timer of the worker's last arm or re-arm */
	struct life *inside;   /* the timer whose callback the worker runs, or NULL */
};

struct world {
	struct timerhub *hub;
	bool manual, over;
	bool mover_called; /* a worker has advanced the hub, so the mover looks */
	bool unattended;   /* the program advances the manual hub seldom, whatever wake_fd says */
	struct world_queue queues[QUEUES_MAX];
	unsigned queues_count;
	struct worker workers[WORKERS_MAX];
	unsigned workers_count, workers_over;
	unsigned closes; /* number of queues closed so far */
	/* how often nobody could run and the owner slept */
	unsigned sleeps;
	unsigned deadline_style; /* the kind of deadlines that this seed prefers, 0 to 3 */
	uint64_t instants[4];    /* four deadlines that the run gives to many timers */
	unsigned relative;       /* number of calls with relative deadlines in progress */
	bool stuck;              /* true if no actor could run, and no actor waited for a time */
	const struct plan *plan;
	/* by random number */
	uint8_t kinds[OPERATION_KINDS];
	/* opens of queues in progress that may be refused */
	unsigned refusing;
	uint64_t refused; /* stamp at the end of the last queue open that could be refused */
	bool late;        /* workers arm timers on closing queues, which the contract forbids */
	bool waits;       /* if a worker may wait, it cancels by timerhub_cancel_sync() */
	bool dispatches;  /* true if the events of every queue are dispatched to callbacks */
	/* by operation */
	uint8_t doers[OPERATIONS_MAX];
};

extern struct world world;

/* A broken law ends the process. */
void world_run(const struct plan *plan);

/* Opens the queue, sometimes at the second attempt, after the simulated kernel refused one. */
void world_open_queue(unsigned index, struct dice *dice);

/* Stops the queue, so that no wait on it blocks any more. */
void world_stop_queue(unsigned index);

/* While no call that changes the hub is in progress, timerhub_stats() agrees with the oracle. */
void world_conserve(void);

unsigned operation_worker(uint64_t seed, unsigned number, unsigned workers);
/* Chooses for the whole run which kinds of operations are more frequent than others. */
void operations_begin(struct dice *dice);
void operation_run(struct worker *worker, unsigned number);
/* Inside a signal handler or a callback. */
void operation_nested(void *worker);

#endif
