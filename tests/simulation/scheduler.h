/* SPDX-License-Identifier: MIT */
/*
 * Schedules the actors of a run. An actor is a thread for the library and a coroutine for the
 * simulation. One actor runs at a time, chosen by the seed. Virtual time advances by random amounts
 * at some switches between actors. If no actor can run, virtual time advances until an actor can
 * run.
 *
 * The library, built with redirect_atomics.h, counts simulation_steps_left down before each atomic
 * step. When the counter passes zero, the library calls simulation_switch(). The simulated system
 * calls count simulation_steps_left down too. Between two of these steps no other actor runs, so
 * the oracle's functions are atomic.
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
	/* the object that the actor waits for; NULL: only time wakes the actor */
	const void *waits_on;
	/* time at which the actor continues without a wake; UINT64_MAX: never */
	uint64_t wake_ns;
	/* true if the scheduler, not a blocking call, stops the actor until wake_ns */
	bool stalled;
	uint64_t stalled_at; /* value of scheduler.switches when the present stall began */
	bool over;           /* true if the actor's function `run` has returned */
	uint64_t runs;       /* number of switches to this actor */
	uint64_t relaxes;    /* number of pauses while the actor spun */
	/*
	 * If not NULL, the scheduler sometimes calls this function on the actor between two steps,
	 * like a signal handler.
	 */
	void (*signal)(void *argument);
	bool in_signal;
};

struct scheduler {
	/* actors[0] is the thread that called scheduler_begin() */
	struct actor actors[ACTORS_MAX];
	unsigned count;
	struct actor *current;
	unsigned self;     /* number of the current actor */
	uint32_t runnable; /* a bit for each actor that is not blocked, stalled or ended */
	/* a bit for each unlucky actor, which runs only if all runnable actors are unlucky */
	uint32_t unlucky;
	uint64_t now_ns;   /* virtual time */
	uint64_t next_ns;  /* no blocked actor continues without a wake before this time */
	uint64_t switches; /* number of times that the scheduler chose the next actor */
	unsigned held;     /* while `held` is not 0, no other actor runs */
	int steps_kept;    /* value of simulation_steps_left when the hold began */
	/* largest number of steps that an actor usually runs without a switch */
	uint32_t length_mask;
	/*
	 * With the probability 1 / stall_one_in, a switch stalls the actor. If stall_one_in is 0,
	 * no switch stalls an actor.
	 */
	uint32_t stall_one_in;
	unsigned stall_bits;  /* log2 of the longest stall */
	uint32_t signal_mask; /* one switch in signal_mask + 1 runs the actor's `signal` */
	unsigned drift_bits;  /* log2 of the longest drift of the clock between two switches */
	struct dice dice;
	/* Called when no actor can run, before virtual time passes to next_ns. */
	void (*quiet)(void);
	/*
	 * Called when no actor can run and no actor waits for a time. The function must wake an
	 * actor or end the run with a failure.
	 */
	void (*stuck)(void);
};

extern struct scheduler scheduler;

/* Returns the number of the current actor. */
static inline unsigned scheduler_self(void)
{
	return scheduler.self;
}

/* Make `actor` the current actor, without a switch of stacks. */
static inline void scheduler_enter(struct actor *actor)
{
	scheduler.current = actor;
	scheduler.self = (unsigned)(actor - scheduler.actors);
}

/*
 * Begin a run with the calling thread as its only actor. `dice` choose the settings of the
 * scheduler.
 */
void scheduler_begin(struct dice dice, uint64_t now_ns);

/* Make a new actor, which runs `run(argument)` and is runnable at once. */
struct actor *scheduler_spawn(void (*run)(void *argument), void *argument);

/* scheduler_hold() stops all other actors until scheduler_release(). */
void scheduler_hold(void);
void scheduler_release(void);

/* Announce an atomic step of the current actor. Other actors may run before the step. */
void scheduler_step(void);

/*
 * Let other actors run, if another actor can run. Returns when the current actor is chosen again.
 */
void scheduler_yield(void);

/*
 * Block the current actor until scheduler_wake() is called for `on`, or until `until_ns`. If `on`
 * is NULL, the actor stays blocked until `until_ns`.
 */
void scheduler_block(const void *on, uint64_t until_ns);

/* Wake at most `count` of the actors that are blocked on `on`. */
void scheduler_wake(const void *on, unsigned count);

/* Let this blocked actor continue at `until_ns` at the latest. */
void scheduler_hasten(struct actor *actor, uint64_t until_ns);

/* From now on stall no actor, and treat all actors alike. Make every stalled actor runnable. */
void scheduler_calm(void);

#endif
