/* SPDX-License-Identifier: MIT */
/*
 * Static probes for bpftrace, perf, gdb and SystemTap; timerhub-debugging(7) lists them. A probe is
 * a nop and a note that says where its arguments are. The arguments are computed even if nobody
 * traces, so a probe stands only where they are in registers already. The frequent path of
 * timerhub_rearm() has none, because one more register would cost it time. tests/packaging tests
 * them.
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
