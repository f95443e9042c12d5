/* SPDX-License-Identifier: MIT */
/* Random calls on a manual hub, which agrees with the array of hub_model.h after each. */
#include "hub_model.h"

struct player {
	struct model model;
	struct dice dice;
};

/* Mostly live, sometimes stale, unused or zero. */
static timerhub_timer random_handle(struct player *player)
{
	struct dice *dice = &player->dice;
	struct model *model = &player->model;
	const struct model_timer *timer = &model->timers[dice_below(dice, model->capacity)];

	switch (dice_below(dice, 16)) {
	case 0:
		return model->stale[dice_below(dice, MODEL_STALE)];
	case 1:
		return dice_magnitude(dice, 64);
	default:
		return timer->state == MODEL_GONE ? 0 : timer->handle;
	}
}

static unsigned random_queue(struct player *player)
{
	return (unsigned)dice_below(&player->dice, MODEL_QUEUES);
}

static uint64_t random_expires(struct player *player, uint32_t *flags)
{
	struct dice *dice = &player->dice;
	const struct model *model = &player->model;

	*flags = dice_one_in(dice, 2) ? TIMERHUB_ABSOLUTE : 0;
	switch (dice_below(dice, 16)) {
	case 0:
		return MODEL_NEVER;
	case 1:
		/* a point in time, often in the past */
		return *flags == 0 ? 0 : dice_magnitude(dice, 62);
	case 2:
		return *flags == 0 ? dice_boundary(dice) : MODEL_LAST_NS - dice_below(dice, 3);
	case 3: /* the deadline of another live or ended timer */
		*flags = TIMERHUB_ABSOLUTE;
		return model->timers[dice_below(dice, model->capacity)].deadline_ns;
	default:
		return (*flags == 0 ? 0 : model->now_ns) + dice_magnitude(dice, 40);
	}
}

static struct timerhub_spec random_spec(struct player *player)
{
	struct dice *dice = &player->dice;
	struct timerhub_spec spec = model_spec(&player->model);

	spec.expires_ns = random_expires(player, &spec.flags);
	if (dice_one_in(dice, 4))
		spec.interval_ns = 1 + dice_magnitude(dice, dice_one_in(dice, 16) ? 63 : 40);
	if (spec.interval_ns == 0 ? dice_one_in(dice, 2) : dice_one_in(dice, 64))
		spec.flags |= TIMERHUB_KEEP;
	if (dice_one_in(dice, 4))
		spec.slack_ns = dice_magnitude(dice, 40);
	return spec;
}

static void do_arm(struct player *player)
{
	struct timerhub_spec spec = random_spec(player);

	if (dice_one_in(&player->dice, 6))
		model_after(&player->model, random_queue(player),
		            dice_magnitude(&player->dice, 45));
	else if (dice_one_in(&player->dice, 6))
		model_call(&player->model, random_queue(player), dice_magnitude(&player->dice, 45));
	else
		model_arm(&player->model, random_queue(player), &spec);
}

static void do_arm_many(struct player *player)
{
	struct timerhub_spec specs[5];
	unsigned count = (unsigned)dice_below(&player->dice, COUNT_OF(specs) + 1);

	for (unsigned i = 0; i < count; i++)
		specs[i] = random_spec(player);
	model_arm_many(&player->model, random_queue(player), specs, count);
}

static void do_rearm(struct player *player)
{
	uint32_t flags;
	uint64_t expires_ns = random_expires(player, &flags);
	timerhub_timer handles[3];

	for (unsigned i = 0; i < COUNT_OF(handles); i++)
		handles[i] = random_handle(player);
	if (dice_one_in(&player->dice, 4))
		model_rearm_many(&player->model, handles,
		                 (unsigned)dice_below(&player->dice, COUNT_OF(handles) + 1),
		                 expires_ns, flags);
	else
		model_rearm(&player->model, handles[0], expires_ns, flags);
}

static void do_cancel(struct player *player)
{
	timerhub_timer handles[3];
	unsigned count = 1 + (unsigned)dice_below(&player->dice, COUNT_OF(handles));

	for (unsigned i = 0; i < count; i++)
		handles[i] = random_handle(player);
	if (count == 1)
		model_cancel(&player->model, handles[0]);
	else
		model_cancel_many(&player->model, handles, count);
}

static void do_advance(struct player *player)
{
	uint64_t to_ns = player->model.now_ns + dice_magnitude(&player->dice, 38);

	if (dice_one_in(&player->dice, 300))
		to_ns = dice_boundary(&player->dice);
	model_advance(&player->model, to_ns);
}

static void do_take(struct player *player)
{
	struct dice *dice = &player->dice;
	unsigned max =
		dice_one_in(dice, 2) ? MODEL_TIMERS_MAX : 1 + (unsigned)dice_magnitude(dice, 5);

	if (dice_one_in(dice, 4))
		model_read_fd(&player->model, random_queue(player));
	else
		model_take(&player->model, random_queue(player),
		           (enum model_taking)dice_below(dice, MODEL_DISPATCH + 1), max);
}

static void step(struct player *player)
{
	struct dice *dice = &player->dice;

	switch (dice_below(dice, 32)) {
	case 0:
		do_arm_many(player);
		break;
	case 1 ... 10:
		do_arm(player);
		break;
	case 11 ... 16:
		do_rearm(player);
		break;
	case 17 ... 18:
		do_cancel(player);
		break;
	case 19 ... 22:
		do_advance(player);
		break;
	case 23 ... 25:
		model_follow(&player->model, (unsigned)dice_below(dice, 4));
		break;
	case 26:
		model_verify_stats(&player->model);
		model_verify_each(&player->model);
		break;
	case 27:
		if (dice_one_in(dice, 20))
			model_reopen_queue(&player->model, random_queue(player));
		else if (dice_one_in(dice, 20))
			model_stop_queue(&player->model, random_queue(player));
		break;
	default:
		do_take(player);
	}
}

static void run_round(uint64_t round)
{
	struct player player = { .dice = dice_new(round) };
	unsigned capacity = 1 + (unsigned)dice_magnitude(&player.dice, 6) % MODEL_TIMERS_MAX;

	/* one round in eight in shared memory */
	model_open(&player.model, capacity, dice_one_in(&player.dice, 8) ? TIMERHUB_OBSERVABLE : 0);
	if (dice_one_in(&player.dice, 2))
		model_advance(&player.model, dice_boundary(&player.dice));
	for (unsigned i = 0; i < 1000; i++) {
		expect_context("round, step", round, i);
		step(&player);
		model_verify_fds(&player.model);
	}
	model_close(&player.model);
}

TEST(hub_does_what_an_obvious_model_does, 100)
{
	unsigned rounds = scaled(250);

	for (unsigned round = 0; round < rounds; round++)
		run_round(round);
}
