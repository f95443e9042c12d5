/* SPDX-License-Identifier: MIT */
/* Meanwhile no other thread uses the journal. */
#include "journal/open.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/options.h"
#include "journal/delivery.h"
#include "journal/keeper.h"
#include "journal/log_append.h"
#include "journal/replay.h"
#include "journal/writer.h"

#define SEGMENT_BYTES_DEFAULT (UINT64_C(16) << 20)
#define SEGMENT_BYTES_MIN UINT64_C(4096)
#define SEGMENT_BYTES_MAX (UINT64_C(4) << 30)
#define TASKS_MAX_DEFAULT (UINT32_C(1) << 20)
#define DATA_MAX_DEFAULT (UINT32_C(64) << 10)
#define DATA_BYTES_MAX_DEFAULT (UINT64_C(1) << 30)
/* version 0.1's config ended before data_bytes_max */
#define CONFIG_BYTES_MIN offsetof(struct timerhub_journal_config, data_bytes_max)
/* or the largest record, and no more than a segment has room for */
#define BATCH_BYTES ((size_t)1 << 20)
/* zeros ahead: pieces of 1 MiB brought no speed, and delayed the batch whose sync included them */
#define STRETCH_BYTES (UINT64_C(256) << 10)
#define CLOSE_LOOK_NS 1000000u

/* ---- config ---- */

/* With an interval, the longest key and `data_max` bytes. */
static size_t journal_record_max(uint32_t data_max)
{
	return record_bytes(1, RECORD_KEY_MAX_BYTES, data_max);
}

int journal_read_config(struct timerhub_journal_config *ret_known,
                        const struct timerhub_journal_config *config)
{
	struct timerhub_journal_config known = { .size = sizeof(known) };
	int result = options_read(&known, sizeof(known), CONFIG_BYTES_MIN, config);

	if (result < 0)
		return result;
	if (known.segment_bytes == 0)
		known.segment_bytes = SEGMENT_BYTES_DEFAULT;
	if (known.tasks_max == 0)
		known.tasks_max = TASKS_MAX_DEFAULT;
	if (known.data_max == 0)
		known.data_max = DATA_MAX_DEFAULT;
	if (known.data_bytes_max == 0)
		known.data_bytes_max = DATA_BYTES_MAX_DEFAULT;
	if (known.flags != 0 || known.reserved != 0 || known.data_max > RECORD_DATA_MAX_BYTES ||
	    known.segment_bytes < SEGMENT_BYTES_MIN || known.segment_bytes > SEGMENT_BYTES_MAX ||
	    known.segment_bytes < SEGMENT_HEADER_BYTES + journal_record_max(known.data_max))
		return -EINVAL;
	*ret_known = known;
	return 0;
}

/* ---- open ---- */

static void journal_adopt(struct timerhub_journal *journal, struct replay *replay)
{
	journal->log = replay->log;
	journal->backlog.tasks = replay->tasks;
	journal->backlog.agenda = replay->agenda;
	journal->backlog.parked = replay->tasks.count - replay->agenda.count;
	journal->backlog.next_id = replay->log.next_id;
	journal->stats.recovered = replay->tasks.count;
	journal->stats.cut_bytes = replay->torn_bytes;
	journal->stats.disk_bytes = log_disk_bytes(&replay->log);
	journal->stats.segments = replay->log.count;
}

/* Park a recovered task that an earlier process has delivered attempts_max times or more. */
static void journal_park_exhausted(void *context, struct task *task)
{
	struct backlog *backlog = context;

	if (task->state != TASK_PENDING || task->attempts < backlog->attempts_max)
		return;
	(void)agenda_remove(&backlog->agenda, task);
	delivery_let_come(backlog, task);
}

/* For tasks_max tasks, so that no later insert needs memory. */
static int journal_reserve(struct timerhub_journal *journal, struct replay *replay)
{
	int result = tasks_reserve(&replay->tasks, journal->backlog.tasks_max);

	return result == 0 ? agenda_reserve(&replay->agenda, journal->backlog.tasks_max) : result;
}

static uint64_t journal_random(struct disk *disk)
{
	return (uint64_t)disk->ops->random(disk) << 32 | disk->ops->random(disk);
}

static int journal_recover(struct timerhub_journal *journal, uint64_t segment_bytes)
{
	const struct wall_timer_ops *ops = journal->timer->ops;
	uint64_t begin_ns = ops->monotonic_ns(journal->timer);
	struct replay replay;
	int result;

	replay_init(&replay, journal->disk, segment_bytes);
	replay.log.stretch_bytes = STRETCH_BYTES;
	replay.tasks.seed[0] = journal_random(journal->disk);
	replay.tasks.seed[1] = journal_random(journal->disk);
	/* a late answer to a delivery of an earlier open must name none of this one's */
	journal->backlog.deliveries.round = journal->disk->ops->random(journal->disk);
	result = journal_reserve(journal, &replay);
	if (result == 0)
		result = replay_run(&replay, REPLAY_OPEN);
	if (result < 0) {
		replay_fini(&replay);
		return result;
	}
	journal_adopt(journal, &replay);
	if (journal->backlog.attempts_max > 0)
		tasks_each(&journal->backlog.tasks, journal_park_exhausted, &journal->backlog);
	journal->stats.recovery_ns = ops->monotonic_ns(journal->timer) - begin_ns;
	/* all recovered tasks, perhaps more than tasks_max */
	if (journal->backlog.lease_ns > 0)
		result = agenda_reserve(&journal->backlog.leases, journal->backlog.agenda.capacity);
	return result;
}

static int journal_open_batches(struct timerhub_journal *journal, uint64_t segment_bytes)
{
	size_t bytes = BATCH_BYTES;

	if (bytes < journal_record_max(journal->data_max))
		bytes = journal_record_max(journal->data_max);
	if (bytes > segment_bytes - SEGMENT_HEADER_BYTES)
		bytes = (size_t)segment_bytes - SEGMENT_HEADER_BYTES;
	journal->batch_bytes = bytes;
	for (unsigned i = 0; i < JOURNAL_BATCHES; i++)
		if (write_batch_init(&journal->commit.batches[i], bytes) < 0)
			return -ENOMEM;
	write_batch_begin(&journal->commit.batches[0], 1);
	return 0;
}

/* In a forked child other threads may have been changing the rest, which is leaked. */
static void journal_leave_parts(struct timerhub_journal *journal)
{
	reader_leave(&journal->compactor.reader);
	log_leave(&journal->log);
	completions_leave(&journal->completions);
}

static void journal_fini_parts(struct timerhub_journal *journal)
{
	compactor_fini(&journal->compactor);
	log_close(&journal->log);
	completions_fini(&journal->completions);
	delivery_table_fini(&journal->backlog.deliveries, &journal->backlog.tasks);
	tasks_fini(&journal->backlog.tasks);
	agenda_fini(&journal->backlog.agenda);
	agenda_fini(&journal->backlog.leases);
	for (unsigned i = 0; i < JOURNAL_BATCHES; i++)
		write_batch_fini(&journal->commit.batches[i]);
}

/* Perhaps partly open. */
static void journal_free(struct timerhub_journal *journal, bool is_copy)
{
	if (is_copy)
		journal_leave_parts(journal);
	else
		journal_fini_parts(journal);
	lock_fini(&journal->lock);
	fork_check_close(&journal->fork_check);
	if (journal->owns) {
		journal->timer->ops->close(journal->timer);
		disk_real_close(journal->disk);
	}
	free(journal);
}

static int journal_open_parts(struct timerhub_journal *journal,
                              const struct timerhub_journal_config *config)
{
	int result = fork_check_open(&journal->fork_check, sizeof(uint32_t));

	if (result == 0)
		result = journal_open_batches(journal, config->segment_bytes);
	if (result == 0)
		result = journal->disk->ops->lock(journal->disk);
	if (result == 0)
		result = journal_recover(journal, config->segment_bytes);
	if (result < 0)
		return result;
	return journal->threaded ? keeper_start(journal) : 0;
}

int journal_open(struct timerhub_journal **ret_journal, struct disk *disk, struct wall_timer *timer,
                 const struct timerhub_journal_config *config, bool threaded)
{
	struct timerhub_journal *journal = calloc(1, sizeof(*journal));
	int result;

	if (!journal)
		return -ENOMEM;
	journal->disk = disk;
	journal->timer = timer;
	journal->threaded = threaded;
	journal->backlog.lease_ns = config->lease_ns;
	journal->backlog.tasks_max = config->tasks_max;
	journal->data_max = config->data_max;
	journal->backlog.data_bytes_max = config->data_bytes_max;
	journal->backlog.attempts_max = config->attempts_max;
	lock_init(&journal->lock);
	journal->takers.stopped_ns = UINT64_MAX;
	journal->keeper.flush_ns = UINT64_MAX;
	log_init(&journal->log, disk, config->segment_bytes);
	completions_init(&journal->completions);
	compactor_init(&journal->compactor, &journal->log, &journal->lock, &journal->backlog.tasks);
	result = journal_open_parts(journal, config);
	if (result < 0) {
		journal_free(journal, false);
		return result;
	}
	*ret_journal = journal;
	return 0;
}

int timerhub_journal_open(struct timerhub_journal **ret_journal, const char *dir,
                          const struct timerhub_journal_config *config)
{
	struct timerhub_journal_config known = { .size = sizeof(known) };
	struct disk *disk;
	struct wall_timer *timer = NULL;
	int result;

	if (!ret_journal || !dir)
		return -EINVAL;
	result = journal_read_config(&known, config);
	if (result == 0)
		result = disk_real_open(&disk, dir);
	if (result < 0)
		return result;
	/* first, so that no thread starts if another process has it */
	result = disk->ops->lock(disk);
	if (result == 0)
		result = wall_timer_real_open(&timer);
	if (result < 0) {
		disk_real_close(disk);
		return result;
	}
	result = journal_open(ret_journal, disk, timer, &known, true);
	if (result < 0) {
		timer->ops->close(timer);
		disk_real_close(disk);
		return result;
	}
	(*ret_journal)->owns = true;
	return 0;
}

/* ---- close ---- */

static void journal_send_takers_away(struct timerhub_journal *journal)
{
	lock_take(&journal->lock);
	journal->takers.shut = true;
	while (journal->takers.inside > 0) {
		delivery_wake_takers(journal);
		/* a nap; it may take a wake-up of the keeper, whom keeper_stop() wakes anyhow */
		eventcount_wait(&journal->keeper.work, eventcount_number(&journal->keeper.work),
		                CLOSE_LOOK_NS);
		lock_take(&journal->lock);
	}
	lock_give(&journal->lock);
}

/* A CLOSE record: all before was stable, so a bad record before it is damage, not a torn tail. */
static void journal_sign_off(struct timerhub_journal *journal)
{
	struct record record = { .type = RECORD_CLOSE };
	uint8_t bytes[RECORD_HEADER_BYTES];
	struct log_position position;

	journal->log.stretch_bytes = 0;
	if (log_trim(&journal->log) < 0)
		return;
	record_encode(bytes, &record);
	if (log_append(&journal->log, bytes, sizeof(bytes), LOG_SYNC | LOG_SPARE, &position) == 0)
		(void)log_trim(&journal->log);
}

void timerhub_journal_close(struct timerhub_journal *journal)
{
	bool is_copy;

	if (!journal)
		return;
	is_copy = !fork_check_goes_on(&journal->fork_check);
	if (!is_copy) {
		journal_send_takers_away(journal);
		if (journal->threaded)
			keeper_stop(journal);
		else
			(void)writer_pass(journal);
		journal_sign_off(journal);
	}
	journal_free(journal, is_copy);
}
