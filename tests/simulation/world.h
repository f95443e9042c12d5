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

/* The subject of all runs. With FOCUS_NONE each seed has a subject of its own. */
enum focus {
	FOCUS_NONE,
	FOCUS_WAITS, /* callbacks, and cancellers that wait for them */
	FOCUS_LATE,  /* closing queues, and late callers */
	FOCUS_CLOCK, /* the wall clock is set back after expiries */
	FOCUS_PUSH,  /* arms and cancels, and one lane of the inbox */
	FOCUS_TINY,  /* one or two slots, and repeated deadlines */
	FOCUS_STOP,  /* a stopped queue whose outbox is full of stale handles */
};

/* The settings of a run. */
struct plan {
	uint64_t seed;
	unsigned operations;
	const bool *dropped; /* operations to leave out; or NULL */
	enum memory_mode memory;
	enum focus focus;
};

struct world_queue {
	struct timerhub_queue *queue; /* the queue; NULL while it is closed */
	int fd;                       /* the queue's eventfd */
	unsigned users;               /* calls in progress that must return before a close begins */
	bool closing;
	bool dispatched;       /* events go to callbacks, so each timer must have one */
	int consumer;          /* the only worker that takes events; -1: all do */
	uint64_t closed;       /* stamp of the last close's return */
	uint64_t interrupted;  /* stamp of the last interrupt's return */
	unsigned interrupting; /* interrupts in progress */
	/* Views by which the opener informs callers, and callers inform the closer. */
	struct memory_view opened, left;
	bool stopping;       /* a stop has begun since it was opened */
	bool stopped;        /* the stop has returned */
	uint64_t stopped_at; /* stamp of the stop's return */
};

struct worker {
	struct actor *actor;
	unsigned index;
	struct dice dice;           /* dice of the operation in progress */
	unsigned operation;         /* number of the operation in progress */
	uint64_t edges[QUEUES_MAX]; /* edges that its edge-triggered poll has reported */
	struct taking *taking;      /* the worker's dispatch in progress */
	int blocked_on, polls_edge; /* index of the queue that the worker waits for, or -1 */
	struct walk walk;           /* the worker's walk in progress */
	struct life *inside;        /* the timer whose callback the worker runs, or NULL */
	bool must_leave;            /* the worker was waiting when another worker interrupted */
};

struct world {
	struct timerhub *hub;
	bool manual, over;
	struct world_queue queues[QUEUES_MAX];
	unsigned queues_count;
	struct worker workers[WORKERS_MAX];
	unsigned workers_count, workers_over;
	unsigned closes;         /* number of closed queues */
	unsigned sleeps;         /* number of times that no thread could run and the owner slept */
	unsigned deadline_style; /* the kind of deadlines that this seed prefers */
	uint64_t instants[4];    /* deadlines that are used again and again */
	unsigned relative;       /* relative calls in progress, whose clock reading is unknown */
	bool stuck;              /* no actor could run, and none waited for a time */
	const struct plan *plan;
	uint8_t kinds[OPERATION_KINDS]; /* the kind of operation for each dice value */
	unsigned refusing;              /* opens of queues in progress that may be refused */
	uint64_t refused;               /* stamp at which the last such open ended */
	bool late;       /* timers are armed on closing queues, against the contract */
	bool waits;      /* wherever it is allowed, workers cancel by timerhub_cancel_sync() */
	bool dispatches; /* every queue's events go to callbacks */
	uint8_t doers[OPERATIONS_MAX]; /* worker of each operation; NOBODY: none */
};

extern struct world world;

/* Make the run. Returns if the run kept every law. A broken law ends the process. */
void world_run(const struct plan *plan);

/* Open a queue, sometimes after a refusal. */
void world_open_queue(unsigned index, struct dice *dice);

/* Compare the counts, if no calls other than waits are in progress. */
void world_conserve(void);

/* Returns the worker of operation `number`. */
unsigned operation_worker(uint64_t seed, unsigned number, unsigned workers);
/* Choose the kinds of operations of this run, some of which are more frequent. */
void operations_begin(struct dice *dice);
/* Run operation `number` as this worker. */
void operation_run(struct worker *worker, unsigned number);
/* Run the operation of a signal handler or a callback. */
void operation_nested(void *worker);

#endif
