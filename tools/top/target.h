/* SPDX-License-Identifier: MIT */
/*
 * Describes the watched process and the boards of its hubs. The tool finds the boards through /proc
 * and maps them read-only. The tool checks all data of the watched process before it uses the data.
 */
#ifndef TOP_TARGET_H
#define TOP_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/counter_board.h"

#define TARGET_HUBS_MAX 256
#define TARGET_TEXT_BYTES 160

/* A hub of the watched process, or a loop. */
struct hub {
	const struct board *board;
	struct board_header about; /* checked copy of the board's header, with printable texts */
	int fd;                    /* number of the board's descriptor in the watched process */
	ino_t inode;
	dev_t device;
};

/* Returns whether the board is that of a loop. */
static inline bool hub_is_loop(const struct hub *hub)
{
	return hub->about.kind == BOARD_LOOP;
}

/* Returns the time on the clock of the hub or loop, or 0 if the program itself gives the time. */
uint64_t hub_clock_ns(const struct hub *hub);

struct target {
	pid_t pid;
	int proc; /* descriptor of /proc/PID, never of a later process with this PID */
	char command[BOARD_TEXT_BYTES];
	unsigned hub_count;
	struct hub hubs[TARGET_HUBS_MAX]; /* hubs in the order in which they were opened */
	char refusal[TARGET_TEXT_BYTES];  /* reason why no hub can be watched, as a message */
};

/*
 * Open the process `pid` and find its hubs. Returns 0, or -1 with the reason in `refusal`. If
 * target_open() fails, target_close() must still be called.
 */
int target_open(struct target *target, pid_t pid);
void target_close(struct target *target);

/*
 * Forget closed hubs and find new hubs. Returns -1 if no hub is left, with the reason in `refusal`.
 */
int target_find_hubs(struct target *target);

/* Returns whether the watched process is alive. */
bool target_alive(const struct target *target);

/*
 * Check quickly that the process and all known hubs still exist. If a hub is gone, or none is
 * known, call target_find_hubs() and return its result.
 */
int target_check(struct target *target);

#endif
