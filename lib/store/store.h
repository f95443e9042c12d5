/* SPDX-License-Identifier: MIT */
/*
 * The state of an open store, grouped by who changes it. README.md in this folder says how it
 * works.
 */
#ifndef TIMERHUB_STORE_STATE_H
#define TIMERHUB_STORE_STATE_H

#include <errno.h>
#include <timerhub_store.h>

#include "base/clock.h"
#include "base/deadline_fd.h"
#include "base/eventcount.h"
#include "base/fork_check.h"
#include "base/histogram.h"
#include "base/lock.h"
#include "store/files.h"
#include "store/statements.h"

#define STORE_SUBMITS_MAX 1024
/* what a change of the library's own, touch, has as its op */
#define STORE_TOUCH 7u
_Static_assert(STORE_TOUCH == TIMERHUB_STORE_PARK + 1, "change_check() takes the ops in between");
/* A lease, interval or delay that is longer than that is as good as for ever. */
#define STORE_LENGTH_MAX_US (INT64_C(1) << 56)

struct work;
struct taker;

/*
 * Counted by whoever does it, read at any time, and nobody acts on them: all accesses are relaxed.
 */
struct counts {
	atomic_u64 done[STORE_TOUCH + 1]; /* changes, by their op */
	atomic_u64 delivered, leases_over, commits, syncs, checkpoints, disk_full;
	atomic_u64 lateness[TIMERHUB_LATENESS_BUCKETS], sync_ns[TIMERHUB_LATENESS_BUCKETS];
};

struct timerhub_store {
	struct fork_check fork_check;
	struct counts counts;

	/* set at the open */
	char *queue;
	uint64_t lease_us, timeout_ns;
	uint32_t attempts_max, data_max;
	char boot[40]; /* names the machine's boot */
	struct clock wall, since_boot;
	struct files files;

	/* The leader's: the one thread that uses the connection at a time. */
	struct statements statements;
	int64_t offset_us; /* how far CLOCK_REALTIME is ahead of CLOCK_BOOTTIME in timerhub_clock */

	/* Changes and looks that wait to be done, and who does them next. */
	struct {
		struct lock lock;
		struct work *first, **last;
		bool is_led;
		unsigned submits; /* in flight, or completed and not taken */
	} queue_of_work;

	/* One thread syncs at a time, and hands out its batch's completions before the next. */
	struct {
		struct lock lock;
		uint64_t commits; /* up to which all is on stable storage */
		struct work *completed, **last_completed;
		int fd;
		bool is_rung;
	} synced;
	uint64_t commits;  /* by the leader */
	atomic_u32 failed; /* 0, or EIO: nothing is done any more */

	struct {
		struct lock lock;
		struct taker *first, **last; /* those that wait */
		struct taker *watcher;       /* of these, the one that sleeps on the descriptor */
		unsigned inside;
		atomic_u64 stopped_us;          /* UINT64_MAX: not stopped */
		int epoll_fd, bell, inotify_fd; /* inotify_fd is -1: takers look every 20 ms */
		struct deadline_fd due, again;
		int64_t next_due_us; /* that, and what follows: the watcher's */
		uint64_t held_since_ns, looked_ns, look_took_ns;
	} takers;

	/* The store's own thread. */
	struct {
		struct eventcount work;
		atomic_u32 leads, quits;
		atomic_u32 rests;  /* it sleeps until it is woken, and all is checkpointed */
		atomic_u32 hinted; /* it was woken for a checkpoint */
		bool is_started;
		uint32_t frame_bytes;
		pthread_t thread;
		sqlite3 *db;
		atomic_u64 wal_bytes;          /* of valid frames, at the last commit */
		atomic_u64 checkpointed_bytes; /* of them, when the last checkpoint began */
		atomic_u32 is_held_back; /* a reader kept the last checkpoint from copying all */
	} keeper;
};

/* Whole microseconds: a task whose time is rounded up is never early by these. */
static inline int64_t store_now_us(const struct clock *clock)
{
	return (int64_t)(clock_now_ns(clock) / 1000);
}

static inline int64_t store_us(uint64_t ns)
{
	return (int64_t)(ns / 1000 + (ns % 1000 != 0));
}

static inline void store_count_time(atomic_u64 *buckets, uint64_t ns)
{
	(void)u64_fetch_add_relaxed(&buckets[histogram_bucket(ns)], 1);
}

/* Tells whether the disk has less room than puts may use. */
static inline bool store_disk_is_low(const struct timerhub_store *store)
{
	/* relaxed: a hint from the last commit */
	return files_disk_is_low(&store->files, u64_load_relaxed(&store->keeper.wal_bytes));
}

static inline int store_check(const struct timerhub_store *store)
{
	if (!store)
		return -EINVAL;
	return fork_check_result(&store->fork_check);
}

#endif
