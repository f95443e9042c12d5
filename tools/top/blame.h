/* SPDX-License-Identifier: MIT */
/* Says in words what a thread does, and who is to blame for events that come late. */
#ifndef TOP_BLAME_H
#define TOP_BLAME_H

#include "latest_readings.h"

/* What a thread did between two looks of the kernel at it. */
enum work {
	WORK_UNKNOWN,   /* nothing of the below is shown by what the kernel says */
	WORK_COMPUTES,  /* it ran for most of the time */
	WORK_NO_CPU,    /* it could run, and for most of the time did not get a CPU */
	WORK_BLOCKED,   /* it sleeps in a system call */
	WORK_STOPPED,   /* a signal or a debugger has stopped it */
	WORK_UNMEASURED /* it could run, and there is no earlier look to compare with */
};

/* Judges by two looks. before->tid may be 0. */
enum work work_between(const struct thread *before, const struct thread *now);

/* Returns a word for scripts, such as "computing", which is also part of a sentence. */
const char *work_name(enum work work);

#define BLAME_BYTES 256

/*
 * Writes what a thread does as a part of a sentence, such as "blocked in nanosleep". `where` says
 * where its cell is.
 */
void work_tell(enum work work, const struct thread *now, uint32_t where, char text[BLAME_BYTES]);

#define BLAME_MAX 16

/* Who is to blame, in sentences. */
struct blame {
	unsigned count;
	char sentences[BLAME_MAX][BLAME_BYTES];
};

/*
 * Blames for what has come late since the reading before, by more than 1 ms, and for what waits.
 * `index` is the number of the hub or loop. A sentence may say that the reason is not known.
 */
void blame_fill(struct blame *blame, const struct watch *watch, unsigned index);

#endif
