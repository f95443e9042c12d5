/* SPDX-License-Identifier: MIT */
/*
 * Tests timerhub_cancel_sync(). Two threads arm timers, and cancel them by timerhub_cancel_sync().
 * They free a timer's object as soon as this call has returned any result. Two other threads
 * dispatch the timers' events. After a timerhub_cancel_sync() has returned, no callback of the
 * timer may run or begin. AddressSanitizer reports a late access to the object. In builds without
 * AddressSanitizer, a late callback finds that the member `poison` is not ALIVE.
 */
#include "rig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define DISPATCHERS 2
#define CANCELLERS 2
#define ALIVE UINT64_C(0xa11fe)
#define DEAD UINT64_C(0xdead)

struct thing {
	uint64_t poison; /* ALIVE or DEAD; not atomic, so that a late callback is a data race */
};

static struct rig rig;
static atomic_bool over;
static atomic_uint late; /* number of cancels that came after the timer's delivery */

static void spin_for(uint64_t ns)
{
	uint64_t until_ns = monotonic_ns() + ns;

	while (monotonic_ns() < until_ns)
		;
}

static void touch(const struct timerhub_event *event)
{
	volatile struct thing *thing = (struct thing *)(uintptr_t)event->data;

	for (unsigned i = 0; i < 4; i++) {
		expect_eq(thing->poison, ALIVE);
		spin_for(500);
	}
	expect_eq(thing->poison, ALIVE);
}

static void *dispatch_all(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		expect_cmp(timerhub_dispatch(rig.queue, 8), >=, 0);
	}
	return NULL;
}

static void run_thing(struct dice *dice)
{
	struct thing *thing = malloc(sizeof(*thing));
	uint64_t interval_ns = dice_below(dice, 2) ? 0 : 1 + dice_magnitude(dice, 16);
	timerhub_timer timer;
	int result;

	*thing = (struct thing){ .poison = ALIVE };
	timer = arm(rig.queue,
	            SPEC(.expires_ns = dice_magnitude(dice, 14), .interval_ns = interval_ns,
	                 .data = (uintptr_t)thing, .fn = touch));
	if (dice_below(dice, 2))
		sleep_ns(dice_below(dice, 200 * US));
	result = timerhub_cancel_sync(rig.hub, timer);
	expect(result == 0 || (result == -ENOENT && interval_ns == 0));
	if (result < 0)
		atomic_fetch_add(&late, 1);
	thing->poison = DEAD;
	free(thing);
}

static void *cancel_all(void *arg)
{
	struct dice dice = dice_new(*(unsigned *)arg);
	unsigned things = scaled(8000);

	for (unsigned i = 0; i < things; i++)
		run_thing(&dice);
	return NULL;
}

START_TEST(cancel_sync_leaves_nobody_inside)
{
	pthread_t dispatchers[DISPATCHERS], cancellers[CANCELLERS];
	unsigned salts[CANCELLERS] = { 1, 2 };

	rig = rig_open(64);
	for (unsigned i = 0; i < DISPATCHERS; i++)
		thread_start(&dispatchers[i], dispatch_all, NULL);
	for (unsigned i = 0; i < CANCELLERS; i++)
		thread_start(&cancellers[i], cancel_all, &salts[i]);
	for (unsigned i = 0; i < CANCELLERS; i++)
		thread_join(cancellers[i]);
	atomic_store(&over, true);
	for (unsigned i = 0; i < DISPATCHERS; i++)
		thread_join(dispatchers[i]);
	printf("%u of %u came after the delivery\n", atomic_load(&late), CANCELLERS * scaled(8000));
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("stress_cancel_sync", argc, argv);
	tests_add(cancel_sync_leaves_nobody_inside, 120);
	return tests_run();
}
