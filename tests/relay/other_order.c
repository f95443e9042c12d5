/* SPDX-License-Identifier: MIT */
/*
 * A preloaded library in which strings compare as in many locales: case comes last. A server that
 * runs with such a locale compares strings in Lua by it.
 */
#include <string.h>
#include <strings.h>

int strcoll(const char *a, const char *b)
{
	int order = strcasecmp(a, b);

	return order != 0 ? order : -strcmp(a, b);
}
