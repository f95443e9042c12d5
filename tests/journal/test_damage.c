/* SPDX-License-Identifier: MIT */
/*
 * Recovery of damaged files: a torn tail is cut off; damage before the end is refused, with its
 * place; no task is ever made up. One test moves the wall clock by a day.
 */
#include <errno.h>
#include <journal/reader.h>
#include <journal/replay.h>
#include <journal/watermark.h>
#include <limits.h>
#include <repair.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define SEGMENT "0000000000000001.seg"
#define BEGUN WATERMARK_NAME
#define RECORDS 20
#define MANY 80 /* number of records that fill two segments */

struct bench {
	struct sim_disk disk, image;
	struct model model;
	uint64_t offsets[RECORDS + 2]; /* offset of each record, and of the end of the records */
	unsigned count;
};

/* Puts one after another, and notes the records' offsets. */
static struct bench *bench_new(unsigned puts)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct reader reader;
	struct record record;

	expect(bench);
	sim_open(&bench->disk, 1);
	sim_open(&bench->image, 2);
	model_init(&bench->model, &bench->disk, 3);
	expect_eq(model_open(&bench->model), 0);
	for (unsigned i = 0; i < puts; i++) {
		uint64_t when_ns = (i + 1) * SEC;

		expect_eq(timerhub_journal_put(bench->model.journal, when_ns, 0, "some data",
		                               i % 10, NULL),
		          0);
	}
	expect_eq(reader_open(&reader, &bench->disk.disk, 1, false, false), 0);
	do
		bench->offsets[bench->count++] = reader.offset;
	while (reader_next(&reader, &record) == 1);
	bench->count--;
	expect_eq(bench->count, puts);
	reader_close(&reader);
	return bench;
}

static void bench_free(struct bench *bench)
{
	bench->model.disk = &bench->disk;
	model_close(&bench->model);
	sim_close(&bench->disk);
	sim_close(&bench->image);
	free(bench);
}

static int replay_image(struct bench *bench, struct replay *replay, enum replay_mode mode)
{
	replay_init(replay, &bench->image.disk, 4096);
	return replay_run(replay, mode);
}

/* Returns the copy's first segment, to be damaged. */
static struct sim_file *damaged_file(struct bench *bench)
{
	sim_copy(&bench->image, &bench->disk);
	return sim_find(&bench->image, SEGMENT);
}

/* As after a crash, since watermarks are rarely synced. */
static void set_mark(struct bench *bench, uint64_t sequence)
{
	struct disk *disk = &bench->image.disk;
	uint64_t bytes = 0;
	int file = disk->ops->open(disk, WATERMARK_NAME, true, &bytes);

	expect_le(0, file);
	expect_eq(watermark_write(disk, file, sequence), 0);
}

/* From where, at least `from`, the file has only zeros. */
static uint64_t zeros_from(const struct sim_file *file, uint64_t from)
{
	uint64_t at = file->size;

	while (at > from && file->now[at - 1] == 0)
		at--;
	return at;
}

START_TEST(every_byte_of_the_last_three_records_cut)
{
	struct bench *bench = bench_new(RECORDS);
	uint64_t end = bench->offsets[bench->count];

	for (uint64_t size = bench->offsets[bench->count - 3]; size <= end; size++) {
		struct sim_file *file = damaged_file(bench);
		struct replay replay;
		uint64_t torn_to;
		unsigned whole = 0;

		while (whole < bench->count && bench->offsets[whole + 1] <= size)
			whole++;
		set_mark(bench, RECORDS - 3);
		file->size = (uint32_t)size;
		torn_to = zeros_from(file, bench->offsets[whole]);
		expect_eq(replay_image(bench, &replay, REPLAY_OPEN), 0);
		expect_context("size", size, whole);
		expect_eq(replay.tasks.count, whole);
		expect_eq(replay.torn_bytes, torn_to - bench->offsets[whole]);
		expect_eq(file->size, bench->offsets[whole]);
		replay_fini(&replay);
	}
	bench_free(bench);
}
END_TEST

/* ---- zeros ahead ---- */

START_TEST(zeros_ahead_are_the_end_and_nothing_torn)
{
	static const enum replay_mode modes[] = { REPLAY_VERIFY, REPLAY_SALVAGE, REPLAY_OPEN };
	struct bench *bench = bench_new(RECORDS);
	uint64_t end = bench->offsets[RECORDS];
	struct sim_file *file = damaged_file(bench);
	uint64_t size = file->size;

	expect_lt(end, size);
	for (unsigned i = 0; i < COUNT_OF(modes); i++) {
		struct replay replay;

		expect_eq(replay_image(bench, &replay, modes[i]), 0);
		expect_eq(replay.tasks.count, RECORDS);
		expect_eq(replay.torn_bytes + replay.lost_bytes, 0);
		expect(replay.fault == NULL);
		expect_eq(replay.ahead_bytes, modes[i] == REPLAY_SALVAGE ? 0 : size - end);
		replay_fini(&replay);
	}
	/* the zeros are cut off: perhaps no sync has made them stable */
	expect_eq(file->size, end);
	bench_free(bench);
}
END_TEST

START_TEST(last_records_zeroed_from_any_byte_are_torn)
{
	struct bench *bench = bench_new(RECORDS);
	uint64_t end = bench->offsets[RECORDS];

	for (uint64_t from = bench->offsets[RECORDS - 3]; from <= end; from++) {
		struct sim_file *file = damaged_file(bench);
		const uint8_t *was = sim_find(&bench->disk, SEGMENT)->now;
		struct replay replay;
		unsigned whole = 0;
		uint64_t torn_to;

		set_mark(bench, RECORDS - 3);
		memset(file->now + from, 0, end - from);
		while (whole < RECORDS &&
		       memcmp(file->now, was, (size_t)bench->offsets[whole + 1]) == 0)
			whole++;
		torn_to = zeros_from(file, bench->offsets[whole]);
		expect_context("from", from, whole);
		expect_eq(replay_image(bench, &replay, REPLAY_OPEN), 0);
		expect_eq(replay.tasks.count, whole);
		expect_eq(replay.torn_bytes, torn_to - bench->offsets[whole]);
		expect_eq(file->size, bench->offsets[whole]);
		replay_fini(&replay);
	}
	bench_free(bench);
}
END_TEST

START_TEST(any_byte_among_zeros_ahead_is_torn_and_cut)
{
	struct bench *bench = bench_new(RECORDS);
	uint64_t end = bench->offsets[RECORDS];

	for (uint64_t at = end; at < sim_find(&bench->disk, SEGMENT)->size; at++) {
		struct sim_file *file = damaged_file(bench);
		struct replay replay;

		file->now[at] = (uint8_t)(1 + at % 255);
		expect_context("at", at, end);
		expect_eq(replay_image(bench, &replay, REPLAY_VERIFY), 0);
		expect_eq(replay.torn_bytes, at + 1 - end);
		expect_eq(replay.ahead_bytes, file->size - at - 1);
		replay_fini(&replay);
		expect_eq(replay_image(bench, &replay, REPLAY_OPEN), 0);
		expect_eq(replay.tasks.count, RECORDS);
		expect_eq(file->size, end);
		replay_fini(&replay);
	}
	bench_free(bench);
}
END_TEST

/*
 * With the records from `from` to `to` damaged, open refuses and names `from`, salvage saves the
 * rest.
 */
static void expect_only_that_is_lost(struct bench *bench, uint64_t from, uint64_t to)
{
	struct replay replay;

	expect(replay_image(bench, &replay, REPLAY_OPEN) == -EBADMSG);
	expect(replay.fault != NULL);
	expect_eq(replay.fault_segment, 1);
	expect_eq(replay.fault_offset, from);
	replay_fini(&replay);
	expect_eq(replay_image(bench, &replay, REPLAY_SALVAGE), 0);
	expect_eq(replay.tasks.count, RECORDS - 1);
	expect_eq(replay.lost_bytes, to - from);
	replay_fini(&replay);
}

/* Zeros look like the log's end; only later records show that the sector was stable. */
START_TEST(record_zeroed_is_damage_if_one_behind_it_was_stable_later)
{
	struct bench *bench = bench_new(RECORDS);

	for (unsigned i = 0; i < RECORDS - 1; i++) {
		uint64_t from = bench->offsets[i], to = bench->offsets[i + 1];
		struct sim_file *file = damaged_file(bench);

		memset(file->now + from, 0, to - from);
		expect_context("record", i, 0);
		expect_only_that_is_lost(bench, from, to);
	}
	bench_free(bench);
}
END_TEST

START_TEST(record_zeroed_is_torn_if_it_and_all_behind_it_are_of_one_batch)
{
	struct bench *bench = bench_new(RECORDS);
	struct reader reader;
	struct record record;
	uint64_t offsets[9] = { 0 };

	model_put_many(&bench->model, COUNT_OF(offsets) - 1);
	expect_eq(reader_open(&reader, &bench->disk.disk, 1, false, false), 0);
	reader.offset = bench->offsets[RECORDS];
	for (unsigned i = 0; i < COUNT_OF(offsets); i++) {
		offsets[i] = reader.offset;
		expect_eq(reader_next(&reader, &record) == 1, i < COUNT_OF(offsets) - 1);
	}
	reader_close(&reader);
	for (unsigned i = 0; i < COUNT_OF(offsets) - 1; i++) {
		struct sim_file *file = damaged_file(bench);
		struct replay replay;

		set_mark(bench, RECORDS);
		memset(file->now + offsets[i], 0, offsets[i + 1] - offsets[i]);
		expect_context("record of the batch", i, offsets[i]);
		expect_eq(replay_image(bench, &replay, REPLAY_OPEN), 0);
		expect_eq(replay.tasks.count, RECORDS + i);
		expect_eq(file->size, offsets[i]);
		replay_fini(&replay);
	}
	bench_free(bench);
}
END_TEST

/* ---- damage before the end ---- */

START_TEST(every_bit_of_a_record_flipped_is_refused_at_its_place)
{
	struct bench *bench = bench_new(RECORDS);
	uint64_t from = bench->offsets[9], to = bench->offsets[10];

	for (uint64_t bit = from * 8; bit < to * 8; bit++) {
		damaged_file(bench)->now[bit / 8] ^= (uint8_t)(1 << bit % 8);
		expect_context("bit", bit, from);
		expect_only_that_is_lost(bench, from, to);
	}
	bench_free(bench);
}
END_TEST

/* ---- the mark ---- */

/* The log ends too early: open refuses it at this offset, and leaves the file. */
static void expect_short(struct bench *bench, unsigned whole)
{
	const struct sim_file *file = sim_find(&bench->image, SEGMENT);
	uint32_t size = file->size;
	struct replay replay;

	expect(replay_image(bench, &replay, REPLAY_VERIFY) == -EBADMSG);
	expect_eq(replay.fault_offset, bench->offsets[whole]);
	expect(replay.fault != NULL);
	replay_fini(&replay);
	expect(replay_image(bench, &replay, REPLAY_OPEN) == -EBADMSG);
	expect_eq(file->size, size);
	replay_fini(&replay);
	expect_eq(replay_image(bench, &replay, REPLAY_SALVAGE), 0);
	expect_eq(replay.tasks.count, whole);
	expect_le(RECORDS, replay.log.sequence);
	replay_fini(&replay);
}

START_TEST(log_that_ends_before_its_mark_is_refused)
{
	struct bench *bench = bench_new(RECORDS);
	uint64_t end = bench->offsets[RECORDS];

	for (uint64_t size = bench->offsets[RECORDS - 3]; size < end; size++) {
		struct sim_file *file = damaged_file(bench);
		unsigned whole = 0;

		while (bench->offsets[whole + 1] <= size)
			whole++;
		expect_context("size", size, whole);
		file->size = (uint32_t)size;
		expect_short(bench, whole);
		file = damaged_file(bench);
		memset(file->now + size, 0, file->size - size);
		/* zeros over an end of zeros are no damage */
		while (memcmp(file->now, sim_find(&bench->disk, SEGMENT)->now,
		              (size_t)bench->offsets[whole + 1]) == 0 &&
		       whole < RECORDS)
			whole++;
		if (whole < RECORDS)
			expect_short(bench, whole);
	}
	bench_free(bench);
}
END_TEST

START_TEST(last_record_of_a_life_is_vouched_for_by_the_first_of_the_next)
{
	struct bench *bench = bench_new(RECORDS);
	struct model *next = calloc(1, sizeof(*next));
	struct sim_disk *later = calloc(1, sizeof(*later));
	struct replay replay;

	expect(next && later);
	sim_open(later, 3);
	sim_copy(&bench->image, &bench->disk); /* copy of the disk after a kill of the process */
	model_init(next, &bench->image, 4);
	expect_eq(model_open(next), 0);
	expect_eq(timerhub_journal_put(next->journal, HOUR, 0, NULL, 0, NULL), 0);
	sim_copy(later, &bench->image);
	memset(sim_find(later, WATERMARK_NAME)->now, 0, WATERMARK_BYTES);
	sim_find(later, SEGMENT)->now[bench->offsets[RECORDS - 1]] ^= 1;
	replay_init(&replay, &later->disk, 4096);
	expect(replay_run(&replay, REPLAY_OPEN) == -EBADMSG);
	expect_eq(replay.fault_offset, bench->offsets[RECORDS - 1]);
	replay_fini(&replay);
	model_close(next);
	sim_close(later);
	free(later);
	free(next);
	bench_free(bench);
}
END_TEST

/* After any crash its stable contents are a watermark of at least `sequence`. */
static void expect_mark(struct bench *bench, uint64_t sequence)
{
	struct dice dice = dice_new(sequence);
	uint64_t marked = 0;
	bool is_there = false;

	for (unsigned i = 0; i < 20; i++) {
		sim_crash(&bench->image, &bench->disk, &dice);
		expect(sim_find(&bench->image, WATERMARK_NAME) != NULL);
	}
	sim_copy(&bench->image, &bench->disk);
	memcpy(sim_find(&bench->image, WATERMARK_NAME)->now,
	       sim_find(&bench->disk, WATERMARK_NAME)->stable, WATERMARK_BYTES);
	expect_eq(watermark_read(&bench->image.disk, &is_there, &marked), 0);
	expect(is_there);
	expect_le(sequence, marked);
}

START_TEST(mark_is_stable_at_open_at_close_and_when_a_segment_is_full)
{
	struct bench *bench = bench_new(0);
	struct model *model = &bench->model;
	unsigned rotations = 0;
	uint64_t last = 0;

	expect_mark(bench, 0);
	while (rotations < 3) {
		const struct log *log = &model->journal->log;
		uint64_t number = log_last(&model->journal->log)->number, before = log->sequence;
		char data[400] = { 0 };

		expect_eq(timerhub_journal_put(model->journal, HOUR, 0, data, sizeof(data), NULL),
		          0);
		last = log->sequence;
		if (log_last(&model->journal->log)->number == number)
			continue;
		rotations++;
		expect_mark(bench, before);
	}
	model_close(model);
	expect_mark(bench, last + 1);
	bench_free(bench);
}
END_TEST

/* The records alone then decide. */
START_TEST(mark_that_is_damaged_refuses_nothing)
{
	struct bench *bench = bench_new(RECORDS);

	for (unsigned bit = 0; bit < WATERMARK_BYTES * 8; bit++) {
		struct replay replay;

		damaged_file(bench)->size = (uint32_t)bench->offsets[RECORDS - 1];
		sim_find(&bench->image, WATERMARK_NAME)->now[bit / 8] ^= (uint8_t)(1 << bit % 8);
		expect_context("bit", bit, 0);
		expect_eq(replay_image(bench, &replay, REPLAY_VERIFY), 0);
		expect_eq(replay.tasks.count, RECORDS - 1);
		replay_fini(&replay);
	}
	bench_free(bench);
}
END_TEST

/* ---- headers, sectors, numbers ---- */

START_TEST(header_with_any_bit_flipped_costs_no_task_but_is_refused)
{
	struct bench *bench = bench_new(RECORDS);

	for (unsigned bit = 0; bit < SEGMENT_HEADER_BYTES * 8; bit++) {
		struct replay replay;
		int result;

		damaged_file(bench)->now[bit / 8] ^= (uint8_t)(1 << bit % 8);
		expect_context("bit", bit, 0);
		result = replay_image(bench, &replay, REPLAY_OPEN);
		expect(result == -EBADMSG || result == -EOPNOTSUPP);
		replay_fini(&replay);
		expect_eq(replay_image(bench, &replay, REPLAY_SALVAGE), 0);
		expect_eq(replay.tasks.count, RECORDS);
		expect_eq(replay.lost_bytes, SEGMENT_HEADER_BYTES);
		replay_fini(&replay);
	}
	/* Overwrite the first record. */
	memset(damaged_file(bench)->now, 0xaa, (size_t)bench->offsets[1]);
	{
		struct sim_file *file;
		struct replay replay;

		expect_eq(replay_image(bench, &replay, REPLAY_SALVAGE), 0);
		expect_eq(replay.tasks.count, RECORDS - 1);
		expect_eq(replay.lost_bytes, bench->offsets[1]);
		replay_fini(&replay);
		/* Overwrite the whole file. */
		file = damaged_file(bench);
		memset(file->now, 0xaa, file->size);
		expect_eq(replay_image(bench, &replay, REPLAY_SALVAGE), 0);
		expect_eq(replay.tasks.count, 0);
		expect_eq(replay.lost_bytes, file->size);
		replay_fini(&replay);
	}
	bench_free(bench);
}
END_TEST

/*
 * Salvage reads an unreadable sector as zeros, so what was zero there is not lost, such as a
 * checksum's last byte.
 */
static bool is_spared(const struct sim_file *file, uint64_t from, uint64_t to, uint64_t sector)
{
	if (from < sector)
		from = sector;
	if (to > sector + SIM_SECTOR)
		to = sector + SIM_SECTOR;
	while (from < to && file->now[from] == 0)
		from++;
	return from >= to;
}

START_TEST(sector_that_cannot_be_read_costs_the_tasks_in_it)
{
	struct bench *bench = bench_new(RECORDS);
	const struct sim_file *file = damaged_file(bench);
	struct replay replay;
	unsigned kept = 0;

	/* any byte of a bad sector fails */
	bench->image.bad_from = 2 * SIM_SECTOR;
	bench->image.bad_to = 3 * SIM_SECTOR;
	for (unsigned i = 0; i < RECORDS; i++)
		kept += is_spared(file, bench->offsets[i], bench->offsets[i + 1], 2 * SIM_SECTOR);
	expect_lt(kept, RECORDS);
	expect(replay_image(bench, &replay, REPLAY_VERIFY) == -EIO);
	replay_fini(&replay);
	expect_eq(replay_image(bench, &replay, REPLAY_SALVAGE), 0);
	expect_eq(replay.tasks.count, kept);
	replay_fini(&replay);
	bench_free(bench);
}
END_TEST

/* Another process's unfinished write looks like damage, until the second reading. */
START_TEST(journal_in_use_is_looked_at_again)
{
	struct bench *bench = bench_new(RECORDS);
	struct replay replay;

	for (unsigned opens = 1; opens < 30; opens++) {
		(void)damaged_file(bench);
		bench->image.zero_from = bench->offsets[4];
		bench->image.zero_to = bench->offsets[5];
		bench->image.zero_opens = opens;
		expect_context("opens", opens, 0);
		/* two readings of three opens each */
		expect_eq(replay_image(bench, &replay, REPLAY_VERIFY) == 0, opens < 7);
		replay_fini(&replay);
	}
	bench_free(bench);
}
END_TEST

/* PUT records with a byte in the bad sector. */
static unsigned tasks_in_sector(struct bench *bench, uint64_t number, uint64_t sector)
{
	char name[DISK_NAME_MAX];
	const struct sim_file *file;
	struct reader reader;
	struct record record;
	unsigned count = 0;
	uint64_t begin;

	segment_name(name, number);
	file = sim_find(&bench->image, name);
	expect_eq(reader_open(&reader, &bench->image.disk, number, false, false), 0);
	for (begin = reader.offset; reader_next(&reader, &record) == 1; begin = reader.offset)
		count += record.type == RECORD_PUT &&
		         !is_spared(file, begin, reader.offset, sector * SIM_SECTOR);
	reader_close(&reader);
	return count;
}

/* All other tasks survive. */
static void repair_around_bad_sector(struct bench *bench, uint64_t number, uint64_t sector)
{
	struct repair_report report = { .tasks = 0 };
	struct replay replay;
	char name[DISK_NAME_MAX];
	unsigned lost;

	segment_name(name, number);
	expect_context("segment, sector", number, sector);
	sim_copy(&bench->image, &bench->disk);
	lost = tasks_in_sector(bench, number, sector);
	bench->image.bad_file = sim_find(&bench->image, name);
	bench->image.bad_from = sector * SIM_SECTOR;
	bench->image.bad_to = (sector + 1) * SIM_SECTOR;
	expect_eq(repair_run(&bench->image.disk, &report), 0);
	expect(!report.was_whole);
	expect_eq(report.tasks, MANY - lost);
	expect_eq(replay_image(bench, &replay, REPLAY_OPEN), 0);
	expect_eq(replay.tasks.count, MANY - lost);
	replay_fini(&replay);
	bench->image.locked = false;
	bench->image.bad_to = 0;
	bench->image.bad_file = NULL;
}

START_TEST(sector_that_cannot_be_read_costs_its_own_records_at_repair)
{
	struct bench *bench = bench_new(0);

	for (unsigned i = 0; i < MANY; i++)
		expect_eq(timerhub_journal_put(bench->model.journal, SEC, 0, "some data", 9, NULL),
		          0);
	expect_lt(1, bench->model.journal->log.count);
	model_close(&bench->model);
	for (uint64_t number = 1; number <= 2; number++) {
		char name[DISK_NAME_MAX];

		segment_name(name, number);
		for (uint64_t sector = 0; sector * SIM_SECTOR < sim_find(&bench->disk, name)->size;
		     sector++)
			repair_around_bad_sector(bench, number, sector);
	}
	expect_eq(model_open(&bench->model), 0);
	bench_free(bench);
}
END_TEST

START_TEST(put_of_a_key_ends_its_old_task_whose_end_is_damaged)
{
	struct bench *bench = bench_new(0);
	struct timerhub_journal *journal = bench->model.journal;
	struct replay replay;
	uint64_t first = 0, second = 0, cancel_at;

	expect_eq(timerhub_journal_put_key(journal, "key", 3, SEC, 0, NULL, 0, &first), 0);
	cancel_at = log_last(&journal->log)->bytes;
	expect_eq(timerhub_journal_cancel(journal, first), 0);
	expect_eq(timerhub_journal_put_key(journal, "key", 3, SEC, 0, NULL, 0, &second), 0);
	sim_copy(&bench->image, &bench->disk);
	sim_find(&bench->image, SEGMENT)->now[cancel_at + 20] ^= 1;
	expect_eq(replay_image(bench, &replay, REPLAY_SALVAGE), 0);
	expect_lt(0, replay.lost_bytes);
	expect_eq(replay.tasks.count, 1);
	expect_eq(replay.agenda.count, 1);
	expect_eq(tasks_find_key(&replay.tasks, "key", 3)->id, second);
	replay_fini(&replay);
	bench_free(bench);
}
END_TEST

/* how often open_then_cut() reports too large a size */
static unsigned cut_opens;
static int (*plain_open)(struct disk *disk, const char *name, bool write, uint64_t *ret_bytes);

static int open_then_cut(struct disk *disk, const char *name, bool write, uint64_t *ret_bytes)
{
	int result = plain_open(disk, name, write, ret_bytes);

	if (result >= 0 && cut_opens > 0 && strcmp(name, SEGMENT) == 0) {
		*ret_bytes += SIM_SECTOR;
		cut_opens--;
	}
	return result;
}

/* The writer may cut a segment's zeros while another reads it: a second reading finds no fault. */
START_TEST(segment_that_is_cut_while_it_is_read_is_read_again_or_refused)
{
	struct bench *bench = bench_new(RECORDS);
	struct disk_ops ops = *bench->image.disk.ops;
	struct replay replay;

	plain_open = ops.open;
	ops.open = open_then_cut;
	bench->image.disk.ops = &ops;
	(void)damaged_file(bench);
	cut_opens = 1;
	expect_eq(replay_image(bench, &replay, REPLAY_VERIFY), 0);
	expect_eq(replay.tasks.count, RECORDS);
	expect_eq(cut_opens, 0);
	replay_fini(&replay);
	for (enum replay_mode mode = REPLAY_OPEN; mode <= REPLAY_VERIFY; mode++) {
		cut_opens = UINT_MAX;
		expect(replay_image(bench, &replay, mode) == -EIO);
		replay_fini(&replay);
	}
	cut_opens = 0;
	bench_free(bench);
}
END_TEST

START_TEST(numbers_beyond_2_to_the_63_are_not_believed)
{
	static const struct record records[] = {
		{ .type = RECORD_PUT, .id = RECORD_NUMBER_END, .due_ns = 1, .sequence = 1 },
		{ .type = RECORD_PUT, .id = UINT64_MAX, .due_ns = 1, .sequence = 1 },
		{ .type = RECORD_PUT, .id = 1, .due_ns = 1, .sequence = RECORD_NUMBER_END },
		{ .type = RECORD_PUT, .id = 1, .due_ns = 1, .sequence = UINT64_MAX },
	};

	for (unsigned i = 0; i < COUNT_OF(records); i++) {
		uint8_t bytes[RECORD_HEADER_BYTES];
		struct record found;
		size_t size;

		record_encode(bytes, &records[i]);
		(void)record_seal(bytes, 7, records[i].sequence, records[i].sequence - 1);
		expect_eq(record_decode(bytes, sizeof(bytes), 7, &found, &size), RECORD_BAD);
	}
	for (unsigned field = 0; field < 4; field++) {
		uint64_t large = RECORD_NUMBER_END + 1;
		struct segment_header header = { FORMAT_VERSION, 1, 1, 1, 1, 1 };
		uint8_t bytes[SEGMENT_HEADER_BYTES];

		*(uint64_t *[]){ &header.number, &header.oldest, &header.first_sequence,
			         &header.next_id }[field] = large;
		segment_header_encode(bytes, &header);
		expect(segment_header_decode(bytes, &header) == -EBADMSG);
	}
}
END_TEST

/* The last sequence number can still be written. */
START_TEST(ids_that_are_used_up_are_refused)
{
	struct bench *bench = bench_new(0);
	struct timerhub_journal *journal = bench->model.journal;
	uint64_t id = 0;

	journal->backlog.next_id = RECORD_NUMBER_END - 1;
	expect_eq(timerhub_journal_put(journal, SEC, 0, NULL, 0, &id), 0);
	expect_eq(id, RECORD_NUMBER_END - 1);
	expect(timerhub_journal_put(journal, SEC, 0, NULL, 0, &id) == -EOVERFLOW);
	model_close(&bench->model);
	expect_eq(model_open(&bench->model), 0);
	journal = bench->model.journal;
	expect(timerhub_journal_put(journal, SEC, 0, NULL, 0, &id) == -EOVERFLOW);
	journal->log.sequence = RECORD_NUMBER_END - 2;
	expect(timerhub_journal_cancel(journal, id) == 0);
	expect(journal->log.sequence == RECORD_NUMBER_END - 1);
	bench_free(bench);
}
END_TEST

START_TEST(commit_of_more_puts_than_there_are_ids_is_refused)
{
	struct timerhub_journal_change changes[2] = { { .op = TIMERHUB_JOURNAL_PUT },
		                                      { .op = TIMERHUB_JOURNAL_PUT } };
	struct bench *bench = bench_new(0);

	bench->model.journal->backlog.next_id = RECORD_NUMBER_END - 1;
	expect_eq(timerhub_journal_commit(bench->model.journal, changes, 2), -EOVERFLOW);
	expect_eq(timerhub_journal_commit(bench->model.journal, changes, 1), 0);
	expect_eq(changes[0].id, RECORD_NUMBER_END - 1);
	model_close(&bench->model);
	expect_eq(model_open(&bench->model), 0);
	expect_eq(bench->model.journal->backlog.tasks.count, 1);
	bench_free(bench);
}
END_TEST

/*
 * A right checksum and impossible contents: cut off, its task would be lost and its id used again.
 */
START_TEST(record_that_cannot_be_is_refused_and_not_cut)
{
	static const struct record records[] = {
		{ .type = RECORD_PUT, .id = UINT64_MAX },
		{ .type = RECORD_PUT, .id = UINT64_MAX - 1 },
		{ .type = RECORD_PUT, .id = RECORD_NUMBER_END },
		{ .type = RECORD_TYPE_END, .id = 1 },
	};
	struct bench *bench = bench_new(RECORDS);
	uint64_t end = bench->offsets[RECORDS];

	for (unsigned i = 0; i < COUNT_OF(records); i++) {
		struct sim_file *file = damaged_file(bench);
		struct segment_header header;
		struct replay replay;

		expect_context("record", i, 0);
		expect_eq(segment_header_decode(file->now, &header), 0);
		record_encode(file->now + end, &records[i]);
		(void)record_seal(file->now + end, header.salt, RECORDS + 1, RECORDS);
		expect_eq(replay_image(bench, &replay, REPLAY_OPEN), -EBADMSG);
		expect_eq(replay.fault_offset, end);
		replay_fini(&replay);
		expect_eq(replay_image(bench, &replay, REPLAY_SALVAGE), 0);
		expect_eq(replay.tasks.count, RECORDS);
		replay_fini(&replay);
		/* torn, so cut off */
		file->now[end + 1] ^= 1;
		expect_eq(replay_image(bench, &replay, REPLAY_OPEN), 0);
		expect_eq(replay.tasks.count, RECORDS);
		replay_fini(&replay);
	}
	bench_free(bench);
}
END_TEST

/* Put tasks until several segments are full. */
static void fill(struct bench *bench, unsigned puts)
{
	static const uint8_t data[500];

	for (unsigned i = 0; i < puts; i++)
		expect_eq(timerhub_journal_put(bench->model.journal, SEC, 0, data, sizeof(data),
		                               NULL),
		          0);
}

START_TEST(sealed_segments_must_be_whole_and_all_there)
{
	struct bench *bench = bench_new(1);
	struct replay replay;
	char name[DISK_NAME_MAX];
	uint64_t size;

	fill(bench, 30);
	expect_le(4, bench->model.journal->log.count);
	segment_name(name, 2);
	/* Only the last segment may have zeros behind its records. */
	sim_copy(&bench->image, &bench->disk);
	size = sim_find(&bench->image, name)->size;
	sim_find(&bench->image, name)->size += 8;
	expect(replay_image(bench, &replay, REPLAY_OPEN) == -EBADMSG);
	expect_eq(replay.fault_segment, 2);
	expect_eq(replay.fault_offset, size);
	replay_fini(&replay);
	/* one byte, about a sector, or all behind the header */
	for (unsigned less = 1; less < 2000; less += 499) {
		sim_copy(&bench->image, &bench->disk);
		sim_find(&bench->image, name)->size -= less;
		expect(replay_image(bench, &replay, REPLAY_OPEN) == -EBADMSG);
		expect(replay.fault != NULL);
		replay_fini(&replay);
	}
	/* only the next segment shows that a record is missing */
	sim_copy(&bench->image, &bench->disk);
	sim_find(&bench->image, name)->size -= (uint32_t)record_bytes(0, 0, 500);
	expect(replay_image(bench, &replay, REPLAY_OPEN) == -EBADMSG);
	expect_eq(replay.fault_segment, 3);
	replay_fini(&replay);
	/* also if the next segment has no record */
	sim_copy(&bench->image, &bench->disk);
	segment_name(name, bench->model.journal->log.count - 1);
	sim_find(&bench->image, name)->size -= (uint32_t)record_bytes(0, 0, 500);
	segment_name(name, bench->model.journal->log.count);
	sim_find(&bench->image, name)->size = SEGMENT_HEADER_BYTES;
	expect(replay_image(bench, &replay, REPLAY_OPEN) == -EBADMSG);
	expect_eq(replay.fault_segment, bench->model.journal->log.count);
	replay_fini(&replay);
	segment_name(name, 2);
	sim_copy(&bench->image, &bench->disk);
	expect_eq(bench->image.disk.ops->unlink(&bench->image.disk, name), 0);
	expect(replay_image(bench, &replay, REPLAY_OPEN) == -EBADMSG);
	expect_eq(replay.fault_segment, 3);
	replay_fini(&replay);
	bench_free(bench);
}
END_TEST

START_TEST(first_segment_may_be_missing_if_it_was_dropped)
{
	struct bench *bench = bench_new(1);
	struct timerhub_journal *journal = bench->model.journal;
	struct replay replay;
	char name[DISK_NAME_MAX];

	fill(bench, 30);
	/* End enough tasks, so that compaction drops some segments. */
	for (uint64_t id = 2; id <= 25; id++)
		expect_eq(timerhub_journal_cancel(journal, id), 0);
	fill(bench, 10);
	expect_lt(1, journal->log.segments[0].number);
	sim_copy(&bench->image, &bench->disk);
	expect_eq(replay_image(bench, &replay, REPLAY_VERIFY), 0);
	replay_fini(&replay);
	/* compaction has not dropped it, so it is missing */
	segment_name(name, journal->log.segments[0].number);
	expect_eq(bench->image.disk.ops->unlink(&bench->image.disk, name), 0);
	expect(replay_image(bench, &replay, REPLAY_VERIFY) == -EBADMSG);
	expect_eq(replay.fault_segment, journal->log.segments[1].number);
	expect_eq(replay.fault_offset, 0);
	replay_fini(&replay);
	bench_free(bench);
}
END_TEST

START_TEST(all_segments_missing_is_no_new_journal)
{
	struct bench *bench = bench_new(1);
	struct sim_disk *image = &bench->image;
	struct dice dice = dice_new(5);
	struct replay replay;

	/* the first open has put the watermark's file on the disk */
	for (unsigned i = 0; i < 50; i++) {
		sim_crash(image, &bench->disk, &dice);
		expect(sim_find(image, BEGUN) != NULL);
	}
	expect_eq(image->disk.ops->unlink(&image->disk, SEGMENT), 0);
	expect(replay_image(bench, &replay, REPLAY_VERIFY) == -EBADMSG);
	expect(replay.fault != NULL);
	replay_fini(&replay);
	expect(replay_image(bench, &replay, REPLAY_OPEN) == -EBADMSG);
	expect(sim_find(image, SEGMENT) == NULL);
	replay_fini(&replay);
	expect_eq(replay_image(bench, &replay, REPLAY_SALVAGE), 0);
	replay_fini(&replay);
	/* without it, a new journal begins */
	expect_eq(image->disk.ops->unlink(&image->disk, BEGUN), 0);
	expect_eq(replay_image(bench, &replay, REPLAY_OPEN), 0);
	expect(sim_find(image, SEGMENT) && sim_find(image, BEGUN));
	replay_fini(&replay);
	/* a crash between the two creations: the segment's records stay */
	expect_eq(image->disk.ops->unlink(&image->disk, BEGUN), 0);
	expect_eq(replay_image(bench, &replay, REPLAY_OPEN), 0);
	expect(sim_find(image, BEGUN) != NULL);
	replay_fini(&replay);
	sim_copy(image, &bench->disk);
	expect_eq(image->disk.ops->unlink(&image->disk, BEGUN), 0);
	expect_eq(replay_image(bench, &replay, REPLAY_OPEN), 0);
	expect(sim_find(image, BEGUN) != NULL);
	replay_fini(&replay);
	bench_free(bench);
}
END_TEST

/* Refused, with the segment's name. */
static void expect_version_refused(struct bench *bench, enum replay_mode mode, uint32_t version)
{
	struct segment_header header = { version, 0, 1, 1, 1, 1 };
	struct replay replay;

	segment_header_encode(sim_find(&bench->image, SEGMENT)->now, &header);
	expect(replay_image(bench, &replay, mode) == -EOPNOTSUPP);
	expect(replay.fault != NULL);
	expect_eq(replay.fault_segment, 1);
	expect_eq(replay.fault_offset, 0);
	replay_fini(&replay);
}

START_TEST(a_first_segment_of_another_version_is_named)
{
	struct bench *bench = bench_new(0);

	fill(bench, 20);
	expect_lt(1, bench->model.journal->log.count);
	sim_copy(&bench->image, &bench->disk);
	expect_version_refused(bench, REPLAY_OPEN, FORMAT_VERSION + 1);
	expect_version_refused(bench, REPLAY_VERIFY, FORMAT_VERSION - 1);
	bench_free(bench);
}
END_TEST

/* Refused, or a subset of the tasks. */
START_TEST(no_damage_makes_up_a_task)
{
	struct bench *bench = bench_new(0);
	struct dice dice = dice_new(4);

	for (unsigned i = 0; i < 200; i++)
		model_step(&bench->model);
	for (unsigned round = 0; round < scaled(20000); round++) {
		struct sim_file *file;
		struct replay replay;

		sim_copy(&bench->image, &bench->disk);
		do
			file = &bench->image.files[dice_below(&dice, SIM_FILES)];
		while (!file->used || file->size == 0);
		for (uint64_t n = 1 + dice_below(&dice, 3); n > 0; n--)
			file->now[dice_below(&dice, file->size)] ^=
				(uint8_t)(1 + dice_below(&dice, 255));
		if (replay_image(bench, &replay, round % 2 ? REPLAY_OPEN : REPLAY_SALVAGE) == 0)
			for (uint32_t i = 0; i < replay.agenda.count; i++)
				expect(model_find(&bench->model, replay.agenda.cells[i].task->id));
		replay_fini(&replay);
	}
	bench_free(bench);
}
END_TEST

START_TEST(wall_clock_moved_a_day_between_runs)
{
	static const uint64_t day_ns = 24 * HOUR;

	for (unsigned back = 0; back < 2; back++) {
		struct bench *bench = bench_new(RECORDS);
		struct model *model = &bench->model;
		struct timerhub_journal_task task;
		unsigned early = 0;

		model_close(model);
		model->timer.wall_ns += back ? -day_ns : day_ns;
		expect_eq(model_open(model), 0);
		while (timerhub_journal_take(model->journal, &task, 0) == 1) {
			early += task.due_ns > model->timer.wall_ns;
			expect_eq(timerhub_journal_done(model->journal, &task), 0);
		}
		expect_eq(early, 0);
		expect_eq(model->journal->backlog.tasks.count, back ? RECORDS : 0);
		/* each exactly at its time by the wall clock */
		(void)timerhub_journal_fd(model->journal);
		for (unsigned i = 1; back && i <= RECORDS; i++) {
			model->timer.wall_ns = model->timer.set_ns - 1;
			expect_eq(timerhub_journal_take(model->journal, &task, 0), 0);
			model->timer.wall_ns++;
			expect_eq(timerhub_journal_take(model->journal, &task, 0), 1);
			expect_eq(task.id, i);
			expect_eq(task.due_ns, model->timer.wall_ns);
		}
		bench_free(bench);
	}
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("damage", argc, argv);
	tests_add(every_byte_of_the_last_three_records_cut, 60);
	tests_add(zeros_ahead_are_the_end_and_nothing_torn, 60);
	tests_add(last_records_zeroed_from_any_byte_are_torn, 60);
	tests_add(any_byte_among_zeros_ahead_is_torn_and_cut, 60);
	tests_add(record_zeroed_is_damage_if_one_behind_it_was_stable_later, 60);
	tests_add(record_zeroed_is_torn_if_it_and_all_behind_it_are_of_one_batch, 60);
	tests_add(every_bit_of_a_record_flipped_is_refused_at_its_place, 60);
	tests_add(log_that_ends_before_its_mark_is_refused, 60);
	tests_add(last_record_of_a_life_is_vouched_for_by_the_first_of_the_next, 60);
	tests_add(mark_is_stable_at_open_at_close_and_when_a_segment_is_full, 30);
	tests_add(mark_that_is_damaged_refuses_nothing, 60);
	tests_add(header_with_any_bit_flipped_costs_no_task_but_is_refused, 60);
	tests_add(sector_that_cannot_be_read_costs_the_tasks_in_it, 60);
	tests_add(journal_in_use_is_looked_at_again, 60);
	tests_add(sector_that_cannot_be_read_costs_its_own_records_at_repair, 60);
	tests_add(put_of_a_key_ends_its_old_task_whose_end_is_damaged, 60);
	tests_add(segment_that_is_cut_while_it_is_read_is_read_again_or_refused, 60);
	tests_add(numbers_beyond_2_to_the_63_are_not_believed, 60);
	tests_add(commit_of_more_puts_than_there_are_ids_is_refused, 60);
	tests_add(record_that_cannot_be_is_refused_and_not_cut, 60);
	tests_add(ids_that_are_used_up_are_refused, 60);
	tests_add(sealed_segments_must_be_whole_and_all_there, 60);
	tests_add(first_segment_may_be_missing_if_it_was_dropped, 60);
	tests_add(all_segments_missing_is_no_new_journal, 60);
	tests_add(a_first_segment_of_another_version_is_named, 60);
	tests_add(no_damage_makes_up_a_task, 120);
	tests_add(wall_clock_moved_a_day_between_runs, 60);
	return tests_run();
}
