/* SPDX-License-Identifier: MIT */
/*
 * take: deliveries. Any thread. Of the threads that wait, one leads: it waits for the alarm; the
 * others wait for a ticket, and one of them leads next. Who leaves with a task, or without, sees to
 * it that somebody leads while anybody waits.
 *
 * That a task was taken is recorded behind its delivery: the record goes out with the next batch,
 * and nobody waits for it. It only carries the number of attempts.
 */
#include <errno.h>

#include "journal.h"

/* The lock is held. Hand out the first task, which is due. */
static void deliver(struct timerhub_journal *journal, struct timerhub_task *ret_task)
{
	struct task *task = agenda_first(&journal->agenda);
	struct record record = { .type = RECORD_TAKE, .id = task->id };

	(void)agenda_remove(&journal->agenda, task);
	task->state = TASK_TAKEN;
	if (task->attempts < UINT32_MAX)
		task->attempts++;
	if (journal->lease_ns > 0) {
		uint64_t now_ns = journal->alarm->ops->monotonic_ns(journal->alarm);
		uint64_t left_ns = UINT64_MAX - 1 - now_ns;

		agenda_insert(&journal->leases, task,
		              now_ns + (journal->lease_ns < left_ns ? journal->lease_ns : left_ns));
	}
	journal->stats.taken++;
	journal->stats.delivered++;
	*ret_task = (struct timerhub_task){
		.id = task->id,
		.due_ns = task->due_ns,
		.attempts = task->attempts,
		.data = task->data,
		.data_len = task->data_len,
	};
	record.attempts = task->attempts;
	if (journal->failed == 0)
		(void)journal_gather(journal, NULL, &record);
}

static bool is_due(struct timerhub_journal *journal)
{
	uint64_t first_ns = agenda_first_ns(&journal->agenda);

	return first_ns != UINT64_MAX && first_ns <= journal->alarm->ops->wall_ns(journal->alarm);
}

/* The lock is held, and given away while waiting. */
static void await_due(struct timerhub_journal *journal, uint64_t timeout_ns)
{
	if (!journal->led) {
		journal->led = true;
		lock_give(&journal->lock);
		journal->alarm->ops->wait(journal->alarm, timeout_ns);
		lock_take(&journal->lock);
		journal->led = false;
	} else {
		uint32_t number = ticket_number(&journal->takers);

		journal->waiting++;
		lock_give(&journal->lock);
		ticket_wait(&journal->takers, number, timeout_ns);
		lock_take(&journal->lock);
		journal->waiting--;
	}
}

/* 1: there is a task due; 0: the time is over; -ESHUTDOWN. The lock is held. */
static int await_task(struct timerhub_journal *journal, uint64_t timeout_ns)
{
	const struct alarm_ops *ops = journal->alarm->ops;
	uint64_t begin_ns = timeout_ns > 0 ? ops->monotonic_ns(journal->alarm) : 0;

	for (;;) {
		uint64_t left_ns = timeout_ns, passed_ns;

		if (journal->closing)
			return -ESHUTDOWN;
		if (is_due(journal))
			return 1;
		/* Nothing is due: the fd must not say so, and must ring for what comes next. */
		journal_set_alarm(journal);
		if (timeout_ns == 0)
			return 0;
		if (timeout_ns != UINT64_MAX) {
			passed_ns = ops->monotonic_ns(journal->alarm) - begin_ns;
			if (passed_ns >= timeout_ns)
				return 0;
			left_ns -= passed_ns;
		}
		await_due(journal, left_ns);
	}
}

/* The lock is held. Must a waiting thread be woken, to lead? Then ticket_wake(), unlocked. */
static bool pass_on(struct timerhub_journal *journal)
{
	if (journal->led || journal->waiting == 0)
		return false;
	ticket_set(&journal->takers, ticket_number(&journal->takers) + 1);
	return true;
}

int timerhub_journal_take(struct timerhub_journal *journal, struct timerhub_task *ret_task,
                          uint64_t timeout_ns)
{
	bool wake_taker, wake_writer = false;
	int result;

	if (!journal || !ret_task)
		return -EINVAL;
	if (!life_goes_on(&journal->life))
		return -EOWNERDEAD;
	lock_take(&journal->lock);
	journal->inside++;
	result = await_task(journal, timeout_ns);
	if (result == 1) {
		deliver(journal, ret_task);
		journal_set_alarm(journal);
		wake_writer = journal_kick(journal);
	}
	wake_taker = pass_on(journal);
	journal->inside--;
	lock_give(&journal->lock);
	if (wake_taker)
		ticket_wake(&journal->takers, 1);
	if (wake_writer)
		ticket_wake(&journal->work, 1);
	return result;
}

int timerhub_journal_fd(const struct timerhub_journal *journal)
{
	if (!journal)
		return -EINVAL;
	if (!life_goes_on(&journal->life))
		return -EOWNERDEAD;
	return journal->alarm->ops->fd(journal->alarm);
}
