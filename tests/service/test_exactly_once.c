/* SPDX-License-Identifier: MIT */
/* Law 2: each armed timer is delivered exactly once, with any number of producers and consumers. */
#include "rig.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>

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

START_TEST(exactly_once_many_producers_and_consumers)
{
	static thread_fn *const consumers[] = { consume_by_wait, consume_by_poll, consume_by_wait };

	run_crowd(consumers, COUNT_OF(consumers), false);
}
END_TEST

START_TEST(exactly_once_by_dispatch)
{
	static thread_fn *const consumers[] = { consume_by_dispatch, consume_by_dispatch };

	run_crowd(consumers, COUNT_OF(consumers), true);
}
END_TEST

START_TEST(exactly_once_in_its_own_queue)
{
	struct rig rig = rig_manual(0);
	struct timerhub_queue *queues[40];
	struct dice dice = dice_new(0);
	unsigned count[COUNT_OF(queues)] = { 0 };

	for (unsigned i = 0; i < COUNT_OF(queues); i++)
		queues[i] = queue_open(rig.hub);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned at = (unsigned)dice_below(&dice, COUNT_OF(queues));

		count[at]++;
		arm_after(queues[at], dice_magnitude(&dice, 40), at);
	}
	for (unsigned bits = 20; bits <= 40; bits++) {
		advance(rig.hub, UINT64_C(1) << bits);
		for (unsigned i = 0; i < COUNT_OF(queues); i++)
			for (struct timerhub_event event;
			     timerhub_drain(queues[i], &event, 1) == 1;) {
				expect_eq(event.data, i);
				count[i]--;
			}
	}
	for (unsigned i = 0; i < COUNT_OF(queues); i++)
		expect_eq(count[i], 0);
	expect_empty(rig.queue);
	rig_close(&rig);
}
END_TEST

START_TEST(exactly_once_armed_in_batches)
{
	struct rig rig = rig_manual(0);
	struct timerhub_spec specs[300];
	timerhub_timer handles[COUNT_OF(specs)];

	wanted = COUNT_OF(specs);
	for (unsigned i = 0; i < wanted; i++)
		specs[i] = SPEC(.expires_ns = 1000 * (i % 7), .data = i);
	expect_eq(timerhub_arm_many(rig.queue, specs, wanted, handles), wanted);
	for (unsigned i = 0; i < wanted; i++)
		for (unsigned j = 0; j < i; j++)
			expect(handles[i] != handles[j]);
	expect_eq(timerhub_arm_many(rig.queue, specs, 0, NULL), 0);
	advance(rig.hub, 10000);
	for (unsigned i = 0; i < wanted; i++) {
		struct timerhub_event event;

		expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
		expect_eq(event.timer, handles[event.data]);
		note(&event);
	}
	expect_empty(rig.queue);
	expect_each_once(rig.hub);
	rig_close(&rig);
}
END_TEST

START_TEST(exactly_once_at_one_instant)
{
	struct rig rig = rig_open(TIMERS_MAX);
	uint64_t deadline_ns = monotonic_ns() + 50 * MS;
	struct timerhub_event events[100];

	wanted = scaled(20000) < TIMERS_MAX ? scaled(20000) : TIMERS_MAX;
	for (unsigned i = 0; i < wanted; i++)
		arm_at(rig.queue, deadline_ns, i);
	while (atomic_load(&taken) < wanted) {
		int count = timerhub_wait(rig.queue, events, COUNT_OF(events), ARRIVES);

		expect_cmp(count, >, 0);
		for (int i = 0; i < count; i++)
			note(&events[i]);
	}
	expect_empty(rig.queue);
	expect_each_once(rig.hub);
	rig_close(&rig);
}
END_TEST

START_TEST(exactly_once_when_due_already)
{
	struct rig rig = rig_open(64);

	for (unsigned i = 0; i < 200; i++) {
		struct timerhub_event event;

		if (i % 2)
			arm_after(rig.queue, 0, i);
		else
			arm_at(rig.queue, i % 4 ? monotonic_ns() - MS : 0, i);
		event = take_one(rig.queue);
		expect_eq(event.data, i);
		expect_empty(rig.queue);
	}
	rig_close(&rig);
}
END_TEST

static struct rig chain;
static unsigned links;

static void arm_next_link(const struct timerhub_event *event)
{
	expect_eq(event->data, links);
	links++;
	if (links < 300)
		arm(chain.queue,
		    SPEC(.expires_ns = links % 50 * US, .data = links, .fn = arm_next_link));
}

START_TEST(exactly_once_in_a_chain_of_callbacks)
{
	int fd;

	chain = rig_open(1);
	fd = timerhub_queue_fd(chain.queue);
	arm(chain.queue, SPEC(.expires_ns = 0, .data = 0, .fn = arm_next_link));
	while (links < 300) {
		expect(fd_readable_within(fd, ARRIVES));
		expect(timerhub_dispatch(chain.queue, 10) >= 0);
	}
	expect_eq(timerhub_dispatch(chain.queue, 10), 0);
	rig_close(&chain);
}
END_TEST

/* Every value of the delivered event must equal the value in the timer's spec. */
START_TEST(exactly_once_says_what_was_armed)
{
	struct rig rig = rig_manual(4);
	timerhub_timer timer =
		arm(rig.queue, SPEC(.expires_ns = 777, .data = UINT64_MAX, .fn = arm_next_link));
	struct timerhub_event event;

	advance(rig.hub, 1000);
	expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
	expect_eq(event.data, UINT64_MAX);
	expect_eq(event.timer, timer);
	expect_eq(event.expires_ns, 777);
	expect_eq(event.count, 1);
	expect(event.fn == arm_next_link);
	rig_close(&rig);
}
END_TEST

START_TEST(exactly_once_after_never)
{
	struct rig rig = rig_manual(4);
	timerhub_timer timer = arm_after(rig.queue, TIMERHUB_NEVER, 5);
	struct timerhub_event event;
	uint64_t left_ns = 0;

	expect(advance(rig.hub, UINT64_C(1) << 62) == UINT64_MAX);
	expect_empty(rig.queue);
	expect_eq(timerhub_remaining(rig.hub, timer, &left_ns), 0);
	expect(left_ns == UINT64_MAX);
	expect_eq(timerhub_rearm(rig.hub, timer, 1000, 0), 0);
	advance(rig.hub, (UINT64_C(1) << 62) + 1100);
	expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
	expect_eq(event.data, 5);
	expect_empty(rig.queue);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("exactly_once", argc, argv);
	tests_add(exactly_once_many_producers_and_consumers, 60);
	tests_add(exactly_once_by_dispatch, 60);
	tests_add(exactly_once_in_its_own_queue, 30);
	tests_add(exactly_once_armed_in_batches, 30);
	tests_add(exactly_once_at_one_instant, 60);
	tests_add(exactly_once_when_due_already, 60);
	tests_add(exactly_once_in_a_chain_of_callbacks, 60);
	tests_add(exactly_once_says_what_was_armed, 30);
	tests_add(exactly_once_after_never, 30);
	return tests_run();
}
