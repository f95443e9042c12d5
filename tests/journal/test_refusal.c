/* SPDX-License-Identifier: MIT */
/*
 * A disk that refuses: a full one, one that fails a sync, any call of it failing once. And that the
 * journal keeps its disk small. Random calls, held to the model, on the simulated disk.
 */
#include <errno.h>
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
	if (seed % 2 == 0)
		sim_link_syncs(&scene->disk);
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

/* Close and open on the machine as it is. */
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

/* What may be left if the machine dies now. */
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

/* Any one call fails once with this. After a clean refusal the journal goes on as before. */
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

	/* Not the one in open, for the first journal; that is in the test above. */
	for (unsigned k = 2; reached; k++) {
		struct scene *scene = scene_new(seed);
		struct model *model = &scene->model;
		struct timerhub_task task;
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
			/* Nothing is written any more, and what is in memory is delivered. */
			expect_eq(scene->disk.syncs, scene->disk.sync_fails);
			expect_eq(timerhub_journal_take(model->journal, &task, 0), 1);
			expect_eq(task.id, 1);
			expect(timerhub_journal_done(model->journal, 1) == -EIO);
			expect(timerhub_journal_retry(model->journal, 1, 0) == -EIO);
			expect_eq(id, 0);
		}
		scene_free(scene);
	}
}
END_TEST

/*
 * The same machine goes on: what the failed sync left in memory reads well, and is not on the disk.
 * An open that took it for stable would build on a hole.
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

/* What the zeros are for: a record changes neither the size of a file nor where it is. */
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
	/* 64 bytes each, and a header: all but 64 bytes of four stretches. */
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
	disk->space = sim_bytes(disk) + record_bytes(100);
	put_bytes(journal, 100, 0);
	expect_eq(sim_bytes(disk), disk->space);
	expect_eq(journal->log.ahead, 0);
	expect_eq(journal->log.bytes, disk->space);
	/* It is not asked again at once. */
	disk->space += 1024;
	put_bytes(journal, 8, 0);
	expect_eq(journal->log.ahead, 0);
	/* Now it is full; and when it no longer is, there are zeros again after a while. */
	disk->space = sim_bytes(disk);
	put_bytes(journal, 100, -ENOSPC);
	disk->space += 2 * 1024;
	for (unsigned i = 0; i < 20; i++)
		put_bytes(journal, 8, 0);
	expect_lt(0, journal->log.ahead);
	expect_eq(journal->log.bytes, sim_bytes(disk));
	model_close(&scene->model);
	expect_eq(model_open(&scene->model), 0);
	expect_eq(scene->model.journal->tasks.count, 22);
	scene_free(scene);
}
END_TEST

/* A disk that writes nothing in place may refuse what goes over zeros. They are no loss then. */
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
	expect_eq(journal->log.bytes, sim_bytes(&scene->disk));
	put_bytes(journal, 1000, 0);
	expect_eq(journal->log.ahead, 0);
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

/* ---- a refused put ---- */

/* Nothing comes back that was refused, not even if the machine dies right then. */
START_TEST(refused_put_does_not_come_back_after_a_crash)
{
	struct dice dice = dice_new(4);

	for (unsigned round = 0; round < scaled(1000); round++) {
		struct scene *scene = scene_new(dice_roll(&dice));
		uint8_t data[900] = { 1 };
		int result;

		expect_eq(model_open(&scene->model), 0);
		expect_eq(timerhub_journal_put(scene->model.journal, SEC, 0, data, 10, NULL), 0);
		scene->disk.space = sim_bytes(&scene->disk) + dice_below(&dice, 1100);
		result = timerhub_journal_put(scene->model.journal, SEC, 0, data, 900, NULL);
		expect(result == 0 || result == -ENOSPC);
		timerhub_journal_close(scene->model.journal);
		scene->model.journal = NULL;
		sim_crash(&scene->image, &scene->disk, &dice);
		scene->model.disk = &scene->image;
		expect_eq(model_open(&scene->model), 0);
		expect_eq(scene->model.journal->tasks.count, result == 0 ? 2 : 1);
		scene_free(scene);
	}
}
END_TEST

/* ---- compaction ---- */

static void check_bound(const struct timerhub_journal *journal, const struct sim_disk *disk)
{
	expect_le(sim_bytes(disk), 2 * journal->tasks.live_bytes + 2 * journal->log.segment_bytes);
	expect_eq(sim_bytes(disk), journal->log.bytes);
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
				expect_eq(timerhub_journal_done(journal, ids[at]), 0);
				ids[at] = 0;
			} else {
				expect_eq(timerhub_journal_put(journal, SEC, 0, data,
				                               dice_magnitude(&dice, 9), &ids[at]),
				          0);
			}
			check_bound(journal, &scene->disk);
			/* Not in between either, while there are two copies of a task. */
			live = live > journal->tasks.live_bytes ? live : journal->tasks.live_bytes;
			expect_le(scene->disk.peak, 2 * live + 2 * journal->log.segment_bytes);
			scene->disk.peak = 0;
			live = journal->tasks.live_bytes;
		}
		expect_lt(0, journal->stats.segments_dropped);
		scene_free(scene);
	}
}
END_TEST

/* Acknowledge all these in one batch. */
static void end_at_once(struct timerhub_journal *journal, const uint64_t *ids,
                        struct request *requests, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct task *task = tasks_find(&journal->tasks, ids[i]);
		struct record record = { .type = RECORD_DONE, .id = ids[i] };

		(void)agenda_remove(&journal->agenda, task);
		task->changing = 1;
		requests[i] = (struct request){ .type = RECORD_DONE, .task = task };
		(void)journal_gather(journal, &requests[i], &record);
	}
	(void)journal_pass(journal);
}

START_TEST(disk_stays_within_the_bound_when_much_ends_at_once)
{
	struct scene *scene = scene_new(9);
	struct request requests[60];
	uint64_t ids[COUNT_OF(requests)];
	uint8_t data[900] = { 0 };

	expect_eq(model_open(&scene->model), 0);
	for (unsigned i = 0; i < COUNT_OF(ids); i++)
		expect_eq(timerhub_journal_put(scene->model.journal, HOUR, 0, data, sizeof(data),
		                               &ids[i]),
		          0);
	end_at_once(scene->model.journal, ids, requests, COUNT_OF(ids));
	expect_eq(scene->model.journal->tasks.count, 0);
	check_bound(scene->model.journal, &scene->disk);
	scene_free(scene);
}
END_TEST

START_TEST(compaction_costs_no_task_and_no_attempt)
{
	struct dice dice = dice_new(6);

	for (unsigned round = 0; round < scaled(60); round++) {
		struct scene *scene = scene_new(dice_roll(&dice));

		expect_eq(model_open(&scene->model), 0);
		while (scene->model.count < MODEL_TASKS - 10)
			model_step(&scene->model);
		/* Much is written that lives for a moment only. */
		for (unsigned i = 0; i < 400; i++) {
			uint64_t id = 0;

			expect_eq(timerhub_journal_put(scene->model.journal, HOUR, 0, NULL, 0, &id),
			          0);
			expect_eq(timerhub_journal_cancel(scene->model.journal, id), 0);
		}
		expect_lt(0, scene->model.journal->stats.segments_dropped);
		check_bound(scene->model.journal, &scene->disk);
		model_verify(&scene->model);
		reopen_and_verify(scene);
		scene_free(scene);
	}
}
END_TEST

START_TEST(ids_are_never_used_again)
{
	struct scene *scene = scene_new(7);
	uint64_t last = 0;

	for (unsigned run = 0; run < 20; run++) {
		expect_eq(model_open(&scene->model), 0);
		for (unsigned i = 0; i < 60; i++) {
			uint64_t id = 0;

			expect_eq(timerhub_journal_put(scene->model.journal, HOUR, 0, NULL, 0, &id),
			          0);
			expect_lt(last, id);
			last = id;
			expect_eq(timerhub_journal_done(scene->model.journal, id), 0);
		}
		model_close(&scene->model);
	}
	scene_free(scene);
}
END_TEST

/* No record is left that names the highest id: a segment's header has to remember it. */
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
	tests_begin("refusal", argc, argv);
	tests_add(any_call_refused_changes_nothing, 120);
	tests_add(kth_sync_that_fails_is_final, 60);
	tests_add(fresh_open_after_a_failed_sync_does_not_build_on_what_it_left, 120);
	tests_add(full_disk_refuses_cleanly_and_serves_when_there_is_room, 120);
	tests_add(records_are_written_over_zeros_that_are_stable, 60);
	tests_add(disk_with_room_for_records_but_not_for_zeros_takes_the_records, 60);
	tests_add(write_over_zeros_that_is_refused_gives_their_room_back, 60);
	tests_add(closed_journal_keeps_no_zeros, 60);
	tests_add(refused_put_does_not_come_back_after_a_crash, 120);
	tests_add(disk_stays_within_twice_the_live_data_and_two_segments, 120);
	tests_add(disk_stays_within_the_bound_when_much_ends_at_once, 60);
	tests_add(compaction_costs_no_task_and_no_attempt, 120);
	tests_add(ids_are_never_used_again, 60);
	tests_add(ids_are_remembered_when_their_records_are_gone, 60);
	return tests_run();
}
