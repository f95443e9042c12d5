/* SPDX-License-Identifier: MIT */
/*
 * Actors are threads to the library and coroutines to the simulation. One actor runs at a time. The
 * seed chooses the running actor. Virtual time passes when the dice say so, or when no actor can
 * run.
 *
 * The library, built with redirect_atomics.h, counts simulation_steps_left down before each atomic
 * step and calls simulation_switch() at zero. The simulated system calls also count
 * simulation_steps_left down. Between two such steps no other actor runs, so the oracle's work
 * there is atomic.
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
	const void *waits_on; /* the object that can wake the actor; NULL: only time wakes it */
	uint64_t wake_ns;     /* time at which it continues without a wake; UINT64_MAX: never */
	bool stalled;         /* the actor is not blocked, but does not run until wake_ns */
	bool over;            /* `run` has returned */
	uint64_t runs;        /* number of switches to this actor */
	uint64_t relaxes;     /* number of pauses while the actor spun */
	/* Called now and then in the middle of a step, like a signal handler; or NULL. */
	void (*signal)(void *argument);
	bool in_signal;
};

struct scheduler {
	struct actor actors[ACTORS_MAX]; /* [0] is the thread that called scheduler_begin() */
	unsigned count;
	struct actor *current;
	unsigned self;     /* number of the current actor */
	uint32_t runnable; /* a bit for each actor that can run */
	uint32_t unlucky;  /* a bit for each actor that runs only if no other can */
	uint64_t now_ns;   /* virtual time */
	uint64_t next_ns;  /* before this time no blocked actor continues without a wake */
	uint64_t switches; /* number of switches, and of switches to another actor */
	uint64_t changes;
	unsigned held;        /* while not 0, no other actor runs */
	int steps_kept;       /* steps left when the hold began */
	uint32_t length_mask; /* usual bound of the steps of an actor without a switch */
	uint32_t stall_one_in;
	unsigned stall_bits; /* log2 of the longest stall */
	unsigned drift_bits; /* log2 of the longest drift of the clock between two switches */
	struct dice dice;
	/* Called when no actor can run, before time passes to next_ns. */
	void (*quiet)(void);
	/*
	 * Called when no actor can run and none waits for a time. The function must wake an actor
	 * or fail.
	 */
	void (*stuck)(void);
};

extern struct scheduler scheduler;

/* Returns the number of the current actor. */
static inline unsigned scheduler_self(void)
{
	return scheduler.self;
}

/* Make this actor the current actor. */
static inline void scheduler_enter(struct actor *actor)
{
	scheduler.current = actor;
	scheduler.self = (unsigned)(actor - scheduler.actors);
}

/* Begin with the calling thread as the only actor. `dice` choose the settings. */
void scheduler_begin(struct dice dice, uint64_t now_ns);

/* Make a new actor, which can run. */
struct actor *scheduler_spawn(void (*run)(void *argument), void *argument);

/*
 * Between scheduler_hold() and scheduler_release() no other actor runs, so the library can be
 * called without interruption.
 */
void scheduler_hold(void);
void scheduler_release(void);

/* Announces an atomic step, before which other actors may run. */
void scheduler_step(void);

/* Let other actors run, if an actor can run. Returns after some time. */
void scheduler_yield(void);

/* Block the current actor on `on` (may be NULL) until it is woken or until that time. */
void scheduler_block(const void *on, uint64_t until_ns);

/* Wake up to `count` actors blocked on `on`. */
void scheduler_wake(const void *on, unsigned count);

/* Let this blocked actor continue at the latest at this time. */
void scheduler_hasten(struct actor *actor, uint64_t until_ns);

/* From now on, no actor is stalled, and none must wait until no other can run. */
void scheduler_calm(void);

#endif
