/* SPDX-License-Identifier: MIT */
/*
 * Static probes for bpftrace, perf, gdb and SystemTap: the only home of sys/sdt.h. A probe is one
 * nop and a note that tells where its arguments are; the table is in timerhub-debugging(7). The
 * arguments are computed also while no tracer runs, so a probe gets only what is at hand. There is
 * none in timerhub_rearm(), where one more register would cost time. Tested by tests/packaging.
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
