/* SPDX-License-Identifier: MIT */
/*
 * The output of a run. A failure ends the process of the run. If the user asks, the run prints its
 * operations. Each run has a process of its own, and the parent process reads the report.
 */
#ifndef SIMULATION_REPORT_H
#define SIMULATION_REPORT_H

#include <stdbool.h>

#define REPORT_BYTES 512
#define REPORT_EXIT_STATUS 3

/*
 * Where a failure is written: memory shared with the parent process, or NULL for standard output.
 */
extern char *report_text;
/* Print each operation on standard output. */
extern bool report_telling;

/* Report the failure of the run, and end this process. */
_Noreturn void report_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print one line about an operation, if operations are printed. */
#define report_tell(...)                                                                           \
	do {                                                                                       \
		if (__builtin_expect(report_telling, 0))                                           \
			report_line(__VA_ARGS__);                                                  \
	} while (0)
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
