/* SPDX-License-Identifier: MIT */
/*
 * Option structs: the caller's begins with its size, so that a later version can have more fields.
 * Fields that the caller's has not are zero.
 */
#ifndef TIMERHUB_OPTIONS_H
#define TIMERHUB_OPTIONS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A caller's struct may be as large as this; a later version's will not be larger. */
#define OPTIONS_MAX_BYTES 4096u

/* Is all that we do not know of, from `known_bytes` on, zero? 0 or -E2BIG. */
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
 * Copy the caller's struct to ours, which holds the defaults and was of `least_bytes` in the first
 * version. If there is none, ours stays as it is. 0, -EINVAL if theirs is smaller, or -E2BIG.
 */
static inline int options_read(void *ours, size_t ours_bytes, size_t least_bytes,
                               const void *theirs)
{
	uint32_t size;
	int result;

	if (!theirs)
		return 0;
	memcpy(&size, theirs, sizeof(size));
	if (size < least_bytes)
		return -EINVAL;
	result = options_check_rest(theirs, size, ours_bytes);
	if (result == 0)
		memcpy(ours, theirs, size < ours_bytes ? size : ours_bytes);
	return result;
}

#endif
