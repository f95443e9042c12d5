/* SPDX-License-Identifier: MIT */
/*
 * Declares the text of timerhub.lua, the library of Redis functions. The script embed.py generates
 * the C file that defines the text.
 */
#ifndef RELAY_FUNCTIONS_H
#define RELAY_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Version of the library of Redis functions. If a server has an older version of the library, a
 * relay loads functions_text into the server.
 */
extern const uint64_t functions_version;
extern const char functions_text[];
extern const size_t functions_text_len;

#endif
