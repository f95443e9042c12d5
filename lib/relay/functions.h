/* SPDX-License-Identifier: MIT */
/* The library of Redis functions, timerhub.lua, as text to be loaded; made by embed.py. */
#ifndef RELAY_FUNCTIONS_H
#define RELAY_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

extern const uint64_t functions_version; /* a server with an older one is given ours */
extern const char functions_text[];
extern const size_t functions_text_len;

#endif
