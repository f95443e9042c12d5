/* SPDX-License-Identifier: MIT */
/*
 * Copies option structs of callers, which begin with their size. So a program that was compiled
 * with an older header works with a newer library: what its struct lacks keeps its default.
 */
#ifndef TIMERHUB_OPTIONS_H
#define TIMERHUB_OPTIONS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* No struct of a later version will be larger, so a larger size is garbage. */
#define OPTIONS_MAX_BYTES 4096u

/* Returns 0 if all that this version does not know is 0, else -E2BIG. */
static inline int options_check_rest(const void *theirs, uint32_t size, size_t known_bytes)
{
	const unsigned char *bytes = theirs;

	if (size > OPTIONS_MAX_BYTES)
		return -E2BIG;
	for (size_t i = known_bytes; i < size; i++)
		if (bytes[i] != 0)
			return -E2BIG;
	return 0;
}

/*
 * Copies a caller's struct to `ours`, which holds the defaults and keeps them if `theirs` is NULL.
 * `least_bytes` is the size that the struct had in an earlier version, whose callers go on to work.
 * Returns 0, or -EINVAL if it is smaller than the present struct and not of that size, or -E2BIG.
 */
static inline int options_read(void *ours, size_t ours_bytes, size_t least_bytes,
                               const void *theirs)
{
	uint32_t size;
	int result;

	if (!theirs)
		return 0;
	memcpy(&size, theirs, sizeof(size));
	if (size < ours_bytes && size != least_bytes)
		return -EINVAL;
	result = options_check_rest(theirs, size, ours_bytes);
	if (result == 0)
		memcpy(ours, theirs, size < ours_bytes ? size : ours_bytes);
	return result;
}

#endif
