/* SPDX-License-Identifier: MIT */
/*
 * Says what the code beside it believes, and ends the program if that is not true. It is compiled
 * in every build, because a program that aborts is better than one that loses timers.
 */
#ifndef TIMERHUB_INVARIANT_H
#define TIMERHUB_INVARIANT_H

#define invariant(condition)                                                                       \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			__builtin_trap();                                                          \
	} while (0)

#endif
