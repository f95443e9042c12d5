/* SPDX-License-Identifier: MIT */
/*
 * The whole hub, moved by hand, through the public header alone, against an array of timers that is
 * searched from end to end: random calls, and after each of them the hub must be as the array says.
 */
#include "harness.h"

#include <timerhub.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define CAPACITY_MAX 64
#define QUEUES 2
#define NEVER UINT64_MAX
#define LAST_NS ((UINT64_C(1) << 63) - 128) /* the latest deadline that can be kept */

enum { GONE, ARMED, PENDING };

struct model_timer {
	int state;
	timerhub_timer handle;
	uint64_t data, interval_ns, slack_ns;
	uint64_t deadline_ns; /* NEVER or at most LAST_NS */
	unsigned queue;
	uint64_t expired_by; /* PENDING: by the how manieth advance */
	bool has_fn;
	bool loose; /* re-armed while undelivered: may come at an older place */
};

struct model {
	struct timerhub *hub;
	struct timerhub_queue *queues[QUEUES];
	bool fd_was_read[QUEUES]; /* by the caller, since it was last drained */
	struct model_timer timers[CAPACITY_MAX];
	unsigned capacity;
	uint64_t advances;
	uint64_t now_ns, next_ns; /* what advance was last given and told */
	bool must_wake, may_wake; /* since then: what the wake fd has to say */
	uint64_t serial;          /* data of the last timer */
	timerhub_timer stale[16]; /* handles of timers that are no more */
	uint64_t armed, cancelled, delivered, overruns;
	struct dice dice;
};

/* Once per pass of dispatch: what the callbacks were given. */
static struct {
	struct timerhub_event events[CAPACITY_MAX];
	unsigned count;
} called;

static void record_call(const struct timerhub_event *event)
{
	called.events[called.count++] = *event;
}

/* ---- the model ---- */

static uint64_t round_up(uint64_t ns)
{
	return ns == NEVER ? NEVER : (ns + 63) / 64 * 64;
}

/* The largest power of two that has a multiple in the window tells the instant. */
static uint64_t instant_of(uint64_t deadline_ns, uint64_t slack_ns)
{
	uint64_t last_ns = deadline_ns + slack_ns;

	if (deadline_ns == NEVER || slack_ns == 0)
		return deadline_ns;
	if (last_ns > LAST_NS)
		last_ns = LAST_NS;
	for (uint64_t step = UINT64_C(1) << 62; step > 1; step /= 2)
		if ((deadline_ns + step - 1) / step * step <= last_ns)
			return (deadline_ns + step - 1) / step * step;
	return deadline_ns;
}

static uint64_t timer_instant(const struct model_timer *timer)
{
	return instant_of(timer->deadline_ns, timer->slack_ns);
}

static unsigned model_count(const struct model *model, int state, unsigned queue)
{
	unsigned count = 0;

	for (unsigned i = 0; i < model->capacity; i++)
		count += model->timers[i].state == state &&
		         (queue == QUEUES || model->timers[i].queue == queue);
	return count;
}

static unsigned model_live(const struct model *model)
{
	return model_count(model, ARMED, QUEUES) + model_count(model, PENDING, QUEUES);
}

static struct model_timer *model_find(struct model *model, timerhub_timer handle)
{
	for (unsigned i = 0; i < model->capacity; i++)
		if (model->timers[i].state != GONE && model->timers[i].handle == handle)
			return &model->timers[i];
	return NULL;
}

static struct model_timer *model_free(struct model *model)
{
	for (unsigned i = 0; i < model->capacity; i++)
		if (model->timers[i].state == GONE)
			return &model->timers[i];
	return NULL;
}

static void model_end(struct model *model, struct model_timer *timer)
{
	timer->state = GONE;
	model->stale[dice_below(&model->dice, COUNT_OF(model->stale))] = timer->handle;
}

/* Something was submitted for this instant; the hub decides by the deadline rounded up. */
static void model_submitted(struct model *model, const struct model_timer *timer)
{
	if (instant_of(round_up(timer->deadline_ns), timer->slack_ns) < model->next_ns)
		model->must_wake = true;
	if (timer_instant(timer) < model->next_ns)
		model->may_wake = true;
}

/* A handle: of a live timer mostly, else a stale one, one that never was, or zero. */
static timerhub_timer random_handle(struct model *model)
{
	struct model_timer *timer = &model->timers[dice_below(&model->dice, model->capacity)];

	switch (dice_below(&model->dice, 16)) {
	case 0:
		return model->stale[dice_below(&model->dice, COUNT_OF(model->stale))];
	case 1:
		return dice_magnitude(&model->dice, 64);
	default:
		return timer->state == GONE ? 0 : timer->handle;
	}
}

/* ---- looking at the hub ---- */

static bool fd_readable(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

static void verify_fds(const struct model *model)
{
	for (unsigned i = 0; i < QUEUES; i++)
		if (model_count(model, PENDING, i) > 0 && !model->fd_was_read[i])
			expect(fd_readable(timerhub_queue_fd(model->queues[i])));
	if (model->must_wake)
		expect(fd_readable(timerhub_wake_fd(model->hub)));
	if (!model->may_wake)
		expect(!fd_readable(timerhub_wake_fd(model->hub)));
}

static void verify_remaining(struct model *model, timerhub_timer handle)
{
	const struct model_timer *timer = model_find(model, handle);
	uint64_t remaining_ns = 77;
	int result = timerhub_remaining(model->hub, handle, &remaining_ns);

	if (!timer) {
		expect_eq(result, -ENOENT);
		expect_eq(remaining_ns, 77);
		return;
	}
	expect_eq(result, 0);
	if (timer->state == PENDING || timer->deadline_ns <= model->now_ns)
		expect_eq(remaining_ns, 0);
	else if (timer->deadline_ns == NEVER)
		expect_eq(remaining_ns, NEVER);
	else
		expect_eq(remaining_ns, timer->deadline_ns - model->now_ns);
}

static void verify_stats(const struct model *model)
{
	struct timerhub_stats stats;

	expect_eq(timerhub_stats(model->hub, &stats), 0);
	expect_eq(stats.armed, model->armed);
	expect_eq(stats.live, model_live(model));
	expect_eq(stats.delivered, model->delivered);
	expect_eq(stats.overruns, model->overruns);
	expect_eq(stats.cancelled, model->cancelled);
	expect_le(stats.live, stats.live_max);
	expect_le(stats.live_max, model->capacity);
	expect_le(stats.delivered, stats.expired);
}

/* ---- arm ---- */

static uint64_t random_expires(struct model *model, uint32_t *flags)
{
	struct dice *dice = &model->dice;

	*flags = dice_one_in(dice, 2) ? TIMERHUB_ABSOLUTE : 0;
	switch (dice_below(dice, 16)) {
	case 0:
		return NEVER;
	case 1:
		return *flags == 0 ? 0 : dice_magnitude(dice, 62); /* in the past, often */
	case 2:
		return *flags == 0 ? dice_boundary(dice) : LAST_NS - dice_below(dice, 3);
	default:
		return (*flags == 0 ? 0 : model->now_ns) + dice_magnitude(dice, 40);
	}
}

/* The deadline that the hub must make of it; false for -ERANGE. */
static bool deadline_of(const struct model *model, uint64_t expires_ns, uint32_t flags,
                        uint64_t *ret_ns)
{
	if (expires_ns != NEVER && flags == 0)
		expires_ns += model->now_ns;
	*ret_ns = expires_ns;
	return expires_ns == NEVER || expires_ns <= LAST_NS;
}

static struct timerhub_spec random_spec(struct model *model)
{
	struct dice *dice = &model->dice;
	struct timerhub_spec spec = { .size = sizeof(spec), .data = ++model->serial };

	spec.expires_ns = random_expires(model, &spec.flags);
	if (dice_one_in(dice, 4))
		spec.interval_ns = 1 + dice_magnitude(dice, 40);
	if (dice_one_in(dice, 4))
		spec.slack_ns = dice_magnitude(dice, 40);
	spec.fn = record_call;
	return spec;
}

static void model_arm(struct model *model, const struct timerhub_spec *spec, unsigned queue,
                      timerhub_timer handle)
{
	struct model_timer *timer = model_free(model);

	expect(timer);
	expect(handle != 0);
	expect(!model_find(model, handle));
	*timer = (struct model_timer){ .state = ARMED,
		                       .handle = handle,
		                       .data = spec->data,
		                       .interval_ns = spec->interval_ns,
		                       .slack_ns = spec->slack_ns,
		                       .queue = queue,
		                       .has_fn = spec->fn != NULL };
	expect(deadline_of(model, spec->expires_ns, spec->flags, &timer->deadline_ns));
	model->armed++;
	model_submitted(model, timer);
}

static void do_arm(struct model *model)
{
	struct timerhub_spec spec = random_spec(model);
	unsigned queue = (unsigned)dice_below(&model->dice, QUEUES);
	timerhub_timer handle = 77;
	uint64_t deadline_ns;
	int result;

	if (dice_one_in(&model->dice, 4)) {
		spec = (struct timerhub_spec){ .expires_ns = dice_magnitude(&model->dice, 45),
			                       .data = model->serial };
		result = timerhub_after(model->queues[queue], spec.expires_ns, spec.data, &handle);
	} else {
		result = timerhub_arm(model->queues[queue], &spec, &handle);
	}
	if (!deadline_of(model, spec.expires_ns, spec.flags, &deadline_ns)) {
		expect_eq(result, -ERANGE);
		expect_eq(handle, 77);
	} else if (model_live(model) == model->capacity) {
		expect_eq(result, -EAGAIN);
		expect_eq(handle, 77);
	} else {
		expect_eq(result, 0);
		model_arm(model, &spec, queue, handle);
	}
}

static void do_arm_many(struct model *model)
{
	struct timerhub_spec specs[5];
	timerhub_timer handles[5];
	unsigned count = (unsigned)dice_below(&model->dice, 6);
	unsigned queue = (unsigned)dice_below(&model->dice, QUEUES);
	uint64_t deadline_ns;
	bool fits = true;
	int result;

	for (unsigned i = 0; i < count; i++) {
		specs[i] = random_spec(model);
		fits &= deadline_of(model, specs[i].expires_ns, specs[i].flags, &deadline_ns);
	}
	result = timerhub_arm_many(model->queues[queue], specs, count, handles);
	if (!fits) {
		expect_eq(result, -ERANGE);
	} else if (model_live(model) + count > model->capacity) {
		expect_eq(result, -EAGAIN);
	} else {
		expect_eq(result, count);
		for (unsigned i = 0; i < count; i++)
			model_arm(model, &specs[i], queue, handles[i]);
	}
}

/* ---- re-arm, cancel, close ---- */

static void do_rearm(struct model *model)
{
	timerhub_timer handle = random_handle(model);
	struct model_timer *timer = model_find(model, handle);
	uint32_t flags;
	uint64_t expires_ns = random_expires(model, &flags);
	uint64_t deadline_ns;
	int result = timerhub_rearm(model->hub, handle, expires_ns, flags);

	if (!deadline_of(model, expires_ns, flags, &deadline_ns)) {
		expect_eq(result, -ERANGE);
	} else if (!timer) {
		expect_eq(result, -ENOENT);
	} else {
		expect_eq(result, 0);
		timer->loose |= timer->state == PENDING;
		timer->state = ARMED;
		timer->deadline_ns = round_up(deadline_ns);
		model_submitted(model, timer);
	}
	verify_remaining(model, handle);
}

static void do_cancel(struct model *model)
{
	timerhub_timer handles[3];
	unsigned count = 1 + (unsigned)dice_below(&model->dice, COUNT_OF(handles));
	unsigned found = 0;

	for (unsigned i = 0; i < count; i++)
		handles[i] = random_handle(model);
	for (unsigned i = 0; i < count; i++) {
		struct model_timer *timer = model_find(model, handles[i]);

		if (count == 1)
			expect_eq(timerhub_cancel(model->hub, handles[i]), timer ? 0 : -ENOENT);
		if (timer)
			model_end(model, timer);
		found += timer != NULL;
	}
	if (count > 1)
		expect_eq(timerhub_cancel_many(model->hub, handles, count), found);
	model->cancelled += found;
	verify_remaining(model, handles[0]);
}

static void open_queue(struct model *model, unsigned queue)
{
	expect_eq(timerhub_queue_open(model->hub, &model->queues[queue], NULL), 0);
	model->fd_was_read[queue] = false;
}

static void do_reopen_queue(struct model *model)
{
	unsigned queue = (unsigned)dice_below(&model->dice, QUEUES);

	timerhub_queue_close(model->queues[queue]);
	for (unsigned i = 0; i < model->capacity; i++)
		if (model->timers[i].state != GONE && model->timers[i].queue == queue)
			model_end(model, &model->timers[i]);
	open_queue(model, queue);
}

/* ---- time ---- */

static unsigned model_expire(struct model *model)
{
	unsigned expired = 0;

	for (unsigned i = 0; i < model->capacity; i++) {
		struct model_timer *timer = &model->timers[i];

		if (timer->state != ARMED || timer_instant(timer) > model->now_ns)
			continue;
		timer->state = PENDING;
		timer->expired_by = model->advances;
		expired++;
	}
	return expired;
}

static unsigned model_advance(struct model *model, uint64_t now_ns)
{
	unsigned expired;

	expect_eq(timerhub_advance(model->hub, now_ns, &model->next_ns), 0);
	expect_eq(timerhub_now(model->hub), now_ns);
	model->now_ns = now_ns;
	model->advances++;
	model->must_wake = model->may_wake = false;
	expired = model_expire(model);
	expect_lt(now_ns, model->next_ns);
	for (unsigned i = 0; i < model->capacity; i++)
		if (model->timers[i].state == ARMED)
			expect_le(model->next_ns, timer_instant(&model->timers[i]));
	return expired;
}

static bool model_has_pending_periodic(const struct model *model)
{
	for (unsigned i = 0; i < model->capacity; i++)
		if (model->timers[i].state == PENDING && model->timers[i].interval_ns > 0)
			return true;
	return false;
}

/* Law 8: told when to come, one comes for an expiry, or for a timer that was moved later. */
static void do_follow(struct model *model)
{
	bool excused = true; /* what was to come next may have been moved or cancelled since */

	for (unsigned steps = (unsigned)dice_below(&model->dice, 4); steps > 0; steps--) {
		struct timerhub_stats before, after;

		if (model->next_ns > UINT64_C(1) << 62)
			return;
		expect_eq(timerhub_stats(model->hub, &before), 0);
		excused |= model_has_pending_periodic(model); /* to be parked */
		if (model_advance(model, model->next_ns) == 0 && !excused) {
			expect_eq(timerhub_stats(model->hub, &after), 0);
			expect_lt(before.refiled, after.refiled);
		}
		excused = false;
	}
}

static void do_advance(struct model *model)
{
	uint64_t to_ns = model->now_ns + dice_magnitude(&model->dice, 38);
	uint64_t before_ns = model->now_ns;

	if (dice_one_in(&model->dice, 300))
		to_ns = dice_boundary(&model->dice);
	if (to_ns > UINT64_C(1) << 62)
		return;
	if (to_ns < before_ns) {
		expect_eq(timerhub_advance(model->hub, to_ns, NULL), -EINVAL);
		expect_eq(timerhub_now(model->hub), before_ns);
		return;
	}
	(void)model_advance(model, to_ns);
}

/* ---- delivery ---- */

static bool event_earlier(const struct model_timer *a, const struct model_timer *b)
{
	if (a->expired_by != b->expired_by)
		return a->expired_by < b->expired_by;
	return timer_instant(a) < timer_instant(b);
}

/* The event must be of a pending timer that none of its queue comes before. */
static void model_deliver(struct model *model, const struct timerhub_event *event, unsigned queue)
{
	struct model_timer *timer = model_find(model, event->timer);
	uint64_t count = 1;

	expect(timer);
	expect_eq(timer->state, PENDING);
	expect_eq(timer->queue, queue);
	expect_eq(event->data, timer->data);
	expect_eq(event->expires_ns, timer->deadline_ns);
	for (unsigned i = 0; i < model->capacity && !timer->loose; i++) {
		const struct model_timer *other = &model->timers[i];

		if (other->state == PENDING && other->queue == queue && !other->loose)
			expect(!event_earlier(other, timer));
	}
	if (timer->interval_ns == 0) {
		model_end(model, timer);
	} else {
		count += (model->now_ns - timer->deadline_ns) / timer->interval_ns;
		timer->state = ARMED;
		timer->deadline_ns += count * timer->interval_ns;
		if (timer->deadline_ns > LAST_NS)
			timer->deadline_ns = NEVER;
		/* It is filed already, or it was parked and is submitted. */
		if (timer_instant(timer) < model->next_ns)
			model->may_wake = true;
	}
	expect_eq(event->count, count);
	model->delivered++;
	model->overruns += count - 1;
}

static bool all_have_fn(const struct model *model, unsigned queue)
{
	for (unsigned i = 0; i < model->capacity; i++)
		if (model->timers[i].state == PENDING && model->timers[i].queue == queue &&
		    !model->timers[i].has_fn)
			return false;
	return true;
}

static int take(struct model *model, unsigned queue, struct timerhub_event *events, unsigned max)
{
	switch (dice_below(&model->dice, all_have_fn(model, queue) ? 3 : 2)) {
	case 0:
		return timerhub_drain(model->queues[queue], events, max);
	case 1:
		return timerhub_wait(model->queues[queue], events, max, 0);
	default:
		called.count = 0;
		expect_eq(timerhub_dispatch(model->queues[queue], max), called.count);
		memcpy(events, called.events, sizeof(called.events));
		return (int)called.count;
	}
}

static void do_take(struct model *model)
{
	struct timerhub_event events[CAPACITY_MAX];
	unsigned queue = (unsigned)dice_below(&model->dice, QUEUES);
	int fd = timerhub_queue_fd(model->queues[queue]);
	unsigned max = dice_one_in(&model->dice, 2) ? CAPACITY_MAX
	                                            : 1 + (unsigned)dice_magnitude(&model->dice, 5);
	unsigned pending = model_count(model, PENDING, queue);
	int count;

	if (dice_one_in(&model->dice, 4)) {
		uint64_t value;

		(void)!read(fd, &value, sizeof(value));
		model->fd_was_read[queue] = true;
		return;
	}
	count = take(model, queue, events, max);
	expect_eq(count, pending < max ? pending : max);
	for (int i = 0; i < count; i++)
		model_deliver(model, &events[i], queue);
	model->fd_was_read[queue] = false;
	if ((unsigned)count < max)
		expect(!fd_readable(fd));
}

/* ---- all of it ---- */

static void step(struct model *model)
{
	switch (dice_below(&model->dice, 32)) {
	case 0:
		do_arm_many(model);
		break;
	case 1 ... 10:
		do_arm(model);
		break;
	case 11 ... 16:
		do_rearm(model);
		break;
	case 17 ... 18:
		do_cancel(model);
		break;
	case 19 ... 22:
		do_advance(model);
		break;
	case 23 ... 25:
		do_follow(model);
		break;
	case 26:
		verify_stats(model);
		break;
	case 27:
		if (dice_one_in(&model->dice, 20))
			do_reopen_queue(model);
		break;
	default:
		do_take(model);
	}
}

static void run_round(uint64_t round)
{
	struct model model = { .dice = dice_new(round), .next_ns = NEVER };
	struct timerhub_config config = { .size = sizeof(config), .flags = TIMERHUB_MANUAL };

	model.capacity = 1 + (unsigned)dice_magnitude(&model.dice, 6) % CAPACITY_MAX;
	config.timers_max = model.capacity;
	expect_eq(timerhub_open(&model.hub, &config), 0);
	for (unsigned i = 0; i < QUEUES; i++)
		open_queue(&model, i);
	if (dice_one_in(&model.dice, 2))
		(void)model_advance(&model, dice_boundary(&model.dice));
	for (unsigned i = 0; i < 1000; i++) {
		expect_context("round, step", round, i);
		step(&model);
		verify_fds(&model);
	}
	verify_stats(&model);
	timerhub_close(model.hub);
}

START_TEST(hub_does_what_an_obvious_model_does)
{
	unsigned rounds = scaled(2000);

	for (unsigned round = 0; round < rounds; round++)
		run_round(round);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("hub_model", argc, argv);
	tests_add(hub_does_what_an_obvious_model_does, 100);
	return tests_run();
}
