/* SPDX-License-Identifier: MIT */
/* Each caller of a service is a thread that repeats the same work with timers of its own. */
#ifndef BENCH_CALLERS_H
#define BENCH_CALLERS_H

#include "randoms.h"
#include "workload.h"

struct caller {
	_Alignas(64) const struct subject *subject;
	uint32_t first;    /* the caller's first timer */
	uint32_t count;    /* number of the caller's timers */
	uint32_t requests; /* the timer of the caller's first request */
	uint32_t oldest;   /* the caller's oldest request, which ends next */
	struct randoms randoms;
	uint64_t ops;
};

/* The work of the callers of a workload. */
struct calls {
	unsigned (*turn)(struct caller *caller); /* makes some calls, and returns how many */
	uint64_t from_ns, to_ns; /* bounds of the first delays; 0: none is armed before the turns */
	uint64_t request_ns;     /* delay of the requests armed before the turns; 0: none */
	uint32_t requests;       /* number of requests of each caller */
	bool until_applied;      /* the wall time lasts until the service has applied all calls */
	struct subject_setup setup; /* its timers are set here */
};

/* Runs the callers, and measures their calls. Returns how long it took to apply the last ones. */
uint64_t callers_measure(const struct run *run, struct result *result, const struct calls *calls);

#endif
