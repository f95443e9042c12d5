/* SPDX-License-Identifier: MIT */
/* In release builds too: better a program that aborts than one that loses timers. */
#ifndef TIMERHUB_INVARIANT_H
#define TIMERHUB_INVARIANT_H

#define invariant(condition)                                                                       \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			__builtin_trap();                                                          \
	} while (0)

#endif
