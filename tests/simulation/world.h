/* SPDX-License-Identifier: MIT */
/*
 * One run: a hub, its queues, the workers that call it, and the actor that advances it. The choices
 * that a seed makes once are here. operations.c has the operations.
 */
#ifndef SIMULATION_WORLD_H
#define SIMULATION_WORLD_H

#include "kernel.h"
#include "oracle.h"

#define WORKERS_MAX 5
#define OPERATIONS_MAX 4096
#define NOBODY UINT8_MAX
#define OPERATION_KINDS 100

/* The subject of all runs; without one, each seed has its own. */
enum focus {
	FOCUS_NONE,
	FOCUS_WAITS, /* callbacks, and cancellers that wait for them */
	FOCUS_LATE,  /* closing queues, and late callers */
	FOCUS_CLOCK, /* the wall clock is set back after expiries */
	FOCUS_PUSH,  /* arms and cancels, and one lane of the inbox */
	FOCUS_TINY,  /* one or two slots, and repeated deadlines */
	FOCUS_STOP,  /* a stopped queue whose outbox is full of stale handles */
};

/* A run to make. */
struct plan {
	uint64_t seed;
	unsigned operations;
	const bool *dropped; /* operations to leave out; or NULL */
	enum memory_mode memory;
	enum focus focus;
};

struct world_queue {
	struct timerhub_queue *queue; /* NULL while closed */
	int fd;                       /* its eventfd */
	unsigned users;               /* calls in progress that must not overlap its close */
	bool closing;
	bool dispatched;       /* its events go to their callbacks, so each must have one */
	int consumer;          /* the only worker that takes events; -1: all do */
	uint64_t closed;       /* stamp of the last close's return */
	uint64_t interrupted;  /* stamp of the last interrupt's return */
	unsigned interrupting; /* interrupts in progress */
	struct memory_view opened, left; /* synchronize opener and callers, callers and closer */
	bool stopping;                   /* a stop has begun since it was opened */
	bool stopped;                    /* and has returned */
	uint64_t stopped_at;             /* stamp of the stop's return */
};

struct worker {
	struct actor *actor;
	unsigned index;
	struct dice dice;           /* of the operation in progress */
	unsigned operation;         /* number of that operation */
	uint64_t edges[QUEUES_MAX]; /* edges already reported to its edge-triggered poll */
	struct taking *taking;      /* its dispatch in progress */
	int blocked_on, polls_edge; /* the queue that it waits for; or -1 */
	struct walk walk;           /* its walk in progress */
	struct life *inside;        /* the timer whose callback it runs; or NULL */
	bool must_leave;            /* it was waiting when another worker interrupted */
};

struct world {
	struct timerhub *hub;
	bool manual, over;
	struct world_queue queues[QUEUES_MAX];
	unsigned queues_count;
	struct worker workers[WORKERS_MAX];
	unsigned workers_count, workers_over;
	unsigned closes;         /* number of closed queues */
	unsigned sleeps;         /* times at which no thread could run, and the owner slept */
	unsigned deadline_style; /* the kind of deadlines that this seed prefers */
	uint64_t instants[4];    /* deadlines that are used again and again */
	unsigned relative;       /* relative calls in progress, whose clock reading is unknown */
	bool stuck;              /* no actor could run, and time would not help */
	const struct plan *plan;
	uint8_t kinds[OPERATION_KINDS]; /* by dice value: the kind of operation */
	unsigned refusing; /* opens of queues in progress with a reservation to refuse */
	uint64_t refused;  /* stamp at which the last of these ended */
	bool late;         /* against the contract, timers are armed on queues that are closing */
	bool waits;        /* cancel_sync instead of cancel, wherever it is possible */
	bool dispatches;   /* every queue's events go to callbacks */
	uint8_t doers[OPERATIONS_MAX]; /* worker of each operation; NOBODY: dropped */
};

extern struct world world;

/* Run it. Returns if every law held. */
void world_run(const struct plan *plan);

/* Open a queue, sometimes after a refusal. */
void world_open_queue(unsigned index, struct dice *dice);

/* Compare the counts, if no calls other than waits are in progress. */
void world_conserve(void);

/* Returns the worker of operation `number`. */
unsigned operation_worker(uint64_t seed, unsigned number, unsigned workers);
/* Choose the operations of this run; some are more frequent. */
void operations_begin(struct dice *dice);
/* Run operation `number` as this worker. */
void operation_run(struct worker *worker, unsigned number);
/* The operation of a signal handler or a callback. */
void operation_nested(void *worker);

#endif
