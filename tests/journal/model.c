/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES 4096
#define DATA_MAX 1000
#define ATTEMPTS_MAX 2
#define LEASE_NS (10 * SEC)
#define EPOCH_NS (UINT64_C(1700000000) * SEC)

/* ---- the timer ---- */

static struct test_timer *timer_of(struct wall_timer *timer)
{
	return (struct test_timer *)(void *)timer;
}

static uint64_t test_wall_ns(struct wall_timer *timer)
{
	return timer_of(timer)->wall_ns;
}

static uint64_t test_monotonic_ns(struct wall_timer *timer)
{
	return timer_of(timer)->monotonic_ns;
}

static void test_set(struct wall_timer *timer, uint64_t due_ns)
{
	timer_of(timer)->set_ns = due_ns;
}

static int test_fd(struct wall_timer *timer)
{
	(void)timer;
	return -1;
}

static void test_wait(struct wall_timer *timer, uint64_t timeout_ns)
{
	test_timer_pass(timer_of(timer), timeout_ns);
}

static void test_close(struct wall_timer *timer)
{
	(void)timer;
}

static const struct wall_timer_ops test_ops = {
	.wall_ns = test_wall_ns,
	.monotonic_ns = test_monotonic_ns,
	.set = test_set,
	.fd = test_fd,
	.wait = test_wait,
	.close = test_close,
};

void test_timer_open(struct test_timer *timer, uint64_t wall_ns)
{
	*timer = (struct test_timer){ .timer = { &test_ops }, .wall_ns = wall_ns };
}

void test_timer_pass(struct test_timer *timer, uint64_t ns)
{
	timer->wall_ns += ns;
	timer->monotonic_ns += ns;
}

/* ---- the model ---- */

/* Written ahead as zeros: a segment, none, less than the largest record, three sectors. */
static const uint64_t stretches[] = { SEGMENT_BYTES, 0, 300, 1536 };

void model_init(struct model *model, struct sim_disk *disk, uint64_t seed)
{
	*model = (struct model){
		.disk = disk,
		.dice = dice_new(seed),
		.churns = seed % 4 < 2,
		.stretch_bytes = stretches[seed / 4 % COUNT_OF(stretches)],
		.config = {
			.size = sizeof(model->config),
			.lease_ns = LEASE_NS,
			.segment_bytes = SEGMENT_BYTES,
			.tasks_max = MODEL_TASKS,
			.data_max = DATA_MAX,
			.data_bytes_max = UINT64_MAX,
			.attempts_max = seed / 16 % 2 == 0 ? 0 : ATTEMPTS_MAX,
		},
	};
	test_timer_open(&model->timer, EPOCH_NS);
}

int model_open(struct model *model)
{
	int result = journal_open(&model->journal, &model->disk->disk, &model->timer.timer,
	                          &model->config, false);

	if (result < 0)
		model->journal = NULL;
	else
		model->journal->log.stretch_bytes = model->stretch_bytes;
	model->delivered_due_ns = 0;
	for (unsigned i = 0; i < model->count; i++) {
		struct fact *fact = &model->facts[i];

		fact->taken = fact->held = fact->has_stale = false;
		fact->parked = fact->parked_for_good;
	}
	return result;
}

void model_close(struct model *model)
{
	timerhub_journal_close(model->journal);
	model->journal = NULL;
	model->disk->locked = false;
}

struct fact *model_find(struct model *model, uint64_t id)
{
	for (unsigned i = 0; i < model->count; i++)
		if (model->facts[i].id == id)
			return &model->facts[i];
	return NULL;
}

void model_data(const struct fact *fact, uint8_t *data)
{
	struct dice dice = { .state = fact->seed };

	for (uint32_t i = 0; i < fact->data_len; i++)
		data[i] = (uint8_t)dice_roll(&dice);
}

/* Mostly a live one. */
static struct fact *any_fact(struct model *model)
{
	unsigned start, count = model->count;

	if (count == 0)
		return NULL;
	start = (unsigned)dice_below(&model->dice, count);
	if (dice_one_in(&model->dice, 4))
		return &model->facts[start];
	for (unsigned i = 0; i < count; i++)
		if (model->facts[(start + i) % count].live)
			return &model->facts[(start + i) % count];
	return &model->facts[start];
}

static size_t key_of(const struct fact *fact, char key[32])
{
	return fact->key == 0 ? 0 : (size_t)snprintf(key, 32, "key %u", fact->key);
}

static struct fact *find_key(struct model *model, unsigned key)
{
	for (unsigned i = 0; i < model->count; i++)
		if (model->facts[i].live && model->facts[i].key == key)
			return &model->facts[i];
	return NULL;
}

/* After -EIO the change may have happened or not. */
static void note(const struct model *model, struct fact *fact, int result, bool live,
                 uint64_t due_ns, bool parked)
{
	if (result == 0) {
		fact->live = live;
		fact->due_ns = due_ns;
		fact->taken = false;
		fact->parked = fact->parked_for_good = parked;
		return;
	}
	/* a journal that had failed before changes nothing */
	if (result != -EIO || model->failed)
		return;
	fact->unsure = true;
	fact->unsure_live = live;
	fact->unsure_due_ns = due_ns;
	fact->unsure_parked = parked;
	fact->pair = 0;
}

/* 0, or what the simulated disk may cause. */
static bool is_clean(int result)
{
	return result == 0 || result == -EIO || result == -ENOSPC || result == -EMFILE;
}

/* Its id is 1 more than that of the previous put, even if the disk refused that. */
static struct fact *new_fact(struct model *model)
{
	struct fact *fact = &model->facts[model->count];

	*fact = (struct fact){
		.id = model->journal->backlog.next_id,
		.due_ns = model->timer.wall_ns + dice_magnitude(&model->dice, 36),
		.interval_ns =
			dice_one_in(&model->dice, 6) ? SEC + dice_below(&model->dice, HOUR) : 0,
		.seed = dice_roll(&model->dice),
		.data_len = (uint32_t)(model->churns ? dice_below(&model->dice, DATA_MAX)
		                                     : dice_magnitude(&model->dice, 10)) %
		            (DATA_MAX + 1),
		.key = dice_one_in(&model->dice, 3)
		               ? 1 + (unsigned)dice_below(&model->dice, MODEL_KEYS)
		               : 0,
	};
	return fact;
}

static struct timerhub_journal_change change_of(const struct fact *fact, uint8_t *data, char *key)
{
	model_data(fact, data);
	return (struct timerhub_journal_change){
		.op = TIMERHUB_JOURNAL_PUT,
		.flags = TIMERHUB_ABSOLUTE,
		.key = key,
		.key_len = key_of(fact, key),
		.when_ns = fact->due_ns,
		.interval_ns = fact->interval_ns,
		.data = data,
		.data_len = fact->data_len,
	};
}

/* Put the task that `fact` describes into the journal. */
static int put_fact(struct model *model, struct fact *fact)
{
	const struct fact *other = fact->key != 0 ? find_key(model, fact->key) : NULL;
	uint8_t data[DATA_MAX];
	char key[32];
	struct timerhub_journal_change change = change_of(fact, data, key);
	int result = timerhub_journal_commit(model->journal, &change, 1);

	if (other) {
		expect(result == -EEXIST);
		expect_eq(change.id, other->id);
		return result;
	}
	expect(is_clean(result));
	expect_eq(change.id, result == 0 ? fact->id : 0);
	model->delivered_due_ns = 0;
	if (result == 0 || (result == -EIO && !model->failed))
		model->count++;
	note(model, fact, result, true, fact->due_ns, false);
	return result;
}

static void step_put(struct model *model)
{
	if (model->count < MODEL_TASKS)
		(void)put_fact(model, new_fact(model));
}

void model_churn(struct model *model)
{
	struct fact *fact;

	if (model->count == MODEL_TASKS)
		return;
	fact = new_fact(model);
	fact->key = 0;
	fact->data_len = DATA_MAX / 2 + (uint32_t)dice_below(&model->dice, DATA_MAX / 2);
	if (put_fact(model, fact) == 0)
		note(model, fact, timerhub_journal_cancel(model->journal, fact->id), false, 0,
		     false);
}

void model_gather(struct timerhub_journal *journal, struct model_put *put, struct task *task)
{
	struct write_batch *batch = state_open_batch(&journal->commit);
	struct record record = { .type = RECORD_PUT, .due_ns = task->due_ns };

	put->change = (struct change){ .type = RECORD_PUT, .task = task, .due_ns = task->due_ns };
	put->transaction = (struct transaction){ .changes = &put->change, .count = 1 };
	record.id = task->id = journal->backlog.next_id++;
	record.data = task->bytes;
	record.data_len = task->data_len;
	record.key = task_key(task);
	record.key_len = task->key_len;
	record.body_crc = record_body_crc(&record);
	task->state = TASK_ARRIVING;
	task->changing = 1;
	task->batch = batch->number;
	tasks_insert(&journal->backlog.tasks, task);
	journal->backlog.arriving++;
	put->change.at = write_batch_add(batch, &record);
	write_batch_add_transaction(batch, &put->transaction);
}

/* May be refused only if the batch or the memory is full. */
static bool submit_fact(struct model *model, struct fact *fact, unsigned tag)
{
	uint8_t data[DATA_MAX];
	char key[32];
	struct timerhub_journal_change change;
	int result;

	fact->key = 0;
	fact->data_len %= 400; /* the data is short, so that several tasks fit in one batch */
	change = change_of(fact, data, key);
	result = timerhub_journal_submit(model->journal, &change, 1, tag);
	expect(result == 0 || result == -EAGAIN);
	return result == 0;
}

void model_put_many(struct model *model, unsigned count)
{
	struct timerhub_journal_completion completions[8];
	unsigned first = model->count, begun = 0;

	if (count > COUNT_OF(completions) || model->count + count > MODEL_TASKS ||
	    model->journal->failed < 0)
		return;
	while (begun < count && submit_fact(model, new_fact(model), begun)) {
		model->count++;
		begun++;
	}
	expect_eq(timerhub_journal_completions(model->journal, completions, 8), 0);
	(void)writer_pass(model->journal);
	expect_eq(timerhub_journal_completions(model->journal, completions, 8), begun);
	model->delivered_due_ns = 0;
	for (unsigned i = 0; i < begun; i++) {
		struct fact *fact = &model->facts[first + completions[i].tag];

		expect(is_clean(completions[i].result));
		expect_eq(completions[i].id, fact->id);
		note(model, fact, completions[i].result, true, fact->due_ns, false);
	}
}

static void step_cancel(struct model *model)
{
	struct fact *fact = any_fact(model);
	int result, wanted;
	char key[32];

	if (!fact)
		return;
	if (fact->live && fact->key != 0)
		result = timerhub_journal_cancel_key(model->journal, key, key_of(fact, key));
	else
		result = timerhub_journal_cancel(model->journal, fact->id);
	wanted = !fact->live ? -ENOENT : fact->taken ? -EBUSY : 0;
	expect(result == wanted || (wanted == 0 && is_clean(result)) || result == -EIO);
	if (wanted == 0)
		note(model, fact, result, false, 0, false);
}

static void step_move(struct model *model)
{
	struct fact *fact = any_fact(model);
	uint64_t due_ns = dice_one_in(&model->dice, 8)
	                          ? TIMERHUB_NEVER
	                          : model->timer.wall_ns + dice_magnitude(&model->dice, 36);
	int result, wanted;
	char key[32];

	if (!fact)
		return;
	if (fact->live && fact->key != 0)
		result = timerhub_journal_move_key(model->journal, key, key_of(fact, key), due_ns,
		                                   TIMERHUB_ABSOLUTE);
	else
		result = timerhub_journal_move(model->journal, fact->id, due_ns, TIMERHUB_ABSOLUTE);
	wanted = !fact->live ? -ENOENT : fact->taken || fact->parked ? -EBUSY : 0;
	expect(result == wanted || (wanted == 0 && is_clean(result)) || result == -EIO);
	model->delivered_due_ns = 0;
	if (wanted == 0)
		note(model, fact, result, true, due_ns, false);
}

static void step_revive(struct model *model)
{
	uint64_t due_ns = model->timer.wall_ns + dice_magnitude(&model->dice, 36);
	struct fact *fact = any_fact(model);
	int result;

	for (unsigned i = 0; fact && !fact->parked && i < model->count; i++)
		if (model->facts[i].live && model->facts[i].parked)
			fact = &model->facts[i];
	if (!fact)
		return;
	result = timerhub_journal_revive(model->journal, fact->id, due_ns, TIMERHUB_ABSOLUTE);
	if (!fact->live || !fact->parked) {
		expect(result == -ENOENT);
		return;
	}
	expect(is_clean(result));
	model->delivered_due_ns = 0;
	note(model, fact, result, true, due_ns, false);
	if (result == 0)
		fact->attempts = 0;
}

/* Whose latest delivery is not acknowledged; NULL: none. */
static struct fact *held_fact(struct model *model)
{
	unsigned start = (unsigned)dice_below(&model->dice, model->count + 1);

	for (unsigned i = 0; i < model->count; i++)
		if (model->facts[(start + i) % model->count].held)
			return &model->facts[(start + i) % model->count];
	return NULL;
}

/* A delivery's data stays, even if the task has ended. */
static void check_held(struct fact *fact)
{
	uint8_t data[DATA_MAX];

	model_data(fact, data);
	expect(memcmp(fact->handed.data, data, fact->data_len) == 0);
	if (fact->has_stale)
		expect(memcmp(fact->stale.data, data, fact->data_len) == 0);
}

static int answer_stale(struct model *model, struct timerhub_journal_task *stale)
{
	switch (dice_below(&model->dice, 3)) {
	case 0:
		return timerhub_journal_done(model->journal, stale);
	case 1:
		return timerhub_journal_retry(model->journal, stale, 0);
	default:
		return timerhub_journal_park(model->journal, stale, 1);
	}
}

/* For an earlier delivery than the task's latest: must change nothing. */
static void step_stale(struct model *model)
{
	for (unsigned i = 0; i < model->count; i++) {
		struct fact *fact = &model->facts[i];

		if (!fact->has_stale)
			continue;
		/* ends nothing */
		expect(timerhub_journal_touch(model->journal, &fact->stale, HOUR) == -ESTALE);
		check_held(fact);
		expect(answer_stale(model, &fact->stale) == -ESTALE);
		expect(answer_stale(model, &fact->stale) == -ENOENT);
		fact->has_stale = false;
	}
}

static void end_hold(struct fact *fact, int result)
{
	if (result == 0 || result == -ENOENT || result == -ESTALE)
		fact->held = false;
}

static void step_done(struct model *model)
{
	struct fact *fact = held_fact(model);
	uint64_t due_ns;
	int result;

	if (!fact)
		return;
	check_held(fact);
	result = timerhub_journal_done(model->journal, &fact->handed);
	end_hold(fact, result);
	if (!fact->live) {
		expect(result == -ENOENT);
		return;
	}
	expect(is_clean(result));
	due_ns = fact->due_ns;
	if (due_ns == fact->handed.due_ns) /* else moved since */
		due_ns += fact->handed.periods * fact->interval_ns;
	note(model, fact, result, fact->interval_ns > 0, due_ns, false);
	if (result == 0)
		fact->attempts = 0;
	model->delivered_due_ns = 0;
}

static void step_retry(struct model *model)
{
	struct fact *fact = held_fact(model);
	uint64_t delay_ns = dice_magnitude(&model->dice, 36);
	bool park = dice_one_in(&model->dice, 4);
	uint32_t attempts_max = model->config.attempts_max;
	int result;

	if (!fact)
		return;
	check_held(fact);
	if (park)
		result = timerhub_journal_park(model->journal, &fact->handed, 7);
	else
		result = timerhub_journal_retry(model->journal, &fact->handed, delay_ns);
	end_hold(fact, result);
	model->delivered_due_ns = 0;
	if (!fact->live) {
		expect(result == -ENOENT);
		return;
	}
	expect(is_clean(result));
	if (park || (attempts_max > 0 && fact->attempts >= attempts_max))
		note(model, fact, result, true, fact->due_ns, true);
	else
		note(model, fact, result, true, model->timer.wall_ns + delay_ns, false);
}

/* If the lease is over and the task was not delivered again, a touch begins a new one. */
static void step_touch(struct model *model)
{
	struct fact *fact = held_fact(model);
	int result;

	if (!fact)
		return;
	check_held(fact);
	result = timerhub_journal_touch(model->journal, &fact->handed,
	                                dice_one_in(&model->dice, 2) ? 0 : LEASE_NS);
	expect(result == (fact->live ? 0 : -ENOENT));
	if (!fact->live)
		return;
	fact->taken = true;
	fact->parked = false;
	model->delivered_due_ns = 0;
}

/* End one task and put another task in one commit. */
static void step_commit(struct model *model)
{
	struct fact *ended = any_fact(model), *fact;
	struct timerhub_journal_change changes[2] = { { .op = TIMERHUB_JOURNAL_CANCEL } };
	uint8_t data[DATA_MAX];
	char key[32];
	int result;

	if (!ended || !ended->live || ended->taken || model->count == MODEL_TASKS)
		return;
	fact = new_fact(model);
	if (fact->key != 0 && find_key(model, fact->key))
		fact->key = ended->key;
	changes[0].id = ended->id;
	changes[1] = change_of(fact, data, key);
	result = timerhub_journal_commit(model->journal, changes, 2);
	expect(is_clean(result));
	model->delivered_due_ns = 0;
	if (result == 0 || (result == -EIO && !model->failed))
		model->count++;
	note(model, fact, result, true, fact->due_ns, false);
	note(model, ended, result, false, 0, false);
	if (fact->unsure)
		fact->pair = 1 + (unsigned)(ended - model->facts);
}

static void check_delivery(struct model *model, const struct timerhub_journal_task *task)
{
	struct fact *fact = model_find(model, task->id);
	uint8_t data[DATA_MAX];
	char key[32];

	expect(fact && fact->live && !fact->taken && !fact->parked);
	expect_eq(task->due_ns, fact->due_ns);
	expect_le(task->due_ns, model->timer.wall_ns);
	expect_le(model->delivered_due_ns, task->due_ns);
	expect_eq(task->data_len, fact->data_len);
	model_data(fact, data);
	expect(memcmp(data, task->data, fact->data_len) == 0);
	expect_eq(task->key_len, key_of(fact, key));
	expect(task->key_len == 0 || memcmp(task->key, key, task->key_len) == 0);
	expect_eq(task->interval_ns, fact->interval_ns);
	if (fact->interval_ns > 0)
		expect_eq(task->periods,
		          1 + (model->timer.wall_ns - task->due_ns) / fact->interval_ns);
	for (unsigned i = 0; i < model->count; i++)
		expect(!model->facts[i].live || model->facts[i].taken || model->facts[i].parked ||
		       model->facts[i].due_ns >= task->due_ns);
	fact->attempts++;
	expect_eq(task->attempts, fact->attempts);
	fact->taken = true;
	if (fact->has_stale)
		expect_eq(timerhub_journal_release(model->journal, &fact->stale), 0);
	fact->has_stale = fact->held;
	fact->stale = fact->handed;
	fact->held = true;
	fact->handed = *task;
	model->delivered_due_ns = task->due_ns;
}

static bool any_due(const struct model *model)
{
	for (unsigned i = 0; i < model->count; i++)
		if (model->facts[i].live && !model->facts[i].taken && !model->facts[i].parked &&
		    model->facts[i].due_ns <= model->timer.wall_ns)
			return true;
	return false;
}

static void step_take(struct model *model)
{
	bool wanted = any_due(model);
	struct timerhub_journal_task task;
	int result = timerhub_journal_take(model->journal, &task, 0);

	expect_eq(result, wanted ? 1 : 0);
	if (result == 1)
		check_delivery(model, &task);
}

static void lease_is_over(const struct model *model, struct fact *fact)
{
	uint32_t attempts_max = model->config.attempts_max;

	if (!fact->live || !fact->taken)
		return;
	fact->taken = false;
	fact->parked = attempts_max > 0 && fact->attempts >= attempts_max;
}

static void end_leases(struct model *model)
{
	test_timer_pass(&model->timer, LEASE_NS);
	(void)writer_pass(model->journal);
	for (unsigned i = 0; i < model->count; i++)
		lease_is_over(model, &model->facts[i]);
	model->delivered_due_ns = 0;
}

/* With few live tasks most of the log is garbage, and compaction always runs. */
static bool has_enough(const struct model *model)
{
	return model->churns && model->journal->backlog.tasks.count > 3;
}

void model_step(struct model *model)
{
	model->failed = model->journal->failed < 0;
	if (has_enough(model)) {
		if (dice_one_in(&model->dice, 3))
			step_take(model);
		else if (dice_one_in(&model->dice, 3))
			step_done(model);
		else if (dice_one_in(&model->dice, 3))
			step_retry(model); /* a retry can park a task, which compaction must copy */
		else
			step_cancel(model);
		return;
	}
	switch (dice_below(&model->dice, 20)) {
	case 0 ... 3:
		step_put(model);
		break;
	case 4:
		model_put_many(model, 1 + (unsigned)dice_below(&model->dice, 8));
		break;
	case 5:
		step_cancel(model);
		break;
	case 6:
		step_move(model);
		break;
	case 7 ... 8:
		step_done(model);
		break;
	case 9:
		step_retry(model);
		break;
	case 10:
		step_revive(model);
		break;
	case 11 ... 12:
		step_commit(model);
		break;
	case 13 ... 15:
		step_take(model);
		break;
	case 16:
		step_touch(model);
		break;
	case 17:
		step_stale(model);
		break;
	case 18:
		/* only the wall clock: leases do not depend on it */
		model->timer.wall_ns += dice_magnitude(&model->dice, 35);
		/* The journal writes the records of deliveries later, without a sync. */
		(void)writer_pass(model->journal);
		break;
	default:
		end_leases(model);
		break;
	}
}

/* ---- what must be there ---- */

static void verify_fact(struct model *model, struct fact *fact)
{
	struct task *task = tasks_find(&model->journal->backlog.tasks, fact->id);
	uint32_t attempts_max = model->config.attempts_max;
	uint8_t data[DATA_MAX];

	if (fact->unsure) {
		/*
		 * whether the call in doubt was carried out; a later put may use an id that no call
		 * has returned
		 */
		if (!fact->live && !task)
			fact->id = 0;
		if (fact->live != fact->unsure_live)
			fact->live = task != NULL;
		if (fact->live && task && task->due_ns == fact->unsure_due_ns)
			fact->due_ns = fact->unsure_due_ns;
		if (fact->parked != fact->unsure_parked && task)
			fact->parked = fact->parked_for_good = task->state == TASK_PARKED;
		fact->unsure = false;
	}
	expect_eq(task != NULL, fact->live);
	if (!task)
		return;
	expect_eq(task->due_ns, fact->due_ns);
	/* written only after the delivery, so perhaps too small, never too large */
	expect_le(task->attempts, fact->attempts);
	fact->attempts = task->attempts;
	if (!fact->parked && task->state == TASK_PARKED) {
		expect(attempts_max > 0 && task->attempts >= attempts_max);
		fact->parked = true;
	}
	expect(attempts_max == 0 || task->attempts < attempts_max || task->state != TASK_PENDING);
	expect_eq(task->state == TASK_PARKED, fact->parked);
	expect_eq(task->interval_ns, fact->interval_ns);
	expect_eq(task->data_len, fact->data_len);
	model_data(fact, data);
	expect(memcmp(task_data(task), data, fact->data_len) == 0);
}

static void verify_key(struct model *model, struct fact *fact)
{
	uint64_t id = 0;
	char key[32];

	if (fact->key == 0 || !fact->live)
		return;
	expect_eq(timerhub_journal_find(model->journal, key, key_of(fact, key), &id), 0);
	expect_eq(id, fact->id);
}

void model_verify(struct model *model)
{
	unsigned live = 0, parked = 0, taken = 0;

	for (unsigned i = 0; i < model->count; i++) {
		struct fact *fact = &model->facts[i];

		verify_fact(model, fact);
		live += fact->live;
		parked += fact->live && fact->parked;
		taken += fact->live && fact->taken;
	}
	for (unsigned i = 0; i < model->count; i++) {
		struct fact *fact = &model->facts[i];

		verify_key(model, fact);
		/* both of a commit's changes or none */
		if (fact->pair != 0)
			expect_eq(fact->live, !model->facts[fact->pair - 1].live);
		fact->pair = 0;
	}
	expect_eq(model->journal->backlog.tasks.count, live);
	expect_eq(model->journal->backlog.parked, parked);
	expect_eq(model->journal->backlog.taken, taken);
	expect_eq(model->journal->backlog.agenda.count + model->journal->backlog.leases.count +
	                  parked,
	          live);
}
