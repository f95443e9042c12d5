/* SPDX-License-Identifier: MIT */
/*
 * Who runs: actors, which are threads to the library and coroutines to us, one at a time, by seeded
 * choice; and virtual time, which passes when the dice say so or when nobody can run.
 *
 * The library, built with hooks.h, counts simulation_steps_left down before each atomic
 * step and calls simulation_switch() when it is used up; so do the simulated system calls. Between
 * two such steps an actor runs undisturbed, so what the oracle does there is atomic.
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
	const void *waits_on; /* what it is blocked on; NULL: nothing but time */
	uint64_t wake_ns;     /* when it goes on by itself; UINT64_MAX: never */
	bool stalled;         /* not blocked, but kept from running until wake_ns */
	bool over;            /* has returned from run */
	uint64_t runs;        /* times that it was switched to */
	uint64_t relaxes;     /* times that it let time pass while it spun */
	/* Called now and then in the middle of a step, like a signal handler; or NULL. */
	void (*signal)(void *argument);
	bool in_signal;
};

struct scheduler {
	struct actor actors[ACTORS_MAX]; /* [0] is who called scheduler_begin() */
	unsigned count;
	struct actor *current;
	unsigned self;     /* its number */
	uint32_t runnable; /* bit per actor */
	uint32_t unlucky;  /* these run only when no other can */
	uint64_t now_ns;   /* virtual time */
	uint64_t next_ns;  /* nobody wakes by himself before this */
	uint64_t switches; /* so far; of these, to somebody else: */
	uint64_t changes;
	unsigned held;        /* while not 0 nobody else runs */
	int steps_kept;       /* what was left of the steps when that began */
	uint32_t length_mask; /* how long an actor runs undisturbed, mostly */
	uint32_t stall_one_in;
	unsigned stall_bits; /* for how long, at most */
	unsigned drift_bits; /* how far the clock moves between two switches, at most */
	struct dice dice;
	/* Called when nobody can run, before time passes to next_ns. */
	void (*quiet)(void);
	/* Called when nobody can run and nobody ever will: must wake somebody, or fail. */
	void (*stuck)(void);
};

extern struct scheduler scheduler;

/* The number of the current actor. */
static inline unsigned scheduler_self(void)
{
	return scheduler.self;
}

/* This actor is the current one from here on. */
static inline void scheduler_enter(struct actor *actor)
{
	scheduler.current = actor;
	scheduler.self = (unsigned)(actor - scheduler.actors);
}

/* Begin with the calling thread as the only actor. The knobs are set to what `dice` say. */
void scheduler_begin(struct dice dice, uint64_t now_ns);

/* A new actor, runnable. */
struct actor *scheduler_spawn(void (*run)(void *argument), void *argument);

/* While held, nobody else runs: the library may be called as if alone. */
void scheduler_hold(void);
void scheduler_release(void);

/* One step is about to be taken: others may run before it. */
void scheduler_step(void);

/* Let others run, if any can; returns some time. */
void scheduler_yield(void);

/* Block the current actor on `on` (may be NULL) until woken or until that instant. */
void scheduler_block(const void *on, uint64_t until_ns);

/* Wake up to `count` of those blocked on `on`. */
void scheduler_wake(const void *on, unsigned count);

/* This actor, which is blocked, goes on at that instant if not before. */
void scheduler_hasten(struct actor *actor, uint64_t until_ns);

/* Keep no actor stalled or unlucky any longer, from here on. */
void scheduler_calm(void);

#endif
