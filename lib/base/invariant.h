/* SPDX-License-Identifier: MIT */
/*
 * Says what the code beside it believes, and ends the program if that is not true. It is compiled
 * in every build, because a program that aborts is better than one that loses timers.
 *
 * The condition must be true whoever looks: while another thread races, in a signal handler that
 * has interrupted the call, and in a forked child. So of a word that several threads change, assert
 * only what is true of each of its values, or what a successful compare-and-swap has confirmed.
 */
#ifndef TIMERHUB_INVARIANT_H
#define TIMERHUB_INVARIANT_H

#define invariant(condition)                                                                       \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			__builtin_trap();                                                          \
	} while (0)

#endif
