/* SPDX-License-Identifier: MIT */
/*
 * Copies option structs of callers. A caller's struct begins with its size, so that a later version
 * can add members. Members that the caller's struct does not have keep their defaults.
 */
#ifndef TIMERHUB_OPTIONS_H
#define TIMERHUB_OPTIONS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The largest struct that a caller may pass. No later version's struct will be larger. */
#define OPTIONS_MAX_BYTES 4096u

/* Check that all bytes after this version's members are zero. Returns 0 or -E2BIG. */
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
 * Copy the caller's struct into `ours`, which holds the defaults. `least_bytes` is the size of the
 * struct in the first version. If `theirs` is NULL, `ours` stays unchanged. Returns 0; -EINVAL if
 * the caller's struct is smaller than `least_bytes`; or -E2BIG.
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
