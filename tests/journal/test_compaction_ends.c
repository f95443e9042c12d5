/* SPDX-License-Identifier: MIT */
/*
 * Compaction ends between two changes, for many sizes of segments and tasks and many tasks that end
 * in one write: random changes on a simulated disk; one thread writes and counts the steps.
 */
#include <errno.h>
#include <journal/open.h>
#include <string.h>

#include "model.h"

#define TASKS 1500
#define DATA_MAX 2000
#define ROUNDS 12
#define SEGMENTS_LIVE 50 /* the live tasks fill at most this many segments */

struct trial {
	struct sim_disk disk;
	struct test_timer timer;
	struct timerhub_journal *journal;
	struct dice dice;
	uint64_t ids[TASKS]; /* ids of the live tasks */
	unsigned count;
	uint32_t data_max;
	unsigned data_bits; /* largest number of bits of a task's size in this run */
	struct disk_ops ops;
	const struct disk_ops *plain;
	bool keeps_spare; /* the disk refuses to shrink the spare file */
	uint64_t written; /* bytes written since the last call of rest() */
	uint64_t written_max;
};

static struct trial life;

/* Counts and bounds each write: a faulty step might write without end. */
static int64_t count_write(struct disk *disk, int file, const void *bytes, size_t count,
                           uint64_t offset)
{
	life.written += count;
	expect_le(life.written, life.written_max);
	return life.plain->write(disk, file, bytes, count, offset);
}

static int keep_spare(struct disk *disk, int file, uint64_t bytes)
{
	if (life.keeps_spare && &life.disk.files[file] == sim_find(&life.disk, "spare"))
		return -EROFS;
	return life.plain->truncate(disk, file, bytes);
}

static void open_life(uint64_t seed)
{
	struct timerhub_journal_config config = { .size = sizeof(config), .tasks_max = TASKS };

	life = (struct trial){ .dice = dice_new(seed) };
	config.segment_bytes = 4096 + (dice_magnitude(&life.dice, 16) & ~UINT64_C(7));
	config.data_max = DATA_MAX;
	life.data_bits = (unsigned)dice_below(&life.dice, 12);
	sim_open(&life.disk, seed);
	life.plain = life.disk.disk.ops;
	life.ops = *life.plain;
	life.ops.write = count_write;
	life.ops.truncate = keep_spare;
	life.written_max = UINT64_MAX;
	life.disk.disk.ops = &life.ops;
	test_timer_open(&life.timer, SEC);
	expect_eq(journal_read_config(&config, &config), 0);
	expect_eq(journal_open(&life.journal, &life.disk.disk, &life.timer.timer, &config, false),
	          0);
}

static void close_life(void)
{
	life.written_max = UINT64_MAX;
	timerhub_journal_close(life.journal);
	sim_close(&life.disk);
}

/*
 * Until compaction has no work: it copies each live task a few times at most, and then the files
 * are within their bound.
 */
static void rest(void)
{
	struct timerhub_journal *journal = life.journal;

	life.written = 0;
	life.written_max = 4 * log_disk_bytes(&journal->log) + 16 * journal->log.segment_bytes;
	while (writer_pass(journal)) {
	}
	if (life.keeps_spare)
		return;
	expect_le(sim_bytes(&life.disk),
	          2 * journal->backlog.tasks.live_bytes + 2 * journal->log.segment_bytes);
}

/* Writes the open batch first if they do not fit. */
static void submit(struct timerhub_journal_change *changes, unsigned count)
{
	struct timerhub_journal_completion completions[64];

	if (timerhub_journal_submit(life.journal, changes, count, 0) == -EAGAIN) {
		rest();
		expect_eq(timerhub_journal_submit(life.journal, changes, count, 0), 0);
	}
	while (timerhub_journal_completions(life.journal, completions, COUNT_OF(completions)) > 0) {
	}
}

static void put_some(unsigned count)
{
	static const uint8_t data[DATA_MAX];

	uint64_t most = SEGMENTS_LIVE * life.journal->log.segment_bytes;

	while (count-- > 0 && life.count < TASKS && life.journal->backlog.tasks.live_bytes < most) {
		struct timerhub_journal_change put = {
			.op = TIMERHUB_JOURNAL_PUT,
			.when_ns = HOUR,
			.data = data,
			.data_len = (size_t)dice_magnitude(&life.dice, life.data_bits),
		};

		if (put.data_len > DATA_MAX)
			put.data_len = DATA_MAX;
		submit(&put, 1);
		/* ids come in order */
		life.ids[life.count++] = life.journal->backlog.next_id - 1;
	}
}

/* As many in each write as fit in a batch. */
static void end_some(unsigned count)
{
	while (count-- > 0 && life.count > 0) {
		unsigned at = (unsigned)dice_below(&life.dice, life.count);
		struct timerhub_journal_change cancel = { .op = TIMERHUB_JOURNAL_CANCEL,
			                                  .id = life.ids[at] };

		submit(&cancel, 1);
		life.ids[at] = life.ids[--life.count];
	}
}

static unsigned some(void)
{
	return (unsigned)dice_magnitude(&life.dice, 11);
}

static void live(unsigned lives, bool keeps_spare)
{
	struct dice dice = dice_new(1);

	for (unsigned i = 0; i < lives; i++) {
		open_life(dice_roll(&dice));
		life.keeps_spare = keeps_spare;
		expect_context("life, segment", i, life.journal->log.segment_bytes);
		for (unsigned round = 0; round < ROUNDS; round++) {
			put_some(some());
			rest();
			end_some(some());
			rest();
		}
		close_life();
	}
}

START_TEST(compaction_comes_to_rest_whatever_ends_in_one_write)
{
	live(scaled(200), false);
}
END_TEST

/* Compaction must not try to free bytes that are no records. */
START_TEST(compaction_comes_to_rest_on_a_disk_that_is_full_of_other_things)
{
	live(scaled(50), true);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("compaction", argc, argv);
	tests_add(compaction_comes_to_rest_whatever_ends_in_one_write, 240);
	tests_add(compaction_comes_to_rest_on_a_disk_that_is_full_of_other_things, 240);
	return tests_run();
}
