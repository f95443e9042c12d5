/* SPDX-License-Identifier: MIT */
/*
 * The tracer is a process that stops one thread of the test program. This thread is the victim. It
 * stops before a chosen instruction of the library. The tracer uses ptrace and a debug register.
 * The tracer records the path of a call, instruction by instruction. Code outside the library (the
 * vdso's clock, a sanitizer's runtime with its locks) runs at full speed. If the machine's debug
 * registers never fire, the tracer uses only single steps.
 *
 * One thread must make all calls of this header. The tracer exists for x86-64 only.
 */
#ifndef TESTS_SINGLE_STEPPER_H
#define TESTS_SINGLE_STEPPER_H

#include <stdbool.h>
#include <stdint.h>

#define TRACER_WAY_MAX 20000

/* The addresses of the library's instructions on the path of a call. */
struct tracer_way {
	unsigned length;
	uintptr_t instructions[TRACER_WAY_MAX];
};

/*
 * Starts the tracer's process and the victim. If the system refuses ptrace, prints the reason and
 * returns false.
 */
bool tracer_open(void);
/* Ends the tracer's process and the victim, which must not be inside a call. */
void tracer_close(void);

/*
 * Returns true if breakpoints in the machine's debug registers do not work. Call tracer_learn()
 * before the first call of tracer_only_steps(). Without breakpoints, a stop needs a single step for
 * each earlier instruction, and takes about a hundred times as long.
 */
bool tracer_only_steps(void);

/* Lets the victim make this call, under the tracer's control. */
void tracer_call(void (*call)(void *), void *argument);

/*
 * Runs the victim's call to its end, and records the instructions of the library on its path. The
 * next recording overwrites the path.
 */
const struct tracer_way *tracer_learn(void);

/*
 * Runs the victim's call up to the instruction way->instructions[instruction], and leaves the
 * victim stopped before this instruction. Returns false if the call has ended on a path that
 * differs from `way`.
 */
bool tracer_stop_at(const struct tracer_way *way, unsigned instruction);

/* Runs a stopped victim's call to its end, and records the rest of the path. */
const struct tracer_way *tracer_learn_rest(void);

/* Lets the stopped victim run its call to the end. */
void tracer_finish(void);

#endif
