/* SPDX-License-Identifier: MIT */
/*
 * Copies option structs of callers, which begin with their size. So a program that was compiled
 * with an older header works with a newer library: options that its struct does not have keep their
 * defaults.
 */
#ifndef TIMERHUB_OPTIONS_H
#define TIMERHUB_OPTIONS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A size above this is garbage, because no struct of a later version will be so large. */
#define OPTIONS_MAX_BYTES 4096u

/*
 * Returns 0 if all bytes of a caller's struct beyond those that this version knows are 0, or -E2BIG
 * if not, because the caller wants something that this version can't do.
 */
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
 * Copies a caller's option struct to `ours`. If `theirs` is NULL, changes nothing.
 *
 * The caller's struct must have at least `ours_bytes` bytes, or exactly `least_bytes`, its size in
 * an older header. Otherwise returns -EINVAL. Returns -E2BIG if the struct has options that this
 * version does not know, and else 0.
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
