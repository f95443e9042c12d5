/* SPDX-License-Identifier: MIT */
/*
 * The counter board: all counters of a hub, or of a loop, in one piece of memory. The board of an
 * observable hub is a memfd, which timerhub-top (tools/top) finds through /proc and maps to read.
 * This header is all that the two share, so whoever changes the layout must change BOARD_VERSION.
 *
 * No decision of the library depends on the board, because another process could write to it: the
 * free stacks and the inbox are private memory, and only their numbers are copied here. The sums
 * are exact while no call runs.
 */
#ifndef TIMERHUB_COUNTER_BOARD_H
#define TIMERHUB_COUNTER_BOARD_H

#include <timerhub.h>

#include "base/ahead.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/histogram.h"
#include "board/slow_table.h"
#include "board/thread_cell.h"

#define BOARD_NAME "timerhub" /* the memfd's name, by which tools/top knows it */
#define BOARD_MAGIC UINT64_C(0x62756872656d6974)
#define BOARD_VERSION 8u
#define BOARD_SHARDS_MAX 64
#define BOARD_LANES_MAX 16
#ifndef BOARD_DELIVERIES_MAX
#define BOARD_DELIVERIES_MAX 16
#endif
#ifndef BOARD_QUEUES_MAX
#define BOARD_QUEUES_MAX 65535
#endif
#define BOARD_CELLS_MAX 256            /* how many threads of a hub can have a cell */
#define BOARD_SLOW_DEFAULT_NS 10000000 /* how long a callback must run to be slow */
#define BOARD_LATENESS_BUCKETS TIMERHUB_LATENESS_BUCKETS
#define BOARD_TEXT_BYTES 16
#define BOARD_DEPTH_BITS 26

enum board_kind { BOARD_HUB = 0, BOARD_LOOP = 1 };
enum board_state { BOARD_OPENING = 0, BOARD_OPEN = 1, BOARD_CLOSED = 2 };

struct board_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t board_bytes;
	uint32_t pid;    /* the process's number in its own namespace */
	uint32_t clock;  /* the hub's clock, an enum timerhub_clock */
	uint32_t manual; /* 1 if the hub has no owner thread, else 0 */
	uint32_t kind;   /* whose board it is, an enum board_kind */
	uint64_t timers_max;
	uint64_t serial;                    /* how many boards the process had opened before */
	uint64_t opened_ns;                 /* when it was opened, by CLOCK_MONOTONIC */
	char thread_name[BOARD_TEXT_BYTES]; /* the owner thread's name, which ends with a zero */
	char library_version[BOARD_TEXT_BYTES];
	uint64_t slow_ns; /* how long a callback must run to be slow; UINT64_MAX: none is */
	atomic_u32 state; /* an enum board_state, which opening and closing the hub changes */
};

/* The counters that the hub's owner thread writes. struct timerhub_stats explains the names. */
struct board_owner {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 refiled; /* timers scheduled again for later */
	atomic_u64 expired;
	atomic_u64 inbox_max;
	atomic_u64 wakeups;
	atomic_u64 queue_signals;
	atomic_u64 cascaded;
	atomic_u64 sleeper; /* an enum timerhub_sleeper, which is AUTO in a manual hub */
	/*
	 * How late events were published. Bucket i counts those that were 2^i to 2^(i+1) - 1 ns
	 * late. The first bucket also counts those that were not late.
	 */
	atomic_u64 lateness[BOARD_LATENESS_BUCKETS];
	atomic_u64 clock_jumps; /* how often the owner has found that the wall clock was set */
	atomic_u64 tid;         /* the owner thread's number in its own namespace; 0: no thread */
	/*
	 * How many timers were due soon after `ahead_at_ns`: ahead[0] within 1 ms, ahead[1] within
	 * 1 to 10 ms, and so on. Counted at most once a second, and only if observable.
	 */
	atomic_u64 ahead[AHEAD_RANGES];
	atomic_u64 ahead_at_ns; /* when `ahead` was last counted, on the hub's clock; 0: never */
};

/*
 * The counters that any thread may increment. They share a cache line, because a thread increments
 * them only in an operation that is slow anyway, such as a system call.
 */
struct board_callers {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 submit_wakes; /* times that a caller woke the owner */
	atomic_u64 dropped;      /* timers that timerhub_queue_close() has cancelled */
	atomic_u64 untaken;      /* slots taken for refused calls of timerhub_arm_many() */
	atomic_u64 queues_end;   /* the highest index that a queue has had so far, plus 1 */
	atomic_u64 without_cell; /* dispatches of threads that found all cells taken */
	/*
	 * When a thread last searched in vain for a cell whose thread has ended, on the hub's
	 * clock; 0: never. For a second after that, no thread searches.
	 */
	atomic_u64 looked_ns;
};

/*
 * Counters of one of the stacks of free timer slots (timer/arena.h). Threads that change the stack
 * of an observable hub copy them here for timerhub-top(1).
 */
struct board_shard {
	/*
	 * The low BOARD_DEPTH_BITS bits say how many free slots are on the stack, and the bits
	 * above how many were taken from it so far, modulo 2^38.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 stack;
	atomic_u64 laps; /* takes so far, divided by 2^38 */
	atomic_u64 used; /* how many of its slots were ever used, which is exact */
};

/*
 * The numbers of one of the inbox's ring buffers (owner/inbox.h), which may be a little out of
 * date. `tail` - `head` timers wait in the ring buffer.
 */
struct board_lane {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail; /* callers write it, and `spilled` */
	atomic_u64 spilled; /* timers put into the bitmap while the ring is full */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head; /* the owner writes it, and `drained` */
	atomic_u64 drained;                         /* timers taken out of that bitmap */
};

/*
 * The counters of a queue. If the queue is closed, the next queue that gets its index goes on with
 * these counters.
 *
 * Consumers write the fields from `delivered` to `taken_ns`, and the owner writes `put` and
 * `filled_ns`. They are in two cache lines, so that consumers do not slow the owner.
 */
struct board_queue {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 delivered; /* events that consumers have received */
	atomic_u64 retired;     /* events after whose delivery the timer has ended */
	atomic_u64 overruns;    /* periods that were counted in an earlier period's event */
	atomic_u64 passed_over; /* handles of expiries that were withdrawn */
	/*
	 * When a thread last took events, on the hub's clock; 0: never. It is stored when a drain
	 * or wait returns events, and when a dispatch begins in an observable hub or loop.
	 */
	atomic_u64 taken_ns;
	_Alignas(CACHE_LINE_BYTES) atomic_u64 put; /* handles that the owner has put in */
	atomic_u64 filled_ns;   /* when it was last empty and got an event, on the hub's clock */
	atomic_u64 fd_plus_one; /* the eventfd plus 1, or 0 if there is no queue */
	atomic_u64 address;     /* address of the queue, as cells name it; 0: no queue */
	/*
	 * What a loop's thread is doing, if the queue belongs to a loop that other processes can
	 * observe (TIMERHUB_LOOP_OBSERVABLE). Otherwise unused.
	 */
	struct board_cell loop;
};

/*
 * Returns how many handles wait in a queue. Some may have no event any more, because their timers
 * were cancelled or re-armed.
 */
static inline uint64_t board_queue_waiting(const struct board_queue *queue)
{
	/* Relaxed is enough, because these numbers are only shown in statistics. */
	uint64_t taken =
		u64_load_relaxed(&queue->delivered) + u64_load_relaxed(&queue->passed_over);
	uint64_t put = u64_load_relaxed(&queue->put);

	return put > taken ? put - taken : 0;
}

/*
 * How late consumers on one CPU took events. If there are more than BOARD_DELIVERIES_MAX CPUs, some
 * share a struct. Bucket i counts events that were 2^i to 2^(i+1) - 1 ns late; bucket 0 also counts
 * those that were not late.
 */
struct board_deliveries {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 lateness[BOARD_LATENESS_BUCKETS];
};

/*
 * Returns the histogram bucket that counts how late `now_ns` is after `deadline_ns`. It is 0 if the
 * clock was set back to before the deadline.
 */
static inline unsigned board_bucket(uint64_t now_ns, uint64_t deadline_ns)
{
	return now_ns <= deadline_ns ? 0 : histogram_bucket(now_ns - deadline_ns);
}

/*
 * The counters of a loop. At the end of timerhub_loop_turn() or timerhub_loop_settle(), the loop's
 * thread copies them here for other processes. Lateness is counted in board_owner.lateness.
 */
struct board_loop {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 added;
	atomic_u64 turns;
	atomic_u64 callbacks;
	atomic_u64 empty_wakes;
	atomic_u64 turn_max_ns;
	atomic_u64 refused; /* the threads whose calls are refused count this, too */
	atomic_u64 address; /* address of the loop, as cells name it */
	/*
	 * When the program must call timerhub_loop_turn() next; UINT64_MAX means never. A time in
	 * the past means that the call is overdue.
	 */
	atomic_u64 due_ns;
	/*
	 * What the loop's thread is doing. Unused if the loop has an observable hub: then
	 * timerhub-top(1) reads the field `loop` of the queue's struct board_queue.
	 */
	struct board_cell cell;
};

/*
 * All counters of a hub or a loop. A loop uses only `header`, `loop`, `slow`, and the fields
 * `lateness`, `ahead` and `ahead_at_ns` of `owner`.
 */
struct board {
	struct board_header header;
	struct board_loop loop; /* 0 in a hub's board */
	struct board_owner owner;
	struct board_slow slow; /* slow callbacks, if the hub or the loop is observable */
	struct board_callers callers;
	struct board_shard shards[BOARD_SHARDS_MAX];
	struct board_lane lanes[BOARD_LANES_MAX];
	struct board_deliveries deliveries[BOARD_DELIVERIES_MAX]; /* by the consumer's CPU */
	struct board_cell cells[BOARD_CELLS_MAX]; /* of the threads that dispatch, if observable */
	struct board_queue queues[BOARD_QUEUES_MAX];
};

/*
 * Returns when the cell's thread began what it is doing now, for example a callback. Returns 0 if
 * the thread is not dispatching the queue at the address `queue`.
 */
static inline uint64_t board_cell_taking_since_ns(const struct board_cell *cell, uint64_t queue)
{
	struct cell_reading reading;

	return cell_read(cell, &reading) && reading.where != TIMERHUB_AWAY && reading.queue == queue
	               ? reading.since_ns
	               : 0;
}

/*
 * Returns when a thread last took an event from the queue, or when the queue last got an event
 * while it was empty, whichever is later.
 */
static inline uint64_t board_untaken_since_ns(const struct board *board, uint64_t index)
{
	const struct board_queue *queue = &board->queues[index];
	uint64_t address = u64_load_relaxed(&queue->address); /* relaxed: all this is only shown */
	uint64_t since_ns =
		u64_max(u64_load_relaxed(&queue->filled_ns), u64_load_relaxed(&queue->taken_ns));

	for (unsigned i = 0; i < BOARD_CELLS_MAX; i++)
		since_ns = u64_max(since_ns, board_cell_taking_since_ns(&board->cells[i], address));
	return u64_max(since_ns, board_cell_taking_since_ns(&queue->loop, address));
}

/*
 * Opens a board, with all counters 0. `config` must have its defaults filled in. *ret_fd is the
 * memfd of an observable board, else -1. Returns 0 or a negative errno.
 */
int board_open(struct board **ret_board, int *ret_fd, const struct timerhub_config *config);

/*
 * Tells processes that read the counters whether the hub or loop is open. A forked child must not
 * call it, because the board belongs to its parent.
 */
void board_announce(struct board *board, bool open);

/*
 * Shows how many timers are due soon: counts[0] within 1 ms, counts[1] within 1 to 10 ms, and so
 * on. Only the hub's owner or the loop's thread calls it.
 */
static inline void board_show_ahead(struct board_owner *owner, uint64_t now_ns,
                                    const uint64_t counts[AHEAD_RANGES])
{
	/* Relaxed is enough, because these numbers are only shown in statistics. */
	for (unsigned i = 0; i < AHEAD_RANGES; i++)
		u64_store_relaxed(&owner->ahead[i], counts[i]);
	u64_store_relaxed(&owner->ahead_at_ns, now_ns);
}

/* Unmaps a board and closes its memfd. `fd` is -1 if it has none, and then `board` may be NULL. */
void board_close(struct board *board, int fd);

#endif
