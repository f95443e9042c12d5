/* SPDX-License-Identifier: MIT */
/* Law 2: each armed timer is delivered exactly once, with any number of producers and consumers. */
#include "rig.h"

#include <poll.h>
#include <stdatomic.h>

#define TIMERS_MAX 60000
#define PRODUCERS 3

static atomic_uint times_seen[TIMERS_MAX];
static atomic_uint taken; /* number of events that all consumers have taken */
static unsigned wanted;   /* number of events that the consumers must take */

static void note(const struct timerhub_event *event)
{
	expect(event->data < wanted);
	expect_eq(event->count, 1);
	expect_eq(atomic_fetch_add(&times_seen[event->data], 1), 0);
	atomic_fetch_add(&taken, 1);
}

static void expect_each_once(struct timerhub *hub)
{
	struct timerhub_stats stats = stats_of(hub);

	for (unsigned i = 0; i < wanted; i++)
		expect_eq(atomic_load(&times_seen[i]), 1);
	expect_eq(stats.armed, wanted);
	expect_eq(stats.expired, wanted);
	expect_eq(stats.delivered, wanted);
	expect_eq(stats.cancelled, 0);
	expect_eq(stats.live, 0);
	expect_cmp(stats.live_max, >=, 1);
	expect_cmp(stats.live_max, <=, wanted);
}

struct producer {
	struct timerhub_queue *queue;
	unsigned first;
	unsigned count;
	bool dispatched; /* true if the producer gives every timer a callback */
};

static void *produce(void *arg)
{
	const struct producer *me = arg;
	struct dice dice = dice_new(me->first);

	for (unsigned i = me->first; i < me->first + me->count; i++)
		arm(me->queue,
		    SPEC(.expires_ns = dice_magnitude(&dice, 22), .data = i,
		         .slack_ns = i % 5 == 0 ? MS : 0, .fn = me->dispatched ? note : NULL));
	return NULL;
}

static void *consume_by_wait(void *arg)
{
	struct timerhub_event events[7];

	while (atomic_load(&taken) < wanted) {
		int count = timerhub_wait(arg, events, COUNT_OF(events), 5 * MS);

		expect(count >= 0);
		for (int i = 0; i < count; i++)
			note(&events[i]);
	}
	return NULL;
}

static void *consume_by_poll(void *arg)
{
	struct timerhub_event events[3];
	struct pollfd fd = { .fd = timerhub_queue_fd(arg), .events = POLLIN };

	while (atomic_load(&taken) < wanted) {
		int count;

		poll(&fd, 1, 5);
		count = timerhub_drain(arg, events, COUNT_OF(events));
		expect(count >= 0);
		for (int i = 0; i < count; i++)
			note(&events[i]);
	}
	return NULL;
}

static void *consume_by_dispatch(void *arg)
{
	struct pollfd fd = { .fd = timerhub_queue_fd(arg), .events = POLLIN };

	while (atomic_load(&taken) < wanted) {
		poll(&fd, 1, 5);
		expect(timerhub_dispatch(arg, 16) >= 0);
	}
	return NULL;
}

typedef void *thread_fn(void *);

static void run_crowd(thread_fn *const *consumers, unsigned consumers_count, bool dispatched)
{
	struct rig rig = rig_open(TIMERS_MAX);
	struct producer producers[PRODUCERS];
	pthread_t threads[PRODUCERS + 8];
	unsigned each =
		scaled(15000) < TIMERS_MAX / PRODUCERS ? scaled(15000) : TIMERS_MAX / PRODUCERS;

	wanted = each * PRODUCERS;
	for (unsigned i = 0; i < consumers_count; i++)
		thread_start(&threads[PRODUCERS + i], consumers[i], rig.queue);
	for (unsigned i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){ rig.queue, i * each, each, dispatched };
		thread_start(&threads[i], produce, &producers[i]);
	}
	for (unsigned i = 0; i < PRODUCERS + consumers_count; i++)
		thread_join(threads[i]);
	expect_empty(rig.queue);
	expect_each_once(rig.hub);
	rig_close(&rig);
}

TEST(exactly_once_many_producers_and_consumers, 60)
{
	static thread_fn *const consumers[] = { consume_by_wait, consume_by_poll, consume_by_wait };

	run_crowd(consumers, COUNT_OF(consumers), false);
}

TEST(exactly_once_by_dispatch, 60)
{
	static thread_fn *const consumers[] = { consume_by_dispatch, consume_by_dispatch };

	run_crowd(consumers, COUNT_OF(consumers), true);
}
