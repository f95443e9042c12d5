/* SPDX-License-Identifier: MIT */
/*
 * Declares the text of timerhub.lua, the library of Redis functions. embed.py makes the
 * definition.
 */
#ifndef RELAY_FUNCTIONS_H
#define RELAY_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* Version of the text; it replaces an older version on a server. */
extern const uint64_t functions_version;
extern const char functions_text[];
extern const size_t functions_text_len;

#endif
