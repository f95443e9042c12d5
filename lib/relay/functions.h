/* SPDX-License-Identifier: MIT */
/*
 * Declares the text of timerhub.lua, the library of Redis functions. embed.py makes the
 * definition.
 */
#ifndef RELAY_FUNCTIONS_H
#define RELAY_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

extern const uint64_t functions_version; /* a server with an older version gets this one */
extern const char functions_text[];
extern const size_t functions_text_len;

#endif
