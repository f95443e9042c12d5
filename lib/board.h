/* SPDX-License-Identifier: MIT */
/*
 * The board: where a hub's counters lie. Of an observable hub it is a memfd of this very layout,
 * which tools/top finds through /proc and maps read-only; this header is all that they share.
 *
 * Nothing in here is ever read to decide anything, by the hub least of all; that is why it may be
 * shared memory, and why what decides (free stacks, inbox) leaves notes here instead. Every word
 * may be read at any time; none belongs to another, so that sums are exact only at rest. Whoever
 * changes the layout counts BOARD_VERSION up.
 */
#ifndef TIMERHUB_BOARD_H
#define TIMERHUB_BOARD_H

#include "atomic.h"

#define BOARD_NAME "timerhub" /* of the memfd */
#define BOARD_MAGIC UINT64_C(0x62756872656d6974)
#define BOARD_VERSION 2u
#define BOARD_SHARDS_MAX 16
#define BOARD_LANES_MAX 16
#define BOARD_QUEUES_MAX 65535
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

/* Written at open, but for `state`. */
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
	uint64_t serial;                        /* how many hubs the process had opened before */
	uint64_t opened_ns;                     /* CLOCK_MONOTONIC */
	char thread_name[BOARD_TEXT_BYTES];     /* the owner's, ended by a zero */
	char library_version[BOARD_TEXT_BYTES]; /* likewise */
	atomic_u32 state; /* enum board_state; who opens and closes the hub writes */
};

/* Written by the owner alone. */
struct board_owner {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 refiled; /* found moved to a later deadline */
	atomic_u64 expired;
	atomic_u64 inbox_max; /* most submissions found in one pass */
	atomic_u64 wakeups;   /* times that it slept and woke */
	atomic_u64 queue_signals;
	atomic_u64 cascaded;
	atomic_u64 sleeper; /* enum timerhub_sleeper in use; AUTO: none */
	/* Telling minus deadline, in ns: bucket 0 below 2, bucket i from 2^i to 2^(i+1) - 1. */
	atomic_u64 lateness[BOARD_LATENESS_BUCKETS];
	atomic_u64 clock_jumps; /* times that it was told of the wall clock being set */
};

/* Written by callers, next to something much dearer. */
struct board_callers {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 submit_wakes; /* rings of the bell */
	atomic_u64 dropped; /* timers dropped with their queue; the closer writes */
	atomic_u64 untaken; /* slots taken for an arming given up */
	/* No queue was ever at this index or above: memory beyond was never touched. */
	atomic_u64 queues_end;
};

/*
 * Notes of one free stack, left by whoever has just changed it, and only in an observable hub. A
 * thread held up before it writes may leave an older note than the one it finds; the next is right.
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
 * What happened to one queue; by index, and outliving the queue. In its outbox wait put - delivered
 * - passed_over handles.
 */
struct board_queue {
	/* Written by the consumers. */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 delivered; /* events delivered */
	atomic_u64 retired;     /* of these, of timers that ended with it */
	atomic_u64 overruns;    /* periods folded into counts */
	atomic_u64 passed_over; /* handles taken of expiries that had been withdrawn */
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

/* What the opener of a board knows of its hub. */
struct board_about {
	const char *thread_name;
	uint64_t timers_max;
	uint64_t opened_ns; /* CLOCK_MONOTONIC */
	uint32_t clock;
	bool manual;
	bool observable;
};

/*
 * A board of zeroes; of an observable hub a memfd, whose fd is told, else -1 is. 0, or -ENOMEM; and
 * if observable -EMFILE, -ENOSPC: too many observable hubs, and what memfd_create() says.
 */
int board_open(struct board **ret_board, int *ret_fd, const struct board_about *about);

/* The hub is there, or (false) no more: tell who looks. Not in a forked child. */
void board_announce(struct board *board, bool open);

/* Fine if there is none (NULL, -1). */
void board_close(struct board *board, int fd);

#endif
