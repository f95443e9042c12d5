/* SPDX-License-Identifier: MIT */
/*
 * What a run has to say: a failure, which ends the process that runs it, and the operations of a
 * run that is to be told. A run is a process's affair; the one above picks the report up.
 */
#ifndef SIMULATION_REPORT_H
#define SIMULATION_REPORT_H

#include <stdbool.h>

#define REPORT_BYTES 512
#define REPORT_EXIT_STATUS 3

/* Where failures are written, shared with the process above; or NULL: standard output. */
extern char *report_text;
/* Tell each operation on standard output. */
extern bool report_telling;

/* The run has failed: say why, and end this process. */
_Noreturn void report_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line about an operation, if they are to be told. */
#define report_tell(...)                                                                           \
	do {                                                                                       \
		if (__builtin_expect(report_telling, 0))                                           \
			report_line(__VA_ARGS__);                                                  \
	} while (0)
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
