/* SPDX-License-Identifier: MIT */
/*
 * The calls that take tasks: what they do in the database, and how they wait for a task.
 *
 * A due time is a time on the wall clock, which may be set. A lease ends on CLOCK_BOOTTIME, so it
 * is a length of time whatever the wall clock says.
 *
 * A take asks the leader, the thread that runs the transactions at the moment, for what is due. If
 * there is nothing, one of the takers that wait becomes the watcher. It sleeps on a descriptor that
 * tells of commits by anybody, of the next due time, and of the end of a lease. When the watcher
 * returns, another taker takes its place.
 *
 * No commit is missed. A writer takes the WAL's write lock, writes frames, of which the last is
 * written just before the commit is visible, and gives the lock back. The watcher reads the inotify
 * queue empty, asks whether the lock is held, and then lets the leader look at the database:
 *
 * - If the last frame is written after the queue was read, its event ends the sleep.
 * - Else, if the lock was held when the watcher asked, it looks again soon, until it is not.
 * - Else the commit was visible before the look.
 *
 * take_once() asks first whether the store was stopped, and then looks for tasks. In the other
 * order, a task could become due after the look, and then the store be stopped. Nobody would be
 * given that task.
 *
 * deliver_now_us() may miss a stop that another thread is making at this moment. The effect is as
 * if that thread had made the stop a little later.
 *
 * take_run() calls watch() even if the deadline is over, because a program may poll epoll_fd:
 * watch() makes it unreadable until a commit, a due time or the end of a lease. But if a task that
 * may be due could not be taken in time, epoll_fd stays as it is, so that the program tries again.
 *
 * If watch() returns tasks or an error, it has made epoll_fd unreadable, but has not set the timer
 * for the next task. So take_run() makes epoll_fd readable, and a program that polls it comes back.
 *
 * Labels:
 * [watch] take_run → take_run: carries what the last watcher knew of the descriptors.
 * [taken] timerhub_store_take → timerhub_store_close: whoever sees it may free the store.
 */
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/bits.h"
#include "base/cancellation.h"
#include "base/invariant.h"
#include "store/store.h"

/*
 * If the difference of the two clocks changes by more than this, the wall clock was set. Slewing
 * changes it by less, and a clock that is set by less does little harm.
 */
#define CLOCK_IS_SET_US 100000

#define POLL_US 20000 /* how often takers look at the database if inotify was refused */
/*
 * While somebody holds the write lock, the taker that watches looks at the database again after a
 * quarter of the time that the lock has been held, within these limits.
 */
#define HELD_MIN_US 100
#define HELD_MAX_US 1000000
/*
 * A process that commits thousands of times a second to the same database would wake the taker that
 * watches each time. So that taker pauses for so many times as long as its last look at the
 * database took, which costs 4% of a processor at most.
 */
#define GAP_LOOKS 25
#define GAP_MIN_NS UINT64_C(1000000)
#define GAP_MAX_NS UINT64_C(5000000)
/* After a sleep of REST_NS there is no pause for so many looks while a commit is being made. */
#define REST_NS UINT64_C(10000000)
#define UNPAUSED_LOOKS 16
/* How long timerhub_store_take() with timeout 0 waits for a transaction that is being made. */
#define LOOK_WAITS_NS UINT64_C(50000000)

/* ---- the clock ---- */

static int64_t clock_offset_us(const struct timerhub_store *store)
{
	return store_now_us(&store->wall) - store_boot_us(store);
}

static bool clock_was_set(const struct timerhub_store *store)
{
	int64_t by_us = clock_offset_us(store) - store->offset_us;

	return by_us > CLOCK_IS_SET_US || by_us < -CLOCK_IS_SET_US;
}

/*
 * Corrects what a wrong wall clock has done. If the next time of a periodic task was set while the
 * clock was ahead, that time moves back by whole intervals. Also stores the difference of the
 * clocks, by which the view timerhub_list converts the ends of leases.
 */
static int clock_mend(struct timerhub_store *store)
{
	struct values values = {
		.key = store->boot,
		.due_us = store_now_us(&store->wall),
		.number = clock_offset_us(store),
	};
	int result = statement_run(&store->statements, DO_MEND_PERIODS, &values, NULL);

	if (result >= 0)
		result = statement_run(&store->statements, DO_SET_CLOCK, &values, NULL);
	store->offset_us = values.number;
	return result < 0 ? result : 0;
}

int deliver_open(struct timerhub_store *store)
{
	struct values values = { .key = store->boot };
	int result = statement_run(&store->statements, DO_CLOCK, &values, &store->offset_us);

	if (result == 1 && !clock_was_set(store))
		return 0;
	/*
	 * The machine has been rebooted, so end all leases. Without a boot id, a wall clock that
	 * was set counts as a reboot.
	 */
	if (result == 0 || (result == 1 && !*store->boot))
		result = statement_run(&store->statements, DO_VOID_LEASES, NULL, NULL);
	return result < 0 ? result : clock_mend(store);
}

/* ---- looks ---- */

/* Returns the time up to which due tasks are handed out: now, or when the store was stopped. */
static int64_t deliver_now_us(struct timerhub_store *store)
{
	int64_t now_us = store_now_us(&store->wall);
	/*
	 * Relaxed is enough: a stop that this load misses counts as a stop that came a little
	 * later.
	 */
	uint64_t stopped_us = u64_load_relaxed(&store->watch.stopped_us);

	return stopped_us < (uint64_t)now_us ? (int64_t)stopped_us : now_us;
}

int deliver_look(struct timerhub_store *store, struct look *ret)
{
	struct values values = { .queue = store->queue };
	sqlite3_stmt *row;
	int result = statement_bind(&store->statements, DO_LOOK, &values, &row);

	*ret = (struct look){ INT64_MAX, INT64_MAX };
	if (result < 0)
		return result;
	if (sqlite3_step(row) != SQLITE_ROW)
		result = error_of(store->statements.db);
	/* column 0 is NULL if no task waits for a due time, and column 1 if no task is taken */
	if (result == 0 && sqlite3_column_type(row, 0) != SQLITE_NULL)
		ret->due_us = sqlite3_column_int64(row, 0);
	if (result == 0 && sqlite3_column_type(row, 1) != SQLITE_NULL)
		ret->lease_us = sqlite3_column_int64(row, 1) - LEASE_BASE_US;
	if (result == 0) /* another process may have stored it when the clock was wrong */
		store->offset_us = sqlite3_column_int64(row, 2);
	(void)sqlite3_reset(row);
	if (result < 0)
		return result;
	return ret->due_us <= deliver_now_us(store) || ret->lease_us <= store_boot_us(store) ||
	       clock_was_set(store);
}

/* ---- deliveries ---- */

/*
 * Fills a caller's task from a row that is about to be taken. Key and data lie in one block of
 * memory, each with a NUL behind it. Returns the row's new value of `claim`, or 0 if there is no
 * memory.
 */
static int64_t task_fill(const struct timerhub_store *store, struct timerhub_store_task *task,
                         sqlite3_stmt *row, int64_t now_us)
{
	int64_t due_us = sqlite3_column_int64(row, 1), interval_us = sqlite3_column_int64(row, 3);
	int64_t claim = sqlite3_column_int64(row, 4), attempts = claim & CLAIM_ATTEMPTS;
	bool is_text = sqlite3_column_type(row, 5) == SQLITE_TEXT;
	const void *data = is_text ? sqlite3_column_text(row, 5) : sqlite3_column_blob(row, 5);
	const void *key = sqlite3_column_text(row, 2);
	size_t data_len = (size_t)sqlite3_column_bytes(row, 5);
	size_t key_len = (size_t)sqlite3_column_bytes(row, 2);
	char *block = calloc(1, data_len + 1 + key_len + 1);

	if (!block)
		return 0;
	if (attempts < CLAIM_ATTEMPTS)
		attempts++;
	*task = (struct timerhub_store_task){
		.id = (uint64_t)sqlite3_column_int64(row, 0),
		.delivery = (uint64_t)(claim >> CLAIM_SHIFT) + 1,
		.due_ns = (uint64_t)due_us * 1000,
		.interval_ns = (uint64_t)interval_us * 1000,
		.periods = (uint64_t)store_periods(due_us, interval_us, now_us),
		.attempts = (uint64_t)attempts,
		.key = key ? block + data_len + 1 : NULL,
		.data = data_len > 0 ? memcpy(block, data, data_len) : block,
		.data_len = data_len,
	};
	if (key)
		memcpy(block + data_len + 1, key, key_len);
	claim = (int64_t)task->delivery << CLAIM_SHIFT | attempts;
	return (uint64_t)attempts >= store->attempts_max ? claim | CLAIM_LAST : claim;
}

/*
 * Hands out the next due task, or parks it if it has used up its attempts. Returns 1, or 0 if
 * nothing is due.
 */
static int serve_next(struct timerhub_store *store, struct work *take)
{
	struct timerhub_store_task *task = &take->tasks[take->result];
	int64_t lease_end_us = lease_even(store_boot_us(store) + store->lease_us);
	struct values values = {
		.queue = store->queue,
		.due_us = deliver_now_us(store),
		.lease = LEASE_BASE_US + lease_end_us,
	};
	enum statement which = DO_TAKE;
	sqlite3_stmt *row;
	int reset, result = statement_bind(&store->statements, DO_DUE, &values, &row);

	if (result < 0)
		return result;
	result = sqlite3_step(row);
	if (result == SQLITE_ROW) {
		values.id = sqlite3_column_int64(row, 0);
		values.claim = sqlite3_column_int64(row, 4);
		if (values.claim & CLAIM_LAST) {
			which = DO_PARK;
			values.claim >>= CLAIM_SHIFT;
			values.number = UINT32_MAX; /* the reason */
		} else if ((values.claim = task_fill(store, task, row, values.due_us)) == 0) {
			result = -ENOMEM;
		}
	} else {
		result = result == SQLITE_DONE ? 0 : error_of(store->statements.db);
	}
	reset = sqlite3_reset(row); /* fails if there was no memory for a column */
	if (result <= 0)
		return result;
	if (which == DO_TAKE) {
		task->lease_end_ns = (uint64_t)(lease_end_us + store->shift_us) * 1000;
		take->result++; /* if the transaction fails, batch_transact() frees the task */
	}
	result = reset == SQLITE_OK ? statement_run(&store->statements, which, &values, NULL)
	                            : error_of(store->statements.db);
	if (result < 0 && which == DO_TAKE)
		timerhub_store_release(NULL, &take->tasks[--take->result]);
	return result < 0 ? result : 1;
}

static int serve(struct timerhub_store *store, struct work *take)
{
	int result = 1;

	while (result > 0 && (unsigned)take->result < take->count)
		result = serve_next(store, take);
	/*
	 * If there was no memory for a further task, return those that were taken, unless SQLite
	 * has ended the transaction.
	 */
	if (result < 0 && (result != -ENOMEM || take->result == 0 ||
	                   sqlite3_get_autocommit(store->statements.db) != 0))
		return result;
	return take->result > 0 ? 0 : deliver_look(store, &take->look);
}

int deliver_serve(struct timerhub_store *store, struct work *works)
{
	struct values values = { .queue = store->queue };
	struct look look;
	int result;

	while (works && works->changes)
		works = works->next;
	if (!works)
		return 0;
	result = deliver_look(store, &look);
	if (result >= 0 && clock_was_set(store))
		result = clock_mend(store);
	values.lease = LEASE_BASE_US + store_boot_us(store);
	/*
	 * Run DO_END_LEASES only if the earliest lease is over, because it is slow even if it finds
	 * no row.
	 */
	if (result >= 0 && look.lease_us <= values.lease - LEASE_BASE_US) {
		result = statement_run(&store->statements, DO_END_LEASES, &values, NULL);
		store_count(store, &store->shared.counts.leases_over,
		            result > 0 ? (uint64_t)result : 0);
		if (result > 0)
			result = clock_mend(store); /* some may be LEASE_BY_DONE again */
	}
	for (; works && result >= 0; works = works->next)
		if (!works->changes)
			result = serve(store, works);
	return result < 0 ? result : 0;
}

/* ---- waiting ---- */

static int64_t i64_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void sleep_on(int fd, uint64_t left_ns)
{
	struct pollfd poll = { .fd = fd, .events = POLLIN };
	struct timespec limit = timespec_of(left_ns);

	(void)syscall(SYS_ppoll, &poll, 1, left_ns == UINT64_MAX ? NULL : &limit, NULL, 0);
}

static uint64_t left_ns(uint64_t deadline_ns)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (deadline_ns == UINT64_MAX)
		return UINT64_MAX;
	return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

static bool is_stopped(const struct timerhub_store *store)
{
	/*
	 * Relaxed: timerhub_store_stop() stores the time first, and makes the eventfd `bell`
	 * readable then. Whoever clears the eventfd calls this function afterwards, so that no stop
	 * is missed.
	 */
	return u64_load_relaxed(&store->watch.stopped_us) != UINT64_MAX;
}

/* What a call of timerhub_store_take() keeps on its stack. */
struct taker {
	struct work work; /* what the leader is asked to do, again and again */
	uint64_t deadline_ns;
	bool is_unsure; /* the write lock did not come in time, so something may be due */
};

/*
 * Takes the tasks that are due. Returns how many, or 0 if none is due or the write lock was not
 * free in time. After timerhub_store_stop(), returns -ESHUTDOWN once no task is left that was due
 * at the stop.
 */
static int take_once(struct timerhub_store *store, struct taker *taker)
{
	/*
	 * Ask first whether the store was stopped, and then look for tasks. In the other order, a
	 * task could become due, and the store be stopped, right after the look, and nobody would
	 * get the task.
	 */
	bool stopped = is_stopped(store);
	int result;

	taker->work.deadline_ns = u64_max(taker->deadline_ns, clock_monotonic_ns() + LOOK_WAITS_NS);
	result = writer_do(store, &taker->work);
	/* The write lock was busy, or the disk is full. A task may be due, so try again later. */
	taker->is_unsure = result == -EAGAIN || result == -ENOSPC;
	if (stopped && (result == 0 || result == -ENOSPC))
		return -ESHUTDOWN;
	return taker->is_unsure ? 0 : result;
}

/* ---- the watcher ---- */

/*
 * Makes inotify report each write to the -wal and the removal of each file. Only the first taker
 * that waits does this, because such events make every write slower, also in processes that only
 * put tasks.
 */
static void watch_files(struct timerhub_store *store)
{
	const uint32_t gone = IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF;
	int fd = store->watch.inotify_fd;

	store->watch.has_files = true;
	if (fd < 0 || inotify_add_watch(fd, store->files.names[FILE_WAL], IN_MODIFY | gone) < 0 ||
	    inotify_add_watch(fd, store->files.names[FILE_SHM], gone) < 0 ||
	    inotify_add_watch(fd, store->files.names[FILE_DATABASE], gone) < 0)
		/* Relaxed is enough: only the thread that has set is_taken acts on the flag. */
		u32_store_relaxed(&store->watch.is_polling, 1);
}

/*
 * Makes epoll_fd unreadable. Whatever happens from now on, such as a commit or a stop, makes it
 * readable again.
 */
static void watch_clear(struct timerhub_store *store)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t bytes = store->watch.inotify_fd < 0 ? 0 : sizeof(events);

	if (!store->watch.has_files)
		watch_files(store);
	while (bytes > (ssize_t)sizeof(events) / 2) {
		bytes = read(store->watch.inotify_fd, events, sizeof(events));
		/*
		 * There are events, so somebody has written to the database. If a transaction is
		 * open now, it may be a new one.
		 */
		if (bytes > 0)
			store->watch.held_since_ns = 0;
	}
	bell_clear(store->watch.bell);
	/* After a stop or a failure, epoll_fd stays readable for ever. */
	if (is_stopped(store) || store_has_failed(store))
		bell_ring(store->watch.bell);
}

/*
 * Returns how many us to wait before the next look for tasks, because somebody is writing to the
 * database at this moment. Returns INT64_MAX if nobody is.
 */
static int64_t watch_held_us(struct timerhub_store *store)
{
	uint64_t now_ns = clock_monotonic_ns(), us;

	if (!files_is_writing(&store->files)) {
		store->watch.held_since_ns = 0;
		return INT64_MAX;
	}
	if (store->watch.held_since_ns == 0)
		store->watch.held_since_ns = now_ns;
	us = (now_ns - store->watch.held_since_ns) / 4000;
	return us < HELD_MIN_US ? HELD_MIN_US : (int64_t)u64_min(us, HELD_MAX_US);
}

/*
 * Makes epoll_fd unreadable, and takes the tasks that are due. If no task is due, sets the timer
 * for the next due time or the next end of a lease.
 */
static int watch_once(struct timerhub_store *store, struct taker *taker)
{
	uint64_t began_ns = clock_monotonic_ns();
	struct look *look = &taker->work.look;
	int64_t now_us, again_us, in_us;
	uint64_t at_ns;
	int result;

	watch_clear(store);
	again_us = watch_held_us(store);
	(void)store_find_files(store); /* take_once() says what it has found */
	result = take_once(store, taker);
	if (result != 0)
		return result;
	now_us = store_now_us(&store->wall);
	in_us = i64_min(again_us,
	                i64_min(look->due_us - now_us, look->lease_us - store_boot_us(store)));
	/* relaxed: see watch_files() */
	if (u32_load_relaxed(&store->watch.is_polling) != 0)
		in_us = i64_min(in_us, POLL_US);
	/* If a task may be due already, try again after a short pause. */
	if (taker->is_unsure || in_us <= 0)
		in_us = HELD_MIN_US;
	at_ns = in_us < INT64_MAX / 2 ? (uint64_t)(now_us + in_us) * 1000 : UINT64_MAX;
	/* -ECANCELED means that the wall clock was set, so look for due tasks once more. */
	if (deadline_fd_set(&store->watch.timer, at_ns) == -ECANCELED)
		bell_ring(store->watch.bell);
	store->watch.next_due_us =
		taker->is_unsure || look->due_us <= now_us ? INT64_MAX : look->due_us;
	store->watch.looked_ns = clock_monotonic_ns();
	store->watch.look_took_ns = store->watch.looked_ns - began_ns;
	return 0;
}

/*
 * Sleeps up to 5 ms. Without this pause, the caller would query the database at each commit of
 * other processes. Ends early at the next due time, the deadline, or a write to the eventfd `bell`.
 */
static void watch_pause(struct timerhub_store *store, uint64_t deadline_ns)
{
	uint64_t gap_ns = store->watch.look_took_ns * GAP_LOOKS, sleep_ns;
	int64_t due_in_us = store->watch.next_due_us - store_now_us(&store->wall);

	gap_ns = u64_min(u64_max(gap_ns, GAP_MIN_NS), GAP_MAX_NS);
	sleep_ns = left_ns(u64_min(store->watch.looked_ns + gap_ns, deadline_ns));
	if (due_in_us < (int64_t)(GAP_MAX_NS / 1000))
		sleep_ns = u64_min(sleep_ns, due_in_us > 0 ? (uint64_t)due_in_us * 1000 : 0);
	if (sleep_ns > 0)
		sleep_on(store->watch.bell, sleep_ns);
}

/* Waits until it can take a task, or the deadline has passed. */
static int watch(struct timerhub_store *store, struct taker *taker)
{
	unsigned unpaused = 0;
	int result;

	while ((result = watch_once(store, taker)) == 0 && left_ns(taker->deadline_ns) > 0) {
		uint64_t began_ns = clock_monotonic_ns();

		sleep_on(store->watch.epoll_fd, left_ns(taker->deadline_ns));
		if (clock_monotonic_ns() - began_ns > REST_NS)
			unpaused = UNPAUSED_LOOKS;
		/* Somebody is writing, so look again without a pause: see UNPAUSED_LOOKS. */
		if (store->watch.held_since_ns != 0 && unpaused > 0)
			unpaused--;
		else
			watch_pause(store, taker->deadline_ns);
	}
	return result;
}

/* ---- the calls ---- */

static int take_run(struct timerhub_store *store, struct taker *taker)
{
	/* often a task is due already, and then epoll_fd need not be touched */
	int result = take_once(store, taker);

	while (result == 0 && !(taker->is_unsure && left_ns(taker->deadline_ns) == 0)) {
		uint32_t nobody = 0;

		if (u32_cas_acquire(&store->watch.is_taken, &nobody, 1)) { /* [watch] */
			result = watch(store, taker);
			if (result != 0)
				bell_ring(store->watch.bell);
			u32_store_release(&store->watch.is_taken, 0); /* [watch] */
			futex_wake(&store->watch.is_taken, 1);
			break;
		}
		if (left_ns(taker->deadline_ns) == 0)
			break;
		futex_wait(&store->watch.is_taken, 1, left_ns(taker->deadline_ns));
	}
	return result;
}

int timerhub_store_take(struct timerhub_store *store, struct timerhub_store_task *tasks,
                        unsigned max, uint64_t timeout_ns)
{
	CANCELLATION_HELD;
	struct taker taker = {
		.work = { .tasks = tasks, .count = max },
		.deadline_ns = u64_add_saturating(clock_monotonic_ns(), timeout_ns),
	};
	int result = store_check(store);

	if (!store || !tasks || max == 0 || max > INT_MAX)
		return -EINVAL;
	if (result < 0)
		return result;
	/*
	 * Relaxed is enough: timerhub_store_close() reads this count, and no take may begin during
	 * a close.
	 */
	(void)u32_fetch_add_relaxed(&store->watch.takes, 1);
	result = take_run(store, &taker);
	(void)u32_fetch_add_release(&store->watch.takes, UINT32_MAX); /* [taken] */
	return result;
}

int timerhub_store_fd(struct timerhub_store *store)
{
	int result = store_check(store);

	return result < 0 ? result : store->watch.epoll_fd;
}

void timerhub_store_stop(struct timerhub_store *store)
{
	uint64_t never = UINT64_MAX;

	if (store_check(store) < 0)
		return;
	/* If there was an earlier stop, keep its time. Relaxed is enough: see is_stopped(). */
	(void)u64_cas_relaxed(&store->watch.stopped_us, &never,
	                      (uint64_t)store_now_us(&store->wall));
	/*
	 * This wakes one of the threads that wait in timerhub_store_take(). That thread takes what
	 * is due, and then wakes the next one.
	 */
	bell_ring(store->watch.bell);
}
