/* SPDX-License-Identifier: MIT */
/*
 * Chooses which actor runs next, lets time pass, and blocks and wakes actors. Invariant: the
 * current actor can run, or is about to switch to one that can. Any other actor can run as well, or
 * has ended, or is blocked or stalled.
 */
#include "scheduler.h"

#include <limits.h>
#include <stddef.h>

#include "memory_models.h"
#include "own_steps.h"
#include "redirect_atomics.h"
#include "report.h"

#define STACK_BYTES ((size_t)128 << 10)
/* more is an endless spin */
#define SWITCHES_MAX 2000000
/* no drift beyond, so that it can't overflow */
#define DRIFT_END_NS (UINT64_C(9) << 60)

struct scheduler scheduler;
int simulation_steps_left;

static _Alignas(4096) char stacks[ACTORS_MAX][STACK_BYTES];

void *simulation_thread(void);

static unsigned actor_index(const struct actor *actor)
{
	return (unsigned)(actor - scheduler.actors);
}

static uint32_t actor_bit(const struct actor *actor)
{
	return (uint32_t)1 << actor_index(actor);
}

void scheduler_begin(struct dice dice, uint64_t now_ns)
{
	struct coroutine thread = scheduler.actors[0].coroutine;

	if (!thread.stack)
		coroutine_init_thread(&thread);
	scheduler = (struct scheduler){
		.count = 1,
		.current = &scheduler.actors[0],
		.runnable = 1,
		.now_ns = now_ns,
		.next_ns = UINT64_MAX,
		.dice = dice,
	};
	scheduler.actors[0] = (struct actor){ .coroutine = thread, .wake_ns = UINT64_MAX };
	scheduler.length_mask = (UINT32_C(4) << dice_below(&scheduler.dice, 7)) - 1;
	scheduler.stall_one_in = UINT32_C(32) << dice_below(&scheduler.dice, 8);
	scheduler.stall_bits = 8 + (unsigned)dice_below(&scheduler.dice, 28);
	scheduler.drift_bits = (unsigned)dice_below(&scheduler.dice, 24);
	scheduler.signal_mask = 31;
	simulation_steps_left = 0;
}

/* ---- time ---- */

static void actor_ready(struct actor *actor)
{
	actor->wake_ns = UINT64_MAX;
	actor->waits_on = NULL;
	actor->stalled = false;
	scheduler.runnable |= actor_bit(actor);
}

static void scheduler_wake_due(void)
{
	scheduler.next_ns = UINT64_MAX;
	for (unsigned i = 0; i < scheduler.count; i++) {
		struct actor *actor = &scheduler.actors[i];

		if (actor->wake_ns <= scheduler.now_ns)
			actor_ready(actor);
		else if (actor->wake_ns < scheduler.next_ns)
			scheduler.next_ns = actor->wake_ns;
	}
}

static void scheduler_drift(uint32_t roll)
{
	uint64_t drift_ns;

	if ((roll & 7) != 0 || scheduler.now_ns > DRIFT_END_NS)
		return;
	drift_ns = dice_magnitude(&scheduler.dice, scheduler.drift_bits);
	if ((roll & 56) != 0)
		drift_ns &= 127;
	scheduler.now_ns += drift_ns;
	if (scheduler.now_ns >= scheduler.next_ns)
		scheduler_wake_due();
}

/* Until an actor can run. */
static void scheduler_pass_time(void)
{
	scheduler.quiet();
	if (scheduler.next_ns != UINT64_MAX)
		scheduler_wake_due(); /* next_ns may belong to an actor that was woken earlier */
	if (scheduler.runnable != 0)
		return;
	if (scheduler.next_ns == UINT64_MAX) {
		scheduler.stuck();
		return;
	}
	if (scheduler.next_ns > scheduler.now_ns)
		scheduler.now_ns = scheduler.next_ns;
	scheduler_wake_due();
}

/* ---- the choice of the next actor ---- */

static struct actor *scheduler_pick(void)
{
	uint32_t mask = scheduler.runnable & ~scheduler.unlucky;
	unsigned skip;

	if (mask == 0)
		mask = scheduler.runnable;
	skip = (unsigned)dice_below(&scheduler.dice, (unsigned)__builtin_popcount(mask));
	while (skip-- > 0)
		mask &= mask - 1;
	return &scheduler.actors[__builtin_ctz(mask)];
}

/* Steps without a switch: up to three in one case of four, else up to length_mask. */
static void scheduler_deal(uint32_t roll)
{
	if ((roll & 3) == 0)
		simulation_steps_left = roll >> 2 & 3;
	else
		simulation_steps_left = (int)(roll >> 2 & scheduler.length_mask);
}

/* Chooses the next actor and switches to it. Returns when the caller is chosen again. */
static void scheduler_go_on(uint32_t roll)
{
	struct actor *self = scheduler.current;
	struct actor *next;

	if (++scheduler.switches > SWITCHES_MAX)
		report_failure("the run does not end, since an actor spins");
	if ((roll & 0xff000000) == 0)
		scheduler.unlucky =
			(uint32_t)dice_roll(&scheduler.dice) & (uint32_t)dice_roll(&scheduler.dice);
	while (scheduler.runnable == 0)
		scheduler_pass_time();
	scheduler_deal(roll);
	next = scheduler_pick();
	if (next == self)
		return;
	scheduler_enter(next);
	next->runs++;
	coroutine_switch(&self->coroutine, &next->coroutine);
}

static void scheduler_stall(void)
{
	struct actor *self = scheduler.current;

	self->stalled = true;
	self->stalled_at = scheduler.switches;
	scheduler_block(NULL, scheduler.now_ns + 1 +
	                              dice_magnitude(&scheduler.dice, scheduler.stall_bits));
}

void simulation_switch(void)
{
	struct actor *self = scheduler.current;
	struct source_location place = simulation_line;
	uint32_t roll;

	if (scheduler.held > 0) {
		simulation_steps_left = INT_MAX;
		return;
	}
	roll = (uint32_t)dice_roll(&scheduler.dice);
	scheduler_drift(roll);
	if (self->signal && !self->in_signal && (roll >> 8 & scheduler.signal_mask) == 0) {
		struct own_steps *paused = own_steps_pause();

		self->in_signal = true;
		self->signal(self->argument);
		self->in_signal = false;
		own_steps_resume(paused);
	}
	if (scheduler.held > 0) /* this is a child that the signal handler has forked */
		return;
	if (scheduler.stall_one_in != 0 && self != scheduler.actors &&
	    dice_one_in(&scheduler.dice, scheduler.stall_one_in))
		scheduler_stall();
	else
		scheduler_go_on(roll);
	simulation_line = place;
}

void scheduler_step(void)
{
	simulation_step();
}

void simulation_at_called(const char *file, int line)
{
	simulation_at(file, line);
}

void simulation_step_called(void)
{
	simulation_step();
}

void scheduler_yield(void)
{
	if (scheduler.held == 0)
		scheduler_go_on((uint32_t)dice_roll(&scheduler.dice));
}

/* In each turn of a spin: if nobody else can run, time passes. */
void simulation_relax(void)
{
	struct actor *self = scheduler.current;

	self->relaxes++;
	if (scheduler.runnable == actor_bit(self))
		scheduler_block(NULL, scheduler.now_ns + 1 + dice_magnitude(&scheduler.dice, 16));
	else
		scheduler_yield();
}

/* Returns a different address in each actor, as a thread-local variable has in each thread. */
void *simulation_thread(void)
{
	return scheduler.current;
}

void scheduler_block(const void *on, uint64_t until_ns)
{
	struct actor *self = scheduler.current;

	if (scheduler.held > 0)
		report_failure("a call that must not block has blocked");
	self->waits_on = on;
	self->wake_ns = until_ns;
	if (until_ns < scheduler.next_ns)
		scheduler.next_ns = until_ns;
	scheduler.runnable &= ~actor_bit(self);
	scheduler_go_on((uint32_t)dice_roll(&scheduler.dice));
}

void scheduler_wake(const void *on, unsigned count)
{
	unsigned first = (unsigned)dice_below(&scheduler.dice, scheduler.count);

	for (unsigned i = 0; i < scheduler.count && count > 0; i++) {
		struct actor *actor = &scheduler.actors[(first + i) % scheduler.count];

		if (actor->waits_on != on)
			continue;
		actor_ready(actor);
		count--;
	}
}

void scheduler_hasten(struct actor *actor, uint64_t until_ns)
{
	if (until_ns < actor->wake_ns)
		actor->wake_ns = until_ns;
	if (until_ns < scheduler.next_ns)
		scheduler.next_ns = until_ns;
}

void scheduler_hold(void)
{
	if (scheduler.held++ == 0)
		scheduler.steps_kept = simulation_steps_left;
	simulation_steps_left = INT_MAX;
}

void scheduler_release(void)
{
	if (--scheduler.held == 0)
		simulation_steps_left = scheduler.steps_kept;
}

void scheduler_calm(void)
{
	scheduler.stall_one_in = 0;
	scheduler.unlucky = 0;
	for (unsigned i = 0; i < scheduler.count; i++)
		if (scheduler.actors[i].stalled)
			actor_ready(&scheduler.actors[i]);
}

/* ---- actors ---- */

static void actor_main(void)
{
	struct actor *self = scheduler.current;

	coroutine_entered(&self->coroutine);
	self->run(self->argument);
	self->over = true;
	scheduler_wake(self, UINT_MAX);
	scheduler_block(NULL, UINT64_MAX);
	report_failure("an actor that is over was run");
}

struct actor *scheduler_spawn(void (*run)(void *argument), void *argument)
{
	struct actor *actor = &scheduler.actors[scheduler.count];

	if (scheduler.count == ACTORS_MAX)
		report_failure("too many actors");
	*actor = (struct actor){ .run = run, .argument = argument, .wake_ns = UINT64_MAX };
	coroutine_init(&actor->coroutine, stacks[scheduler.count], STACK_BYTES, actor_main);
	scheduler.runnable |= actor_bit(actor);
	memory_born(scheduler.count);
	scheduler.count++;
	return actor;
}
