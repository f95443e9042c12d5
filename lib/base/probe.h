/* SPDX-License-Identifier: MIT */
/*
 * Static probes for bpftrace, perf, gdb and SystemTap (timerhub-debugging(7)); only this file
 * includes sys/sdt.h. A probe is a nop and a note of where its arguments are. They are computed
 * even without a tracer, so they are in registers already; timerhub_rearm()'s fast path has none,
 * since one more register costs time. Tested by tests/packaging.
 */
#ifndef TIMERHUB_PROBE_H
#define TIMERHUB_PROBE_H

#ifdef TIMERHUB_PROBES
#include <sys/sdt.h>
#define probe1(name, a) STAP_PROBE1(timerhub, name, a)
#define probe2(name, a, b) STAP_PROBE2(timerhub, name, a, b)
#define probe3(name, a, b, c) STAP_PROBE3(timerhub, name, a, b, c)
#else
#define probe1(name, a) ((void)(a))
#define probe2(name, a, b) ((void)(a), (void)(b))
#define probe3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#endif
