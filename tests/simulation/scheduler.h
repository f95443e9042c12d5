/* SPDX-License-Identifier: MIT */
/*
 * Actors are threads to the library and coroutines to the simulation. One runs at a time, by seeded
 * choice. Virtual time passes when the dice say so, or when no actor can run.
 *
 * The library, built with hooks.h, counts simulation_steps_left down before each atomic step and
 * calls simulation_switch() at zero. The simulated system calls do so too. Between two such steps
 * no other actor runs, so the oracle's work there is atomic.
 */
#ifndef SIMULATION_SCHEDULER_H
#define SIMULATION_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "../harness/dice.h"
#include "coroutine.h"

#define ACTORS_MAX 10

struct actor {
	struct coroutine coroutine;
	void (*run)(void *argument);
	void *argument;
	const void *waits_on; /* the object it is blocked on; NULL: only time */
	uint64_t wake_ns;     /* when it continues by itself; UINT64_MAX: never */
	bool stalled;         /* not blocked, but does not run until wake_ns */
	bool over;            /* `run` has returned */
	uint64_t runs;        /* number of switches to it */
	uint64_t relaxes;     /* number of its pauses while it spun */
	/* Called now and then in the middle of a step, like a signal handler; or NULL. */
	void (*signal)(void *argument);
	bool in_signal;
};

struct scheduler {
	struct actor actors[ACTORS_MAX]; /* [0] is the caller of scheduler_begin() */
	unsigned count;
	struct actor *current;
	unsigned self;     /* number of the current actor */
	uint32_t runnable; /* bit per actor */
	uint32_t unlucky;  /* these run only if no other can */
	uint64_t now_ns;   /* virtual time */
	uint64_t next_ns;  /* no actor wakes by itself before this */
	uint64_t switches; /* switches so far; switches to another actor */
	uint64_t changes;
	unsigned held;        /* while not 0, no other actor runs */
	int steps_kept;       /* steps left when the hold began */
	uint32_t length_mask; /* mostly bounds the steps that an actor runs undisturbed */
	uint32_t stall_one_in;
	unsigned stall_bits; /* log2 of the longest stall */
	unsigned drift_bits; /* log2 of the longest drift of the clock between two switches */
	struct dice dice;
	/* Called when no actor can run, before time passes to next_ns. */
	void (*quiet)(void);
	/* Called when no actor can run and time does not help: must wake an actor, or fail. */
	void (*stuck)(void);
};

extern struct scheduler scheduler;

/* Returns the number of the current actor. */
static inline unsigned scheduler_self(void)
{
	return scheduler.self;
}

/* This actor becomes the current one. */
static inline void scheduler_enter(struct actor *actor)
{
	scheduler.current = actor;
	scheduler.self = (unsigned)(actor - scheduler.actors);
}

/* Begin with the calling thread as the only actor. `dice` choose the settings. */
void scheduler_begin(struct dice dice, uint64_t now_ns);

/* A new actor, runnable. */
struct actor *scheduler_spawn(void (*run)(void *argument), void *argument);

/* While held, no other actor runs, so the library may be called without interruption. */
void scheduler_hold(void);
void scheduler_release(void);

/* A step follows: others may run before it. */
void scheduler_step(void);

/* Let other actors run, if any can; returns some time. */
void scheduler_yield(void);

/* Block the current actor on `on` (may be NULL) until it is woken or until that time. */
void scheduler_block(const void *on, uint64_t until_ns);

/* Wake up to `count` actors blocked on `on`. */
void scheduler_wake(const void *on, unsigned count);

/* This blocked actor continues at that time at the latest. */
void scheduler_hasten(struct actor *actor, uint64_t until_ns);

/* From here on, no actor is stalled or unlucky. */
void scheduler_calm(void);

#endif
