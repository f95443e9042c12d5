/* SPDX-License-Identifier: MIT */
/*
 * A subject is a timer service that the benchmark measures; a workload calls it through struct
 * subject. Each measurement has a process of its own with one open subject, so a subject keeps its
 * state in static variables, and its calls need no context.
 *
 * Timers have the numbers 0 to setup.timers - 1; driver_settle() uses setup.timers. A subject
 * stores them as users of the service do, in embedded records or as an array of handles. Delays
 * count from the time that tick() last cached, as in a loop that reads the clock once a turn.
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#define TIMERS (1u << 0)   /* arms, re-arms, cancels, and delivers expiries */
#define CROSS (1u << 1)    /* any thread may call it */
#define OWNER (1u << 2)    /* a thread applies the calls: its own, or that in run() */
#define SERVER (1u << 4)   /* is measured in the workload "server" */
#define DURABLE (1u << 6)  /* arm() returns when the task is on stable storage */
#define FINISHES (1u << 7) /* so does finish(), with the acknowledgement */
#define ALONE (1u << 8)    /* one thread puts tasks, in place of the run's threads */

#define SUBJECTS_MAX 16
#define DURABLE_BYTES 100       /* bytes of data in a durable task */
#define PEER_TIMERS_MAX 4000000 /* of services that are slow with 10^7 timers */

struct subject_setup {
	uint32_t timers; /* number of timers in use */
	uint32_t spare;  /* number of additional timers, which are armed again before they expire */
	unsigned threads; /* number of threads that put durable tasks */
	bool cross;       /* several threads make calls, and one more is in run() */
	bool records;     /* each timer is in the record of a connection, see records.h */
};

struct subject {
	const char *name;
	unsigned can;        /* TIMERS and the other flags */
	uint32_t timers_max; /* most timers; 0: no limit */
	void (*open)(const struct subject_setup *setup);
	void (*tick)(void); /* caches the time */
	/* The int is negative if the call fails, which ends the measurement. */
	int (*arm)(uint32_t timer, uint64_t delay_ns);
	int (*rearm)(uint32_t timer, uint64_t delay_ns);
	void (*cancel)(uint32_t timer);     /* of a timer that may have expired */
	int (*finish)(void);                /* takes a due durable task, and acknowledges it */
	void (*run)(bool (*done)(void));    /* delivers until done() is true */
	void (*within)(void (*body)(void)); /* calls body() inside the service's loop; or NULL */
};

/* Defines a subject and adds it to the list, with the calls that nearly all have. */
#define SUBJECT(identifier, its_name, flags, ...)                                                  \
	static const struct subject subject_##identifier = { .name = its_name,                     \
		                                             .can = flags,                         \
		                                             __VA_ARGS__ };                        \
	__attribute__((constructor)) static void subject_add_##identifier(void)                    \
	{                                                                                          \
		subject_add(&subject_##identifier);                                                \
	}
#define CALLS(opens, ticks, arms, rearms, cancels, runs)                                           \
	.open = opens, .tick = ticks, .arm = arms, .rearm = rearms, .cancel = cancels, .run = runs

/* A subject calls this for each expiry, inside run() or on a thread of its own. */
extern void (*subject_expired)(uint32_t timer);

/* The subjects of this build, in the order of meson.build. The array ends with NULL. */
extern const struct subject *subjects[SUBJECTS_MAX + 1];

void subject_add(const struct subject *subject);

/* Prints why the measurement cannot go on, and ends the process. `error` is an errno value or 0. */
__attribute__((noreturn)) void subject_fail(const char *what, int error);

/* Ends the measurement if the result of a call is negative. */
static inline void subject_must(int result)
{
	if (result < 0)
		subject_fail("a call was refused", -result);
}

/* The time that this thread cached last. A deadline is the cached time plus the delay. */
extern __thread uint64_t subject_cached_ns;

/* Caches the time of CLOCK_MONOTONIC. */
void subject_cache_now(void);

/* Returns zeroed memory whose pages are present, so that no measurement includes page faults. */
void *subject_allocate(uint64_t count, uint64_t bytes);

#endif
