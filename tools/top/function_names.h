/* SPDX-License-Identifier: MIT */
/*
 * Finds the names of functions of another process, from the symbols of the files that it has
 * mapped. Without elfutils at build time, functions are named by their addresses.
 */
#ifndef TOP_FUNCTION_NAMES_H
#define TOP_FUNCTION_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* room for a name; C++ names can be longer, and are cut off */
#define FUNCTION_NAME_BYTES 128

struct name {
	char text[FUNCTION_NAME_BYTES];
};

struct function_names;

/*
 * Prepares to look up functions of the process whose folder in /proc is `proc`. Returns NULL if
 * there is no memory for that. NULL can be passed to the other functions: function_name() then
 * returns addresses as names.
 */
struct function_names *function_names_open(int proc);
void function_names_close(struct function_names *names);

/*
 * Returns the name of the function that begins at `address`, or "" if `address` is 0. Without a
 * symbol there, the name is the file and the offset in it ("server+0x1234"), or else the address.
 * Characters that are not printable ASCII become '?'.
 *
 * The process may have loaded another library since the last call, so each call reads the process's
 * mappings again.
 */
struct name function_name(struct function_names *names, uint64_t address);

#endif
