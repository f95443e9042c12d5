/* SPDX-License-Identifier: MIT */
/* Says in words what a thread does, and who is to blame for events that come late. */
#ifndef TOP_BLAME_H
#define TOP_BLAME_H

#include "watch.h"

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

#define SENTENCE_BYTES 512

struct sentence {
	char text[SENTENCE_BYTES];
};

/* Adds to a sentence. */
__attribute__((format(printf, 2, 3))) void tell(struct sentence *sentence, const char *format, ...);

/*
 * Adds a thread, where it is, and what the kernel says of it. In a callback, whose function has
 * this name, it adds the timer as well, or if not `with_timer`, for how long it runs.
 */
void tell_thread(struct sentence *sentence, const struct running *running, const char *function,
                 bool with_timer);

/* Adds the timer, or the timeout, whose callback the thread runs. */
void tell_timer(struct sentence *sentence, const struct running *running);

#define BLAME_MAX 16

/* Who is to blame, in sentences. */
struct blame {
	unsigned count;
	struct sentence sentences[BLAME_MAX];
};

/*
 * Blames for what came late by more than 1 ms since the reading before, and for what waits. `index`
 * is the number of the hub or loop. A sentence may say that the reason is not known.
 */
void blame_fill(struct blame *blame, const struct watch *watch, unsigned index);

#endif
