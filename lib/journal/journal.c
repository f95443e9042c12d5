/* SPDX-License-Identifier: MIT */
/*
 * Open, close, ask. One thread opens, one closes; see journal.h for what is in between.
 */
#include "journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

#define SEGMENT_BYTES_DEFAULT (UINT64_C(16) << 20)
#define SEGMENT_BYTES_MIN UINT64_C(4096)
#define SEGMENT_BYTES_MAX (UINT64_C(4) << 30)
#define TASKS_MAX_DEFAULT (UINT32_C(1) << 20)
#define DATA_MAX_DEFAULT (UINT32_C(64) << 10)
/* What callers can gather in one batch, unless a segment or a record bids otherwise. */
#define BATCH_BYTES ((size_t)1 << 20)
/*
 * Zeros ahead of the records, in such pieces. Four times as much was no faster, and the one batch
 * that has to bring them to the disk took longer.
 */
#define STRETCH_BYTES (UINT64_C(256) << 10)
/* A caller's option struct may be as large as this; a later version's will not be larger. */
#define OPTIONS_MAX_BYTES 4096u
#define CLOSE_LOOK_NS 1000000u

/* ---- config ---- */

static int read_options(struct timerhub_journal_config *known,
                        const struct timerhub_journal_config *config)
{
	const unsigned char *bytes = (const unsigned char *)config;

	if (!config)
		return 0;
	if (config->size < sizeof(*known))
		return -EINVAL;
	if (config->size > OPTIONS_MAX_BYTES)
		return -E2BIG;
	for (size_t i = sizeof(*known); i < config->size; i++)
		if (bytes[i] != 0)
			return -E2BIG;
	*known = *config;
	return 0;
}

int journal_read_config(struct timerhub_journal_config *ret_known,
                        const struct timerhub_journal_config *config)
{
	struct timerhub_journal_config known = { .size = sizeof(known) };
	int result = read_options(&known, config);

	if (result < 0)
		return result;
	if (known.segment_bytes == 0)
		known.segment_bytes = SEGMENT_BYTES_DEFAULT;
	if (known.tasks_max == 0)
		known.tasks_max = TASKS_MAX_DEFAULT;
	if (known.data_max == 0)
		known.data_max = DATA_MAX_DEFAULT;
	if (known.flags != 0 || known.data_max > RECORD_DATA_MAX_BYTES ||
	    known.segment_bytes < SEGMENT_BYTES_MIN || known.segment_bytes > SEGMENT_BYTES_MAX ||
	    known.segment_bytes < SEGMENT_HEADER_BYTES + record_bytes(known.data_max))
		return -EINVAL;
	*ret_known = known;
	return 0;
}

/* ---- open ---- */

static void take_over(struct timerhub_journal *journal, struct replay *replay)
{
	journal->log = replay->log;
	journal->tasks = replay->tasks;
	journal->agenda = replay->agenda;
	journal->next_id = replay->log.next_id;
	journal->stats.recovered = replay->tasks.count;
	journal->stats.cut_bytes = replay->torn_bytes;
	journal->stats.disk_bytes = replay->log.bytes;
	journal->stats.segments = replay->log.count;
}

/* Room for as many tasks as put will let in, so that nothing on the way in can fail for it. */
static int reserve(struct timerhub_journal *journal, struct replay *replay)
{
	int result = tasks_reserve(&replay->tasks, journal->tasks_max);

	return result == 0 ? agenda_reserve(&replay->agenda, journal->tasks_max) : result;
}

static int recover(struct timerhub_journal *journal, uint64_t segment_bytes)
{
	struct replay replay = {
		.log = {
			.disk = journal->disk,
			.file = -1,
			.segment_bytes = segment_bytes,
			.stretch_bytes = STRETCH_BYTES,
		},
	};
	const struct alarm_ops *ops = journal->alarm->ops;
	uint64_t begin_ns = ops->monotonic_ns(journal->alarm);
	int result = reserve(journal, &replay);

	if (result == 0)
		result = replay_run(&replay, REPLAY_OPEN);
	if (result < 0) {
		replay_fini(&replay);
		return result;
	}
	take_over(journal, &replay);
	journal->stats.recovery_ns = ops->monotonic_ns(journal->alarm) - begin_ns;
	/* There may be more tasks than put would have let in. */
	if (journal->lease_ns > 0)
		result = agenda_reserve(&journal->leases, journal->agenda.capacity);
	return result;
}

static int open_batches(struct timerhub_journal *journal, uint64_t segment_bytes)
{
	size_t bytes = BATCH_BYTES;

	if (bytes < record_bytes(journal->data_max))
		bytes = record_bytes(journal->data_max);
	if (bytes > segment_bytes - SEGMENT_HEADER_BYTES)
		bytes = (size_t)segment_bytes - SEGMENT_HEADER_BYTES;
	journal->batch_bytes = bytes;
	for (unsigned i = 0; i < JOURNAL_BATCHES; i++) {
		journal->batches[i].bytes = malloc(bytes);
		if (!journal->batches[i].bytes)
			return -ENOMEM;
	}
	journal->batches[0].number = 1;
	return 0;
}

/* What open has made so far; fine on a journal opened halfway, and in a forked child. */
static void free_journal(struct timerhub_journal *journal)
{
	cleaner_fini(&journal->cleaner);
	log_close(&journal->log);
	tasks_fini(&journal->tasks);
	agenda_fini(&journal->agenda);
	agenda_fini(&journal->leases);
	for (unsigned i = 0; i < JOURNAL_BATCHES; i++)
		free(journal->batches[i].bytes);
	lock_fini(&journal->lock);
	life_close(&journal->life);
	if (journal->owns) {
		journal->alarm->ops->close(journal->alarm);
		disk_real_close(journal->disk);
	}
	free(journal);
}

static int open_parts(struct timerhub_journal *journal,
                      const struct timerhub_journal_config *config)
{
	int result = life_open(&journal->life);

	if (result == 0)
		result = open_batches(journal, config->segment_bytes);
	if (result == 0)
		result = journal->disk->ops->lock(journal->disk);
	if (result == 0)
		result = recover(journal, config->segment_bytes);
	if (result < 0)
		return result;
	journal_set_alarm(journal);
	return journal->threaded ? journal_start_writer(journal) : 0;
}

int journal_open(struct timerhub_journal **ret_journal, struct disk *disk, struct alarm *alarm,
                 const struct timerhub_journal_config *config, bool threaded)
{
	struct timerhub_journal *journal = calloc(1, sizeof(*journal));
	int result;

	if (!journal)
		return -ENOMEM;
	journal->disk = disk;
	journal->alarm = alarm;
	journal->threaded = threaded;
	journal->lease_ns = config->lease_ns;
	journal->tasks_max = config->tasks_max;
	journal->data_max = config->data_max;
	journal->log.file = -1;
	journal->cleaner.reader.file = -1;
	lock_init(&journal->lock);
	result = open_parts(journal, config);
	if (result < 0) {
		free_journal(journal);
		return result;
	}
	*ret_journal = journal;
	return 0;
}

int timerhub_journal_open(struct timerhub_journal **ret_journal, const char *dir,
                          const struct timerhub_journal_config *config)
{
	struct timerhub_journal_config known;
	struct disk *disk;
	struct alarm *alarm;
	int result;

	if (!ret_journal || !dir)
		return -EINVAL;
	result = journal_read_config(&known, config);
	if (result == 0)
		result = disk_real_open(&disk, dir, false);
	if (result < 0)
		return result;
	/* First of all: who finds the journal busy has started no thread for it. */
	result = disk->ops->lock(disk);
	if (result == 0)
		result = alarm_hub_open(&alarm);
	if (result < 0) {
		disk_real_close(disk);
		return result;
	}
	result = journal_open(ret_journal, disk, alarm, &known, true);
	if (result < 0) {
		alarm->ops->close(alarm);
		disk_real_close(disk);
		return result;
	}
	(*ret_journal)->owns = true;
	return 0;
}

/* ---- close ---- */

static void send_takers_away(struct timerhub_journal *journal)
{
	lock_take(&journal->lock);
	journal->closing = true;
	journal_set_alarm(journal);
	while (journal->inside > 0) {
		ticket_set(&journal->takers, ticket_number(&journal->takers) + 1);
		lock_give(&journal->lock);
		ticket_wake(&journal->takers, UINT32_MAX);
		ticket_wait(&journal->work, ticket_number(&journal->work), CLOSE_LOOK_NS);
		lock_take(&journal->lock);
	}
	lock_give(&journal->lock);
}

/* Says to the next open that everything before it was stable, so that damage there is damage. */
static void sign_off(struct timerhub_journal *journal)
{
	struct record record = { .type = RECORD_CLOSE };
	uint8_t bytes[RECORD_HEADER_BYTES];
	struct log_place place;

	journal->log.stretch_bytes = 0;
	if (log_trim(&journal->log) < 0)
		return;
	record_encode(bytes, &record);
	(void)log_append(&journal->log, bytes, sizeof(bytes), true, &place);
}

void timerhub_journal_close(struct timerhub_journal *journal)
{
	if (!journal)
		return;
	if (life_goes_on(&journal->life)) {
		send_takers_away(journal);
		if (journal->threaded)
			journal_stop_writer(journal);
		else
			(void)journal_pass(journal);
		sign_off(journal);
	}
	free_journal(journal);
}

/* ---- ask ---- */

int timerhub_journal_stats(struct timerhub_journal *journal,
                           struct timerhub_journal_stats *ret_stats)
{
	if (!journal || !ret_stats)
		return -EINVAL;
	if (!life_goes_on(&journal->life))
		return -EOWNERDEAD;
	lock_take(&journal->lock);
	*ret_stats = journal->stats;
	ret_stats->tasks = journal->tasks.count;
	ret_stats->data_bytes = journal->tasks.data_bytes;
	ret_stats->live_bytes = journal->tasks.live_bytes;
	ret_stats->failed = journal->failed;
	lock_give(&journal->lock);
	if (journal->owns && disk_real_has_ring(journal->disk))
		ret_stats->writer = TIMERHUB_JOURNAL_URING;
	return 0;
}

int timerhub_journal_check(const char *dir, struct timerhub_journal_report *ret_report)
{
	struct replay replay = { .log = { .file = -1 } };
	struct disk *disk;
	int result;

	if (!dir || !ret_report)
		return -EINVAL;
	result = disk_real_open(&disk, dir, true);
	if (result < 0)
		return result;
	replay.log.disk = disk;
	result = replay_run(&replay, REPLAY_LOOK);
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
