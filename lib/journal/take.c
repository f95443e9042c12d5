/* SPDX-License-Identifier: MIT */
/*
 * Take, touch, release and stop, for any thread. One waiting taker sleeps on the timer, until a
 * task is due or the first lease ends, the others on an eventcount; who returns while none is on
 * the timer wakes one.
 */
#include <errno.h>
#include <limits.h>

#include "journal/delivery.h"
#include "journal/writer.h"

/*
 * On the timer, or on the eventcount if another is there. Under the lock, which is free meanwhile.
 */
static void take_wait(struct timerhub_journal *journal, uint64_t timeout_ns)
{
	uint64_t lease_ns =
		wall_timer_left_ns(journal->timer, agenda_first_ns(&journal->backlog.leases));

	if (!journal->takers.timed) {
		journal->takers.timed = true;
		/* nothing is due: the fd is unreadable until then */
		state_set_timer(journal);
		lock_give(&journal->lock);
		journal->timer->ops->wait(journal->timer,
		                          timeout_ns < lease_ns ? timeout_ns : lease_ns);
		lock_take(&journal->lock);
		journal->takers.timed = false;
	} else {
		uint32_t number = eventcount_number(&journal->takers.eventcount);

		journal->takers.waiting++;
		lock_give(&journal->lock);
		eventcount_wait(&journal->takers.eventcount, number, timeout_ns);
		lock_take(&journal->lock);
		journal->takers.waiting--;
	}
}

/* 1: due; 0: timeout; -ESHUTDOWN. Under the lock, which is free meanwhile. */
static int take_await_task(struct timerhub_journal *journal, uint64_t timeout_ns)
{
	const struct wall_timer_ops *ops = journal->timer->ops;
	uint64_t begin_ns = timeout_ns > 0 ? ops->monotonic_ns(journal->timer) : 0;

	for (;;) {
		uint64_t left_ns = timeout_ns, passed_ns;

		if (journal->takers.shut)
			return -ESHUTDOWN;
		delivery_end_leases(journal);
		if (delivery_is_due(journal))
			return 1;
		state_set_timer(journal);
		if (journal->takers.stopped_ns != UINT64_MAX) {
			journal->takers.shut = true;
			return -ESHUTDOWN;
		}
		if (timeout_ns == 0)
			return 0;
		if (timeout_ns != UINT64_MAX) {
			passed_ns = ops->monotonic_ns(journal->timer) - begin_ns;
			if (passed_ns >= timeout_ns)
				return 0;
			left_ns -= passed_ns;
		}
		take_wait(journal, left_ns);
	}
}

/* Must one be woken to sleep on the timer? Under the lock; eventcount_wake() after it. */
static bool take_pass_on(struct timerhub_journal *journal)
{
	if (journal->takers.timed || journal->takers.waiting == 0)
		return false;
	eventcount_set(&journal->takers.eventcount,
	               eventcount_number(&journal->takers.eventcount) + 1);
	return true;
}

/* Up to `max` due ones. Returns how many, or -ENOMEM at the first. Under the lock. */
static int take_many(struct timerhub_journal *journal, struct timerhub_journal_task *ret_tasks,
                     unsigned max)
{
	unsigned count = 0;

	do {
		if (delivery_make(journal, &ret_tasks[count]) < 0)
			return count > 0 ? (int)count : -ENOMEM;
		count++;
	} while (count < max && delivery_is_due(journal));
	return (int)count;
}

static int take_run(struct timerhub_journal *journal, struct timerhub_journal_task *ret_tasks,
                    unsigned max, uint64_t timeout_ns)
{
	bool wake_taker, wake_writer = false;
	int result;

	lock_take(&journal->lock);
	journal->takers.inside++;
	result = take_await_task(journal, timeout_ns);
	if (result == 1)
		result = take_many(journal, ret_tasks, max);
	if (result > 0) {
		state_set_timer(journal);
		wake_writer = writer_remind(journal);
	}
	wake_taker = take_pass_on(journal);
	journal->takers.inside--;
	lock_give(&journal->lock);
	if (wake_taker)
		eventcount_wake(&journal->takers.eventcount, 1);
	if (wake_writer)
		eventcount_wake(&journal->keeper.work, 1);
	return result;
}

int timerhub_journal_take_many(struct timerhub_journal *journal,
                               struct timerhub_journal_task *ret_tasks, unsigned max,
                               uint64_t timeout_ns)
{
	int before, result;

	if (!journal || !ret_tasks || max == 0 || max > INT_MAX)
		return -EINVAL;
	if (!fork_check_goes_on(&journal->fork_check))
		return -EOWNERDEAD;
	/* cancelled in its sleep on the timer, a thread would not wake the next taker */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	result = take_run(journal, ret_tasks, max, timeout_ns);
	(void)pthread_setcancelstate(before, NULL);
	return result;
}

int timerhub_journal_take(struct timerhub_journal *journal, struct timerhub_journal_task *ret_task,
                          uint64_t timeout_ns)
{
	return timerhub_journal_take_many(journal, ret_task, 1, timeout_ns);
}

/* ---- stop ---- */

void timerhub_journal_stop(struct timerhub_journal *journal)
{
	if (!journal || !fork_check_goes_on(&journal->fork_check))
		return;
	lock_take(&journal->lock);
	if (journal->takers.stopped_ns == UINT64_MAX)
		journal->takers.stopped_ns = journal->timer->ops->wall_ns(journal->timer);
	delivery_wake_takers(journal);
}

/* ---- deliveries that a worker holds, and the fd ---- */

/* Waits for a change in flight. Under the lock, which is free meanwhile. */
static int take_touch(struct timerhub_journal *journal, const struct timerhub_journal_task *taken,
                      uint64_t lease_ns)
{
	struct delivery *held = NULL;
	uint32_t number = 0;
	int result;

	for (;;) {
		delivery_end_leases(journal);
		result = delivery_find(&journal->backlog, taken->id, taken->delivery, &held,
		                       &number);
		if (result <= 0)
			break;
		lock_give(&journal->lock);
		writer_await(journal, number);
		lock_take(&journal->lock);
	}
	if (result < 0 || journal->backlog.lease_ns == 0)
		return result;
	delivery_prolong(journal, held->task, lease_ns);
	return 0;
}

int timerhub_journal_touch(struct timerhub_journal *journal,
                           const struct timerhub_journal_task *task, uint64_t lease_ns)
{
	int result;

	if (!journal || !task)
		return -EINVAL;
	if (!fork_check_goes_on(&journal->fork_check))
		return -EOWNERDEAD;
	lock_take(&journal->lock);
	result = take_touch(journal, task, lease_ns > 0 ? lease_ns : journal->backlog.lease_ns);
	lock_give(&journal->lock);
	return result;
}

int timerhub_journal_release(struct timerhub_journal *journal,
                             const struct timerhub_journal_task *task)
{
	struct delivery *held;

	if (!journal || !task)
		return -EINVAL;
	if (!fork_check_goes_on(&journal->fork_check))
		return -EOWNERDEAD;
	lock_take(&journal->lock);
	held = delivery_table_find(&journal->backlog.deliveries, task->delivery);
	if (held)
		delivery_table_remove(&journal->backlog.deliveries, &journal->backlog.tasks, held);
	lock_give(&journal->lock);
	return held ? 0 : -ENOENT;
}

int timerhub_journal_fd(struct timerhub_journal *journal)
{
	if (!journal)
		return -EINVAL;
	if (!fork_check_goes_on(&journal->fork_check))
		return -EOWNERDEAD;
	lock_take(&journal->lock);
	journal->takers.polled = true;
	state_set_timer(journal);
	lock_give(&journal->lock);
	return journal->timer->ops->fd(journal->timer);
}
