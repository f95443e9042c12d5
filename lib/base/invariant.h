/* SPDX-License-Identifier: MIT */
/*
 * Abort if an invariant of the library is broken. Release builds check it too: a program that
 * aborts is better than a program that loses timers.
 */
#ifndef TIMERHUB_INVARIANT_H
#define TIMERHUB_INVARIANT_H

#define invariant(condition)                                                                       \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			__builtin_trap();                                                          \
	} while (0)

#endif
