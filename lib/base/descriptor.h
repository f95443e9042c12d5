/* SPDX-License-Identifier: MIT */
/*
 * Keeps the library's descriptors off 0, 1 and 2, the numbers of the standard streams. A process
 * may have been started without these or have closed them, and the kernel gives the lowest free
 * number. What the program then prints could be executed by Redis, overwrite a database, or leave
 * an eventfd readable for ever.
 *
 * A descriptor that gets such a number is not moved but thrown away, because another thread's write
 * may already have found it and may go on after the move. It keeps its number until a further call
 * has got one above 2. tests/style checks that each call that makes a descriptor stands inside one
 * of these macros.
 */
#ifndef TIMERHUB_DESCRIPTOR_H
#define TIMERHUB_DESCRIPTOR_H

#include <stdbool.h>

#define DESCRIPTORS_LOW 3

struct descriptors_low {
	bool held[DESCRIPTORS_LOW]; /* true: open, and thrown away as soon as possible */
};

/*
 * If `fd` is 0, 1 or 2, records it in `low` and returns true. The descriptor stays open, so that
 * the next one gets a higher number.
 */
bool descriptors_hold(struct descriptors_low *low, int fd);

/*
 * Closes the descriptors that descriptors_hold() has recorded in `low`. `fd` is the descriptor that
 * the caller keeps, or -1 if opening it has failed. Returns `fd`, or -errno if `fd` is -1.
 */
int descriptors_release(const struct descriptors_low *low, int fd);

/*
 * Makes `call`, which returns a new descriptor, until its result is above 2. The value of the macro
 * is the descriptor or a negative errno.
 */
#define DESCRIPTOR_ABOVE_STDIO(call)                                                               \
	({                                                                                         \
		struct descriptors_low low_ = { .held = { false } };                               \
		int fd_;                                                                           \
                                                                                                   \
		do                                                                                 \
			fd_ = (call);                                                              \
		while (descriptors_hold(&low_, fd_));                                              \
		descriptors_release(&low_, fd_);                                                   \
	})

/*
 * Opens `harmless`, to which nobody can write, until the numbers 0, 1 and 2 are all taken.
 * descriptors_release() closes what was opened.
 */
#define DESCRIPTORS_FILL(low, harmless)                                                            \
	do {                                                                                       \
		int last_;                                                                         \
                                                                                                   \
		do                                                                                 \
			last_ = (harmless);                                                        \
		while (descriptors_hold((low), last_));                                            \
		if (last_ >= 0)                                                                    \
			(void)close(last_);                                                        \
	} while (0)

/*
 * Does what DESCRIPTOR_ABOVE_STDIO() does, for a `call` that must be made only once. The numbers 0,
 * 1 and 2 are taken by `harmless` before.
 */
#define DESCRIPTOR_BEHIND(harmless, call)                                                          \
	({                                                                                         \
		struct descriptors_low filled_ = { .held = { false } };                            \
		int made_;                                                                         \
                                                                                                   \
		DESCRIPTORS_FILL(&filled_, harmless);                                              \
		made_ = DESCRIPTOR_ABOVE_STDIO(call);                                              \
		(void)descriptors_release(&filled_, 0);                                            \
		made_;                                                                             \
	})

#endif
