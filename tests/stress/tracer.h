/* SPDX-License-Identifier: MIT */
/*
 * A process that stops one thread of ours, the victim, before a chosen instruction of the library,
 * by ptrace and a debug register. It learns the way of a call, instruction by instruction; what is
 * called outside the library (the vdso's clock, a sanitizer's runtime with its locks) is run
 * through at full speed. Where debug registers do not fire, all of it is done in single steps.
 *
 * One thread calls all of this. x86-64 only.
 */
#ifndef TESTS_TRACER_H
#define TESTS_TRACER_H

#include <stdbool.h>
#include <stdint.h>

#define TRACER_WAY_MAX 20000

/* The instructions of the library through which a call has gone. */
struct tracer_way {
	unsigned length;
	uintptr_t instructions[TRACER_WAY_MAX];
};

/* Starts the process, and the victim. False, with the reason printed, where that is refused. */
bool tracer_open(void);
/* The victim is between two calls. */
void tracer_close(void);

/*
 * After the first call: do debug registers never fire? Then each stop takes as many steps as there
 * are instructions before it, which is about a hundred times as long.
 */
bool tracer_only_steps(void);

/* What the victim is to do next. */
void tracer_call(void (*call)(void *), void *argument);

/* Plays the call to its end, instruction by instruction. The next one overwrites the way learnt. */
const struct tracer_way *tracer_learn(void);

/*
 * Plays the call up to the instruction with that number, from 0, of a way learnt, and leaves the
 * victim there. False if it took another way, and has come to its end.
 */
bool tracer_stop_at(const struct tracer_way *way, unsigned instruction);

/* Plays the rest of a stopped victim's call, instruction by instruction, as tracer_learn() does. */
const struct tracer_way *tracer_learn_rest(void);

/* Lets a stopped victim come to its end. */
void tracer_finish(void);

#endif
