/* SPDX-License-Identifier: MIT */
/*
 * The callers of a service: one or several threads that repeat turns of the same work for a time.
 * Each has its own timers. In a turn a caller caches the time and makes about 64 calls.
 *
 * If a service belongs to one thread and `apart` is set, each caller has its own service. Each such
 * caller is a process, since a subject has its state in static variables.
 */
#ifndef BENCH_CALLERS_H
#define BENCH_CALLERS_H

#include "bench.h"
#include "randoms.h"
#include "thread_team.h"

struct caller {
	_Alignas(64) const struct subject *subject;
	uint32_t first; /* the first of its timers, which are `stride` apart */
	uint32_t stride;
	uint32_t count;    /* number of its timers */
	uint32_t requests; /* the first timer of its requests, which follow each other */
	uint32_t oldest;   /* the request that ends next */
	struct randoms randoms;
	struct histogram *arms; /* the duration of each arm, or NULL */
	uint64_t ops;
};

/* The work of a workload's callers. */
struct calls {
	unsigned (*turn)(struct caller *caller); /* returns the number of operations */
	uint64_t from_ns, to_ns; /* first delays of the timers; 0: not armed before the turns */
	uint64_t request_ns;     /* first delay of the requests; 0: not armed before the turns */
	uint32_t requests;       /* requests of each caller */
	bool dealt;            /* one thread arms all timers, which are dealt to callers in turn */
	bool apart;            /* see above */
	bool until_applied;    /* the wall time ends when the service has applied all calls */
	bool caller_ns;        /* add the CPU time of the callers to the result */
	unsigned warm_divisor; /* the warm-up takes this part of the duration; 0: a quarter */
	struct subject_setup setup; /* without `timers` and `cross` */
	struct histogram *arms;     /* of each caller, or NULL */
};

struct calls_times {
	uint64_t ops, wall_ns, cpu_ns, callers_ns;
	uint64_t settle_ns; /* from the last call until the service had applied all calls */
	uint64_t delivered; /* number of timers delivered during the calls */
	struct subject_counts before, after;
};

/* Measure the calls, and set the times of the result. */
struct calls_times callers_measure(const struct run *run, struct result *result,
                                   const struct calls *calls);

#endif
