/* SPDX-License-Identifier: MIT */
/*
 * Laws 1 to 5, 7 and 8 at once: random calls on a manual hub against an obvious model. The model
 * is a table of timers; a timer is in the queue exactly if it was due at the last advance and has
 * been neither taken, cancelled nor re-armed since. With slack it may be there from its deadline
 * on, and must be at the end of its slack.
 */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 48
#define QUEUES 3

struct model_timer {
	timerhub_timer handle; /* 0: none */
	uint64_t deadline_ns;  /* in ticks; UINT64_MAX: never */
	uint64_t exact_ns;     /* of a periodic timer, where the tick's period is due */
	uint64_t slack_ns;
	uint64_t interval_ns;
	unsigned queue;
	unsigned life; /* with the place in the table, the data */
	bool may;      /* may be in the queue */
	bool must;     /* must be in the queue */
	bool was_in;   /* re-armed in the queue, not empty since: may come at its older place */
};

struct model {
	struct rig rig;
	struct timerhub_queue *queues[QUEUES];
	struct model_timer timers[SLOTS];
	timerhub_timer gone[SLOTS]; /* a handle that has been */
	struct dice dice;
	uint64_t now_ns;
	uint64_t next_ns; /* what advance said */
	unsigned lives;
};

static void model_open(struct model *model, uint64_t salt)
{
	memset(model, 0, sizeof(*model));
	model->dice = dice_new(salt);
	model->rig = rig_manual(SLOTS);
	model->queues[0] = model->rig.queue;
	for (unsigned i = 1; i < QUEUES; i++)
		model->queues[i] = queue_open(model->rig.hub);
	model->now_ns = dice_magnitude(&model->dice, 61);
	model->next_ns = advance(model->rig.hub, model->now_ns);
}

/* Near, far, very far; often exactly where another timer is. */
static uint64_t model_delay(struct model *model)
{
	uint64_t other_ns = model->timers[dice_below(&model->dice, SLOTS)].deadline_ns;

	if (dice_below(&model->dice, 40) == 0)
		return UINT64_MAX;
	if (dice_below(&model->dice, 4) == 0 && other_ns != UINT64_MAX && other_ns > model->now_ns)
		return other_ns - model->now_ns;
	return dice_magnitude(&model->dice, dice_below(&model->dice, 4) ? 26 : 56);
}

static uint64_t deadline_from(const struct model *model, uint64_t delay_ns)
{
	return delay_ns == UINT64_MAX ? UINT64_MAX : whole_ticks(model->now_ns + delay_ns);
}

/* Whoever comes earlier than promised must be heard. */
static void expect_heard(const struct model *model, const struct model_timer *timer)
{
	if (timer->deadline_ns != UINT64_MAX &&
	    timer->deadline_ns + timer->slack_ns < model->next_ns)
		expect(fd_readable(timerhub_wake_fd(model->rig.hub)));
}

static void model_arm(struct model *model, unsigned at)
{
	struct model_timer *timer = &model->timers[at];
	uint64_t delay_ns = model_delay(model);
	bool absolute = dice_below(&model->dice, 2) && delay_ns != UINT64_MAX;
	unsigned kind = (unsigned)dice_below(&model->dice, 4);

	*timer = (struct model_timer){ .queue = (unsigned)dice_below(&model->dice, QUEUES),
		                       .life = model->lives++ };
	timer->deadline_ns = deadline_from(model, delay_ns);
	timer->exact_ns = absolute ? timer->deadline_ns : model->now_ns + delay_ns;
	if (kind == 1)
		timer->slack_ns = dice_magnitude(&model->dice, 26);
	if (kind == 2)
		timer->interval_ns = 1 + dice_magnitude(&model->dice, 30);
	timer->handle = arm(model->queues[timer->queue],
	                    SPEC(.flags = absolute ? TIMERHUB_ABSOLUTE : 0,
	                         .expires_ns = absolute ? timer->deadline_ns : delay_ns,
	                         .slack_ns = timer->slack_ns, .interval_ns = timer->interval_ns,
	                         .data = (uint64_t)timer->life * SLOTS + at));
	expect_heard(model, timer);
}

static void model_rearm(struct model *model, unsigned at)
{
	struct model_timer *timer = &model->timers[at];
	uint64_t delay_ns = model_delay(model);

	expect_eq(timerhub_rearm(model->rig.hub, timer->handle, delay_ns, 0), 0);
	timer->deadline_ns = timer->exact_ns = deadline_from(model, delay_ns);
	timer->was_in = timer->was_in || timer->may;
	timer->may = timer->must = false;
	expect_heard(model, timer);
}

static void model_forget(struct model *model, unsigned at)
{
	model->gone[at] = model->timers[at].handle;
	model->timers[at].handle = 0;
}

static void model_cancel(struct model *model, unsigned at)
{
	expect_eq(timerhub_cancel(model->rig.hub, model->timers[at].handle), 0);
	model_forget(model, at);
}

static void model_advance(struct model *model)
{
	unsigned how = (unsigned)dice_below(&model->dice, 4);
	uint64_t soonest_ns = UINT64_MAX;

	if (how == 0 && model->next_ns < UINT64_C(1) << 62)
		model->now_ns = model->next_ns > model->now_ns ? model->next_ns : model->now_ns;
	else if (how < 3 && model->now_ns < UINT64_C(1) << 62)
		model->now_ns += dice_magnitude(&model->dice, 27);
	model->next_ns = advance(model->rig.hub, model->now_ns);
	for (unsigned i = 0; i < SLOTS; i++) {
		struct model_timer *timer = &model->timers[i];

		if (!timer->handle || timer->deadline_ns == UINT64_MAX)
			continue;
		timer->may = timer->may || timer->deadline_ns <= model->now_ns;
		timer->must = timer->must || timer->deadline_ns + timer->slack_ns <= model->now_ns;
		if (!timer->may && timer->deadline_ns + timer->slack_ns < soonest_ns)
			soonest_ns = timer->deadline_ns + timer->slack_ns;
	}
	expect(model->next_ns > model->now_ns);
	expect(model->next_ns <= soonest_ns);
}

static void model_take(struct model *model, const struct timerhub_event *event, unsigned queue)
{
	struct model_timer *timer = &model->timers[event->data % SLOTS];
	uint64_t count = 1;

	expect_eq(event->timer, timer->handle);
	expect_eq(event->data / SLOTS, timer->life);
	expect_eq(timer->queue, queue);
	expect(timer->may);
	expect_cmp(event->expires_ns, >=, timer->deadline_ns);
	expect_cmp(event->expires_ns, <=, timer->deadline_ns + timer->slack_ns);
	if (timer->interval_ns)
		count += (model->now_ns / TICK * TICK - timer->exact_ns) / timer->interval_ns;
	expect_eq(event->count, count);
	if (timer->interval_ns) {
		timer->exact_ns += count * timer->interval_ns;
		timer->deadline_ns = whole_ticks(timer->exact_ns);
		timer->may = timer->must = false;
	} else {
		model_forget(model, (unsigned)(event->data % SLOTS));
	}
}

static void model_found_empty(struct model *model, unsigned queue)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		struct model_timer *timer = &model->timers[i];

		if (!timer->handle || timer->queue != queue)
			continue;
		expect(!timer->must);
		timer->was_in = false;
	}
	expect(!fd_readable(timerhub_queue_fd(model->queues[queue])));
}

static void model_drain(struct model *model)
{
	unsigned queue = (unsigned)dice_below(&model->dice, QUEUES);
	unsigned max = 1 + (unsigned)dice_below(&model->dice, SLOTS);
	struct timerhub_event events[SLOTS];
	int count = timerhub_drain(model->queues[queue], events, max);
	uint64_t last_ns = 0;

	expect(count >= 0 && count <= (int)max);
	for (int i = 0; i < count; i++) {
		const struct model_timer *timer = &model->timers[events[i].data % SLOTS];

		if (!timer->was_in && !timer->slack_ns) {
			expect_cmp(events[i].expires_ns, >=, last_ns);
			last_ns = events[i].expires_ns;
		}
		model_take(model, &events[i], queue);
	}
	if (count < (int)max)
		model_found_empty(model, queue);
}

static void model_check_remaining(struct model *model, unsigned at)
{
	const struct model_timer *timer = &model->timers[at];
	uint64_t left_ns = 0;

	expect_eq(timerhub_remaining(model->rig.hub, timer->handle, &left_ns), 0);
	if (timer->deadline_ns == UINT64_MAX)
		expect(left_ns == UINT64_MAX);
	else if (timer->deadline_ns <= model->now_ns)
		expect_eq(left_ns, 0);
	else
		expect_eq(left_ns, timer->deadline_ns - model->now_ns);
}

static void model_step(struct model *model)
{
	unsigned at = (unsigned)dice_below(&model->dice, SLOTS);

	if (model->gone[at] && dice_below(&model->dice, 16) == 0)
		expect_eq(timerhub_cancel(model->rig.hub, model->gone[at]), -ENOENT);
	switch (dice_below(&model->dice, 8)) {
	case 0:
		model_advance(model);
		return;
	case 1:
		model_drain(model);
		return;
	}
	if (!model->timers[at].handle)
		model_arm(model, at);
	else if (dice_below(&model->dice, 4) == 0)
		model_cancel(model, at);
	else if (dice_below(&model->dice, 2))
		model_rearm(model, at);
	else
		model_check_remaining(model, at);
}

static void model_close(struct model *model)
{
	struct timerhub_stats stats = stats_of(model->rig.hub);
	unsigned live = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		live += model->timers[i].handle != 0;
	expect_eq(stats.live, live);
	expect_eq(stats.armed, model->lives);
	rig_close(&model->rig);
}

START_TEST(model_agrees_over_random_calls)
{
	for (unsigned round = 0; round < scaled(300); round++) {
		static struct model model;

		model_open(&model, round);
		for (unsigned step = 0; step < 2000; step++)
			model_step(&model);
		model_close(&model);
	}
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("model", argc, argv);
	tests_add(model_agrees_over_random_calls, 120);
	return tests_run();
}
