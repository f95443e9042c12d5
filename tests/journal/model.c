/* SPDX-License-Identifier: MIT */
/* See model.h. */
#include "model.h"

#include <crc32c.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES 4096
#define DATA_MAX 1000
#define LEASE_NS (10 * SEC)
#define EPOCH_NS (UINT64_C(1700000000) * SEC)

/* ---- the alarm ---- */

static struct test_alarm *alarm_of(struct alarm *alarm)
{
	return (struct test_alarm *)(void *)alarm;
}

static uint64_t test_wall_ns(struct alarm *alarm)
{
	return alarm_of(alarm)->wall_ns;
}

static uint64_t test_monotonic_ns(struct alarm *alarm)
{
	return alarm_of(alarm)->monotonic_ns;
}

static void test_set(struct alarm *alarm, uint64_t due_ns)
{
	alarm_of(alarm)->set_ns = due_ns;
}

static int test_fd(struct alarm *alarm)
{
	(void)alarm;
	return -1;
}

static void test_wait(struct alarm *alarm, uint64_t timeout_ns)
{
	test_alarm_pass(alarm_of(alarm), timeout_ns);
}

static void test_close(struct alarm *alarm)
{
	(void)alarm;
}

static const struct alarm_ops test_ops = {
	.wall_ns = test_wall_ns,
	.monotonic_ns = test_monotonic_ns,
	.set = test_set,
	.fd = test_fd,
	.wait = test_wait,
	.close = test_close,
};

void test_alarm_open(struct test_alarm *alarm, uint64_t wall_ns)
{
	*alarm = (struct test_alarm){ .alarm = { &test_ops }, .wall_ns = wall_ns };
}

void test_alarm_pass(struct test_alarm *alarm, uint64_t ns)
{
	alarm->wall_ns += ns;
	alarm->monotonic_ns += ns;
}

/* ---- the model ---- */

/* None, less than some records, in no relation to sectors, and all of a segment. */
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
		},
	};
	test_alarm_open(&model->alarm, EPOCH_NS);
}

int model_open(struct model *model)
{
	int result = journal_open(&model->journal, &model->disk->disk, &model->alarm.alarm,
	                          &model->config, false);

	if (result < 0)
		model->journal = NULL;
	else
		model->journal->log.stretch_bytes = model->stretch_bytes;
	model->delivered_due_ns = 0;
	for (unsigned i = 0; i < model->count; i++)
		model->facts[i].taken = false;
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

/* A live one more often than not. */
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

/* What a call that ended like this leaves in doubt: -EIO may have happened or not. */
static void note(const struct model *model, struct fact *fact, int result, bool live,
                 uint64_t due_ns)
{
	if (result == 0) {
		fact->live = live;
		fact->due_ns = due_ns;
		fact->taken = false;
		return;
	}
	/* Once it has failed it does nothing more: no doubt then. */
	if (result != -EIO || model->failed)
		return;
	fact->unsure = true;
	fact->unsure_live = live;
	fact->unsure_due_ns = due_ns;
}

/* A refusal that changes nothing. */
static bool is_clean(int result)
{
	return result == 0 || result == -EIO || result == -ENOSPC || result == -EMFILE;
}

/* Ids go up by one from call to call, refused ones included. */
static struct fact *new_fact(struct model *model)
{
	struct fact *fact = &model->facts[model->count];

	*fact = (struct fact){
		.id = model->journal->next_id,
		.due_ns = model->alarm.wall_ns + dice_magnitude(&model->dice, 36),
		.seed = dice_roll(&model->dice),
		.data_len = (uint32_t)(model->churns ? dice_below(&model->dice, DATA_MAX)
		                                     : dice_magnitude(&model->dice, 10)) %
		            (DATA_MAX + 1),
	};
	return fact;
}

/* Put what new_fact() made up. */
static int put_fact(struct model *model, struct fact *fact)
{
	uint8_t data[DATA_MAX];
	uint64_t id = 0;
	int result;

	model_data(fact, data);
	result = timerhub_journal_put(model->journal, fact->due_ns, TIMERHUB_ABSOLUTE, data,
	                              fact->data_len, &id);
	expect(is_clean(result));
	expect_eq(id, result == 0 ? fact->id : 0);
	model->delivered_due_ns = 0;
	if (result == 0 || (result == -EIO && !model->failed))
		model->count++;
	note(model, fact, result, true, fact->due_ns);
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
	fact->data_len = DATA_MAX / 2 + (uint32_t)dice_below(&model->dice, DATA_MAX / 2);
	if (put_fact(model, fact) == 0)
		note(model, fact, timerhub_journal_done(model->journal, fact->id), false, 0);
}

void model_put_many(struct model *model, unsigned count)
{
	struct timerhub_journal *journal = model->journal;
	struct request requests[8] = { 0 };
	uint8_t data[DATA_MAX];
	unsigned first = model->count;

	if (count > COUNT_OF(requests) || model->count + count > MODEL_TASKS || journal->failed < 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		struct fact *fact = new_fact(model);
		struct record record = { .type = RECORD_PUT };

		fact->data_len %= 400; /* so that they fit in one batch */
		model_data(fact, data);
		requests[i].type = RECORD_PUT;
		requests[i].task = task_new(fact->due_ns, data, fact->data_len);
		journal->reserved++;
		record.id = requests[i].task->id = journal->next_id++;
		record.due_ns = fact->due_ns;
		record.data = data;
		record.data_len = fact->data_len;
		record.data_crc = crc32c(0, data, fact->data_len);
		(void)journal_gather(journal, &requests[i], &record);
		model->count++;
	}
	(void)journal_pass(journal);
	model->delivered_due_ns = 0;
	for (unsigned i = 0; i < count; i++) {
		expect(is_clean(requests[i].result));
		note(model, &model->facts[first + i], requests[i].result, true,
		     model->facts[first + i].due_ns);
		if (requests[i].result < 0)
			free(requests[i].task);
	}
}

static void step_cancel(struct model *model)
{
	struct fact *fact = any_fact(model);
	int result, wanted;

	if (!fact)
		return;
	result = timerhub_journal_cancel(model->journal, fact->id);
	wanted = !fact->live ? -ENOENT : fact->taken ? -EBUSY : 0;
	expect(result == wanted || (wanted == 0 && is_clean(result)) || result == -EIO);
	if (wanted == 0)
		note(model, fact, result, false, 0);
}

static void step_move(struct model *model)
{
	struct fact *fact = any_fact(model);
	uint64_t due_ns = model->alarm.wall_ns + dice_magnitude(&model->dice, 36);
	int result, wanted;

	if (!fact)
		return;
	result = timerhub_journal_move(model->journal, fact->id, due_ns, TIMERHUB_ABSOLUTE);
	wanted = !fact->live ? -ENOENT : fact->taken ? -EBUSY : 0;
	expect(result == wanted || (wanted == 0 && is_clean(result)) || result == -EIO);
	model->delivered_due_ns = 0;
	if (wanted == 0)
		note(model, fact, result, true, due_ns);
}

static void step_done(struct model *model)
{
	struct fact *fact = any_fact(model);
	int result;

	if (!fact)
		return;
	result = timerhub_journal_done(model->journal, fact->id);
	expect(fact->live ? is_clean(result) : result == -ENOENT);
	if (fact->live)
		note(model, fact, result, false, 0);
}

static void step_retry(struct model *model)
{
	struct fact *fact = any_fact(model);
	uint64_t delay_ns = dice_magnitude(&model->dice, 36);
	int result;

	if (!fact)
		return;
	result = timerhub_journal_retry(model->journal, fact->id, delay_ns);
	model->delivered_due_ns = 0;
	if (!fact->live || !fact->taken)
		expect(result == -ENOENT || result == -EIO);
	else
		note(model, fact, result, true, model->alarm.wall_ns + delay_ns);
}

static void check_delivery(struct model *model, const struct timerhub_task *task)
{
	struct fact *fact = model_find(model, task->id);
	uint8_t data[DATA_MAX];

	expect(fact && fact->live && !fact->taken);
	expect_eq(task->due_ns, fact->due_ns);
	expect_le(task->due_ns, model->alarm.wall_ns);
	expect_le(model->delivered_due_ns, task->due_ns);
	expect_eq(task->data_len, fact->data_len);
	model_data(fact, data);
	expect(memcmp(data, task->data, fact->data_len) == 0);
	for (unsigned i = 0; i < model->count; i++)
		expect(!model->facts[i].live || model->facts[i].taken ||
		       model->facts[i].due_ns >= task->due_ns);
	fact->attempts++;
	expect_eq(task->attempts, fact->attempts);
	fact->taken = true;
	model->delivered_due_ns = task->due_ns;
}

static bool any_due(const struct model *model)
{
	for (unsigned i = 0; i < model->count; i++)
		if (model->facts[i].live && !model->facts[i].taken &&
		    model->facts[i].due_ns <= model->alarm.wall_ns)
			return true;
	return false;
}

static void step_take(struct model *model)
{
	bool wanted = any_due(model);
	struct timerhub_task task;
	int result = timerhub_journal_take(model->journal, &task, 0);

	expect_eq(result, wanted ? 1 : 0);
	if (result == 1)
		check_delivery(model, &task);
}

static void end_leases(struct model *model)
{
	test_alarm_pass(&model->alarm, LEASE_NS);
	(void)journal_pass(model->journal);
	for (unsigned i = 0; i < model->count; i++)
		model->facts[i].taken = false;
	model->delivered_due_ns = 0;
}

/* With few tasks alive the log is mostly garbage, and is cleaned all the time. */
static bool has_enough(const struct model *model)
{
	return model->churns && model->journal->tasks.count > 3;
}

void model_step(struct model *model)
{
	model->failed = model->journal->failed < 0;
	if (has_enough(model)) {
		step_done(model);
		return;
	}
	switch (dice_below(&model->dice, 16)) {
	case 0 ... 4:
		step_put(model);
		break;
	case 5:
		model_put_many(model, 1 + (unsigned)dice_below(&model->dice, 8));
		break;
	case 6:
		step_cancel(model);
		break;
	case 7:
		step_move(model);
		break;
	case 8 ... 9:
		step_done(model);
		break;
	case 10:
		step_retry(model);
		break;
	case 11 ... 13:
		step_take(model);
		break;
	case 14:
		/* Never so far that a lease ends by it. */
		model->alarm.wall_ns += dice_magnitude(&model->dice, 35);
		/* What was taken goes out by itself, and unsynced. */
		(void)journal_pass(model->journal);
		break;
	default:
		end_leases(model);
		break;
	}
}

/* ---- what must be there ---- */

static void verify_fact(struct model *model, struct fact *fact)
{
	struct task *task = tasks_find(&model->journal->tasks, fact->id);
	uint8_t data[DATA_MAX];

	if (fact->unsure) {
		/* Now it is known which of the two is true. An id nobody was told is used again. */
		if (!fact->live && !task)
			fact->id = 0;
		if (fact->live != fact->unsure_live)
			fact->live = task != NULL;
		if (fact->live && task && task->due_ns == fact->unsure_due_ns)
			fact->due_ns = fact->unsure_due_ns;
		fact->unsure = false;
	}
	expect_eq(task != NULL, fact->live);
	if (!task)
		return;
	expect_eq(task->due_ns, fact->due_ns);
	/* Counted behind the delivery: the last ones may be missing, none is invented. */
	expect_le(task->attempts, fact->attempts);
	fact->attempts = task->attempts;
	expect_eq(task->data_len, fact->data_len);
	model_data(fact, data);
	expect(memcmp(task->data, data, fact->data_len) == 0);
}

void model_verify(struct model *model)
{
	unsigned live = 0;

	for (unsigned i = 0; i < model->count; i++) {
		verify_fact(model, &model->facts[i]);
		live += model->facts[i].live;
	}
	expect_eq(model->journal->tasks.count, live);
	expect_eq(model->journal->agenda.count + model->journal->leases.count, live);
}

void model_take_all(struct model *model)
{
	model->delivered_due_ns = 0;
	while (any_due(model)) {
		struct timerhub_task task;

		expect_eq(timerhub_journal_take(model->journal, &task, 0), 1);
		check_delivery(model, &task);
		expect_eq(timerhub_journal_done(model->journal, task.id), 0);
		model_find(model, task.id)->live = false;
	}
	step_take(model);
}
