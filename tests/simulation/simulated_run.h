/* SPDX-License-Identifier: MIT */
/*
 * Makes one run of the simulation. A run has a hub, the hub's queues, and the workers that call the
 * hub. If the hub is manual, one actor advances the hub. simulated_run.c makes the choices that
 * hold for the whole run. operations.c makes the workers' operations.
 */
#ifndef SIMULATION_SIMULATED_RUN_H
#define SIMULATION_SIMULATED_RUN_H

#include "kernel.h"
#include "oracle.h"

#define WORKERS_MAX 5
#define OPERATIONS_MAX 4096
#define NOBODY UINT8_MAX
#define OPERATION_KINDS 100

/*
 * The option --focus selects the subject of all runs. With FOCUS_NONE each seed chooses its own
 * mixture of operations.
 */
enum focus {
	FOCUS_NONE,
	FOCUS_LOOP,  /* event loops */
	FOCUS_WAITS, /* callbacks, and cancellers that wait for callbacks */
	FOCUS_LATE,  /* the close of queues, and calls on queues that are being closed */
	FOCUS_CLOCK, /* a wall clock that is often set back to a time before an expiry */
	FOCUS_PUSH,  /* near deadlines and many cancels, so the inbox gets many pushes */
	FOCUS_TINY,  /* a hub of one or two slots, and timers with equal deadlines */
	FOCUS_STOP,  /* a stopped queue whose outbox is full of stale handles */
	/* raced slots, beside stopped threads or while the inbox is not drained for long */
	FOCUS_FULL,
};

/* The settings of a run, which the command line gives. */
struct plan {
	uint64_t seed;
	unsigned operations;
	const bool *dropped; /* for each operation, whether it is left out; or NULL */
	enum memory_mode memory;
	enum focus focus;
};

struct world_queue {
	/* the library's queue; NULL while this index has no open queue */
	struct timerhub_queue *queue;
	int fd; /* the queue's eventfd */
	/* calls in progress that must return before the queue is closed */
	unsigned users;
	bool closing;
	bool of_loop; /* the queue of an event loop, which alone takes events and closes it */
	/* true if workers dispatch the queue's events, so each timer must have a callback */
	bool dispatched;
	/* number of the only worker that takes events; -1: all workers do */
	int consumer;
	uint64_t closed;       /* stamp at which the last close of the queue returned */
	uint64_t interrupted;  /* stamp at which the last interrupt of the queue returned */
	unsigned interrupting; /* number of interrupts in progress */
	/*
	 * Views that carry synchronization from the opener to callers, and from callers to the
	 * closer.
	 */
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
	/*
	 * For each queue: the worker's last edge-triggered poll returned after this number of
	 * writes to the queue's eventfd.
	 */
	uint64_t edges[QUEUES_MAX];
	struct taking *taking; /* the worker's dispatch in progress, or NULL */
	bool consumes;         /* the worker is inside timerhub_drain() or timerhub_wait() */
	/* index of the queue that the worker waits for or polls, or -1 */
	int blocked_on, polls_edge;
	struct walk walk;        /* the worker's call of timerhub_each() in progress */
	struct life *works_on;   /* the timer of the worker's last arm or re-arm */
	struct life *inside;     /* the timer whose callback the worker runs, or NULL */
	struct world_loop *loop; /* the loop that the worker uses, or NULL */
	/* true if an interrupt came while the worker waited, so the wait must end */
	bool must_leave;
};

struct world {
	struct timerhub *hub;
	bool manual, over;
	bool unattended; /* the program advances the manual hub seldom, whatever wake_fd says */
	struct world_queue queues[QUEUES_MAX];
	unsigned queues_count;
	struct worker workers[WORKERS_MAX];
	unsigned workers_count, workers_over;
	unsigned closes;      /* number of queues closed so far */
	unsigned loop_one_in; /* one operation of so many uses a loop; 0: none */
	/* number of times that no actor could run and the owner slept */
	unsigned sleeps;
	unsigned deadline_style; /* the kind of deadlines that this seed prefers, 0 to 3 */
	uint64_t instants[4];    /* four deadlines that the run gives to many timers */
	unsigned relative;       /* number of calls with relative deadlines in progress */
	bool stuck;              /* true if no actor could run, and no actor waited for a time */
	const struct plan *plan;
	/* for each random number below OPERATION_KINDS: the kind of operation */
	uint8_t kinds[OPERATION_KINDS];
	/* number of calls in progress that open a queue and may be refused */
	unsigned refusing;
	/* stamp at the end of the last call that opened a queue and might be refused */
	uint64_t refused;
	bool late;       /* workers arm timers on closing queues, which the contract forbids */
	bool waits;      /* if a worker may wait, it cancels by timerhub_cancel_sync() */
	bool dispatches; /* true if the events of every queue are dispatched to callbacks */
	/* for each operation: the worker that does it; NOBODY: it is left out */
	uint8_t doers[OPERATIONS_MAX];
};

extern struct world world;

/*
 * Make the run of this plan. If a law is broken, the process ends and the function does not return.
 */
void world_run(const struct plan *plan);

/* Open the queue with this index, sometimes after the kernel has refused an open. */
void world_open_queue(unsigned index, struct dice *dice);

/*
 * If no call that changes the hub is in progress, compare timerhub_stats() with the oracle's
 * counts.
 */
void world_conserve(void);

/* Returns the worker that does operation `number`, for a run with this seed. */
unsigned operation_worker(uint64_t seed, unsigned number, unsigned workers);
/* Choose the kinds of operations for this run, and which of them are more frequent. */
void operations_begin(struct dice *dice);
/* Let this worker run the operation with this number. */
void operation_run(struct worker *worker, unsigned number);
/* Do a random operation inside a signal handler or a callback of this worker. */
void operation_nested(void *worker);

#endif
