/* SPDX-License-Identifier: MIT */
/*
 * The process that is watched, and the boards of its hubs: found through /proc, mapped read-only.
 * What another process wrote is believed only as far as it has been checked.
 */
#ifndef TOP_TARGET_H
#define TOP_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/board.h"

#define TARGET_HUBS_MAX 256
#define TARGET_TEXT_BYTES 160

/* One hub. */
struct hub {
	const struct board *board;
	struct board_header about; /* a copy, checked; texts are printable and end */
	int fd;                    /* its number in the other process */
	ino_t inode;
	dev_t device;
};

struct target {
	pid_t pid;
	int proc; /* /proc/PID: names this process even when the number is given to another */
	char command[BOARD_TEXT_BYTES];
	unsigned hub_count;
	struct hub hubs[TARGET_HUBS_MAX]; /* in the order in which they were opened */
	char refusal[TARGET_TEXT_BYTES];  /* why there is nothing to see, for people */
};

/* 0; or -1, and `refusal` says why. To be closed in both cases. */
int target_open(struct target *target, pid_t pid);
void target_close(struct target *target);

/* Forget hubs that are no more; find new ones. -1 if there is none, and `refusal` says why. */
int target_find_hubs(struct target *target);

/*
 * Quick: are the process and all hubs that we know still there? If not, find them again. As above.
 */
int target_check(struct target *target);

#endif
