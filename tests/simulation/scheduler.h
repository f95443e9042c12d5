/* SPDX-License-Identifier: MIT */
/*
 * An actor is a thread to the library, but a coroutine here. Only one actor runs at a time, and the
 * seed chooses which. Time passes by random amounts when actors switch; if none can run, it passes
 * until one can.
 *
 * Before each atomic step the library counts simulation_steps_left down, as the system calls do,
 * and calls simulation_switch() when it is used up. Between two such steps no other actor runs, so
 * the functions of the oracle are atomic.
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
	/* NULL: only time wakes it */
	const void *waits_on;
	/* without a wake; UINT64_MAX: never */
	uint64_t wake_ns;
	/* stopped by the scheduler until wake_ns */
	bool stalled;
	uint64_t stalled_at; /* value of scheduler.switches when the present stall began */
	bool over;           /* true if the actor's function `run` has returned */
	uint64_t runs;       /* number of switches to this actor */
	uint64_t relaxes;    /* number of pauses while the actor spun */
	/* called by chance between two steps of the actor, like a signal handler */
	void (*signal)(void *argument);
	bool in_signal;
	uint64_t read_ns; /* the time that the actor last read outside its signal */
};

struct scheduler {
	/* actors[0] is the thread that called scheduler_begin() */
	struct actor actors[ACTORS_MAX];
	unsigned count;
	struct actor *current;
	unsigned self;     /* number of the current actor */
	uint32_t runnable; /* a bit for each actor that is not blocked, stalled or ended */
	/* run only if all runnable ones are unlucky */
	uint32_t unlucky;
	uint64_t now_ns;      /* virtual time */
	uint64_t next_ns;     /* no blocked actor continues without a wake before this time */
	uint64_t switches;    /* number of times that the scheduler chose the next actor */
	unsigned held;        /* while `held` is not 0, no other actor runs */
	int steps_kept;       /* value of simulation_steps_left when the hold began */
	uint32_t length_mask; /* the most steps that an actor makes between two switches */
	/* one switch in so many stalls; 0: none */
	uint32_t stall_one_in;
	unsigned stall_bits;  /* log2 of the longest stall */
	uint32_t signal_mask; /* one switch in signal_mask + 1 runs the actor's `signal` */
	unsigned drift_bits;  /* log2 of the longest drift of the clock between two switches */
	struct dice dice;
	/* nobody can run, and time is about to pass to next_ns */
	void (*quiet)(void);
	/* called if no actor can run or waits for a time: must wake one, or fail the run */
	void (*stuck)(void);
};

extern struct scheduler scheduler;

/* Returns the number of the current actor. */
static inline unsigned scheduler_self(void)
{
	return scheduler.self;
}

/* Makes `actor` the current actor, but does not switch to its stack. */
static inline void scheduler_enter(struct actor *actor)
{
	scheduler.current = actor;
	scheduler.self = (unsigned)(actor - scheduler.actors);
}

/* The calling thread is the only actor. */
void scheduler_begin(struct dice dice, uint64_t now_ns);

/* Runnable at once. */
struct actor *scheduler_spawn(void (*run)(void *argument), void *argument);

/* scheduler_hold() stops all other actors until scheduler_release(). */
void scheduler_hold(void);
void scheduler_release(void);

/* Others may run first. */
void scheduler_step(void);

/* Returns when chosen again. */
void scheduler_yield(void);

/* Until scheduler_wake() of `on` (NULL: none), or `until_ns`. */
void scheduler_block(const void *on, uint64_t until_ns);

/* At most `count`. */
void scheduler_wake(const void *on, unsigned count);

/* At `until_ns` at the latest. */
void scheduler_hasten(struct actor *actor, uint64_t until_ns);

/* Continues all stalled actors, and stalls none from now on. */
void scheduler_calm(void);

#endif
