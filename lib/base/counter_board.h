/* SPDX-License-Identifier: MIT */
/*
 * That of an observable hub is a memfd of this layout, which tools/top finds through /proc and maps
 * to read; only this header is shared with it. No decision depends on the board: stacks and inbox
 * are private, and only their numbers are copied here. Sums are exact while no call runs. A changed
 * layout needs a new BOARD_VERSION.
 */
#ifndef TIMERHUB_COUNTER_BOARD_H
#define TIMERHUB_COUNTER_BOARD_H

#include <timerhub.h>

#include "base/atomic.h"
#include "base/bits.h"

#define BOARD_NAME "timerhub" /* of the memfd */
#define BOARD_MAGIC UINT64_C(0x62756872656d6974)
#define BOARD_VERSION 6u
#define BOARD_SHARDS_MAX 64
#define BOARD_LANES_MAX 16
#ifndef BOARD_DELIVERIES_MAX
#define BOARD_DELIVERIES_MAX 16
#endif
#ifndef BOARD_QUEUES_MAX
#define BOARD_QUEUES_MAX 65535
#endif
#define BOARD_LATENESS_BUCKETS 64
#define BOARD_TEXT_BYTES 16
#define BOARD_DEPTH_BITS 26

enum board_kind { BOARD_HUB = 0, BOARD_LOOP = 1 };
enum board_state { BOARD_OPENING = 0, BOARD_OPEN = 1, BOARD_CLOSED = 2 };

struct board_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t board_bytes;
	uint32_t pid;    /* in the process's namespace */
	uint32_t clock;  /* enum timerhub_clock */
	uint32_t manual; /* 1: there is no owner thread */
	uint32_t kind;   /* enum board_kind */
	uint64_t timers_max;
	uint64_t serial;                    /* hubs opened before */
	uint64_t opened_ns;                 /* by CLOCK_MONOTONIC */
	char thread_name[BOARD_TEXT_BYTES]; /* the owner's; ends with a zero */
	char library_version[BOARD_TEXT_BYTES];
	atomic_u32 state; /* enum board_state; written by timerhub_open() and _close() */
};

struct board_owner {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 refiled; /* entries moved to later */
	atomic_u64 expired;
	atomic_u64 inbox_max;
	atomic_u64 wakeups;
	atomic_u64 queue_signals;
	atomic_u64 cascaded;
	atomic_u64 sleeper; /* enum timerhub_sleeper; AUTO in a manual hub */
	/* bucket i: 2^i to 2^(i+1) - 1 ns late, the first also 0 */
	atomic_u64 lateness[BOARD_LATENESS_BUCKETS];
	atomic_u64 clock_jumps; /* the wall clock was set */
};

/* Written by callers, each beside a much slower operation. */
struct board_callers {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 submit_wakes; /* wakes by callers */
	atomic_u64 dropped;                                 /* by timerhub_queue_close() */
	atomic_u64 untaken; /* slots taken for refused calls of timerhub_arm_many() */
	/* highest index of a queue so far, plus 1 */
	atomic_u64 queues_end;
};

/* Of one free stack, on an observable hub, by who has changed it. */
struct board_shard {
	/* takes so far, modulo 2^38, << BOARD_DEPTH_BITS | slots on it */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 stack;
	atomic_u64 laps; /* takes / 2^38 */
	atomic_u64 used; /* slots that were ever used; exact */
};

/*
 * Of one lane, perhaps old: `tail` - `head` slots wait in it, about `spilled` - `drained` of its
 * producers in the map.
 */
struct board_lane {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail; /* written by callers, as `spilled` */
	atomic_u64 spilled;
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head; /* written by the owner, as `drained` */
	atomic_u64 drained;
};

/* It outlives the queue, whose outbox has `put` - `delivered` - `passed_over` handles. */
struct board_queue {
	/* by consumers */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 delivered;
	atomic_u64 retired;     /* delivered, and the timer has ended */
	atomic_u64 overruns;    /* periods counted in an earlier period's event */
	atomic_u64 passed_over; /* handles of withdrawn expiries */
	/* opener and owner write `put`, opener and closer `fd_plus_one` */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 put; /* published handles */
	atomic_u64 fd_plus_one;                    /* eventfd plus 1; 0: no queue */
};

/* Of events taken on some of the CPUs. Buckets as in board_owner. */
struct board_deliveries {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 lateness[BOARD_LATENESS_BUCKETS];
};

/* A clock that was set back may be before the deadline. */
static inline unsigned board_bucket(uint64_t now_ns, uint64_t deadline_ns)
{
	return now_ns <= deadline_ns ? 0 : bits_highest(now_ns - deadline_ns);
}

/* Copied by the loop's thread in each turn, beside owner.lateness. */
struct board_loop {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 added;
	atomic_u64 turns;
	atomic_u64 callbacks;
	atomic_u64 empty_wakes;
	atomic_u64 turn_max_ns;
	atomic_u64 refused; /* also by the refused threads */
};

struct board {
	struct board_header header;
	struct board_loop loop; /* of a loop's board, where the hub's parts are zero */
	struct board_owner owner;
	struct board_callers callers;
	struct board_shard shards[BOARD_SHARDS_MAX];
	struct board_lane lanes[BOARD_LANES_MAX];
	struct board_deliveries deliveries[BOARD_DELIVERIES_MAX]; /* by CPU */
	struct board_queue queues[BOARD_QUEUES_MAX];
};

/*
 * Zeroed, with a header from `config`, whose defaults are filled in. Observable: a memfd in
 * `*ret_fd`, else -1. 0 or -ENOMEM; observable also -EMFILE, -ENOSPC (too many), or
 * memfd_create(2)'s.
 */
int board_open(struct board **ret_board, int *ret_fd, const struct timerhub_config *config);

/* Not in a forked child. */
void board_announce(struct board *board, bool open);

/* `board` may be NULL if `fd` is -1. */
void board_close(struct board *board, int fd);

#endif
