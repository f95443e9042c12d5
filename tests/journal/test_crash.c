/* SPDX-License-Identifier: MIT */
/*
 * Durability: after a crash at any point, with any loss of unsynced data, all acknowledged changes
 * are there, and each other one wholly or not at all. More than 150,000 crashes of a simulated disk
 * that loses and tears, with records of every type.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <journal/backup.h>
#include <journal/reader.h>
#include <journal/replay.h>
#include <journal/segment_names.h>
#include <journal/watermark.h>

#include "model.h"

#define STEPS 60
#define IMAGES 24
#ifndef CRASH_STATES
#define CRASH_STATES 150000
#endif

static unsigned long states, cleaning, recovering;

/* records that the crashed machines' logs had */
static struct {
	bool types[RECORD_TYPE_END];
	bool more, parked_copy, key, interval;
} seen;

static void note_records(struct sim_disk *disk, uint64_t number)
{
	struct reader reader;
	struct record record;

	if (reader_open(&reader, &disk->disk, number, false, false) == 0)
		while (reader_next(&reader, &record) == 1) {
			seen.types[record.type] = true;
			seen.more |= (record.flags & RECORD_MORE) != 0;
			seen.parked_copy |= (record.flags & RECORD_PARKED) != 0;
			seen.key |= record.key_len > 0;
			seen.interval |= record.interval_ns > 0;
		}
	reader_close(&reader);
}

static void note_log(struct sim_disk *disk)
{
	for (unsigned i = 0; i < SIM_FILES; i++) {
		const char *name = disk->names[i].name;
		char *end;
		uint64_t number = strtoull(name, &end, 16);

		if (end != name && strcmp(end, ".seg") == 0)
			note_records(disk, number);
	}
}

static bool have_seen_all(void)
{
	for (unsigned type = RECORD_PUT; type < RECORD_TYPE_END; type++)
		if (!seen.types[type])
			return false;
	return seen.more && seen.parked_copy && seen.key && seen.interval;
}

/* The seed's calls, until the disk operation crash_at. */
static bool run_until(struct model *model, struct sim_disk *disk, uint64_t seed, unsigned crash_at)
{
	sim_open(disk, seed);
	model_init(model, disk, seed);
	disk->crash_at = crash_at;
	if (model_open(model) == 0) {
		disk->watch = &model->journal->compactor.state;
		for (unsigned i = 0; i < STEPS && !disk->dead; i++) {
			if (seed % 4 < 2)
				model_churn(model);
			if (!disk->dead)
				model_step(model);
		}
		model_close(model);
	}
	return disk->dead;
}

/* Recover the journal, with a few more crashes during the recovery. */
static void open_again(struct model *model, struct sim_disk *image, struct sim_disk *other,
                       struct dice *dice)
{
	unsigned crash_at = dice_one_in(dice, 4) ? 1 + (unsigned)dice_below(dice, 4) : 0;

	image->crash_at = crash_at;
	model->disk = image;
	while (model_open(model) < 0) {
		expect(image->dead);
		sim_crash(other, image, dice);
		sim_copy(image, other);
		states++;
		recovering++;
		image->crash_at = dice_one_in(dice, 2) ? 1 + (unsigned)dice_below(dice, 4) : 0;
	}
	image->crash_at = 0;
}

static void check_image(const struct model *before, struct sim_disk *image, struct sim_disk *other,
                        struct dice *dice)
{
	struct model *model = malloc(sizeof(*model));
	unsigned more = dice_one_in(dice, 8) ? STEPS / 2 : 0;

	expect(model);
	*model = *before;
	open_again(model, image, other, dice);
	if (!image->dead)
		model_verify(model);
	/* The recovered journal must accept more calls. */
	for (unsigned i = 0; i < more && !image->dead; i++)
		model_step(model);
	model_close(model);
	if (more > 0 && !image->dead) {
		expect_eq(model_open(model), 0);
		model_verify(model);
		model_close(model);
	}
	free(model);
	states++;
}

/* The process alone is killed, another opens the journal, then the machine crashes. */
static void check_survivor(const struct model *before, const struct sim_disk *disk,
                           struct sim_disk *image, struct sim_disk *other, struct dice *dice)
{
	struct model *model = malloc(sizeof(*model));

	expect(model);
	*model = *before;
	sim_survive(image, disk);
	note_log(image);
	model->disk = image;
	expect_eq(model_open(model), 0);
	model_verify(model);
	for (uint64_t n = dice_below(dice, 6); n > 0; n--)
		model_step(model);
	model_close(model);
	sim_crash(other, image, dice);
	model->disk = other;
	expect_eq(model_open(model), 0);
	model_verify(model);
	model_close(model);
	free(model);
	states++;
}

static void crash_everywhere(uint64_t seed, unsigned images)
{
	struct sim_disk disk, image, other;
	struct model *model = malloc(sizeof(*model));
	struct dice dice = dice_new(seed * 31);
	bool died = true;

	expect(model);
	sim_open(&image, seed + 1);
	sim_open(&other, seed + 2);
	for (unsigned crash_at = 1; died; crash_at++) {
		expect_context("seed, crash at operation", seed, crash_at);
		died = run_until(model, &disk, seed, crash_at);
		for (unsigned i = 0; i < images; i++) {
			sim_crash(&image, &disk, &dice);
			check_image(model, &image, &other, &dice);
		}
		check_survivor(model, &disk, &image, &other, &dice);
		cleaning += disk.watched ? images : 0;
		sim_close(&disk);
	}
	sim_close(&image);
	sim_close(&other);
	free(model);
}

START_TEST(crash_loses_nothing_acknowledged)
{
	/*
	 * a seed is the same in every build, so a sanitizer sees nothing new after some thousands
	 */
	unsigned fewer = sanitized() ? 2 : 1;
	unsigned long most = 6UL * scaled(150000), wanted = scaled(CRASH_STATES) / fewer;
	struct dice dice = dice_new(1);

	/*
	 * until the logs had enough of each kind; half of the seeds make much work for compaction
	 */
	for (unsigned round = 0; states < wanted || cleaning < wanted / 100 ||
	                         recovering < wanted / 100 || (!have_seen_all() && states < most);
	     round++)
		crash_everywhere((dice_roll(&dice) & ~UINT64_C(3)) + round % 4,
		                 scaled(IMAGES) / fewer);
	expect(have_seen_all());
	printf("%lu crash states, %lu of them while compacting, %lu while recovering\n", states,
	       cleaning, recovering);
}
END_TEST

/* Complete if the backup had returned; otherwise complete, refused, or no journal. */
static void check_copy(struct sim_disk *image, uint32_t tasks, bool made)
{
	struct replay replay;
	int result = segment_names_find_journal(&image->disk);

	expect(result == 1 || (result == 0 && !made));
	if (result == 0)
		return;
	replay_init(&replay, &image->disk, 4096);
	result = replay_run(&replay, REPLAY_VERIFY);
	expect(result == 0 || (result == -EBADMSG && !made));
	if (result == 0)
		expect_eq(replay.tasks.count, tasks);
	replay_fini(&replay);
}

/* Returns whether it crashed before the backup returned. */
static bool copy_until(struct sim_disk *disk, uint32_t tasks, unsigned crash_at, struct dice *dice)
{
	struct sim_disk to, image;
	int result;
	bool dead;

	sim_open(&to, crash_at);
	sim_open(&image, crash_at + 1);
	to.crash_at = crash_at;
	result = backup_to(&disk->disk, &to.disk);
	dead = to.dead;
	expect(dead || result == 0);
	for (unsigned i = 0; i < IMAGES; i++) {
		sim_crash(&image, &to, dice);
		check_copy(&image, tasks, !dead);
		states++;
	}
	sim_close(&to);
	sim_close(&image);
	return dead;
}

START_TEST(backup_that_a_crash_breaks_off_is_refused)
{
	struct sim_disk disk;
	struct model *model = malloc(sizeof(*model));
	struct dice dice = dice_new(5);
	unsigned crash_at = 1;
	uint32_t tasks;

	expect(model);
	sim_open(&disk, 5);
	model_init(model, &disk, 5);
	expect_eq(model_open(model), 0);
	/* no task ends, so segments only grow */
	while (model->journal->log.count < 4)
		model_put_many(model, 4);
	tasks = model->journal->backlog.tasks.count;
	while (copy_until(&disk, tasks, crash_at, &dice))
		crash_at++;
	expect_lt(2 * 3, crash_at);
	model_close(model);
	sim_close(&disk);
	free(model);
}
END_TEST

/* the write number `flip_at` to the copy's segments flips a bit, and reports success */
static unsigned segment_writes, flip_at;
static int64_t (*plain_write)(struct disk *disk, int file, const void *bytes, size_t count,
                              uint64_t offset);

static int64_t write_flipped(struct disk *disk, int file, const void *bytes, size_t count,
                             uint64_t offset)
{
	struct sim_disk *sim = (struct sim_disk *)(void *)disk;
	int64_t written = plain_write(disk, file, bytes, count, offset);

	if (written > 0 && &sim->files[file] != sim_find(sim, WATERMARK_NAME) &&
	    ++segment_writes == flip_at)
		sim->files[file].now[offset + (uint64_t)written / 2] ^= 4;
	return written;
}

START_TEST(backup_whose_copy_is_damaged_is_refused)
{
	struct sim_disk disk;
	struct disk_ops ops;
	struct model *model = malloc(sizeof(*model));

	expect(model);
	sim_open(&disk, 6);
	ops = *disk.disk.ops;
	plain_write = ops.write;
	ops.write = write_flipped;
	model_init(model, &disk, 6);
	expect_eq(model_open(model), 0);
	while (model->journal->log.count < 4)
		model_put_many(model, 4);
	while (flip_at <= segment_writes) {
		struct sim_disk to;
		int result;

		flip_at++;
		segment_writes = 0;
		sim_open(&to, flip_at);
		to.disk.ops = &ops;
		result = backup_to(&disk.disk, &to.disk);
		expect_context("write that is damaged", flip_at, 0);
		expect(result == (flip_at <= segment_writes ? -EBADMSG : 0));
		sim_close(&to);
	}
	expect_lt(4, flip_at);
	model_close(model);
	sim_close(&disk);
	free(model);
}
END_TEST

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/*
 * As cp does: the files that are there at the beginning, by name, so the watermark's "begun" after
 * the segments, while tasks are put. Returns the last one's id.
 */
static uint64_t copy_by_file(struct sim_disk *from, struct sim_disk *to,
                             struct timerhub_journal *journal, uint64_t puts, struct dice *dice)
{
	char names[SIM_FILES][DISK_NAME_MAX];
	static const char data[900];
	unsigned count = 0;
	uint64_t id = 0;

	for (unsigned i = 0; i < SIM_FILES; i++)
		if (from->names[i].name[0] != '\0')
			(void)strcpy(names[count++], from->names[i].name);
	qsort(names, count, sizeof(names[0]), compare_names);
	for (unsigned i = 0; i < count; i++) {
		const struct sim_file *file = sim_find(from, names[i]);

		if (file)
			sim_plant(to, names[i], file->now, file->size);
		for (; puts > 0 && dice_one_in(dice, 2); puts--)
			expect_eq(timerhub_journal_put(journal, HOUR, 0, data, sizeof(data), &id),
			          0);
		/* so that compaction drops files */
		if (puts > 0) {
			uint64_t ended = 0;

			expect_eq(
				timerhub_journal_put(journal, HOUR, 0, data, sizeof(data), &ended),
				0);
			expect_eq(timerhub_journal_cancel(journal, ended), 0);
		}
	}
	return id;
}

/* It is no backup: if it lacks a task put before the last file was copied, open must refuse it. */
START_TEST(copy_made_file_by_file_lacks_nothing_or_is_refused)
{
	struct model *model = malloc(sizeof(*model));
	struct dice dice = dice_new(7);
	unsigned refused = 0, rounds = scaled(300);

	expect(model);
	for (unsigned round = 0; round < rounds; round++) {
		struct sim_disk disk, to;
		struct replay replay;
		uint64_t ids[8], last;
		int result;

		sim_open(&disk, dice_roll(&dice));
		sim_open(&to, 1);
		model_init(model, &disk, 7);
		expect_eq(model_open(model), 0);
		for (unsigned i = 0; i < COUNT_OF(ids); i++) {
			model_churn(model);
			expect_eq(timerhub_journal_put(model->journal, HOUR, 0, "kept", 4, &ids[i]),
			          0);
		}
		last = copy_by_file(&disk, &to, model->journal, dice_below(&dice, 4), &dice);
		replay_init(&replay, &to.disk, 4096);
		result = replay_run(&replay, REPLAY_VERIFY);
		expect_context("round", round, 0);
		expect(result == 0 || result == -EBADMSG);
		for (unsigned i = 0; result == 0 && i < COUNT_OF(ids); i++)
			expect(tasks_find(&replay.tasks, ids[i]));
		expect(result < 0 || last == 0 || tasks_find(&replay.tasks, last));
		refused += result < 0;
		replay_fini(&replay);
		model_close(model);
		sim_close(&disk);
		sim_close(&to);
	}
	expect_lt(0, refused);
	expect_lt(refused, rounds);
	free(model);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("crash", argc, argv);
	tests_add(crash_loses_nothing_acknowledged, 240);
	tests_add(backup_that_a_crash_breaks_off_is_refused, 60);
	tests_add(backup_whose_copy_is_damaged_is_refused, 60);
	tests_add(copy_made_file_by_file_lacks_nothing_or_is_refused, 60);
	return tests_run();
}
