/* SPDX-License-Identifier: MIT */
/* A watch reads the hubs and loops of a process again and again, and keeps the last readings. */
#ifndef TOP_WATCH_H
#define TOP_WATCH_H

#include "function_names.h"
#include "reading.h"

struct watch {
	struct target target;
	uint64_t found_ns; /* time of the last search for new hubs */
	unsigned count;    /* number of latest readings, one of each hub and loop */
	struct reading *now, *earlier;
	struct runnings *running, *earlier_running;
	struct function_names *names;
};

/*
 * Opens the process `pid` and reads its hubs for the first time. Returns 0, or -1 with the reason
 * in target.refusal. After both, watch_close() must be called.
 */
int watch_open(struct watch *watch, pid_t pid);
void watch_close(struct watch *watch);

/* Finds new hubs, and forgets closed ones, as watch_read() does, without reading their counters. */
int watch_find(struct watch *watch);

/*
 * Finds new hubs, forgets closed ones, and reads all. Returns -1 if none is left, with the reason
 * in target.refusal.
 */
int watch_read(struct watch *watch);

struct name {
	char text[FUNCTION_NAME_BYTES];
};

/* Returns the name of the function of the process that begins at this address; "" if that is 0. */
static inline struct name watch_name(const struct watch *watch, uint64_t address)
{
	struct name name = { "" };

	if (address != 0)
		function_name(watch->names, address, name.text);
	return name;
}

#endif
