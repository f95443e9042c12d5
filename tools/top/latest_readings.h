/* SPDX-License-Identifier: MIT */
/* A watch keeps a target and the two latest readings of each of the target's hubs. */
#ifndef TOP_LATEST_READINGS_H
#define TOP_LATEST_READINGS_H

#include "function_names.h"
#include "reading.h"
#include "running.h"
#include "target.h"

struct watch {
	struct target target;
	uint64_t found_ns;                 /* time of the last search for new hubs */
	uint64_t serials[TARGET_HUBS_MAX]; /* serials[i] is the serial number of hub i */
	unsigned reading_count;
	struct reading *now; /* latest readings; now[i] belongs to target.hubs[i] */
	struct runnings *running, *running_before; /* of these two readings */
	struct function_names *names;
	struct reading *before; /* readings before the latest; at_ns 0: no earlier reading */
};

/*
 * Open the target for the process `pid`. Returns 0, or -1 with the reason in target.refusal. Call
 * watch_close() also after -1.
 */
int watch_open(struct watch *watch, pid_t pid);
void watch_close(struct watch *watch);

/* Finds new hubs, and forgets closed ones, as watch_read() does, without reading their counters. */
int watch_find(struct watch *watch);

/*
 * Read the counters of all hubs. Find new hubs and forget closed hubs. Returns -1 if no hub is
 * left, with the reason in target.refusal.
 */
int watch_read(struct watch *watch);

/*
 * Returns the last but one reading of the hub target.hubs[index], or NULL if the hub has only one
 * reading.
 */
const struct reading *watch_before(const struct watch *watch, unsigned index);

#endif
