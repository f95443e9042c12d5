/* SPDX-License-Identifier: MIT */
/*
 * Law 6: arm, re-arm and cancel in signal handlers, in callbacks, and beside threads stopped for
 * ever. tests/simulation/own_steps.c counts each call's steps.
 */
#include "rig.h"

#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define STORM_TIMERS 20000

/* The outcome of a timer of the test. */
struct fate {
	timerhub_timer handle;
	atomic_uint delivered;
	unsigned cancelled;
};

/* first half: the interrupted code's; second: the handler's */
static struct fate fates[2 * STORM_TIMERS];
static struct rig storm;
static atomic_bool storm_over;
static volatile sig_atomic_t storm_handled; /* number of times that the handler has run */

static void fate_arm(unsigned at, uint64_t delay_ns)
{
	expect_eq(timerhub_after(storm.queue, delay_ns, at, &fates[at].handle), 0);
}

static void fate_rearm(unsigned at, uint64_t delay_ns)
{
	int result = timerhub_rearm(storm.hub, fates[at].handle, delay_ns, 0);

	expect(result == 0 || result == -ENOENT);
}

static void fate_cancel(unsigned at)
{
	int result = timerhub_cancel(storm.hub, fates[at].handle);

	expect(result == 0 || result == -ENOENT);
	if (result == 0)
		fates[at].cancelled++;
}

/* Interrupts any call of the main thread with the same kinds of calls. */
static void submit_from_handler(int signal)
{
	static struct dice dice;
	int saved_errno = errno;
	unsigned at = STORM_TIMERS + (unsigned)storm_handled;

	(void)signal;
	if (at < 2 * STORM_TIMERS) {
		fate_arm(at, dice_magnitude(&dice, 21));
		fate_rearm(at, dice_magnitude(&dice, 21));
		if (dice_below(&dice, 2))
			fate_cancel(at);
		storm_handled++;
	}
	errno = saved_errno;
}

static void *send_storm(void *arg)
{
	pthread_t *target = arg;

	while (!atomic_load(&storm_over)) {
		pthread_kill(*target, SIGUSR1);
		sleep_ns(5 * US);
	}
	return NULL;
}

static void *take_storm(void *arg)
{
	struct timerhub_event events[16];
	int count;

	(void)arg;
	while ((count = timerhub_wait(storm.queue, events, COUNT_OF(events), UINT64_MAX)) > 0)
		for (int i = 0; i < count; i++)
			atomic_fetch_add(&fates[events[i].data].delivered, 1);
	expect_eq(count, -ESHUTDOWN);
	return NULL;
}

/* Until the handler has run often enough. */
static void submit_under_storm(void)
{
	unsigned wanted = scaled(2000) < STORM_TIMERS ? scaled(2000) : STORM_TIMERS;
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	struct dice dice = dice_new(0);
	unsigned handled = 0;

	for (unsigned at = 0; (unsigned)storm_handled < wanted; at++) {
		if ((unsigned)storm_handled > handled)
			until_ns = monotonic_ns() + ARRIVES; /* time limit for the next signal */
		handled = (unsigned)storm_handled;
		expect(monotonic_ns() < until_ns);
		if (at < STORM_TIMERS) {
			fate_arm(at, dice_magnitude(&dice, 21));
			fate_rearm(at, dice_magnitude(&dice, 21));
			fate_cancel(at);
		} else {
			timerhub_timer timer = arm_after(storm.queue, HOUR, 0);

			expect_eq(timerhub_cancel(storm.hub, timer), 0);
		}
	}
}

static void storm_settles(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (stats_of(storm.hub).live) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(MS);
	}
}

TEST(submission_from_a_signal_handler, 60)
{
	struct sigaction action = { .sa_handler = submit_from_handler };
	pthread_t self = pthread_self();
	pthread_t sender;
	pthread_t taker;

	storm = rig_open(2 * STORM_TIMERS);
	expect_eq(sigaction(SIGUSR1, &action, NULL), 0);
	thread_start(&taker, take_storm, NULL);
	thread_start(&sender, send_storm, &self);
	submit_under_storm();
	atomic_store(&storm_over, true);
	thread_join(sender);
	storm_settles();
	timerhub_queue_close(storm.queue);
	thread_join(taker);
	for (unsigned i = 0; i < 2 * STORM_TIMERS; i++)
		expect_eq(atomic_load(&fates[i].delivered) + fates[i].cancelled,
		          fates[i].handle != 0);
	timerhub_close(storm.hub);
}

static struct rig party;
static timerhub_timer party_far[3];
static unsigned party_order[16];
static unsigned party_count;

static void note_guest(const struct timerhub_event *event)
{
	party_order[party_count++] = (unsigned)event->data;
}

static void submit_all_kinds(const struct timerhub_event *event)
{
	note_guest(event);
	expect_eq(timerhub_rearm(party.hub, party_far[0], MS, 0), 0);
	expect_eq(timerhub_rearm(party.hub, party_far[1], 2 * HOUR, 0), 0);
	expect_eq(timerhub_cancel(party.hub, party_far[2]), 0);
	arm(party.queue, SPEC(.expires_ns = 3 * MS, .data = 4, .fn = note_guest));
	expect_eq(timerhub_rearm(party.hub, event->timer, MS, 0), -ENOENT);
}

TEST(submission_from_a_callback, 60)
{
	int fd;

	party = rig_open(4);
	fd = timerhub_queue_fd(party.queue);
	for (unsigned i = 0; i < COUNT_OF(party_far); i++)
		party_far[i] =
			arm(party.queue, SPEC(.expires_ns = HOUR, .data = i, .fn = note_guest));
	arm(party.queue, SPEC(.expires_ns = MS, .data = 3, .fn = submit_all_kinds));
	while (party_count < 3) {
		expect(fd_readable_within(fd, ARRIVES));
		expect(timerhub_dispatch(party.queue, 10) >= 0);
	}
	expect_eq(party_order[0], 3);
	expect_eq(party_order[1], 0);
	expect_eq(party_order[2], 4);
	expect_eq(stats_of(party.hub).live, 1);
	rig_close(&party);
}

#define VICTIMS 32
#define OTHERS 16 /* number of timers that no stopped thread arms */

/* never closed: threads are stopped inside its calls */
static struct rig frozen;
static struct timerhub_queue *frozen_queue;
static atomic_uint victims_begun;
static atomic_uint frozen_count;

static void freeze(int signal)
{
	(void)signal;
	atomic_fetch_add(&frozen_count, 1);
	for (;;)
		pause();
}

static void *submit_until_frozen(void *arg)
{
	struct dice dice = dice_new((uintptr_t)arg);

	atomic_fetch_add(&victims_begun, 1);
	for (;;) {
		timerhub_timer timer = 0;
		int result =
			timerhub_after(frozen_queue, HOUR + dice_magnitude(&dice, 40), 0, &timer);

		expect_eq(result, 0);
		expect_eq(timerhub_rearm(frozen.hub, timer, HOUR * 3, 0), 0);
		expect_eq(timerhub_rearm(frozen.hub, timer, HOUR * 2, 0), 0);
		result = timerhub_rearm(frozen.hub, timer, dice_magnitude(&dice, 16), 0);
		expect_eq(result, 0);
		expect_eq(timerhub_rearm(frozen.hub, timer, HOUR, 0), 0);
		expect_eq(timerhub_cancel(frozen.hub, timer), 0);
	}
	return NULL;
}

static void others_are_served(struct dice *dice)
{
	timerhub_timer timers[OTHERS];

	for (unsigned i = 0; i < 20; i++) {
		arm_after(frozen.queue, dice_magnitude(dice, 17), i);
		expect_eq(take_one(frozen.queue).data, i);
	}
	for (unsigned i = 0; i < OTHERS; i++)
		timers[i] = arm_after(frozen.queue, HOUR, 100 + i);
	for (unsigned i = 0; i < OTHERS; i++)
		if (i % 2)
			expect_eq(timerhub_cancel(frozen.hub, timers[i]), 0);
		else
			expect_eq(timerhub_rearm(frozen.hub, timers[i], i * US, 0), 0);
	for (unsigned i = 0; i < OTHERS; i += 2)
		expect_cmp(take_one(frozen.queue).data, >=, 100);
	for (unsigned i = 0; i < 300; i++)
		expect_eq(timerhub_cancel(frozen.hub, arm_after(frozen.queue, HOUR, i)), 0);
}

/* At a random instruction of a call; the others must go on. */
TEST(submission_with_threads_stopped_for_ever, 60)
{
	struct sigaction action = { .sa_handler = freeze };
	struct dice dice = dice_new(0);

	expect_eq(sigaction(SIGUSR1, &action, NULL), 0);
	frozen = rig_open(VICTIMS + OTHERS);
	frozen_queue = queue_open(frozen.hub);
	for (unsigned i = 0; i < VICTIMS; i++) {
		uint64_t until_ns = monotonic_ns() + ARRIVES;
		pthread_t victim;

		thread_start(&victim, submit_until_frozen, (void *)(uintptr_t)(i + 1));
		while (atomic_load(&victims_begun) <= i) /* wait until the thread has begun */
			sleep_ns(10 * US);
		sleep_ns(dice_magnitude(&dice, 20));
		expect_eq(pthread_kill(victim, SIGUSR1), 0);
		while (atomic_load(&frozen_count) <= i) {
			expect(monotonic_ns() < until_ns);
			sleep_ns(10 * US);
		}
		others_are_served(&dice);
	}
}
