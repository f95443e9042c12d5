/* SPDX-License-Identifier: MIT */
/*
 * Prints the output of a run. If a law is broken, the run's process reports the failure and ends.
 * The parent process reads the report. If the user asks, the run prints each of its operations.
 */
#ifndef SIMULATION_REPORT_H
#define SIMULATION_REPORT_H

#include <stdbool.h>

#define REPORT_BYTES 512
#define REPORT_EXIT_STATUS 3

/*
 * Memory of REPORT_BYTES, shared with the parent process, to which the text of a failure is
 * written. If NULL, the text is written to standard output.
 */
extern char *report_text;
/* True if each operation is printed on standard output. */
extern bool report_telling;

/* Report that the run has failed, and end the process with REPORT_EXIT_STATUS. */
_Noreturn void report_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* If report_telling is set, print one line about an operation. */
#define report_tell(...)                                                                           \
	do {                                                                                       \
		if (__builtin_expect(report_telling, 0))                                           \
			report_line(__VA_ARGS__);                                                  \
	} while (0)
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
