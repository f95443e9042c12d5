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
/* the op of a touch, which is no change that a program can make in a commit */
#define STORE_TOUCH 7u
_Static_assert(STORE_TOUCH == TIMERHUB_STORE_PARK + 1, "change_check() takes the ops in between");
/* A lease, interval or delay that is longer than that is as good as for ever. */
#define STORE_LENGTH_MAX_US (INT64_C(1) << 56)

struct work;
struct taker;

/*
 * Counters for the statistics. Whoever does a thing counts it, and nobody acts on the numbers, so
 * all accesses are relaxed.
 */
struct counts {
	atomic_u64 done[STORE_TOUCH + 1]; /* changes, by their op */
	atomic_u64 delivered, leases_over, commits, syncs, checkpoints, disk_full;
	atomic_u64 lateness[TIMERHUB_LATENESS_BUCKETS], sync_ns[TIMERHUB_LATENESS_BUCKETS];
};

struct timerhub_store {
	struct fork_check fork_check;
	struct counts counts;

	/* from here on: what the open has set and nobody changes */
	char *queue;
	uint64_t lease_us, timeout_ns;
	uint32_t attempts_max, data_max;
	char boot[40]; /* identifies the machine's present boot */
	struct clock wall, since_boot;
	struct files files;

	/* From here on: what the leader uses, the one thread at a time that uses the connection. */
	struct statements statements;
	/*
	 * how far CLOCK_REALTIME was ahead of CLOCK_BOOTTIME when that was last stored in
	 * timerhub_clock
	 */
	int64_t offset_us;

	/* The queue of changes and looks that wait to be done. */
	struct {
		struct lock lock;
		struct work *first, **last;
		bool is_led;
		unsigned submits; /* submits that are in flight, or completed and not taken */
	} queue_of_work;

	/*
	 * Syncs. One thread at a time syncs, and it hands out the completions of its batch before
	 * the next one syncs.
	 */
	struct {
		struct lock lock;
		uint64_t commits; /* how many commits are on stable storage */
		struct work *completed, **last_completed;
		int fd;
		bool is_rung;
	} synced;
	uint64_t commits;  /* how many commits the leader has made */
	atomic_u32 failed; /* 0, or EIO if the disk has failed and nothing is done any more */

	struct {
		struct lock lock;
		struct taker *first, **last; /* the takers that wait */
		struct taker *watcher;       /* the one of these that sleeps on the descriptor */
		unsigned inside;
		atomic_u64 stopped_us; /* when the store was stopped; UINT64_MAX before that */
		/* if inotify_fd is -1, takers look at the database every 20 ms */
		int epoll_fd, bell, inotify_fd;
		struct deadline_fd due, again;
		/* this and what follows belong to the watcher: when the next task is due */
		int64_t next_due_us;
		uint64_t held_since_ns, looked_ns, look_took_ns;
	} takers;

	/* The store's own thread. */
	struct {
		struct eventcount work;
		atomic_u32 leads, quits;
		atomic_u32 rests;  /* it sleeps until it is woken, because all is checkpointed */
		atomic_u32 hinted; /* it was woken for a checkpoint */
		bool is_started;
		uint32_t frame_bytes;
		pthread_t thread;
		sqlite3 *db;
		atomic_u64 wal_bytes; /* bytes of valid frames in the WAL at the last commit */
		atomic_u64 checkpointed_bytes; /* bytes of these when the last checkpoint began */
		atomic_u32 is_held_back; /* a reader kept the last checkpoint from copying all */
	} keeper;
};

/*
 * Returns the time in whole microseconds, cut off, so that a task whose due time is rounded up is
 * never early.
 */
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

/* Returns whether the disk has less room than puts may use. */
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
