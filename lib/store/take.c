/* SPDX-License-Identifier: MIT */
/*
 * Takes. One taker watches: it sleeps on a descriptor that tells of commits by anybody, of the next
 * due time, and of the end of a lease. The others sleep on a futex; the leader of any transaction
 * hands out what is due to all of them. When the watcher returns, another takes its place.
 *
 * No commit is missed. A writer takes the WAL's write lock, writes frames, of which the last is
 * written just before the commit is visible, and gives the lock back. The watcher reads the inotify
 * queue empty, asks whether the lock is held, and then looks:
 *
 * - If the last frame is written after the queue was read, its event ends the sleep.
 * - Else, if the lock was held when the watcher asked, it looks again soon, until it is not.
 * - Else the commit was visible before the watcher looked.
 *
 * A process that commits thousands of times a second to the same database would wake the watcher
 * each time, so it sleeps without looking for a multiple of the time that its last look took.
 *
 * Labels: see takers.c.
 */
#include <limits.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/invariant.h"
#include "store/takers.h"
#include "store/writer.h"

#define POLL_US 20000 /* how often takers look at the database without inotify */
#define HELD_MIN_US 100
#define HELD_MAX_US 1000000
/*
 * a pause is so many times as long as a look, so that looks because of others' commits cost 4% of a
 * processor
 */
#define GAP_LOOKS 25
#define GAP_MIN_NS UINT64_C(1000000)
#define GAP_MAX_NS UINT64_C(5000000)

/* ---- sleeping ---- */

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
	/* relaxed: the bell's clear comes after its ring, and the kernel orders them */
	return u64_load_relaxed(&store->takers.stopped_us) != UINT64_MAX;
}

/* Makes the descriptor unreadable. Whatever comes after this makes it readable again. */
static void watch_clear(struct timerhub_store *store)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

	while (store->takers.inotify_fd >= 0 &&
	       read(store->takers.inotify_fd, events, sizeof(events)) > (ssize_t)sizeof(events) / 2)
		;
	bell_clear(store->takers.bell);
	/* after the clear, because a stop or failure before it has rung for the last time */
	if (is_stopped(store) || store_has_failed(store))
		bell_ring(store->takers.bell);
}

/* Returns in how many us to look again because a writer was at work, or INT64_MAX if none was. */
static int64_t watch_held_us(struct timerhub_store *store)
{
	uint64_t now_ns = clock_monotonic_ns(), us;

	if (!files_is_writing(&store->files)) {
		store->takers.held_since_ns = 0;
		return INT64_MAX;
	}
	if (store->takers.held_since_ns == 0)
		store->takers.held_since_ns = now_ns;
	us = (now_ns - store->takers.held_since_ns) / 4000;
	us = us > HELD_MIN_US ? us : HELD_MIN_US;
	return (int64_t)(us < HELD_MAX_US ? us : HELD_MAX_US);
}

/* Sets a timer; INT64_MAX is never. A timer that has expired becomes unreadable. */
static void arm(struct timerhub_store *store, struct deadline_fd *timer, int64_t at_us)
{
	uint64_t at_ns = at_us > INT64_MAX / 1000 ? UINT64_MAX : (uint64_t)at_us * 1000;

	/* the clock was set, perhaps since the look, so look again */
	if (deadline_fd_set(timer, at_ns) == -ECANCELED)
		bell_ring(store->takers.bell);
}

/* Sets the timers to what the look has found. In `again_us` a look is needed anyway. */
static void watch_arm(struct timerhub_store *store, const struct look *look, int64_t again_us)
{
	int64_t at_us = look->lease_us;

	if (store->takers.inotify_fd < 0 && again_us > POLL_US)
		again_us = POLL_US;
	if (again_us != INT64_MAX) {
		again_us += store_now_us(&store->since_boot);
		at_us = again_us < at_us ? again_us : at_us;
	}
	arm(store, &store->takers.due, look->due_us);
	arm(store, &store->takers.again, at_us);
	store->takers.next_due_us = look->due_us;
}

/* ---- the watcher ---- */

/* After so long a sleep, so many looks at a commit that has not ended come without a pause. */
#define REST_NS UINT64_C(10000000)
#define UNPAUSED_LOOKS 16

/* How long a take that does not wait lets a transaction go on that is just being made. */
#define LOOK_WAITS_NS UINT64_C(50000000)

/*
 * Lets the leader look at the database. It hands out what is due to all takers that wait, this one
 * among them.
 */
static int watch_look(struct timerhub_store *store, uint64_t deadline_ns, struct look *ret)
{
	uint64_t least_ns = clock_monotonic_ns() + LOOK_WAITS_NS;
	struct work work = {
		.kind = WORK_LOOK,
		.deadline_ns = deadline_ns > least_ns ? deadline_ns : least_ns,
		.look = { .due_us = 1,
		          /* what it has found if it gives up: something may be due */
		          .lease_us = INT64_MAX },
	};
	int result = writer_do(store, &work);

	*ret = work.look;
	/* a disk without room for the take is waited for, like another writer, until a stop */
	if (result == -ENOSPC)
		return is_stopped(store) ? -ESHUTDOWN : -EAGAIN;
	return result;
}

static bool is_answered(struct taker *taker)
{
	return u32_load_acquire(&taker->state) == TAKER_ANSWERED; /* [taker] */
}

/*
 * Pauses before the next look, so that others' commits do not cost more than they may. Only a stop,
 * an answer or the deadline ends the pause early.
 */
static void watch_pause(struct timerhub_store *store, uint64_t deadline_ns)
{
	uint64_t gap_ns = store->takers.look_took_ns * GAP_LOOKS, until_ns, sleep_ns;
	int64_t due_in_us = store->takers.next_due_us - store_now_us(&store->wall);

	gap_ns = gap_ns > GAP_MIN_NS ? gap_ns : GAP_MIN_NS;
	until_ns = store->takers.looked_ns + (gap_ns < GAP_MAX_NS ? gap_ns : GAP_MAX_NS);
	sleep_ns = left_ns(until_ns < deadline_ns ? until_ns : deadline_ns);
	if (due_in_us < (int64_t)(GAP_MAX_NS / 1000) && sleep_ns / 1000 > (uint64_t)due_in_us)
		sleep_ns = due_in_us > 0 ? (uint64_t)due_in_us * 1000 : 0;
	if (sleep_ns > 0)
		sleep_on(store->takers.bell, sleep_ns);
}

/*
 * Makes sure that the descriptor becomes readable for whatever comes from now on. Returns 0 if the
 * taker may sleep on it, 1 if it has been answered, or a negative errno.
 */
static int watch_once(struct timerhub_store *store, struct taker *taker, uint64_t deadline_ns)
{
	uint64_t began_ns = clock_monotonic_ns();
	struct look look;
	int64_t again_us;
	int result;

	watch_clear(store);
	again_us = watch_held_us(store);
	if (!files_are_there(&store->files))
		store_fail(store);
	result = watch_look(store, deadline_ns, &look);
	if (is_answered(taker))
		return 1;
	if (result < 0 && result != -EAGAIN)
		return result;
	/*
	 * something was due, but the write lock did not come in time, or other takers were faster
	 */
	if (result < 0 || look.due_us <= store_now_us(&store->wall) ||
	    look.lease_us <= store_now_us(&store->since_boot)) {
		look.due_us = look.due_us <= store_now_us(&store->wall) ? INT64_MAX : look.due_us;
		look.lease_us = INT64_MAX;
		again_us = again_us < HELD_MIN_US ? again_us : HELD_MIN_US;
	}
	if (is_stopped(store))
		return result < 0 ? result : -ESHUTDOWN;
	watch_arm(store, &look, again_us);
	store->takers.looked_ns = clock_monotonic_ns();
	store->takers.look_took_ns = store->takers.looked_ns - began_ns;
	return 0;
}

/* Sleeps until the descriptor is readable. Returns whether the taker had a rest. */
static bool watch_sleep(struct timerhub_store *store, uint64_t deadline_ns)
{
	uint64_t began_ns = clock_monotonic_ns();

	sleep_on(store->takers.epoll_fd, left_ns(deadline_ns));
	return clock_monotonic_ns() - began_ns > REST_NS;
}

/*
 * Watches until the taker is answered or its time is over, which is 0, or returns a negative errno.
 */
static int watch(struct timerhub_store *store, struct taker *taker, uint64_t deadline_ns)
{
	unsigned unpaused = 0;
	struct look look;
	/*
	 * look first: under load something is usually due, and the descriptor need not be touched
	 */
	int result = watch_look(store, deadline_ns, &look);

	if (result == -EAGAIN)
		result = 0;
	while (!is_answered(taker) && result == 0) {
		result = watch_once(store, taker, deadline_ns);
		if (result != 0 || left_ns(deadline_ns) == 0)
			break;
		if (watch_sleep(store, deadline_ns))
			unpaused = UNPAUSED_LOOKS;
		if (is_answered(taker) || left_ns(deadline_ns) == 0)
			continue;
		/*
		 * The first event after a rest comes before the commit has ended. A pause would
		 * make its task late, so there is none while somebody still writes.
		 */
		if (store->takers.held_since_ns != 0 && unpaused > 0)
			unpaused--;
		else
			watch_pause(store, deadline_ns);
	}
	return result == -EAGAIN || result > 0 ? 0 : result;
}

/* ---- the list ---- */

/* Puts a taker into the list. Returns true if it is to be the watcher. */
static bool taker_enter(struct timerhub_store *store, struct taker *taker)
{
	bool watches;

	lock_take(&store->takers.lock);
	store->takers.inside++;
	*store->takers.last = taker;
	store->takers.last = &taker->next;
	watches = !store->takers.watcher;
	if (watches)
		store->takers.watcher = taker;
	lock_give(&store->takers.lock);
	return watches;
}

static void taker_remove(struct timerhub_store *store, struct taker *taker)
{
	struct taker **place = &store->takers.first;

	while (*place != taker) {
		invariant(*place); /* it is in the list, since no leader has it */
		place = &(*place)->next;
	}
	*place = taker->next;
	if (!*place)
		store->takers.last = place;
}

/*
 * Takes a taker whose time is over out of the list, unless the leader has it and will answer it
 * soon. Called with the lock.
 */
static void taker_give_up(struct timerhub_store *store, struct taker *taker)
{
	/* relaxed: an answer is stored under the lock */
	if (u32_load_relaxed(&taker->state) == TAKER_ANSWERED)
		return;
	taker->is_late = true;
	if (taker->is_at_leader)
		return;
	taker_remove(store, taker);
	u32_store_relaxed(&taker->state, TAKER_ANSWERED); /* relaxed: only this thread reads it */
}

static void taker_leave(struct timerhub_store *store, struct taker *taker)
{
	lock_take(&store->takers.lock);
	taker_give_up(store, taker);
	if (store->takers.watcher == taker) {
		store->takers.watcher = NULL;
		takers_choose_watcher(store);
	}
	lock_give(&store->takers.lock);
	for (;;) {
		uint32_t state = u32_load_acquire(&taker->state); /* [taker] */

		if (state == TAKER_ANSWERED)
			break;
		futex_wait(&taker->state, state, UINT64_MAX);
	}
	lock_take(&store->takers.lock);
	invariant(store->takers.inside > 0 && store->takers.watcher != taker);
	store->takers.inside--;
	lock_give(&store->takers.lock);
}

/*
 * Waits until a taker is answered, its time is over, or it is to be the watcher. Returns true in
 * the last case.
 */
static bool taker_await(struct taker *taker, uint64_t deadline_ns)
{
	for (;;) {
		uint32_t state = u32_load_acquire(&taker->state); /* [taker] */
		uint64_t left = left_ns(deadline_ns);

		if (state != TAKER_WAITS)
			return state == TAKER_WATCHES;
		if (left == 0)
			return false;
		futex_wait(&taker->state, TAKER_WAITS, left);
	}
}

static int take_run(struct timerhub_store *store, struct taker *taker, uint64_t deadline_ns)
{
	bool watches = taker_enter(store, taker);
	struct look look;
	int result = 0;

	if (!watches && left_ns(deadline_ns) == 0)
		result = watch_look(store, deadline_ns, &look);
	else if (!watches)
		watches = taker_await(taker, deadline_ns);
	if (watches)
		result = watch(store, taker, deadline_ns);
	taker_leave(store, taker);
	if (taker->result != 0)
		return taker->result;
	if (result == 0 && !watches && is_stopped(store))
		return -ESHUTDOWN;
	return result == -EAGAIN ? 0 : result;
}

int timerhub_store_take(struct timerhub_store *store, struct timerhub_store_task *tasks,
                        unsigned max, uint64_t timeout_ns)
{
	CANCELLATION_HELD;
	struct taker taker = { .tasks = tasks, .max = max };
	uint64_t now_ns = clock_monotonic_ns();
	int result = store_check(store);

	if (!store || !tasks || max == 0 || max > INT_MAX)
		return -EINVAL;
	if (result < 0)
		return result;
	if (store_has_failed(store))
		return -EIO;
	return take_run(store, &taker,
	                timeout_ns < UINT64_MAX - now_ns ? now_ns + timeout_ns : UINT64_MAX);
}

int timerhub_store_fd(struct timerhub_store *store)
{
	int result = store_check(store);

	return result < 0 ? result : store->takers.epoll_fd;
}

void timerhub_store_stop(struct timerhub_store *store)
{
	uint64_t never = UINT64_MAX;

	if (store_check(store) < 0)
		return;
	/* relaxed: the bell's ring orders it; the first stop counts */
	(void)u64_cas_relaxed(&store->takers.stopped_us, &never,
	                      (uint64_t)store_now_us(&store->wall));
	/* each taker that waits becomes the watcher in turn, and looks a last time */
	bell_ring(store->takers.bell);
}
