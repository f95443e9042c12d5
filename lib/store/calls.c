/* SPDX-License-Identifier: MIT */
/*
 * The calls that change tasks. They wait until the change is on stable storage, but for the submits
 * at the end.
 */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/invariant.h"
#include "base/options.h"
#include "store/takers.h"
#include "store/writer.h"

/*
 * Frees key and data of the tasks that these changes have ended, or that another worker has by now.
 */
static void answers_release(struct timerhub_store_change *changes, unsigned count, int result)
{
	for (unsigned i = 0; i < count; i++) {
		int own = changes[i].result;

		if (!change_is_answer(&changes[i]) || changes[i].op == STORE_TOUCH)
			continue;
		if (result == 0 || ((own == -ESTALE || own == -ENOENT) && own == result))
			timerhub_store_release(NULL, changes[i].task);
	}
}

static int changes_do(struct timerhub_store *store, struct timerhub_store_change *changes,
                      unsigned count)
{
	struct work work = {
		.kind = WORK_CHANGES,
		.changes = changes,
		.count = count,
		.now_us = store_now_us(&store->wall),
		.deadline_ns = clock_monotonic_ns() + store->timeout_ns,
	};
	int result = writer_do(store, &work);

	answers_release(changes, count, result);
	return result;
}

static int change_do(struct timerhub_store *store, struct timerhub_store_change *change)
{
	CANCELLATION_HELD;
	int result = store_check(store);

	if (result == 0)
		result = change_check(store, change);
	return result < 0 ? result : changes_do(store, change, 1);
}

int timerhub_store_put(struct timerhub_store *store, const struct timerhub_store_put *put,
                       uint64_t *ret_id)
{
	struct timerhub_store_put known = { .size = sizeof(known) };
	struct timerhub_store_change change = { .op = TIMERHUB_STORE_PUT };
	int result = put ? options_read(&known, sizeof(known), sizeof(known), put) : -EINVAL;

	if (result < 0)
		return result;
	change.flags = known.flags;
	change.when_ns = known.when_ns;
	change.interval_ns = known.interval_ns;
	change.key = known.key;
	change.data = known.data;
	change.data_len = known.data_len;
	result = change_do(store, &change);
	if (ret_id && (result == 0 || result == -EEXIST))
		*ret_id = change.id;
	return result;
}

static int change_by_name(struct timerhub_store *store, uint32_t op, uint64_t id, const char *key,
                          uint64_t when_ns, uint32_t flags)
{
	struct timerhub_store_change change = {
		.op = op, .flags = flags, .id = id, .key = key, .when_ns = when_ns
	};

	return change_do(store, &change);
}

int timerhub_store_cancel(struct timerhub_store *store, uint64_t id)
{
	return change_by_name(store, TIMERHUB_STORE_CANCEL, id, NULL, 0, 0);
}

int timerhub_store_cancel_key(struct timerhub_store *store, const char *key)
{
	return key ? change_by_name(store, TIMERHUB_STORE_CANCEL, 0, key, 0, 0) : -EINVAL;
}

int timerhub_store_move(struct timerhub_store *store, uint64_t id, uint64_t when_ns, uint32_t flags)
{
	return change_by_name(store, TIMERHUB_STORE_MOVE, id, NULL, when_ns, flags);
}

int timerhub_store_move_key(struct timerhub_store *store, const char *key, uint64_t when_ns,
                            uint32_t flags)
{
	return key ? change_by_name(store, TIMERHUB_STORE_MOVE, 0, key, when_ns, flags) : -EINVAL;
}

static int answer(struct timerhub_store *store, uint32_t op, struct timerhub_store_task *task,
                  uint64_t when_ns, uint32_t reason)
{
	struct timerhub_store_change change = {
		.op = op, .task = task, .when_ns = when_ns, .reason = reason
	};

	return change_do(store, &change);
}

int timerhub_store_done(struct timerhub_store *store, struct timerhub_store_task *task)
{
	return answer(store, TIMERHUB_STORE_DONE, task, 0, 0);
}

int timerhub_store_retry(struct timerhub_store *store, struct timerhub_store_task *task,
                         uint64_t delay_ns)
{
	return answer(store, TIMERHUB_STORE_RETRY, task, delay_ns, 0);
}

int timerhub_store_park(struct timerhub_store *store, struct timerhub_store_task *task,
                        uint32_t reason)
{
	return answer(store, TIMERHUB_STORE_PARK, task, 0, reason);
}

int timerhub_store_touch(struct timerhub_store *store, struct timerhub_store_task *task,
                         uint64_t lease_ns)
{
	if (store && lease_ns == 0)
		lease_ns = store->lease_us * 1000;
	return answer(store, STORE_TOUCH, task, lease_ns, 0);
}

void timerhub_store_release(struct timerhub_store *store, struct timerhub_store_task *task)
{
	(void)store;
	if (!task)
		return;
	free((void *)(uintptr_t)task->data);
	task->data = task->key = NULL;
}

int timerhub_store_commit(struct timerhub_store *store, struct timerhub_store_change *changes,
                          unsigned count)
{
	CANCELLATION_HELD;
	int result = store_check(store);

	if (result == 0)
		result = changes_check(store, changes, count);
	return result < 0 ? result : changes_do(store, changes, count);
}

int timerhub_store_sync(struct timerhub_store *store)
{
	CANCELLATION_HELD;
	int result = store_check(store);

	return result < 0 ? result : writer_sync_all(store);
}

/* ---- without waiting ---- */

/*
 * A submit, in one block of memory with its changes, the tasks that they end, and their keys and
 * data.
 */
struct submit {
	struct work work;
	uint64_t tag;
	/* the caller's structs of the tasks, one for each change */
	struct timerhub_store_task **theirs;
	struct timerhub_store_task *tasks;
	struct timerhub_store_change changes[];
};
_Static_assert(offsetof(struct submit, work) == 0, "completed_take() casts the work");

static void *block_take(char **block, size_t bytes)
{
	void *taken = *block;

	*block += bytes;
	return taken;
}

static const void *block_copy(char **block, const void *from, size_t bytes)
{
	return from ? memcpy(block_take(block, bytes), from, bytes) : NULL;
}

static struct submit *submit_copy(const struct timerhub_store_change *changes, unsigned count)
{
	size_t bytes = sizeof(struct submit) +
	               count * (sizeof(*changes) + sizeof(*changes->task) + sizeof(changes->task));
	struct submit *submit;
	char *block;

	for (unsigned i = 0; i < count; i++)
		bytes += changes[i].data_len + (changes[i].key ? strlen(changes[i].key) + 1 : 0);
	submit = malloc(bytes);
	if (!submit)
		return NULL;
	*submit = (struct submit){ .work = { .kind = WORK_CHANGES, .count = count } };
	memcpy(submit->changes, changes, count * sizeof(*changes));
	block = (char *)(submit->changes + count);
	submit->tasks = block_take(&block, count * sizeof(*submit->tasks));
	submit->theirs = block_take(&block, count * sizeof(*submit->theirs));
	submit->work.changes = submit->changes;
	for (unsigned i = 0; i < count; i++) {
		struct timerhub_store_change *change = &submit->changes[i];

		change->data = block_copy(&block, change->data, change->data_len);
		change->key =
			block_copy(&block, change->key, change->key ? strlen(change->key) + 1 : 0);
		submit->theirs[i] = change->task;
		if (!change->task)
			continue;
		submit->tasks[i] = *change->task;
		change->task = &submit->tasks[i];
	}
	return submit;
}

/* Counts a submit. Returns false if too many are in flight. */
static bool submit_enter(struct timerhub_store *store)
{
	bool enters;

	lock_take(&store->queue_of_work.lock);
	enters = store->queue_of_work.submits < STORE_SUBMITS_MAX;
	store->queue_of_work.submits += enters;
	lock_give(&store->queue_of_work.lock);
	return enters;
}

static void submit_leave(struct timerhub_store *store)
{
	lock_take(&store->queue_of_work.lock);
	invariant(store->queue_of_work.submits > 0);
	store->queue_of_work.submits--;
	lock_give(&store->queue_of_work.lock);
}

int timerhub_store_submit(struct timerhub_store *store, struct timerhub_store_change *changes,
                          unsigned count, uint64_t tag)
{
	CANCELLATION_HELD;
	struct submit *submit;
	int result = store_check(store);

	if (result == 0 && store_has_failed(store))
		result = -EIO;
	if (result == 0)
		result = changes_check(store, changes, count);
	if (result < 0)
		return result;
	if (!submit_enter(store))
		return -EAGAIN;
	submit = submit_copy(changes, count);
	if (!submit) {
		submit_leave(store);
		return -ENOMEM;
	}
	submit->tag = tag;
	submit->work.now_us = store_now_us(&store->wall);
	submit->work.deadline_ns = clock_monotonic_ns() + store->timeout_ns;
	writer_submit(store, &submit->work);
	return 0;
}

/*
 * Frees key and data of the tasks that a submit has ended, and clears them in the caller's structs,
 * unless these hold another delivery by now. A struct that was released meanwhile has nothing to
 * free, which the copy here does not know.
 */
static void submit_release(struct submit *submit)
{
	for (unsigned i = 0; i < submit->work.count; i++) {
		struct timerhub_store_task *theirs = submit->theirs[i];
		const struct timerhub_store_task *copy = &submit->tasks[i];

		if (theirs && theirs->id == copy->id && theirs->delivery == copy->delivery)
			submit->changes[i].task = theirs;
	}
	answers_release(submit->changes, submit->work.count, submit->work.result);
}

static struct submit *completed_take(struct timerhub_store *store)
{
	struct work *work;

	lock_take(&store->synced.lock);
	work = store->synced.completed;
	if (work) {
		store->synced.completed = work->next;
		if (!work->next)
			store->synced.last_completed = &store->synced.completed;
	} else if (store->synced.is_rung) {
		store->synced.is_rung = false;
		bell_clear(store->synced.fd);
	}
	lock_give(&store->synced.lock);
	return (struct submit *)work;
}

int timerhub_store_completions(struct timerhub_store *store, struct timerhub_store_completion *ret,
                               unsigned max)
{
	CANCELLATION_HELD;
	struct submit *submit;
	unsigned count = 0;
	int result = store_check(store);

	if (!ret || max == 0 || max > INT_MAX)
		return -EINVAL;
	if (result < 0)
		return result;
	while (count < max && (submit = completed_take(store))) {
		const struct timerhub_store_change *first = submit->changes;

		ret[count++] = (struct timerhub_store_completion){
			.tag = submit->tag,
			.id = first->task ? first->task->id : first->id,
			.result = submit->work.result,
		};
		submit_release(submit);
		free(submit);
		submit_leave(store);
	}
	return (int)count;
}

int timerhub_store_completion_fd(struct timerhub_store *store)
{
	int result = store_check(store);

	return result < 0 ? result : store->synced.fd;
}
