/* SPDX-License-Identifier: MIT */
/*
 * Declares static probes for bpftrace, perf, gdb and SystemTap. Only this file includes sys/sdt.h.
 * A probe is one nop and a note in the ELF file. The note says where the probe's arguments are.
 * timerhub-debugging(7) lists the probes. The program computes the arguments even if no tracer
 * runs, so a probe has only arguments that are in registers already. The fast path of
 * timerhub_rearm() has no probe: one more register costs time. Tested by tests/packaging.
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
