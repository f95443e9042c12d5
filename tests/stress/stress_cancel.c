/* SPDX-License-Identifier: MIT */
/*
 * Tests laws 2 and 3. A million timers are cancelled at about the time when they expire. A timer is
 * cancelled by the thread that armed it, by another thread, or by both threads at once. Each timer
 * must be either cancelled or delivered.
 */
#include "rig.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define RACERS 2
#define NOBODY UINT32_MAX

struct fate {
	_Atomic timerhub_timer handle;
	atomic_uchar delivered;
	atomic_uchar cancelled;
};

static struct fate *fates;
static unsigned races; /* number of races, with one timer each */
static struct rig rig;
/* number of a timer that the next thread cancels; or NOBODY */
static atomic_uint mailbox = NOBODY;
static atomic_bool over;

static void note_delivery(const struct timerhub_event *event)
{
	expect_cmp(event->data, <, races);
	atomic_fetch_add(&fates[event->data].delivered, 1);
}

static void cancel_race(unsigned race)
{
	int result = timerhub_cancel(rig.hub, atomic_load(&fates[race].handle));

	expect(result == 0 || result == -ENOENT);
	if (result == 0)
		atomic_fetch_add(&fates[race].cancelled, 1);
}

static void spin_for(uint64_t ns)
{
	uint64_t until_ns = monotonic_ns() + ns;

	while (monotonic_ns() < until_ns)
		;
}

/*
 * Arm a timer. This thread, the next thread that looks into the mailbox, or both threads cancel it.
 */
static void run_race(unsigned race, struct dice *dice)
{
	timerhub_timer handle = 0;
	unsigned how = (unsigned)dice_below(dice, 4);
	unsigned other;
	int result;

	result = timerhub_arm(rig.queue,
	                      &SPEC(.expires_ns = dice_magnitude(dice, 14), .data = race,
	                            .fn = race % 2 ? note_delivery : NULL),
	                      &handle);
	expect_eq(result, 0);
	atomic_store(&fates[race].handle, handle);
	if (dice_below(dice, 2))
		spin_for(dice_magnitude(dice, 14));
	if (how > 0)
		cancel_race(race);
	if (how < 2) {
		other = atomic_exchange(&mailbox, race);
		if (other != NOBODY)
			cancel_race(other);
	}
}

static void *run_races(void *arg)
{
	unsigned first = *(unsigned *)arg;
	struct dice dice = dice_new(first);

	for (unsigned i = first; i < first + races / RACERS; i++)
		run_race(i, &dice);
	return NULL;
}

static void *take_by_wait(void *arg)
{
	struct timerhub_event events[32];

	(void)arg;
	while (!atomic_load(&over)) {
		int count = timerhub_wait(rig.queue, events, COUNT_OF(events), 10 * MS);

		expect(count >= 0);
		for (int i = 0; i < count; i++)
			note_delivery(&events[i]);
	}
	return NULL;
}

/* Take the events one by one with timerhub_drain(), after a poll(2) of the queue's descriptor. */
static void *take_by_poll(void *arg)
{
	struct pollfd fd = { .fd = timerhub_queue_fd(rig.queue), .events = POLLIN };

	(void)arg;
	while (!atomic_load(&over)) {
		struct timerhub_event event;

		poll(&fd, 1, 10);
		while (timerhub_drain(rig.queue, &event, 1) == 1)
			note_delivery(&event);
	}
	return NULL;
}

static void settle(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (stats_of(rig.hub).live) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(MS);
	}
	atomic_store(&over, true);
}

TEST(cancel_xor_delivery_over_a_million_races, 300)
{
	void *(*const takers[])(void *) = { take_by_wait, take_by_poll };
	pthread_t racing[RACERS];
	pthread_t taking[COUNT_OF(takers)];
	unsigned first[RACERS];
	unsigned cancelled = 0;

	races = scaled(1000000) / RACERS * RACERS;
	fates = calloc(races, sizeof(*fates));
	rig = rig_open(0);
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_start(&taking[i], takers[i], NULL);
	for (unsigned i = 0; i < RACERS; i++) {
		first[i] = races / RACERS * i;
		thread_start(&racing[i], run_races, &first[i]);
	}
	for (unsigned i = 0; i < RACERS; i++)
		thread_join(racing[i]);
	settle();
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_join(taking[i]);
	for (unsigned i = 0; i < races; i++) {
		expect_eq(atomic_load(&fates[i].delivered) + atomic_load(&fates[i].cancelled), 1);
		cancelled += atomic_load(&fates[i].cancelled);
	}
	expect_eq(stats_of(rig.hub).cancelled, cancelled);
	expect_eq(stats_of(rig.hub).delivered, races - cancelled);
	printf("%u races, %u cancelled\n", races, cancelled);
	expect(cancelled > 0 && cancelled < races);
	rig_close(&rig);
	free(fates);
}
