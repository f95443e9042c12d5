/* SPDX-License-Identifier: MIT */
/*
 * Aborts the program if an invariant of the library is broken. Release builds check invariants too,
 * because a program that aborts is better than a program that loses timers.
 */
#ifndef TIMERHUB_INVARIANT_H
#define TIMERHUB_INVARIANT_H

#define invariant(condition)                                                                       \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			__builtin_trap();                                                          \
	} while (0)

#endif
