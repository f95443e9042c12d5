/* SPDX-License-Identifier: MIT */
/*
 * One run: a hub, its queues, the workers that call it, and who moves it. What a seed chooses once
 * is chosen here; what each operation does is in operations.c.
 */
#ifndef SIMULATION_WORLD_H
#define SIMULATION_WORLD_H

#include "kernel.h"
#include "oracle.h"

#define WORKERS_MAX 5
#define OPERATIONS_MAX 4096
#define NOBODY UINT8_MAX
#define OPERATION_KINDS 100

/* What every run is to be about; else each seed has its own taste. */
enum focus {
	FOCUS_NONE,
	FOCUS_WAITS, /* callbacks, and cancellers that wait for them */
	FOCUS_LATE,  /* queues that close, and late comers */
	FOCUS_CLOCK, /* a wall clock that is set back over what has expired */
	FOCUS_PUSH,  /* arms and cancels, and one lane of the inbox */
	FOCUS_TINY,  /* one or two slots, and deadlines that come again */
	FOCUS_STOP,  /* a stopped queue whose outbox is full of what is over */
};

/* What to run. */
struct plan {
	uint64_t seed;
	unsigned operations;
	const bool *dropped; /* operations to be left out; or NULL */
	enum memory_mode memory;
	enum focus focus;
};

struct world_queue {
	struct timerhub_queue *queue; /* NULL while closed */
	int fd;                       /* its eventfd */
	unsigned users;               /* calls in progress that must not overlap its close */
	bool closing;
	bool dispatched;       /* its events go to their callbacks, so each must have one */
	int consumer;          /* the one worker that takes events; -1: all do */
	uint64_t closed;       /* stamp of the last close's return */
	uint64_t interrupted;  /* stamp of the last interrupt's return */
	unsigned interrupting; /* interrupts in progress */
	struct memory_view opened,
		left;        /* what its opener tells its callers, and they its closer */
	bool stopping;       /* a stop has begun, since it was opened */
	bool stopped;        /* and has returned */
	uint64_t stopped_at; /* stamp of that */
};

struct worker {
	struct actor *actor;
	unsigned index;
	struct dice dice;           /* of the operation in progress */
	unsigned operation;         /* its number */
	uint64_t edges[QUEUES_MAX]; /* what an edge-triggered poll has told of */
	struct taking *taking;      /* by dispatch, in progress */
	int blocked_on, polls_edge; /* the queue that it waits for; -1 */
	struct walk walk;           /* over all timers, in progress */
	struct life *inside;        /* the timer whose callback it runs; or NULL */
	bool must_leave;            /* it was in a wait when somebody interrupted that */
};

struct world {
	struct timerhub *hub;
	bool manual, over;
	struct world_queue queues[QUEUES_MAX];
	unsigned queues_count;
	struct worker workers[WORKERS_MAX];
	unsigned workers_count, workers_over;
	unsigned closes;         /* of queues */
	unsigned sleeps;         /* times at which no thread could run, and the owner slept */
	unsigned deadline_style; /* which deadlines this seed likes */
	uint64_t instants[4];    /* deadlines that are given again and again */
	unsigned relative;       /* calls in progress that add to the clock, whatever that may be */
	bool stuck;              /* nobody could run, and nobody ever would have */
	const struct plan *plan;
	uint8_t kinds[OPERATION_KINDS]; /* what an operation that rolls this number is */
	unsigned refusing; /* queues being opened, a reservation of which is to be refused */
	uint64_t refused;  /* stamp at which the last of these was open */
	bool late;         /* against the contract, timers are armed on queues that are closing */
	bool waits;        /* cancel_sync, whenever that can be, in place of cancel */
	bool dispatches;   /* every queue's events go to callbacks */
	uint8_t doers[OPERATIONS_MAX]; /* worker of each operation; NOBODY: dropped */
};

extern struct world world;

/* Run it. Returns if every law held. */
void world_run(const struct plan *plan);

/* Open a queue, at times after a refusal. */
void world_open_queue(unsigned index, struct dice *dice);

/* The counts, if no call is in progress but waits. */
void world_conserve(void);

/* Which of so many workers is to do the operation of this number? */
unsigned operation_worker(uint64_t seed, unsigned number, unsigned workers);
/* Which operations this run has; some of them more often than others. */
void operations_begin(struct dice *dice);
/* The operation of this number, by that worker. */
void operation_run(struct worker *worker, unsigned number);
/* What a signal handler or a callback does. */
void operation_nested(void *worker);

#endif
