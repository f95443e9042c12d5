/* SPDX-License-Identifier: MIT */
/*
 * Put, cancel, move, done, retry, park, revive, commit and submit, for any thread: each makes a
 * transaction (transaction.c), and all but submit wait until it is on the disk. tests/journal
 * compares with a model, on a disk that fails and crashes at every step.
 */
#include <errno.h>
#include <stdlib.h>

#include "journal/transaction.h"
#include "journal/writer.h"

/* A due time must be TIMERHUB_NEVER or less than DUE_MAX_NS. */
#define DUE_MAX_NS (UINT64_C(1) << 63)

static int change_read_due(struct timerhub_journal *journal, uint64_t when_ns, uint32_t flags,
                           uint64_t *ret_due_ns)
{
	uint64_t due_ns = when_ns;

	if ((flags & ~(TIMERHUB_ABSOLUTE | TIMERHUB_JOURNAL_PERIODIC)) != 0)
		return -EINVAL;
	if (when_ns != TIMERHUB_NEVER) {
		if (when_ns >= DUE_MAX_NS)
			return -ERANGE;
		if ((flags & TIMERHUB_ABSOLUTE) == 0)
			due_ns += journal->timer->ops->wall_ns(journal->timer);
		if (due_ns >= DUE_MAX_NS)
			return -ERANGE;
	}
	*ret_due_ns = due_ns;
	return 0;
}

/* ---- prepare changes from a caller's arguments, without the lock ---- */

/* With TIMERHUB_JOURNAL_PERIODIC, the delay is the length of a period too. */
static int change_read_interval(const struct timerhub_journal_change *asked,
                                uint64_t *ret_interval_ns)
{
	*ret_interval_ns = asked->interval_ns;
	if ((asked->flags & TIMERHUB_JOURNAL_PERIODIC) != 0) {
		if ((asked->flags & TIMERHUB_ABSOLUTE) != 0 || asked->interval_ns > 0 ||
		    asked->when_ns == 0)
			return -EINVAL;
		*ret_interval_ns = asked->when_ns;
	}
	return *ret_interval_ns < DUE_MAX_NS ? 0 : -ERANGE;
}

/* Copies and sums the data before the lock, so that callers do it at the same time. */
static int change_prepare_put(struct timerhub_journal *journal,
                              const struct timerhub_journal_change *asked, struct change *change)
{
	struct record record = {
		.type = RECORD_PUT,
		.due_ns = change->due_ns,
		.key = asked->key,
		.key_len = (uint32_t)asked->key_len,
		.data = asked->data,
		.data_len = (uint32_t)asked->data_len,
	};
	int result = change_read_interval(asked, &record.interval_ns);

	if (result < 0)
		return result;
	if (!asked->data && asked->data_len > 0)
		return -EINVAL;
	if (asked->data_len > journal->data_max)
		return -EMSGSIZE;
	change->type = RECORD_PUT;
	change->task = task_new(&record);
	if (!change->task)
		return -ENOMEM;
	change->body_crc = record_body_crc(&record);
	return 0;
}

static int change_prepare_delivered(const struct timerhub_journal_change *asked,
                                    struct change *change)
{
	if (!asked->task || asked->key_len > 0)
		return -EINVAL;
	change->id = asked->task->id;
	change->delivery = asked->task->delivery;
	change->reason = asked->reason;
	return change->delivery != 0 ? 0 : -EINVAL;
}

/* Returns whether this version of the library understands every field of a caller's change. */
static bool change_is_known(const struct timerhub_journal_change *asked)
{
	uint32_t op = asked->op;

	for (size_t i = 0; i < sizeof(asked->reserved) / sizeof(asked->reserved[0]); i++)
		if (asked->reserved[i] != 0)
			return false;
	if (op < TIMERHUB_JOURNAL_PUT || op > TIMERHUB_JOURNAL_REVIVE)
		return false;
	if ((asked->flags & TIMERHUB_JOURNAL_PERIODIC) != 0)
		return op == TIMERHUB_JOURNAL_PUT;
	return asked->flags == 0 || op == TIMERHUB_JOURNAL_PUT || op == TIMERHUB_JOURNAL_MOVE ||
	       op == TIMERHUB_JOURNAL_REVIVE;
}

static int change_prepare(struct timerhub_journal *journal,
                          const struct timerhub_journal_change *asked, struct change *change)
{
	static const enum record_type types[] = {
		[TIMERHUB_JOURNAL_CANCEL] = RECORD_CANCEL, [TIMERHUB_JOURNAL_MOVE] = RECORD_MOVE,
		[TIMERHUB_JOURNAL_DONE] = RECORD_DONE,     [TIMERHUB_JOURNAL_RETRY] = RECORD_RETRY,
		[TIMERHUB_JOURNAL_PARK] = RECORD_PARK,     [TIMERHUB_JOURNAL_REVIVE] = RECORD_RENEW,
	};
	uint32_t op = asked->op;
	int result = 0;

	*change = (struct change){ .id = asked->id, .key = asked->key, .key_len = asked->key_len };
	if (asked->key_len > TIMERHUB_JOURNAL_KEY_MAX || (!asked->key && asked->key_len > 0))
		return -EINVAL;
	if (!change_is_known(asked))
		return -EINVAL;
	if (op != TIMERHUB_JOURNAL_CANCEL && op != TIMERHUB_JOURNAL_DONE &&
	    op != TIMERHUB_JOURNAL_PARK)
		result = change_read_due(journal, asked->when_ns, asked->flags, &change->due_ns);
	if (result < 0)
		return result;
	if (op == TIMERHUB_JOURNAL_PUT)
		return change_prepare_put(journal, asked, change);
	change->type = types[op];
	if (op == TIMERHUB_JOURNAL_DONE || op == TIMERHUB_JOURNAL_RETRY ||
	    op == TIMERHUB_JOURNAL_PARK)
		return change_prepare_delivered(asked, change);
	return 0;
}

/* ---- the calls ---- */

/* On a fault `*ret_index` is its index, and the caller frees the prepared tasks. */
static int transaction_prepare(struct timerhub_journal *journal, struct transaction *transaction,
                               const struct timerhub_journal_change *changes, unsigned count,
                               unsigned *ret_index)
{
	int result = 0;

	while (transaction->count < count && result == 0) {
		*ret_index = transaction->count;
		result = change_prepare(journal, &changes[transaction->count],
		                        &transaction->changes[transaction->count]);
		transaction->count += result == 0;
	}
	return result == 0 && transaction_bytes(transaction) > journal->batch_bytes ? -EMSGSIZE
	                                                                            : result;
}

/* Refused before it got into a batch. */
static void transaction_free_tasks(struct transaction *transaction)
{
	for (unsigned i = 0; i < transaction->count; i++)
		if (transaction->changes[i].type == RECORD_PUT)
			free(transaction->changes[i].task);
}

/* Refuse a transaction because changes[index] failed with the error `result`. Returns `result`. */
static int transaction_refuse(struct transaction *transaction,
                              struct timerhub_journal_change *changes, unsigned index, int result)
{
	transaction_free_tasks(transaction);
	changes[index].result = result;
	if (result == -EEXIST)
		changes[index].id = transaction->changes[index].id;
	return result;
}

static void transaction_tell(const struct transaction *transaction,
                             struct timerhub_journal_change *changes)
{
	for (unsigned i = 0; i < transaction->count; i++) {
		changes[i].result = 0;
		if (changes[i].op == TIMERHUB_JOURNAL_PUT)
			changes[i].id = transaction->changes[i].id;
	}
}

static int transaction_may_begin(struct timerhub_journal *journal,
                                 const struct timerhub_journal_change *changes, unsigned count)
{
	if (!journal || (!changes && count > 0))
		return -EINVAL;
	if (!fork_check_goes_on(&journal->fork_check))
		return -EOWNERDEAD;
	return count <= TIMERHUB_JOURNAL_CHANGES_MAX ? 0 : -E2BIG;
}

int timerhub_journal_commit(struct timerhub_journal *journal,
                            struct timerhub_journal_change *changes, unsigned count)
{
	struct change ours[TIMERHUB_JOURNAL_CHANGES_MAX];
	struct transaction transaction = { .changes = ours };
	int result = transaction_may_begin(journal, changes, count);
	unsigned index = 0;
	uint32_t number;

	if (result < 0 || count == 0)
		return result;
	result = transaction_prepare(journal, &transaction, changes, count, &index);
	if (result == 0)
		result = writer_make(journal, &transaction, true, &index, &number);
	if (result == 0) {
		writer_await(journal, number);
		result = transaction.result;
	}
	if (result < 0)
		return transaction_refuse(&transaction, changes, index, result);
	transaction_tell(&transaction, changes);
	return 0;
}

int timerhub_journal_submit(struct timerhub_journal *journal,
                            struct timerhub_journal_change *changes, unsigned count, uint64_t tag)
{
	int result = transaction_may_begin(journal, changes, count);
	struct transaction *transaction;
	unsigned index = 0;
	uint32_t number;

	if (result < 0 || count == 0)
		return result < 0 ? result : -EINVAL;
	transaction = malloc(sizeof(*transaction) + count * sizeof(struct change));
	if (!transaction)
		return -ENOMEM;
	*transaction = (struct transaction){ .async = true, .tag = tag };
	transaction->changes = (struct change *)(transaction + 1);
	result = transaction_prepare(journal, transaction, changes, count, &index);
	if (result == 0)
		result = writer_make(journal, transaction, false, &index, &number);
	if (result < 0) {
		(void)transaction_refuse(transaction, changes, index, result);
		free(transaction);
	}
	return result;
}

int timerhub_journal_completions(struct timerhub_journal *journal,
                                 struct timerhub_journal_completion *completions, unsigned max)
{
	unsigned count = 0;

	if (!journal || (!completions && max > 0))
		return -EINVAL;
	if (!fork_check_goes_on(&journal->fork_check))
		return -EOWNERDEAD;
	lock_take(&journal->lock);
	while (count < max) {
		struct transaction *transaction = completions_take(&journal->completions);

		if (!transaction)
			break;
		completions[count++] = (struct timerhub_journal_completion){
			.tag = transaction->tag,
			.id = transaction->changes[0].id,
			.result = transaction->result,
		};
		free(transaction);
	}
	lock_give(&journal->lock);
	return (int)count;
}

int timerhub_journal_completion_fd(struct timerhub_journal *journal)
{
	bool ring;
	int fd;

	if (!journal)
		return -EINVAL;
	if (!fork_check_goes_on(&journal->fork_check))
		return -EOWNERDEAD;
	lock_take(&journal->lock);
	fd = completions_fd(&journal->completions);
	ring = completions_must_ring(&journal->completions);
	lock_give(&journal->lock);
	if (ring)
		completions_ring(&journal->completions);
	return fd;
}

int timerhub_journal_put(struct timerhub_journal *journal, uint64_t when_ns, uint32_t flags,
                         const void *data, size_t data_len, uint64_t *ret_id)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_PUT,
		.flags = flags,
		.when_ns = when_ns,
		.data = data,
		.data_len = data_len,
	};
	int result = timerhub_journal_commit(journal, &change, 1);

	if (result == 0 && ret_id)
		*ret_id = change.id;
	return result;
}

int timerhub_journal_put_key(struct timerhub_journal *journal, const void *key, size_t key_len,
                             uint64_t when_ns, uint32_t flags, const void *data, size_t data_len,
                             uint64_t *ret_id)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_PUT,
		.flags = flags,
		.key = key,
		.key_len = key_len,
		.when_ns = when_ns,
		.data = data,
		.data_len = data_len,
	};
	int result;

	if (key_len == 0)
		return -EINVAL;
	result = timerhub_journal_commit(journal, &change, 1);
	if ((result == 0 || result == -EEXIST) && ret_id)
		*ret_id = change.id;
	return result;
}

int timerhub_journal_cancel(struct timerhub_journal *journal, uint64_t id)
{
	struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_CANCEL, .id = id };

	return timerhub_journal_commit(journal, &change, 1);
}

int timerhub_journal_cancel_key(struct timerhub_journal *journal, const void *key, size_t key_len)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_CANCEL,
		.key = key,
		.key_len = key_len,
	};

	return key_len > 0 ? timerhub_journal_commit(journal, &change, 1) : -EINVAL;
}

int timerhub_journal_move(struct timerhub_journal *journal, uint64_t id, uint64_t when_ns,
                          uint32_t flags)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_MOVE,
		.flags = flags,
		.id = id,
		.when_ns = when_ns,
	};

	return timerhub_journal_commit(journal, &change, 1);
}

int timerhub_journal_move_key(struct timerhub_journal *journal, const void *key, size_t key_len,
                              uint64_t when_ns, uint32_t flags)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_MOVE,
		.flags = flags,
		.key = key,
		.key_len = key_len,
		.when_ns = when_ns,
	};

	return key_len > 0 ? timerhub_journal_commit(journal, &change, 1) : -EINVAL;
}

int timerhub_journal_done(struct timerhub_journal *journal,
                          const struct timerhub_journal_task *task)
{
	struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_DONE, .task = task };

	return timerhub_journal_commit(journal, &change, 1);
}

int timerhub_journal_retry(struct timerhub_journal *journal,
                           const struct timerhub_journal_task *task, uint64_t delay_ns)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_RETRY,
		.when_ns = delay_ns,
		.task = task,
	};

	return timerhub_journal_commit(journal, &change, 1);
}

int timerhub_journal_park(struct timerhub_journal *journal,
                          const struct timerhub_journal_task *task, uint32_t reason)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_PARK,
		.task = task,
		.reason = reason,
	};

	return timerhub_journal_commit(journal, &change, 1);
}

int timerhub_journal_revive(struct timerhub_journal *journal, uint64_t id, uint64_t when_ns,
                            uint32_t flags)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_REVIVE,
		.flags = flags,
		.id = id,
		.when_ns = when_ns,
	};

	return timerhub_journal_commit(journal, &change, 1);
}
