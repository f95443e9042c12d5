/* SPDX-License-Identifier: MIT */
/*
 * A process that stops one thread of the program, the victim, before a chosen instruction of the
 * library, by ptrace and a debug register. The tracer records the path of a call, instruction by
 * instruction. It runs through code outside the library (the vdso's clock, a sanitizer's runtime
 * with its locks) at full speed. If debug registers never fire, it uses single steps only.
 *
 * One thread makes all of these calls. The tracer runs on x86-64 only.
 */
#ifndef TESTS_TRACER_H
#define TESTS_TRACER_H

#include <stdbool.h>
#include <stdint.h>

#define TRACER_WAY_MAX 20000

/* The instructions of the library on the path of a call. */
struct tracer_way {
	unsigned length;
	uintptr_t instructions[TRACER_WAY_MAX];
};

/*
 * Starts the process and the victim. Returns false, with the reason printed, if the system refuses
 * this.
 */
bool tracer_open(void);
/* Ends the process, while the victim is between two calls. */
void tracer_close(void);

/*
 * Returns whether debug registers never fire. Call it after the first tracer_learn(). Without them,
 * a stop steps over all earlier instructions, which takes about a hundred times as long.
 */
bool tracer_only_steps(void);

/* Sets the victim's next call. */
void tracer_call(void (*call)(void *), void *argument);

/* Runs the call to its end and records its instructions. The next recording overwrites the path. */
const struct tracer_way *tracer_learn(void);

/*
 * Runs the call up to the instruction with this number, from 0, of a recorded path, and leaves the
 * victim there. Returns false if the call took another path and has ended.
 */
bool tracer_stop_at(const struct tracer_way *way, unsigned instruction);

/* Runs the rest of a stopped call and records it, as tracer_learn() does. */
const struct tracer_way *tracer_learn_rest(void);

/* Lets a stopped victim finish its call. */
void tracer_finish(void);

#endif
