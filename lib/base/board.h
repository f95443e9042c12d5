/* SPDX-License-Identifier: MIT */
/*
 * Declares the board, which has the counters of a hub. The board of an observable hub is a memfd of
 * this layout, which tools/top finds through /proc and maps read-only. The two share only this
 * header.
 *
 * No decision of the hub depends on the board, so it may be in shared memory. Free stacks and
 * inbox, on which decisions do depend, are private, and write notes to the board. Any word may be
 * read at any time. Two words may be of different moments, so sums are exact only while no call
 * runs. A change of the layout must increase BOARD_VERSION.
 */
#ifndef TIMERHUB_BOARD_H
#define TIMERHUB_BOARD_H

#include <timerhub.h>

#include "base/atomic.h"
#include "base/bits.h"

#define BOARD_NAME "timerhub" /* the name of the memfd */
#define BOARD_MAGIC UINT64_C(0x62756872656d6974)
#define BOARD_VERSION 4u
#define BOARD_SHARDS_MAX 64
#define BOARD_LANES_MAX 16
#ifndef BOARD_QUEUES_MAX
#define BOARD_QUEUES_MAX 65535
#endif
#define BOARD_LATENESS_BUCKETS 64
#define BOARD_TEXT_BYTES 16
#define BOARD_DEPTH_BITS 26

enum board_state { BOARD_OPENING = 0, BOARD_OPEN = 1, BOARD_CLOSED = 2 };

/* Written at open, except `state`. */
struct board_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t board_bytes;
	uint32_t pid;                           /* of the process, in its own PID namespace */
	uint32_t clock;                         /* enum timerhub_clock */
	uint32_t manual;                        /* 1: there is no owner thread */
	uint64_t timers_max;                    /* most timers live at once */
	uint64_t serial;                        /* how many hubs the process had opened before */
	uint64_t opened_ns;                     /* CLOCK_MONOTONIC */
	char thread_name[BOARD_TEXT_BYTES];     /* the owner's, ended by a zero */
	char library_version[BOARD_TEXT_BYTES]; /* ended by a zero */
	atomic_u32 state; /* enum board_state; written by timerhub_open() and _close() */
};

/* Only the owner writes. */
struct board_owner {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 refiled; /* entries moved to a later time */
	atomic_u64 expired;
	atomic_u64 inbox_max; /* most submissions found in one pass */
	atomic_u64 wakeups;   /* times that the owner slept and woke */
	atomic_u64 queue_signals;
	atomic_u64 cascaded;
	atomic_u64 sleeper; /* enum timerhub_sleeper in use; AUTO: none */
	/* Signal minus deadline, in ns: bucket 0 below 2, bucket i from 2^i to 2^(i+1) - 1. */
	atomic_u64 lateness[BOARD_LATENESS_BUCKETS];
	atomic_u64 clock_jumps; /* times that the kernel reported a set wall clock to the owner */
};

/* Callers write, each time beside a much slower operation. */
struct board_callers {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 submit_wakes; /* signals of the owner's bell */
	atomic_u64 dropped; /* timers that ended with their queue; the closer writes */
	atomic_u64 untaken; /* slots taken for a timerhub_arm_many() that was refused */
	/* All indexes from this on were never used by a queue, and their memory is untouched. */
	atomic_u64 queues_end;
};

/*
 * Notes of one free stack, in an observable hub only. The thread that has just changed the stack
 * writes them. A delayed thread may overwrite a newer note; the next change corrects it.
 */
struct board_shard {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 stack; /* takes so far << BOARD_DEPTH_BITS | depth */
	atomic_u64 used;                             /* slots that were ever used; exact */
};

/* Notes of one lane of the inbox, with the same rule. tail - head entries wait. */
struct board_lane {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail; /* position after a filled cell; callers */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head; /* next position to take; the owner */
};

/*
 * The counters of one queue, at the queue's index. They outlive the queue. put - delivered -
 * passed_over handles wait in the queue's outbox.
 */
struct board_queue {
	/* Consumers write. */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 delivered; /* events delivered */
	atomic_u64 retired;     /* events among these that ended their timer */
	atomic_u64 overruns;    /* periods counted in the event of an earlier period */
	atomic_u64 passed_over; /* handles skipped because their expiry had been withdrawn */
	/* The owner writes; at open, the thread that opens the queue. */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 put; /* handles put into the outbox and published */
	atomic_u64 fd_plus_one; /* the queue's eventfd; 0: there is no queue at this index */
};

struct board {
	struct board_header header;
	struct board_owner owner;
	struct board_callers callers;
	struct board_shard shards[BOARD_SHARDS_MAX];
	struct board_lane lanes[BOARD_LANES_MAX];
	struct board_queue queues[BOARD_QUEUES_MAX];
};

/*
 * Open a zeroed board, whose header describes the hub; the config has no defaults left. If the hub
 * is observable, the board is a memfd and `*ret_fd` its descriptor; if not, `*ret_fd` is -1.
 * Returns 0 or -ENOMEM; if observable also -EMFILE, -ENOSPC (too many observable hubs), or the
 * errors of memfd_create(2).
 */
int board_open(struct board **ret_board, int *ret_fd, const struct timerhub_config *config);

/* Show readers that the hub is open, or (false) closed. Not in a forked child. */
void board_announce(struct board *board, bool open);

/* Close the board. (NULL, -1) is allowed. */
void board_close(struct board *board, int fd);

#endif
