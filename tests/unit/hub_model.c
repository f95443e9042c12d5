/* SPDX-License-Identifier: MIT */
/* Implements the model of a manual hub. See hub_model.h. */
#include "hub_model.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "hub_check.h"
#include "process_usage.h"

/* The largest slack of a timer that the hub can store. */
#define SLACK_MAX_NS ((UINT64_C(1) << 48) - 1)

/* The handles and data that one call of timerhub_dispatch() passed to callbacks. */
static struct {
	struct timerhub_event events[MODEL_TIMERS_MAX];
	unsigned count;
} called;

static void record_call(const struct timerhub_event *event)
{
	called.events[called.count++] = *event;
}

/* ---- the model ---- */

/* The time in [`deadline_ns`, `deadline_ns` + `slack_ns`] with the most trailing zero bits. */
static uint64_t instant_of(uint64_t deadline_ns, uint64_t slack_ns)
{
	uint64_t last_ns;

	if (deadline_ns == MODEL_NEVER || slack_ns == 0)
		return deadline_ns;
	last_ns = deadline_ns + (slack_ns < SLACK_MAX_NS ? slack_ns : SLACK_MAX_NS);
	if (last_ns > MODEL_LAST_NS)
		last_ns = MODEL_LAST_NS;
	for (uint64_t step = UINT64_C(1) << 62; step > 1; step /= 2)
		if ((deadline_ns + step - 1) / step * step <= last_ns)
			return (deadline_ns + step - 1) / step * step;
	return deadline_ns;
}

static uint64_t timer_instant(const struct model_timer *timer)
{
	return instant_of(timer->deadline_ns, timer->slack_ns);
}

static unsigned model_count(const struct model *model, enum model_state state, unsigned queue)
{
	unsigned count = 0;

	for (unsigned i = 0; i < model->capacity; i++)
		count += model->timers[i].state == state &&
		         (queue == MODEL_QUEUES || model->timers[i].queue == queue);
	return count;
}

static unsigned model_live(const struct model *model)
{
	return model->capacity - model_count(model, MODEL_GONE, MODEL_QUEUES);
}

static struct model_timer *model_find(struct model *model, timerhub_timer handle)
{
	for (unsigned i = 0; i < model->capacity; i++)
		if (model->timers[i].state != MODEL_GONE && model->timers[i].handle == handle)
			return &model->timers[i];
	return NULL;
}

static struct model_timer *model_free(struct model *model)
{
	for (unsigned i = 0; i < model->capacity; i++)
		if (model->timers[i].state == MODEL_GONE)
			return &model->timers[i];
	return NULL;
}

static void model_end(struct model *model, struct model_timer *timer)
{
	timer->state = MODEL_GONE;
	model->stale[model->stale_count++ % MODEL_STALE] = timer->handle;
}

/* If its instant is before `next_ns`, the caller must wake the owner. */
static void model_submitted(struct model *model, const struct model_timer *timer)
{
	if (timer_instant(timer) < model->next_ns)
		model->must_wake = model->may_wake = true;
}

/* ---- looking at the hub ---- */

void model_verify_fds(const struct model *model)
{
	expect_unbroken(hub_check(model->hub, HUB_HAS_NO_CALLERS));
	for (unsigned i = 0; i < MODEL_QUEUES; i++)
		if (model_count(model, MODEL_PENDING, i) > 0 && !model->fd_was_read[i])
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
	if (timer->state == MODEL_IDLE || timer->deadline_ns == MODEL_NEVER)
		expect_eq(remaining_ns, MODEL_NEVER);
	else if (timer->state == MODEL_PENDING || timer->deadline_ns <= model->now_ns)
		expect_eq(remaining_ns, 0);
	else
		expect_eq(remaining_ns, timer->deadline_ns - model->now_ns);
}

void model_verify_stats(const struct model *model)
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

struct walk {
	struct model *model;
	unsigned shown;
};

static int verify_shown(const struct timerhub_event *shown, uint64_t interval_ns, void *context)
{
	struct walk *walk = context;
	const struct model_timer *timer = model_find(walk->model, shown->timer);

	expect(timer);
	expect_eq(shown->data, timer->data);
	expect_eq(interval_ns, timer->interval_ns);
	expect_eq(shown->expires_ns, timer->state == MODEL_IDLE ? MODEL_NEVER : timer->deadline_ns);
	expect_eq(shown->count, timer->state == MODEL_PENDING);
	expect_eq(shown->fn != NULL, timer->has_fn);
	expect(shown->queue == walk->model->queues[timer->queue]);
	expect(shown->reserved[0] == 0 && shown->reserved[1] == 0);
	walk->shown++;
	return 0;
}

void model_verify_each(struct model *model)
{
	struct walk walk = { .model = model };

	expect_eq(timerhub_each(model->hub, verify_shown, &walk), 0);
	expect_eq(walk.shown, model_live(model));
}

/* ---- arm ---- */

/* False: the hub must say -ERANGE. */
static bool deadline_of(const struct model *model, uint64_t expires_ns, uint32_t flags,
                        uint64_t *ret_ns)
{
	*ret_ns = expires_ns;
	if (expires_ns == MODEL_NEVER)
		return true;
	if (expires_ns > MODEL_LAST_NS)
		return false;
	if ((flags & TIMERHUB_ABSOLUTE) == 0)
		*ret_ns += model->now_ns;
	return *ret_ns <= MODEL_LAST_NS;
}

/* Returns 0, or the errno with which the hub must refuse the spec. */
static int spec_fits(const struct model *model, const struct timerhub_spec *spec)
{
	uint64_t deadline_ns;

	if ((spec->flags & TIMERHUB_KEEP) != 0 && spec->interval_ns > 0)
		return -EINVAL;
	if (spec->interval_ns > MODEL_LAST_NS ||
	    !deadline_of(model, spec->expires_ns, spec->flags, &deadline_ns))
		return -ERANGE;
	return 0;
}

struct timerhub_spec model_spec(struct model *model)
{
	return (struct timerhub_spec){ .size = sizeof(struct timerhub_spec),
		                       .data = ++model->serial,
		                       .fn = record_call };
}

static void model_armed(struct model *model, unsigned queue, const struct timerhub_spec *spec,
                        timerhub_timer handle)
{
	struct model_timer *timer = model_free(model);

	expect(timer);
	expect(handle != 0);
	expect(!model_find(model, handle));
	*timer = (struct model_timer){ .state = MODEL_ARMED,
		                       .handle = handle,
		                       .data = spec->data,
		                       .interval_ns = spec->interval_ns,
		                       .slack_ns = spec->slack_ns,
		                       .queue = queue,
		                       .has_fn = spec->fn != NULL,
		                       .kept = (spec->flags & TIMERHUB_KEEP) != 0 };
	expect(deadline_of(model, spec->expires_ns, spec->flags, &timer->deadline_ns));
	model->armed++;
	model_submitted(model, timer);
}

/* Checks the result of arming one timer. */
static void verify_arm(struct model *model, unsigned queue, const struct timerhub_spec *spec,
                       int result, timerhub_timer handle)
{
	int unfit = spec_fits(model, spec);

	if (unfit != 0) {
		expect_eq(result, unfit);
		expect_eq(handle, 77);
	} else if (model_live(model) == model->capacity) {
		expect_eq(result, -EAGAIN);
		expect_eq(handle, 77);
	} else {
		expect_eq(result, 0);
		model_armed(model, queue, spec, handle);
	}
}

void model_arm(struct model *model, unsigned queue, const struct timerhub_spec *spec)
{
	timerhub_timer handle = 77;
	int result = timerhub_arm(model->queues[queue], spec, &handle);

	verify_arm(model, queue, spec, result, handle);
}

void model_after(struct model *model, unsigned queue, uint64_t delay_ns)
{
	struct timerhub_spec spec = { .expires_ns = delay_ns, .data = ++model->serial };
	timerhub_timer handle = 77;
	int result = timerhub_after(model->queues[queue], delay_ns, spec.data, &handle);

	verify_arm(model, queue, &spec, result, handle);
}

void model_call(struct model *model, unsigned queue, uint64_t delay_ns)
{
	struct timerhub_spec spec = { .expires_ns = delay_ns,
		                      .data = ++model->serial,
		                      .fn = record_call };
	timerhub_timer handle = 77;
	int result = timerhub_call(model->queues[queue], delay_ns, spec.fn, spec.ptr, &handle);

	verify_arm(model, queue, &spec, result, handle);
}

void model_arm_many(struct model *model, unsigned queue, const struct timerhub_spec *specs,
                    unsigned count)
{
	timerhub_timer handles[MODEL_BATCH];
	int unfit = 0; /* errno of the first invalid spec, or 0 */
	int result;

	for (unsigned i = 0; i < count; i++) {
		unfit = unfit != 0 ? unfit : spec_fits(model, &specs[i]);
		handles[i] = 77;
	}
	result = timerhub_arm_many(model->queues[queue], specs, count, handles);
	if (unfit != 0)
		expect_eq(result, unfit);
	else if (model_live(model) + count > model->capacity)
		expect_eq(result, -EAGAIN);
	else
		expect_eq(result, count);
	for (unsigned i = 0; i < count; i++)
		if (result < 0)
			expect_eq(handles[i], 77);
		else
			model_armed(model, queue, &specs[i], handles[i]);
}

/* ---- re-arm, cancel, close ---- */

static void model_moved(struct model *model, struct model_timer *timer, uint64_t deadline_ns)
{
	timer->loose |= timer->state == MODEL_PENDING;
	timer->state = MODEL_ARMED;
	timer->deadline_ns = deadline_ns;
	model_submitted(model, timer);
}

void model_rearm(struct model *model, timerhub_timer handle, uint64_t expires_ns, uint32_t flags)
{
	struct model_timer *timer = model_find(model, handle);
	int result = timerhub_rearm(model->hub, handle, expires_ns, flags);
	uint64_t deadline_ns;

	if (!deadline_of(model, expires_ns, flags, &deadline_ns)) {
		expect_eq(result, -ERANGE);
	} else if (!timer) {
		expect_eq(result, -ENOENT);
	} else {
		expect_eq(result, timer->state == MODEL_IDLE);
		model_moved(model, timer, deadline_ns);
	}
	verify_remaining(model, handle);
}

void model_rearm_many(struct model *model, const timerhub_timer *handles, unsigned count,
                      uint64_t expires_ns, uint32_t flags)
{
	int result = timerhub_rearm_many(model->hub, handles, count, expires_ns, flags);
	unsigned found = 0;
	uint64_t deadline_ns;

	if (!deadline_of(model, expires_ns, flags, &deadline_ns)) {
		expect_eq(result, -ERANGE);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		struct model_timer *timer = model_find(model, handles[i]);

		if (!timer)
			continue;
		model_moved(model, timer, deadline_ns);
		found++;
	}
	expect_eq(result, found);
	for (unsigned i = 0; i < count; i++)
		verify_remaining(model, handles[i]);
}

static bool model_cancelled(struct model *model, timerhub_timer handle)
{
	struct model_timer *timer = model_find(model, handle);

	if (timer)
		model_end(model, timer);
	model->cancelled += timer != NULL;
	return timer != NULL;
}

void model_cancel(struct model *model, timerhub_timer handle)
{
	int result = timerhub_cancel(model->hub, handle);

	expect_eq(result, model_cancelled(model, handle) ? 0 : -ENOENT);
	verify_remaining(model, handle);
}

void model_cancel_many(struct model *model, const timerhub_timer *handles, unsigned count)
{
	int result = timerhub_cancel_many(model->hub, handles, count);
	unsigned found = 0;

	for (unsigned i = 0; i < count; i++)
		found += model_cancelled(model, handles[i]);
	expect_eq(result, found);
	for (unsigned i = 0; i < count; i++)
		verify_remaining(model, handles[i]);
}

static void open_queue(struct model *model, unsigned queue)
{
	expect_eq(timerhub_queue_open(model->hub, &model->queues[queue], NULL), 0);
	model->fd_was_read[queue] = false;
	model->stopped[queue] = false;
}

void model_stop_queue(struct model *model, unsigned queue)
{
	timerhub_queue_stop(model->queues[queue]);
	model->stopped[queue] = true;
}

void model_reopen_queue(struct model *model, unsigned queue)
{
	timerhub_queue_close(model->queues[queue]);
	for (unsigned i = 0; i < model->capacity; i++)
		if (model->timers[i].state != MODEL_GONE && model->timers[i].queue == queue)
			model_end(model, &model->timers[i]);
	open_queue(model, queue);
}

/* ---- time ---- */

static unsigned model_expire(struct model *model)
{
	unsigned expired = 0;

	for (unsigned i = 0; i < model->capacity; i++) {
		struct model_timer *timer = &model->timers[i];

		if (timer->state != MODEL_ARMED || timer_instant(timer) > model->now_ns)
			continue;
		timer->state = MODEL_PENDING;
		timer->expired_by = model->advances;
		expired++;
	}
	return expired;
}

static unsigned advance(struct model *model, uint64_t now_ns)
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
		if (model->timers[i].state == MODEL_ARMED)
			expect_le(model->next_ns, timer_instant(&model->timers[i]));
	return expired;
}

static bool model_has_pending_periodic(const struct model *model)
{
	for (unsigned i = 0; i < model->capacity; i++)
		if (model->timers[i].state == MODEL_PENDING && model->timers[i].interval_ns > 0)
			return true;
	return false;
}

void model_follow(struct model *model, unsigned steps)
{
	/* the caller may have moved or cancelled the expected one */
	bool excused = true;

	for (; steps > 0; steps--) {
		struct timerhub_stats before, after;

		if (model->next_ns > MODEL_NOW_MAX_NS)
			return;
		expect_eq(timerhub_stats(model->hub, &before), 0);
		/* a PENDING periodic timer may become OVERDUE */
		excused |= model_has_pending_periodic(model);
		if (advance(model, model->next_ns) == 0 && !excused) {
			expect_eq(timerhub_stats(model->hub, &after), 0);
			expect_lt(before.refiled, after.refiled);
		}
		excused = false;
	}
}

void model_advance(struct model *model, uint64_t to_ns)
{
	uint64_t before_ns = model->now_ns;
	uint64_t next_ns = 77;

	if (to_ns > MODEL_NOW_MAX_NS)
		return;
	if (to_ns >= before_ns) {
		(void)advance(model, to_ns);
		return;
	}
	expect_eq(timerhub_advance(model->hub, to_ns, &next_ns), -EINVAL);
	expect_eq(next_ns, 77);
	expect_eq(timerhub_now(model->hub), before_ns);
}

/* ---- delivery ---- */

static bool event_earlier(const struct model_timer *a, const struct model_timer *b)
{
	if (a->expired_by != b->expired_by)
		return a->expired_by < b->expired_by;
	return timer_instant(a) < timer_instant(b);
}

/* Its timer must be pending, and no other of the queue may precede it. */
static void model_deliver(struct model *model, const struct timerhub_event *event, unsigned queue)
{
	struct model_timer *timer = model_find(model, event->timer);
	uint64_t count = 1;

	expect(timer);
	expect_eq(timer->state, MODEL_PENDING);
	expect_eq(timer->queue, queue);
	expect_eq(event->data, timer->data);
	expect_eq(event->expires_ns, timer->deadline_ns);
	for (unsigned i = 0; i < model->capacity && !timer->loose; i++) {
		const struct model_timer *other = &model->timers[i];

		if (other->state == MODEL_PENDING && other->queue == queue && !other->loose)
			expect(!event_earlier(other, timer));
	}
	expect(event->queue == model->queues[queue]);
	expect(event->reserved[0] == 0 && event->reserved[1] == 0);
	if (timer->kept) {
		timer->state = MODEL_IDLE;
	} else if (timer->interval_ns == 0) {
		model_end(model, timer);
	} else {
		count += (model->now_ns - timer->deadline_ns) / timer->interval_ns;
		timer->state = MODEL_ARMED;
		timer->deadline_ns += count * timer->interval_ns;
		if (timer->deadline_ns > MODEL_LAST_NS)
			timer->deadline_ns = MODEL_NEVER;
		/* PENDING: scheduled already; OVERDUE: the delivery submits it */
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
		if (model->timers[i].state == MODEL_PENDING && model->timers[i].queue == queue &&
		    !model->timers[i].has_fn)
			return false;
	return true;
}

static int take(struct model *model, unsigned queue, enum model_taking taking,
                struct timerhub_event *events, unsigned max)
{
	/* a dispatch shows timers only by their callbacks */
	if (taking == MODEL_DISPATCH && all_have_fn(model, queue)) {
		called.count = 0;
		expect_eq(timerhub_dispatch(model->queues[queue], max), called.count);
		memcpy(events, called.events, sizeof(called.events));
		return (int)called.count;
	}
	if (taking == MODEL_WAIT)
		return timerhub_wait(model->queues[queue], events, max, 0);
	return timerhub_drain(model->queues[queue], events, max);
}

void model_read_fd(struct model *model, unsigned queue)
{
	uint64_t value;

	(void)!read(timerhub_queue_fd(model->queues[queue]), &value, sizeof(value));
	model->fd_was_read[queue] = true;
}

void model_take(struct model *model, unsigned queue, enum model_taking taking, unsigned max)
{
	struct timerhub_event events[MODEL_TIMERS_MAX];
	unsigned pending = model_count(model, MODEL_PENDING, queue);
	int count;

	if (max > MODEL_TIMERS_MAX)
		max = MODEL_TIMERS_MAX;
	memset(events, 0xff, sizeof(events)); /* so that what the library leaves out is seen */
	count = take(model, queue, taking, events, max);
	if (taking == MODEL_WAIT && pending == 0 && model->stopped[queue]) {
		expect_eq(count, -ESHUTDOWN);
		count = 0;
	}
	expect_eq(count, pending < max ? pending : max);
	for (int i = 0; i < count; i++)
		model_deliver(model, &events[i], queue);
	model->fd_was_read[queue] = false;
	if ((unsigned)count < max)
		expect(!fd_readable(timerhub_queue_fd(model->queues[queue])));
}

/* ---- open, close ---- */

void model_open(struct model *model, unsigned capacity, uint32_t flags)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_MANUAL | flags,
		                          .timers_max = capacity };

	*model = (struct model){ .capacity = capacity, .next_ns = MODEL_NEVER };
	expect_eq(timerhub_open(&model->hub, &config), 0);
	for (unsigned i = 0; i < MODEL_QUEUES; i++)
		open_queue(model, i);
}

void model_close(struct model *model)
{
	model_verify_stats(model);
	timerhub_close(model->hub);
}
