/* SPDX-License-Identifier: MIT */
/* A target, and the two latest readings of each of its hubs. */
#ifndef TOP_WATCH_H
#define TOP_WATCH_H

#include "reading.h"
#include "target.h"

struct watch {
	struct target target;
	uint64_t found_ns;                 /* when new hubs were last looked for */
	uint64_t serials[TARGET_HUBS_MAX]; /* of the hubs that the readings are of */
	unsigned reading_count;
	struct reading *now;    /* side by side with target.hubs */
	struct reading *before; /* at_ns 0: there is none */
};

/* 0; or -1, and target.refusal says why. To be closed in both cases. */
int watch_open(struct watch *watch, pid_t pid);
void watch_close(struct watch *watch);

/* Read all hubs; new ones are found, closed ones forgotten. -1 if nothing is left, as above. */
int watch_read(struct watch *watch);

/* The reading before the latest, of this hub, or NULL. */
const struct reading *watch_before(const struct watch *watch, unsigned index);

#endif
