/* SPDX-License-Identifier: MIT */
/* Keeps a target and the two latest readings of each of its hubs. */
#ifndef TOP_WATCH_H
#define TOP_WATCH_H

#include "reading.h"
#include "target.h"

struct watch {
	struct target target;
	uint64_t found_ns;                 /* time of the last search for new hubs */
	uint64_t serials[TARGET_HUBS_MAX]; /* serial number of the hub of each reading */
	unsigned reading_count;
	struct reading *now;    /* reading i is of target.hubs[i] */
	struct reading *before; /* at_ns is 0 if the hub has no earlier reading */
};

/* Returns 0, or -1 with the reason in target.refusal. Call watch_close() in both cases. */
int watch_open(struct watch *watch, pid_t pid);
void watch_close(struct watch *watch);

/*
 * Read all hubs. New hubs are found, and closed hubs are forgotten. Returns -1 if no hub is left,
 * with the reason in target.refusal.
 */
int watch_read(struct watch *watch);

/* Returns the hub's reading before the latest, or NULL if there is none. */
const struct reading *watch_before(const struct watch *watch, unsigned index);

#endif
