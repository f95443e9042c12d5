/* SPDX-License-Identifier: MIT */
/*
 * Each caller of a service is a thread that repeats the same work with its own timers. In a turn it
 * caches the time and makes about 64 calls. If a service belongs to one thread and `apart` is set,
 * each caller has a process with its own service, because a subject (a measured service) keeps its
 * state in static variables.
 */
#ifndef BENCH_CALLERS_H
#define BENCH_CALLERS_H

#include "randoms.h"
#include "thread_team.h"
#include "workload.h"

struct caller {
	_Alignas(64) const struct subject *subject;
	uint32_t first;    /* index of the caller's first timer */
	uint32_t stride;   /* distance from the index of one of the caller's timers to the next */
	uint32_t count;    /* number of the caller's timers */
	uint32_t requests; /* index of the timer of the caller's first request */
	uint32_t oldest;   /* index of the caller's oldest request, which ends next */
	struct randoms randoms;
	struct histogram *arms; /* durations of the caller's calls of arm(), or NULL */
	uint64_t ops, refused;  /* calls; refusals by the full service */
};

/* The work of the callers of a workload. */
struct calls {
	/* Makes the calls of one turn. Returns the number of the calls. */
	unsigned (*turn)(struct caller *caller);
	/* The bounds of the first delays. 0: no timer is armed before the turns. */
	uint64_t from_ns, to_ns;
	uint64_t request_ns; /* delay of the requests armed before the turns, or 0 if none */
	uint32_t requests;   /* number of requests of each caller */
	bool dealt;          /* one thread arms all timers, and deals them to the callers */
	bool apart; /* each caller has its own service, if a service belongs to one thread */
	bool until_applied;    /* the wall time lasts until the service has applied all calls */
	bool caller_ns;        /* add the CPU time of the callers to the result */
	unsigned warm_divisor; /* warm-up = duration / warm_divisor. 0 means 4. */
	struct subject_setup setup; /* setup.timers and setup.cross are ignored */
	struct histogram *arms;     /* durations of each caller's calls of arm(), or NULL */
};

struct calls_times {
	uint64_t ops, refused, wall_ns, cpu_ns, callers_ns;
	uint64_t settle_ns; /* time from the last call until the service had applied all calls */
	uint64_t delivered; /* number of timers delivered during the calls */
	struct subject_counts before, after;
};

/* Run the callers, measure their calls, and set the times of the result. */
struct calls_times callers_measure(const struct run *run, struct result *result,
                                   const struct calls *calls);

#endif
