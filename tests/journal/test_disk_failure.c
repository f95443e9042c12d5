/* SPDX-License-Identifier: MIT */
/*
 * A full disk, a sync that fails, a disk that refuses any one call, and the bound of the size:
 * random calls against the model.
 */
#include <errno.h>
#include <journal/reader.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

struct scene {
	struct sim_disk disk, image;
	struct model model;
};

static struct scene *scene_new(uint64_t seed)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	expect(scene);
	sim_open(&scene->disk, seed);
	sim_open(&scene->image, seed);
	model_init(&scene->model, &scene->disk, seed);
	return scene;
}

static void scene_free(struct scene *scene)
{
	scene->model.disk = &scene->disk;
	model_close(&scene->model);
	sim_close(&scene->disk);
	sim_close(&scene->image);
	free(scene);
}

static void steps(struct model *model, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (model->count > MODEL_TASKS - 10)
			return;
		model_step(model);
	}
}

static void reopen_and_verify(struct scene *scene)
{
	struct model *model = &scene->model;

	model_close(model);
	sim_copy(&scene->image, &scene->disk);
	scene->disk.locked = false;
	model->disk = &scene->image;
	expect_eq(model_open(model), 0);
	model_verify(model);
	model_close(model);
	model->disk = &scene->disk;
}

static void check_crash(struct scene *scene, struct dice *dice)
{
	struct model *model = malloc(sizeof(*model));

	expect(model);
	*model = scene->model;
	sim_crash(&scene->image, &scene->disk, dice);
	model->disk = &scene->image;
	expect_eq(model_open(model), 0);
	model_verify(model);
	model_close(model);
	free(model);
}

/*
 * The same calls, with another disk operation failing once by `error` in each run. Where no data
 * was lost, all goes on as before.
 */
static void fail_everywhere(uint64_t seed, int error)
{
	bool reached = true;

	for (unsigned fail_at = 1; reached; fail_at++) {
		struct scene *scene = scene_new(seed);

		expect_context("seed, operation that fails", seed, fail_at);
		scene->disk.fail_at = fail_at;
		scene->disk.error = error;
		if (model_open(&scene->model) < 0) {
			scene->disk.locked = false;
			expect_eq(model_open(&scene->model), 0);
		}
		steps(&scene->model, 60);
		reached = scene->disk.operations >= fail_at;
		if (scene->model.journal->failed == 0)
			model_verify(&scene->model);
		reopen_and_verify(scene);
		scene_free(scene);
	}
}

START_TEST(any_call_refused_changes_nothing)
{
	struct dice dice = dice_new(1);

	for (unsigned round = 0; round < scaled(16); round++) {
		fail_everywhere(dice_roll(&dice), -ENOSPC);
		fail_everywhere(dice_roll(&dice), -EIO);
	}
}
END_TEST

START_TEST(kth_sync_that_fails_is_final)
{
	struct dice dice = dice_new(2);
	bool reached = true;
	uint64_t seed = dice_roll(&dice);

	/* k = 1 was the sync of the put "now" */
	for (unsigned k = 2; reached; k++) {
		struct scene *scene = scene_new(seed);
		struct model *model = &scene->model;
		struct timerhub_journal_task task;
		uint64_t id = 0;

		expect_eq(model_open(model), 0);
		expect_eq(timerhub_journal_put(model->journal, 0, 0, "now", 3, NULL), 0);
		scene->disk.sync_fails = k + scene->disk.syncs - 1;
		for (unsigned i = 0; i < 60 && model->journal->failed == 0; i++)
			expect(timerhub_journal_put(model->journal, SEC, 0, NULL, 0, NULL) <= 0);
		reached = model->journal->failed < 0;
		if (reached) {
			expect(model->journal->failed == -EIO);
			expect(timerhub_journal_put(model->journal, 0, 0, NULL, 0, &id) == -EIO);
			expect(timerhub_journal_cancel(model->journal, 1) == -EIO);
			/* no more writes, but what is in memory is delivered */
			expect_eq(scene->disk.syncs, scene->disk.sync_fails);
			expect_eq(timerhub_journal_take(model->journal, &task, 0), 1);
			expect_eq(task.id, 1);
			expect(timerhub_journal_done(model->journal, &task) == -EIO);
			expect(timerhub_journal_retry(model->journal, &task, 0) == -EIO);
			expect_eq(id, 0);
		}
		scene_free(scene);
	}
}
END_TEST

/*
 * After a failed sync the page cache has the new bytes and the disk has not: an open that took them
 * for stable would leave a hole after a crash.
 */
START_TEST(fresh_open_after_a_failed_sync_does_not_build_on_what_it_left)
{
	struct dice dice = dice_new(8);
	unsigned failures = 0;

	for (unsigned round = 0; round < scaled(2000); round++) {
		struct scene *scene = scene_new(dice_roll(&dice));
		struct model *model = &scene->model;

		expect_context("round", round, 0);
		expect_eq(model_open(model), 0);
		steps(model, 10);
		scene->disk.sync_fails = scene->disk.syncs + 1 + (unsigned)dice_below(&dice, 20);
		for (unsigned i = 0; i < 30 && model->journal->failed == 0; i++)
			model_step(model);
		failures += model->journal->failed < 0;
		scene->disk.sync_fails = 0;
		model_close(model);
		expect_eq(model_open(model), 0);
		model_verify(model);
		steps(model, (unsigned)dice_below(&dice, 20));
		model_close(model);
		sim_crash(&scene->image, &scene->disk, &dice);
		model->disk = &scene->image;
		expect_eq(model_open(model), 0);
		model_verify(model);
		scene_free(scene);
	}
	expect_lt(0, failures);
}
END_TEST

START_TEST(full_disk_refuses_cleanly_and_serves_when_there_is_room)
{
	struct dice dice = dice_new(3);

	for (unsigned round = 0; round < scaled(600); round++) {
		struct scene *scene = scene_new(dice_roll(&dice));

		expect_context("round", round, 0);
		expect_eq(model_open(&scene->model), 0);
		steps(&scene->model, 20);
		scene->disk.space = sim_bytes(&scene->disk) + dice_below(&dice, 2000);
		steps(&scene->model, 30);
		expect_eq(scene->model.journal->failed, 0);
		model_verify(&scene->model);
		check_crash(scene, &dice);
		scene->disk.space = UINT64_MAX / 2;
		steps(&scene->model, 20);
		model_verify(&scene->model);
		reopen_and_verify(scene);
		scene_free(scene);
	}
}
END_TEST

/* ---- zeros ahead ---- */

static void put_bytes(struct timerhub_journal *journal, size_t count, int wanted)
{
	static const uint8_t data[1000] = { 1 };

	expect_eq(timerhub_journal_put(journal, HOUR, 0, data, count, NULL) == wanted, true);
}

/* Neither size nor blocks of the file change. */
START_TEST(records_are_written_over_zeros_that_are_stable)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal *journal;
	unsigned grown = 0;

	scene->model.stretch_bytes = 1024;
	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	for (unsigned i = 0; i < 62; i++) {
		struct sim_file *file = &scene->disk.files[journal->log.file];
		uint64_t size = file->stable_size;

		put_bytes(journal, 4, 0);
		expect_eq(file->size, file->stable_size);
		expect_eq(file->size, log_last(&journal->log)->bytes + journal->log.ahead);
		grown += file->size > size;
	}
	/* 63 times 64 bytes, so it grows by zeros four times, to 4,096 */
	expect_eq(grown, 4);
	expect_eq(journal->log.ahead, 64);
	scene_free(scene);
}
END_TEST

START_TEST(disk_with_room_for_records_but_not_for_zeros_takes_the_records)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal *journal;
	struct sim_disk *disk = &scene->disk;

	scene->model.stretch_bytes = 1024;
	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	/* the put, the record that ends it, one growth of the spare file */
	disk->space = sim_bytes(disk) + record_bytes(0, 0, 100) + RECORD_HEADER_BYTES + 4096 / 8;
	put_bytes(journal, 100, 0);
	expect_eq(sim_bytes(disk), disk->space);
	expect_eq(journal->log.ahead, 0);
	expect_eq(log_disk_bytes(&journal->log), disk->space);
	/* not at once */
	disk->space += 1024;
	put_bytes(journal, 8, 0);
	expect_eq(journal->log.ahead, 0);
	/* with room again, zeros are written after some records */
	disk->space = sim_bytes(disk);
	put_bytes(journal, 100, -ENOSPC);
	disk->space += 4 * 1024;
	for (unsigned i = 0; i < 20; i++)
		put_bytes(journal, 8, 0);
	expect_lt(0, journal->log.ahead);
	expect_eq(log_disk_bytes(&journal->log), sim_bytes(disk));
	model_close(&scene->model);
	expect_eq(model_open(&scene->model), 0);
	expect_eq(scene->model.journal->backlog.tasks.count, 22);
	scene_free(scene);
}
END_TEST

/* As on a copy-on-write disk: the zeros are cut off, and the journal only appends. */
START_TEST(write_over_zeros_that_is_refused_gives_their_room_back)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal *journal;

	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	put_bytes(journal, 10, 0);
	expect_lt(1000, journal->log.ahead);
	scene->disk.fail_at = scene->disk.operations + 1;
	scene->disk.error = -ENOSPC;
	put_bytes(journal, 1000, -ENOSPC);
	expect_eq(journal->log.ahead, 0);
	expect_eq(log_disk_bytes(&journal->log), sim_bytes(&scene->disk));
	put_bytes(journal, 1000, 0);
	expect_eq(journal->log.ahead, 0);
	scene_free(scene);
}
END_TEST

static int refuse_truncate(struct disk *disk, int file, uint64_t bytes)
{
	(void)disk;
	(void)file;
	(void)bytes;
	return -ENOSPC;
}

START_TEST(refused_write_that_cannot_be_cut_off_is_final)
{
	struct scene *scene = scene_new(1);
	const struct disk_ops *plain = scene->disk.disk.ops;
	struct disk_ops ops = *plain;
	struct timerhub_journal *journal;

	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	put_bytes(journal, 10, 0);
	ops.truncate = refuse_truncate;
	scene->disk.disk.ops = &ops;
	scene->disk.fail_at = scene->disk.operations + 1;
	scene->disk.error = -ENOSPC;
	put_bytes(journal, 1000, -EIO);
	expect_eq(journal->failed, -EIO);
	put_bytes(journal, 10, -EIO);
	scene->disk.disk.ops = plain;
	model_close(&scene->model);
	expect_eq(model_open(&scene->model), 0);
	expect(scene->model.journal->backlog.tasks.count == 1 ||
	       scene->model.journal->backlog.tasks.count == 2);
	scene_free(scene);
}
END_TEST

START_TEST(closed_journal_keeps_no_zeros)
{
	struct scene *scene = scene_new(1);
	uint64_t bytes;

	expect_eq(model_open(&scene->model), 0);
	put_bytes(scene->model.journal, 10, 0);
	bytes = sim_bytes(&scene->disk) - scene->model.journal->log.ahead;
	model_close(&scene->model);
	expect_eq(sim_bytes(&scene->disk), bytes + RECORD_HEADER_BYTES);
	scene_free(scene);
}
END_TEST

/* ---- bounds ---- */

START_TEST(default_bounds_are_those_of_the_header)
{
	struct timerhub_journal_config known;

	expect_eq(journal_read_config(&known, NULL), 0);
	expect_eq(known.segment_bytes, 16 << 20);
	expect_eq(known.tasks_max, 1 << 20);
	expect_eq(known.data_max, 64 << 10);
	expect_eq(known.data_bytes_max, 1 << 30);
	expect_eq(known.attempts_max, 0);
	expect_eq(known.lease_ns, 0);
}
END_TEST

/* ---- a full disk ---- */

/* Only ends free room, so an end must always be writable. */
START_TEST(every_task_can_be_ended_on_a_full_disk)
{
	struct dice dice = dice_new(11);

	for (unsigned round = 0; round < scaled(100); round++) {
		struct scene *scene = scene_new(dice_roll(&dice));
		struct timerhub_journal *journal;
		struct timerhub_journal_stats stats;
		struct timerhub_journal_task task;
		uint8_t data[300] = { 0 };
		uint64_t id = 0, last = 0;
		int result, result_of_cancel;

		expect_eq(model_open(&scene->model), 0);
		journal = scene->model.journal;
		scene->disk.space = sim_bytes(&scene->disk) + 9000 + dice_below(&dice, 20000);
		do {
			last = id > 0 ? id : last;
			result = timerhub_journal_put(journal, dice_one_in(&dice, 2) ? 0 : HOUR, 0,
			                              data, (size_t)dice_below(&dice, 300), &id);
		} while (result == 0 && id < MODEL_TASKS);
		expect(result == -ENOSPC || id == MODEL_TASKS);
		for (id = 1; id <= last; id++) {
			expect_context("round, id", round, id);
			if (timerhub_journal_take(journal, &task, 0) == 1)
				expect_eq(timerhub_journal_done(journal, &task), 0);
			result_of_cancel = timerhub_journal_cancel(journal, id);
			expect(result_of_cancel == 0 || result_of_cancel == -ENOENT);
		}
		expect_eq(timerhub_journal_stats(journal, &stats), 0);
		expect_eq(stats.tasks, 0);
		expect_eq(stats.disk_full > 0, result == -ENOSPC);
		/* After the ends of the tasks the journal accepts puts again. */
		expect_eq(timerhub_journal_put(journal, HOUR, 0, data, 10, NULL), 0);
		scene_free(scene);
	}
}
END_TEST

/* Also puts that fit into the zeros. */
START_TEST(zeros_hold_no_puts_that_cannot_be_ended)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal *journal;
	uint64_t id = 0, last;
	int result;

	scene->model.stretch_bytes = scene->model.config.segment_bytes;
	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	put_bytes(journal, 0, 0);
	scene->disk.space = sim_bytes(&scene->disk);
	do {
		last = id;
		result = timerhub_journal_put(journal, HOUR, 0, NULL, 0, &id);
	} while (result == 0);
	expect(result == -ENOSPC);
	expect_lt(1, last);
	for (id = 1; id <= last; id++)
		expect_eq(timerhub_journal_cancel(journal, id), 0);
	scene_free(scene);
}
END_TEST

/* It ends no task, so it must not use the room for ends. */
START_TEST(done_of_a_periodic_task_waits_for_room)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal_change put = {
		.op = TIMERHUB_JOURNAL_PUT,
		.interval_ns = HOUR,
	};
	struct timerhub_journal_stats stats;
	struct timerhub_journal *journal;
	struct timerhub_journal_task task;

	scene->model.stretch_bytes = 0;
	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	expect_eq(timerhub_journal_commit(journal, &put, 1), 0);
	scene->disk.space = sim_bytes(&scene->disk);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect(timerhub_journal_done(journal, &task) == -ENOSPC);
	/* the worker still has the task, with its due time */
	expect_eq(timerhub_journal_stats(journal, &stats), 0);
	expect_eq(stats.taken, 1);
	test_timer_pass(&scene->model.timer, scene->model.config.lease_ns);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect_eq(task.attempts, 2);
	scene->disk.space = UINT64_MAX / 2;
	expect_eq(timerhub_journal_done(journal, &task), 0);
	/* The journal accepts the task's end although the disk is full. */
	scene->disk.space = sim_bytes(&scene->disk);
	expect_eq(timerhub_journal_cancel(journal, put.id), 0);
	scene_free(scene);
}
END_TEST

START_TEST(batch_of_which_a_full_disk_leaves_nothing_is_not_counted)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal_change cancel = { .op = TIMERHUB_JOURNAL_CANCEL, .id = 1 };
	struct timerhub_journal_stats before, after;
	struct timerhub_journal *journal;

	scene->model.stretch_bytes = 0;
	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	put_bytes(journal, 10, 0);
	scene->disk.space = sim_bytes(&scene->disk);
	expect_eq(timerhub_journal_stats(journal, &before), 0);
	put_bytes(journal, 1000, -ENOSPC);
	expect_eq(timerhub_journal_stats(journal, &after), 0);
	expect_eq(after.batches, before.batches);
	expect_eq(after.records, before.records);
	expect_eq(after.disk_full, before.disk_full + 1);
	/* of a cancel and a refused put, only the cancel is written */
	expect_eq(timerhub_journal_submit(journal, &cancel, 1, 0), 0);
	put_bytes(journal, 1000, -ENOSPC);
	expect_eq(timerhub_journal_stats(journal, &after), 0);
	expect_eq(after.batches, before.batches + 1);
	expect_eq(after.records, before.records + 1);
	expect_eq(after.disk_full, before.disk_full + 2);
	expect_eq(after.tasks, 0);
	scene_free(scene);
}
END_TEST

/* An errno that means something else as the journal's result becomes -EIO. */
START_TEST(no_answer_of_the_disk_is_taken_for_one_of_the_journal)
{
	static const int errors[] = { -ENOENT, -EBUSY,  -EAGAIN, -EINVAL, -EMSGSIZE,
		                      -ERANGE, -EEXIST, -ESTALE, -EIO };

	for (unsigned i = 0; i < COUNT_OF(errors); i++)
		for (unsigned after = 1; after <= 12; after++) {
			struct scene *scene = scene_new(1);
			struct timerhub_journal *journal;
			uint8_t data[1000] = { 0 };
			int result = 0;

			scene->model.stretch_bytes = 0;
			expect_eq(model_open(&scene->model), 0);
			journal = scene->model.journal;
			expect_eq(timerhub_journal_put(journal, HOUR, 0, data, 1000, NULL), 0);
			scene->disk.fail_at = scene->disk.operations + after;
			scene->disk.error = errors[i];
			for (unsigned n = 0; n < 6 && result == 0; n++)
				result = timerhub_journal_put(journal, HOUR, 0, data, 1000, NULL);
			expect_context("error, operation", (uint64_t)-errors[i], after);
			/* a refused watermark or spare file stops nothing */
			expect(result == 0 || result == -EIO);
			expect_eq(journal->failed < 0, result < 0);
			scene_free(scene);
		}
}
END_TEST

/* ---- keys ---- */

/* A second put waits for the first's outcome. */
START_TEST(key_of_a_put_in_flight_is_not_taken_before_that_is_stable)
{
	struct scene *scene = scene_new(1);
	struct record record = { .due_ns = HOUR, .key = "key", .key_len = 3 };
	struct model_put first = { .change = { .at = 0 } };
	struct timerhub_journal_info info;
	struct timerhub_journal_change again = {
		.op = TIMERHUB_JOURNAL_PUT,
		.key = "key",
		.key_len = 3,
	};
	struct timerhub_journal *journal;
	uint64_t id = 0;

	scene->model.stretch_bytes = 0;
	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	put_bytes(journal, 10, 0); /* after this put the spare file has room */
	expect_eq(tasks_reserve_keys(&journal->backlog.tasks), 0);
	/* the first is refused, so the second succeeds */
	model_gather(journal, &first, task_new(&record));
	expect(timerhub_journal_find(journal, "key", 3, &id) == -ENOENT);
	expect(timerhub_journal_peek(journal, 2, &info, NULL, 0) == -ENOENT);
	/* a submit does not wait */
	expect(timerhub_journal_submit(journal, &again, 1, 7) == -EAGAIN);
	expect_eq(journal->backlog.arriving, 1);
	scene->disk.fail_at = scene->disk.operations + 1;
	scene->disk.error = -ENOSPC;
	expect_eq(timerhub_journal_put_key(journal, "key", 3, HOUR, 0, NULL, 0, &id), 0);
	expect(first.transaction.result == -ENOSPC);
	expect_eq(id, 3);
	/* stable, so a second is refused */
	expect_eq(timerhub_journal_cancel(journal, id), 0);
	model_gather(journal, &first, task_new(&record));
	expect(timerhub_journal_put_key(journal, "key", 3, HOUR, 0, NULL, 0, &id) == -EEXIST);
	expect_eq(first.transaction.result, 0);
	expect_eq(id, 4);
	scene_free(scene);
}
END_TEST

START_TEST(key_names_its_old_task_until_the_new_one_is_stable)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal_change changes[] = {
		{ .op = TIMERHUB_JOURNAL_CANCEL, .key = "key", .key_len = 3 },
		{ .op = TIMERHUB_JOURNAL_PUT, .key = "key", .key_len = 3 },
	};
	struct timerhub_journal_info info;
	struct timerhub_journal *journal;
	uint64_t first = 0, found = 0;

	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	expect_eq(timerhub_journal_put_key(journal, "key", 3, HOUR, 0, NULL, 0, &first), 0);
	expect_eq(timerhub_journal_submit(journal, changes, 2, 7), 0);
	expect_eq(journal->backlog.arriving, 1);
	expect_eq(timerhub_journal_find(journal, "key", 3, &found), 0);
	expect_eq(found, first);
	expect_eq(timerhub_journal_peek_key(journal, "key", 3, &info, NULL, 0), 0);
	expect_eq(info.id, first);
	(void)writer_pass(journal);
	expect_eq(timerhub_journal_find(journal, "key", 3, &found), 0);
	expect_eq(found, first + 1);
	scene_free(scene);
}
END_TEST

/* ---- leases ---- */

/* The writer blocks in a sync, so a thread in take() must end the lease. */
START_TEST(lease_ends_for_a_taker_though_the_writer_does_nothing)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal *journal;
	struct timerhub_journal_task task;
	uint64_t end_ns;

	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	expect_eq(timerhub_journal_put(journal, 0, 0, NULL, 0, NULL), 0);
	for (uint64_t attempt = 1; attempt <= 3; attempt++) {
		expect_eq(timerhub_journal_take(journal, &task, 0), 1);
		expect_eq(task.attempts, attempt);
		expect_eq(timerhub_journal_take(journal, &task, 0), 0);
		test_timer_pass(&scene->model.timer, scene->model.config.lease_ns);
	}
	/* At the end of the lease the fd would become readable. */
	expect_eq(timerhub_journal_fd(journal), -1); /* the simulated timer has no fd */
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect_eq(scene->model.timer.set_ns,
	          scene->model.timer.wall_ns + scene->model.config.lease_ns);
	expect_eq(timerhub_journal_touch(journal, &task, HOUR), 0);
	expect_eq(scene->model.timer.set_ns, scene->model.timer.wall_ns + HOUR);
	test_timer_pass(&scene->model.timer, HOUR);
	/* sleeps on the timer only until the lease ends */
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	end_ns = scene->model.timer.monotonic_ns + scene->model.config.lease_ns;
	expect_eq(timerhub_journal_take(journal, &task, HOUR), 1);
	expect_eq(scene->model.timer.monotonic_ns, end_ns);
	scene_free(scene);
}
END_TEST

static struct timerhub_journal *open_and_take(struct scene *scene,
                                              struct timerhub_journal_task *ret_task)
{
	expect_eq(model_open(&scene->model), 0);
	put_bytes(scene->model.journal, 10, 0);
	test_timer_pass(&scene->model.timer, HOUR);
	expect_eq(timerhub_journal_take(scene->model.journal, ret_task, 0), 1);
	return scene->model.journal;
}

/* A touch waits for it. */
START_TEST(touch_while_a_change_of_the_task_is_in_flight_goes_by_its_outcome)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal_task task;
	struct timerhub_journal_change retry = { .op = TIMERHUB_JOURNAL_RETRY, .task = &task };
	struct timerhub_journal_completion completion;
	struct timerhub_journal *journal;

	scene->model.stretch_bytes = 0;
	journal = open_and_take(scene, &task);
	/* refused: the worker keeps the task */
	expect_eq(timerhub_journal_submit(journal, &retry, 1, 0), 0);
	scene->disk.space = sim_bytes(&scene->disk);
	expect_eq(timerhub_journal_touch(journal, &task, 3 * HOUR), 0);
	expect_eq(timerhub_journal_completions(journal, &completion, 1), 1);
	expect(completion.result == -ENOSPC);
	test_timer_pass(&scene->model.timer, 3 * HOUR - 1);
	expect_eq(timerhub_journal_take(journal, &task, 0), 0);
	/* accepted: the next worker gets it */
	scene->disk.space = UINT64_MAX / 2;
	expect_eq(timerhub_journal_submit(journal, &retry, 1, 0), 0);
	expect(timerhub_journal_touch(journal, &task, HOUR) == -ENOENT);
	expect_eq(timerhub_journal_completions(journal, &completion, 1), 1);
	expect_eq(completion.result, 0);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect_eq(task.attempts, 2);
	scene_free(scene);
}
END_TEST

START_TEST(a_lease_made_shorter_sets_the_timer_of_a_sleeping_taker)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal_task task;
	struct timerhub_journal *journal;

	journal = open_and_take(scene, &task);
	journal->takers.timed = true;
	expect_eq(timerhub_journal_touch(journal, &task, MS), 0);
	expect_eq(scene->model.timer.set_ns, scene->model.timer.wall_ns + MS);
	journal->takers.timed = false;
	scene_free(scene);
}
END_TEST

/* The worker gives the data up before it knows the outcome. */
START_TEST(release_while_an_answer_is_in_flight_leaves_it_its_outcome)
{
	struct scene *scene = scene_new(1);
	struct timerhub_journal_task task;
	struct timerhub_journal_change done = { .op = TIMERHUB_JOURNAL_DONE, .task = &task };
	struct timerhub_journal_completion completion;
	struct timerhub_journal *journal;

	journal = open_and_take(scene, &task);
	expect_eq(timerhub_journal_submit(journal, &done, 1, 0), 0);
	expect_eq(timerhub_journal_release(journal, &task), 0);
	put_bytes(journal, 10, 0);
	expect_eq(timerhub_journal_completions(journal, &completion, 1), 1);
	expect_eq(completion.result, 0);
	expect(timerhub_journal_done(journal, &task) == -ENOENT);
	scene_free(scene);
}
END_TEST

/* ---- compaction ---- */

static void check_bound(const struct timerhub_journal *journal, const struct sim_disk *disk)
{
	expect_le(sim_bytes(disk),
	          2 * journal->backlog.tasks.live_bytes + 2 * journal->log.segment_bytes);
	expect_eq(sim_bytes(disk), log_disk_bytes(&journal->log));
}

START_TEST(disk_stays_within_twice_the_live_data_and_two_segments)
{
	struct dice dice = dice_new(5);

	for (unsigned round = 0; round < scaled(20); round++) {
		struct scene *scene = scene_new(dice_roll(&dice));
		struct timerhub_journal *journal;
		uint64_t ids[MODEL_TASKS / 4] = { 0 };
		uint8_t data[1000] = { 0 };
		uint64_t live = 0;

		scene->model.config.tasks_max = COUNT_OF(ids);
		expect_eq(model_open(&scene->model), 0);
		journal = scene->model.journal;
		for (unsigned i = 0; i < 3000; i++) {
			unsigned at = (unsigned)dice_below(&dice, COUNT_OF(ids));

			if (ids[at] != 0) {
				expect_eq(timerhub_journal_cancel(journal, ids[at]), 0);
				ids[at] = 0;
			} else {
				expect_eq(timerhub_journal_put(journal, SEC, 0, data,
				                               dice_magnitude(&dice, 9), &ids[at]),
				          0);
			}
			check_bound(journal, &scene->disk);
			/* also while the log has two copies of a task */
			live = live > journal->backlog.tasks.live_bytes
			               ? live
			               : journal->backlog.tasks.live_bytes;
			expect_le(scene->disk.peak, 2 * live + 2 * journal->log.segment_bytes);
			scene->disk.peak = 0;
			live = journal->backlog.tasks.live_bytes;
		}
		expect_lt(0, journal->stats.segments_dropped);
		scene_free(scene);
	}
}
END_TEST

/* Its tasks are in memory, and are written again. */
START_TEST(segment_that_cannot_be_read_is_written_from_memory)
{
	struct dice dice = dice_new(12);
	unsigned healed = 0;

	for (unsigned round = 0; round < scaled(200); round++) {
		/* In a run with this seed most tasks stay live. */
		struct scene *scene = scene_new(dice_roll(&dice) | 2);
		struct model *model = &scene->model;
		struct sim_file *file;
		char name[DISK_NAME_MAX];

		expect_context("round", round, 0);
		expect_eq(model_open(model), 0);
		steps(model, 300);
		if (model->journal->log.count < 3) {
			scene_free(scene);
			continue;
		}
		segment_name(name, model->journal->log.segments[0].number);
		file = sim_find(&scene->disk, name);
		file->now[dice_below(&dice, file->size)] ^= 1;
		/* bit 1, since two flips of bit 0 would cancel out */
		file->now[SEGMENT_HEADER_BYTES] ^= 2;
		for (unsigned i = 0; i < 1000 && model->journal->stats.healed == 0; i++) {
			uint64_t id = 0;

			expect_eq(timerhub_journal_put(model->journal, HOUR, 0, name, 10, &id), 0);
			expect_eq(timerhub_journal_cancel(model->journal, id), 0);
		}
		expect_lt(0, model->journal->stats.healed);
		healed++;
		check_bound(model->journal, &scene->disk);
		model_verify(model);
		reopen_and_verify(scene);
		scene_free(scene);
	}
	expect_lt(scaled(20), healed);
}
END_TEST

static int refuse_unlink(struct disk *disk, const char *name)
{
	(void)disk;
	(void)name;
	return -EROFS;
}

START_TEST(compaction_that_is_held_up_says_why)
{
	struct scene *scene = scene_new(2);
	const struct disk_ops *plain = scene->disk.disk.ops;
	struct disk_ops ops = *plain;
	struct timerhub_journal *journal;
	uint8_t data[900] = { 0 };
	uint64_t id = 0, dropped;

	expect_eq(model_open(&scene->model), 0);
	journal = scene->model.journal;
	journal->compactor.pauses = 1;
	for (unsigned i = 0; i < 12; i++) {
		expect_eq(timerhub_journal_put(journal, HOUR, 0, data, sizeof(data), &id), 0);
		expect_eq(timerhub_journal_cancel(journal, id), 0);
	}
	expect_eq(journal->stats.segments_dropped, 0);
	expect_eq(journal->stats.held_up, TIMERHUB_JOURNAL_BY_BACKUP);
	journal->compactor.pauses = 0;
	expect_eq(timerhub_journal_put(journal, HOUR, 0, data, sizeof(data), &id), 0);
	expect_eq(journal->stats.held_up, TIMERHUB_JOURNAL_NOT_HELD_UP);
	expect_lt(0, journal->stats.segments_dropped);
	check_bound(journal, &scene->disk);
	/* Let the disk refuse to remove files. */
	dropped = journal->stats.segments_dropped;
	ops.unlink = refuse_unlink;
	scene->disk.disk.ops = &ops;
	for (unsigned i = 0; i < 12; i++) {
		expect_eq(timerhub_journal_put(journal, HOUR, 0, data, sizeof(data), &id), 0);
		expect_eq(timerhub_journal_cancel(journal, id), 0);
	}
	expect_eq(journal->stats.segments_dropped, dropped);
	expect_eq(journal->stats.held_up, TIMERHUB_JOURNAL_BY_DISK);
	scene->disk.disk.ops = plain;
	expect_eq(timerhub_journal_put(journal, HOUR, 0, data, sizeof(data), &id), 0);
	expect_eq(journal->stats.held_up, TIMERHUB_JOURNAL_NOT_HELD_UP);
	expect_lt(dropped, journal->stats.segments_dropped);
	scene_free(scene);
}
END_TEST

/* The highest id then stands in a segment's header. */
START_TEST(ids_are_remembered_when_their_records_are_gone)
{
	struct scene *scene = scene_new(8);
	uint64_t kept = 0, last = 0, id = 0;

	expect_eq(model_open(&scene->model), 0);
	expect_eq(timerhub_journal_put(scene->model.journal, HOUR, 0, NULL, 0, &kept), 0);
	expect_eq(timerhub_journal_put(scene->model.journal, HOUR, 0, NULL, 0, &last), 0);
	expect_eq(timerhub_journal_cancel(scene->model.journal, last), 0);
	for (unsigned i = 0; scene->model.journal->stats.segments_dropped == 0; i++)
		expect_eq(timerhub_journal_move(scene->model.journal, kept, HOUR + i, 0), 0);
	model_close(&scene->model);
	expect_eq(model_open(&scene->model), 0);
	expect_eq(timerhub_journal_put(scene->model.journal, HOUR, 0, NULL, 0, &id), 0);
	expect_lt(last, id);
	scene_free(scene);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("disk_failure", argc, argv);
	tests_add(any_call_refused_changes_nothing, 120);
	tests_add(kth_sync_that_fails_is_final, 60);
	tests_add(fresh_open_after_a_failed_sync_does_not_build_on_what_it_left, 120);
	tests_add(full_disk_refuses_cleanly_and_serves_when_there_is_room, 120);
	tests_add(records_are_written_over_zeros_that_are_stable, 60);
	tests_add(disk_with_room_for_records_but_not_for_zeros_takes_the_records, 60);
	tests_add(write_over_zeros_that_is_refused_gives_their_room_back, 60);
	tests_add(refused_write_that_cannot_be_cut_off_is_final, 60);
	tests_add(closed_journal_keeps_no_zeros, 60);
	tests_add(default_bounds_are_those_of_the_header, 60);
	tests_add(every_task_can_be_ended_on_a_full_disk, 120);
	tests_add(zeros_hold_no_puts_that_cannot_be_ended, 60);
	tests_add(done_of_a_periodic_task_waits_for_room, 60);
	tests_add(batch_of_which_a_full_disk_leaves_nothing_is_not_counted, 60);
	tests_add(no_answer_of_the_disk_is_taken_for_one_of_the_journal, 60);
	tests_add(key_of_a_put_in_flight_is_not_taken_before_that_is_stable, 60);
	tests_add(key_names_its_old_task_until_the_new_one_is_stable, 60);
	tests_add(lease_ends_for_a_taker_though_the_writer_does_nothing, 60);
	tests_add(touch_while_a_change_of_the_task_is_in_flight_goes_by_its_outcome, 60);
	tests_add(a_lease_made_shorter_sets_the_timer_of_a_sleeping_taker, 60);
	tests_add(release_while_an_answer_is_in_flight_leaves_it_its_outcome, 60);
	tests_add(disk_stays_within_twice_the_live_data_and_two_segments, 120);
	tests_add(segment_that_cannot_be_read_is_written_from_memory, 120);
	tests_add(compaction_that_is_held_up_says_why, 60);
	tests_add(ids_are_remembered_when_their_records_are_gone, 60);
	return tests_run();
}
