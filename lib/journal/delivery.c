/* SPDX-License-Identifier: MIT */
/*
 * A delivery's record (TAKE) only counts attempts, so the leader writes it later, with the next
 * change or after some milliseconds.
 */
#include "journal/delivery.h"

#include <errno.h>

/* ---- leases ---- */

void delivery_let_come(struct backlog *backlog, struct task *task)
{
	if (backlog->attempts_max > 0 && task->attempts >= backlog->attempts_max) {
		task->state = TASK_PARKED;
		task->reason = 0;
		backlog->parked++;
		return;
	}
	task->state = TASK_PENDING;
	agenda_insert(&backlog->agenda, task, task->due_ns);
}

void delivery_end_leases(struct timerhub_journal *journal)
{
	uint64_t now_ns;

	if (journal->backlog.leases.count == 0)
		return;
	now_ns = journal->timer->ops->monotonic_ns(journal->timer);
	while (agenda_first_ns(&journal->backlog.leases) <= now_ns) {
		struct task *task = agenda_first(&journal->backlog.leases);

		(void)agenda_remove(&journal->backlog.leases, task);
		journal->backlog.taken--;
		journal->stats.leases_over++;
		delivery_let_come(&journal->backlog, task);
		state_set_timer(journal);
	}
}

static void delivery_lease(struct timerhub_journal *journal, struct task *task, uint64_t lease_ns)
{
	uint64_t now_ns, left_ns;

	if (journal->backlog.lease_ns == 0)
		return;
	now_ns = journal->timer->ops->monotonic_ns(journal->timer);
	left_ns = UINT64_MAX - 1 - now_ns;
	agenda_insert(&journal->backlog.leases, task,
	              now_ns + (lease_ns < left_ns ? lease_ns : left_ns));
}

/* Returns the time that has passed since a task's due time. */
static uint64_t delivery_late_ns(struct wall_timer *timer, const struct task *task)
{
	uint64_t now_ns = timer->ops->wall_ns(timer);

	return now_ns > task->due_ns ? now_ns - task->due_ns : 0;
}

int delivery_make(struct timerhub_journal *journal, struct timerhub_journal_task *ret_task)
{
	struct task *task = agenda_first(&journal->backlog.agenda);
	struct record record = { .type = RECORD_TAKE, .id = task->id };
	struct write_batch *batch = state_open_batch(&journal->commit);
	uint64_t late_ns = delivery_late_ns(journal->timer, task);
	uint64_t periods = task->interval_ns > 0 ? late_ns / task->interval_ns + 1 : 1;

	if (delivery_table_reserve(&journal->backlog.deliveries) < 0)
		return -ENOMEM;
	(void)agenda_remove(&journal->backlog.agenda, task);
	task->state = TASK_TAKEN;
	if (task->attempts < UINT32_MAX)
		task->attempts++;
	delivery_lease(journal, task, journal->backlog.lease_ns);
	journal->backlog.taken++;
	journal->stats.delivered++;
	journal->stats.lateness[state_bucket(late_ns)]++;
	*ret_task = (struct timerhub_journal_task){
		.id = task->id,
		.due_ns = task->due_ns,
		.attempts = task->attempts,
		.data = task_data(task),
		.data_len = task->data_len,
		.key = task_key(task),
		.key_len = task->key_len,
		.delivery = delivery_table_insert(&journal->backlog.deliveries, task, periods),
		.interval_ns = task->interval_ns,
		.periods = periods,
	};
	/* nobody waits for it, so a full batch does without */
	record.attempts = task->attempts;
	if (journal->failed == 0 && write_batch_has_room(batch, RECORD_HEADER_BYTES))
		(void)write_batch_add(batch, &record);
	return 0;
}

/*
 * After timerhub_journal_stop() only what was due then: a worker that retries would get the task
 * again without end.
 */
bool delivery_is_due(struct timerhub_journal *journal)
{
	uint64_t first_ns = agenda_first_ns(&journal->backlog.agenda);

	return first_ns != UINT64_MAX && first_ns <= journal->takers.stopped_ns &&
	       first_ns <= journal->timer->ops->wall_ns(journal->timer);
}

void delivery_wake_takers(struct timerhub_journal *journal)
{
	state_set_timer(journal);
	eventcount_set(&journal->takers.eventcount,
	               eventcount_number(&journal->takers.eventcount) + 1);
	lock_give(&journal->lock);
	eventcount_wake(&journal->takers.eventcount, UINT32_MAX);
}

/* ---- the delivery that a worker answers ---- */

int delivery_in_flight(const struct task *task, uint32_t *ret_batch)
{
	if (!task)
		return -ENOENT;
	if (task->changing == 0)
		return 0;
	*ret_batch = task->batch;
	return 1;
}

int delivery_find(struct backlog *backlog, uint64_t id, uint64_t delivery,
                  struct delivery **ret_held, uint32_t *ret_batch)
{
	struct delivery *held = delivery_table_find(&backlog->deliveries, delivery);

	if (!held || held->task->id != id)
		return -ENOENT;
	*ret_held = held;
	if (!deliveries_is_latest(&backlog->deliveries, held))
		return -ESTALE;
	return held->task->state == TASK_ENDED ? -ENOENT
	                                       : delivery_in_flight(held->task, ret_batch);
}

void delivery_prolong(struct timerhub_journal *journal, struct task *task, uint64_t lease_ns)
{
	if (task->state == TASK_TAKEN) {
		(void)agenda_remove(&journal->backlog.leases, task);
	} else {
		if (task->state == TASK_PENDING)
			(void)agenda_remove(&journal->backlog.agenda, task);
		else
			journal->backlog.parked--;
		task->state = TASK_TAKEN;
		journal->backlog.taken++;
	}
	delivery_lease(journal, task, lease_ns);
	state_set_timer(journal);
}
