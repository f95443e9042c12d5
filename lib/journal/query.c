/* SPDX-License-Identifier: MIT */
/*
 * Find, peek, each, stats and check, for any thread: results are copied under the lock, callbacks
 * run without.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "journal/delivery.h"
#include "journal/replay.h"

static int query_may_begin(struct timerhub_journal *journal)
{
	if (!journal)
		return -EINVAL;
	return fork_check_result(&journal->fork_check);
}

/* NULL if its put is in flight. Under the lock. */
static const struct task *query_live(const struct task *task)
{
	return task && task->state != TASK_ARRIVING ? task : NULL;
}

/* The task that a transaction in flight ends, not the one that it puts with the same key. */
static const struct task *query_find_key(const struct tasks *tasks, const void *key, size_t key_len)
{
	const struct task *task = tasks_find_key(tasks, key, key_len);

	while (task && !query_live(task))
		task = tasks_find_key_after(task);
	return task;
}

int timerhub_journal_find(struct timerhub_journal *journal, const void *key, size_t key_len,
                          uint64_t *ret_id)
{
	int result = query_may_begin(journal);
	const struct task *task;

	if (result < 0)
		return result;
	if (!key || key_len == 0 || !ret_id)
		return -EINVAL;
	lock_take(&journal->lock);
	task = query_find_key(&journal->backlog.tasks, key, key_len);
	if (task)
		*ret_id = task->id;
	lock_give(&journal->lock);
	return task ? 0 : -ENOENT;
}

static enum timerhub_journal_state query_state(const struct task *task)
{
	switch (task->state) {
	case TASK_TAKEN:
		return TIMERHUB_JOURNAL_TAKEN;
	case TASK_PARKED:
		return TIMERHUB_JOURNAL_PARKED;
	default:
		return TIMERHUB_JOURNAL_PENDING;
	}
}

static void query_describe(const struct task *task, struct timerhub_journal_info *ret_info)
{
	*ret_info = (struct timerhub_journal_info){
		.id = task->id,
		.due_ns = task->due_ns,
		.interval_ns = task->interval_ns,
		.attempts = task->attempts,
		.data_len = task->data_len,
		.state = query_state(task),
		.reason = task->state == TASK_PARKED ? task->reason : 0,
		.key_len = task->key_len,
	};
	if (task->key_len > 0)
		memcpy(ret_info->key, task_key(task), task->key_len);
}

/* With a copy of its data; by `key` if key_len is not 0, else by `id`. */
static int query_peek(struct timerhub_journal *journal, uint64_t id, const void *key,
                      size_t key_len, struct timerhub_journal_info *ret_info, void *data,
                      size_t data_size)
{
	int result = query_may_begin(journal);
	const struct task *task;

	if (result < 0)
		return result;
	if (!ret_info || (!data && data_size > 0))
		return -EINVAL;
	lock_take(&journal->lock);
	delivery_end_leases(journal);
	task = key_len > 0 ? query_find_key(&journal->backlog.tasks, key, key_len)
	                   : query_live(tasks_find(&journal->backlog.tasks, id));
	if (task) {
		size_t count = task->data_len < data_size ? task->data_len : data_size;

		query_describe(task, ret_info);
		if (count > 0)
			memcpy(data, task_data(task), count);
	}
	lock_give(&journal->lock);
	return task ? 0 : -ENOENT;
}

int timerhub_journal_peek(struct timerhub_journal *journal, uint64_t id,
                          struct timerhub_journal_info *ret_info, void *data, size_t data_size)
{
	return query_peek(journal, id, NULL, 0, ret_info, data, data_size);
}

int timerhub_journal_peek_key(struct timerhub_journal *journal, const void *key, size_t key_len,
                              struct timerhub_journal_info *ret_info, void *data, size_t data_size)
{
	if (!key || key_len == 0)
		return -EINVAL;
	return query_peek(journal, 0, key, key_len, ret_info, data, data_size);
}

/* ---- each ---- */

struct query_entry {
	uint64_t due_ns;
	uint64_t id;
};

struct query_list {
	struct query_entry *entries;
	size_t count;
};

static void query_note(void *context, struct task *task)
{
	struct query_list *list = context;

	if (query_live(task))
		list->entries[list->count++] =
			(struct query_entry){ .due_ns = task->due_ns, .id = task->id };
}

static int query_compare(const void *a, const void *b)
{
	const struct query_entry *left = a, *right = b;

	if (left->due_ns != right->due_ns)
		return left->due_ns < right->due_ns ? -1 : 1;
	return left->id < right->id ? -1 : left->id > right->id;
}

/* Times and ids, sorted; each task is found again by its id. */
static int query_list(struct timerhub_journal *journal, struct query_list *ret_list)
{
	struct query_list list = { .count = 0 };

	lock_take(&journal->lock);
	delivery_end_leases(journal);
	list.entries = malloc((journal->backlog.tasks.count + (size_t)1) * sizeof(*list.entries));
	if (list.entries)
		tasks_each(&journal->backlog.tasks, query_note, &list);
	lock_give(&journal->lock);
	if (!list.entries)
		return -ENOMEM;
	qsort(list.entries, list.count, sizeof(*list.entries), query_compare);
	*ret_list = list;
	return 0;
}

int timerhub_journal_each(struct timerhub_journal *journal, timerhub_journal_each_fn *fn,
                          void *context)
{
	struct timerhub_journal_info info;
	struct query_list list = { .count = 0 };
	int result = query_may_begin(journal);

	if (result < 0)
		return result;
	if (!fn)
		return -EINVAL;
	result = query_list(journal, &list);
	for (size_t i = 0; result == 0 && i < list.count; i++)
		if (timerhub_journal_peek(journal, list.entries[i].id, &info, NULL, 0) == 0)
			result = fn(context, &info);
	free(list.entries);
	return result;
}

/* ---- stats and check ---- */

int timerhub_journal_stats(struct timerhub_journal *journal,
                           struct timerhub_journal_stats *ret_stats)
{
	int result = query_may_begin(journal);

	if (result < 0)
		return result;
	if (!ret_stats)
		return -EINVAL;
	lock_take(&journal->lock);
	delivery_end_leases(journal);
	*ret_stats = journal->stats;
	ret_stats->tasks = journal->backlog.tasks.count - journal->backlog.arriving;
	ret_stats->data_bytes = journal->backlog.tasks.data_bytes;
	ret_stats->live_bytes = journal->backlog.tasks.live_bytes;
	ret_stats->failed = journal->failed;
	ret_stats->held = journal->backlog.deliveries.count;
	ret_stats->taken = journal->backlog.taken;
	ret_stats->parked = journal->backlog.parked;
	ret_stats->oldest_due_ns = agenda_first_ns(&journal->backlog.agenda);
	lock_give(&journal->lock);
	return 0;
}

int timerhub_journal_check(const char *dir, struct timerhub_journal_report *ret_report)
{
	struct replay replay;
	struct disk *disk;
	int result;

	if (!dir || !ret_report)
		return -EINVAL;
	result = disk_real_open(&disk, dir);
	if (result < 0)
		return result;
	replay_init(&replay, disk, 0);
	result = replay_run(&replay, REPLAY_VERIFY);
	if (result == 0 || result == -EBADMSG || result == -EOPNOTSUPP)
		*ret_report = (struct timerhub_journal_report){
			.segments = replay.log.count,
			.records = replay.records,
			.tasks = replay.tasks.count,
			.torn_bytes = replay.torn_bytes,
			.segment = replay.fault_segment,
			.offset = replay.fault_offset,
			.fault = replay.fault,
		};
	replay_fini(&replay);
	disk_real_close(disk);
	return result;
}
