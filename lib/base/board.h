/* SPDX-License-Identifier: MIT */
/*
 * The board: where a hub's counters lie. The board of an observable hub is a memfd of this layout,
 * which tools/top finds through /proc and maps read-only; this header is all that the two share.
 *
 * The hub decides nothing by what it reads here. So the board may be shared memory, and what does
 * decide (free stacks, inbox) leaves notes here. Every word may be read at any time, but two words
 * may be of different moments, so that sums are exact only at rest. A change of the layout must
 * increase BOARD_VERSION.
 */
#ifndef TIMERHUB_BOARD_H
#define TIMERHUB_BOARD_H

#include "base/atomic.h"
#include "base/bits.h"

#define BOARD_NAME "timerhub" /* of the memfd */
#define BOARD_MAGIC UINT64_C(0x62756872656d6974)
#define BOARD_VERSION 3u
#define BOARD_SHARDS_MAX 64
#define BOARD_LANES_MAX 16
#ifndef BOARD_QUEUES_MAX
#define BOARD_QUEUES_MAX 65535
#endif
#define BOARD_LATENESS_BUCKETS 64
#define BOARD_TEXT_BYTES 16
#define BOARD_DEPTH_BITS 26

enum board_state { BOARD_OPENING = 0, BOARD_OPEN = 1, BOARD_CLOSED = 2 };

/* `count` records of `stride` bytes each, the first at `offset`. */
struct board_section {
	uint32_t offset;
	uint32_t stride;
	uint32_t count;
};

/* Written at open, except `state`. */
struct board_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t board_bytes;
	struct board_section owner, callers, shards, lanes, queues;
	uint32_t pid;                           /* of the process, as it sees itself */
	uint32_t clock;                         /* enum timerhub_clock */
	uint32_t manual;                        /* 1: there is no owner thread */
	uint64_t timers_max;                    /* most timers live at once */
	uint64_t serial;                        /* hubs that the process had opened before */
	uint64_t opened_ns;                     /* CLOCK_MONOTONIC */
	char thread_name[BOARD_TEXT_BYTES];     /* the owner's, ended by a zero */
	char library_version[BOARD_TEXT_BYTES]; /* likewise */
	atomic_u32 state; /* enum board_state; written by timerhub_open() and _close() */
};

/* Written by the owner alone. */
struct board_owner {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 refiled; /* found moved to a later deadline */
	atomic_u64 expired;
	atomic_u64 inbox_max; /* most submissions found in one pass */
	atomic_u64 wakeups;   /* times that the owner slept and woke */
	atomic_u64 queue_signals;
	atomic_u64 cascaded;
	atomic_u64 sleeper; /* enum timerhub_sleeper in use; AUTO: none */
	/* Telling minus deadline, in ns: bucket 0 below 2, bucket i from 2^i to 2^(i+1) - 1. */
	atomic_u64 lateness[BOARD_LATENESS_BUCKETS];
	atomic_u64 clock_jumps; /* times that the wall clock was set, and the owner heard of it */
};

/* Written by callers, next to something much dearer. */
struct board_callers {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 submit_wakes; /* rings of the bell */
	atomic_u64 dropped; /* timers dropped with their queue; the closer writes */
	atomic_u64 untaken; /* slots taken for a timerhub_arm_many() that was refused */
	/* No queue was ever at this index or above: memory beyond was never touched. */
	atomic_u64 queues_end;
};

/*
 * Notes of one free stack, written by the thread that has just changed it, and only in an
 * observable hub. A delayed thread may overwrite a newer note; the next change corrects it.
 */
struct board_shard {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 stack; /* takes so far << BOARD_DEPTH_BITS | depth */
	atomic_u64 used;                             /* slots that were ever used; exact */
};

/* Notes of one lane of the inbox, likewise. Their distance is how many entries wait. */
struct board_lane {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail; /* one beyond a place just filled; callers */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head; /* next place to take; the owner */
};

/*
 * What happened to one queue. Found by the queue's index; it outlives the queue. put - delivered -
 * passed_over handles wait in the queue's outbox.
 */
struct board_queue {
	/* Written by the consumers. */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 delivered; /* events delivered */
	atomic_u64 retired;     /* of these, events that ended their timer */
	atomic_u64 overruns;    /* periods folded into counts */
	atomic_u64 passed_over; /* handles taken whose expiry had been withdrawn */
	/* Written by the owner, and at open by the opener. */
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

/* What a board says of its hub. */
struct board_about {
	const char *thread_name;
	uint64_t timers_max;
	uint64_t opened_ns; /* CLOCK_MONOTONIC */
	uint32_t clock;
	bool manual;
	bool observable;
};

/*
 * Open a board of zeroes. If the hub is observable, the board is a memfd and `*ret_fd` its
 * descriptor, else `*ret_fd` is -1. Returns 0 or -ENOMEM; if observable also -EMFILE, -ENOSPC: too
 * many observable hubs, or the errors of memfd_create(2).
 */
int board_open(struct board **ret_board, int *ret_fd, const struct board_about *about);

/* Tell readers that the hub is open, or (false) closed. Not in a forked child. */
void board_announce(struct board *board, bool open);

/* Close the board. (NULL, -1) is fine. */
void board_close(struct board *board, int fd);

#endif
