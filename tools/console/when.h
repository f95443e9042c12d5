/* SPDX-License-Identifier: MIT */
/* Reads and prints times. All tools have the same notation for them, in arguments and in output. */
#ifndef CONSOLE_WHEN_H
#define CONSOLE_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* What a time in an argument can look like, for the message about a wrong one. */
#define WHEN_WRONG                                                                                 \
	"WHEN must be a delay such as 90s or 1.5h (us, ms, s, m, h, d), a date such as "           \
	"2027-01-31T12:00:00Z or 2027-01-31T12:00:00+01:00, @SECONDS since 1970, or never, not"

#define WHEN_NEVER UINT64_MAX

struct when {
	uint64_t ns; /* below 2^63, or WHEN_NEVER */
	bool is_absolute;
};

/*
 * Reads a point in time or a delay. Returns false if the text has none of the forms that WHEN_WRONG
 * lists, or if the time is before 1970, or is 2^63 ns or more.
 */
bool when_read(const char *text, struct when *ret_when);

/* Whether times are printed as numbers of nanoseconds, which the option --ns asks for. */
extern bool when_in_ns;

/* Prints " NAME DATE". The date is in UTC, and has as many digits of the second as it needs. */
void when_print(const char *name, uint64_t ns);

/* Prints " NAME DELAY", with the delay in seconds. */
void when_print_delay(const char *name, uint64_t ns);

#endif
