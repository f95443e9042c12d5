/* SPDX-License-Identifier: MIT */
/*
 * The watched process and the boards of its hubs, which are found through /proc and mapped
 * read-only. Data of the other process is used only after a check.
 */
#ifndef TOP_TARGET_H
#define TOP_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/board.h"

#define TARGET_HUBS_MAX 256
#define TARGET_TEXT_BYTES 160

/* A hub of the watched process. */
struct hub {
	const struct board *board;
	struct board_header about; /* a checked copy, whose texts are printable and end with 0 */
	int fd;                    /* number of the descriptor in the other process */
	ino_t inode;
	dev_t device;
};

struct target {
	pid_t pid;
	int proc; /* descriptor of /proc/PID, which stays this process's if the number is reused */
	char command[BOARD_TEXT_BYTES];
	unsigned hub_count;
	struct hub hubs[TARGET_HUBS_MAX]; /* in the order of opening */
	char refusal[TARGET_TEXT_BYTES];  /* message: the reason why no hub can be watched */
};

/* Returns 0, or -1 with the reason in `refusal`. Call target_close() in both cases. */
int target_open(struct target *target, pid_t pid);
void target_close(struct target *target);

/*
 * Forget closed hubs and find new hubs. Returns -1 if no hub is left, with the reason in `refusal`.
 */
int target_find_hubs(struct target *target);

/*
 * Check quickly that the process and all known hubs still exist. If not, call target_find_hubs()
 * and return its result.
 */
int target_check(struct target *target);

#endif
