/* SPDX-License-Identifier: MIT */
/* Times in arguments and in output, the same in every tool. */
#ifndef CONSOLE_WHEN_H
#define CONSOLE_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* for the message about a wrong argument */
#define WHEN_WRONG                                                                                 \
	"WHEN must be a delay such as 90s or 1.5h (us, ms, s, m, h, d), a date such as "           \
	"2027-01-31T12:00:00Z or 2027-01-31T12:00:00+01:00, @SECONDS since 1970, or never, not"

#define WHEN_NEVER UINT64_MAX

struct when {
	uint64_t ns; /* below 2^63, or WHEN_NEVER */
	bool is_absolute;
};

/* False if the text is none of the forms in WHEN_WRONG, is before 1970, or is 2^63 ns or more. */
bool when_read(const char *text, struct when *ret_when);

/* set by --ns: print numbers of nanoseconds */
extern bool when_in_ns;

/* Print a blank, the name, a blank, and a date in UTC with as many digits as it needs. */
void when_print(const char *name, uint64_t ns);

/* The same for a duration, in seconds. */
void when_print_delay(const char *name, uint64_t ns);

#endif
