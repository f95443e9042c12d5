/* SPDX-License-Identifier: MIT */
/*
 * What a run prints: its failure, after which its process ends, so that the parent can read it, and
 * on request each operation.
 */
#ifndef SIMULATION_REPORT_H
#define SIMULATION_REPORT_H

#include <stdbool.h>

#define REPORT_BYTES 512
#define REPORT_EXIT_STATUS 3

/* REPORT_BYTES shared with the parent, for a failure's text; NULL: standard output */
extern char *report_text;
extern bool report_telling;

/* Ends the process with REPORT_EXIT_STATUS. */
_Noreturn void report_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define report_tell(...)                                                                           \
	do {                                                                                       \
		if (__builtin_expect(report_telling, 0))                                           \
			report_line(__VA_ARGS__);                                                  \
	} while (0)
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
