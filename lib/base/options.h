/* SPDX-License-Identifier: MIT */
/*
 * Copies callers' option structs, which begin with their size, so that later versions can add
 * members. What a struct lacks keeps its default.
 */
#ifndef TIMERHUB_OPTIONS_H
#define TIMERHUB_OPTIONS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* no later version's will be larger */
#define OPTIONS_MAX_BYTES 4096u

/* All zero after this version's members, else -E2BIG. */
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
 * Into `ours`, which holds the defaults; `least_bytes` was the first version's size. NULL changes
 * nothing. 0; -EINVAL: smaller than that; -E2BIG.
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
