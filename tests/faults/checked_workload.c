/* SPDX-License-Identifier: MIT */
#include "checked_workload.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/*
 * The arming thread writes the first three, the consumer the last two; read after both have ended.
 */
struct fate {
	timerhub_timer timer;
	uint64_t deadline_ns;
	bool cancelled;
	unsigned delivered;
	uint64_t delivered_ns; /* deadline that the delivered event reported */
};

struct life {
	struct rig rig;
	unsigned count;
	uint64_t span_ns;
	struct fate *fates;
	atomic_uint cancelled;
	pthread_t armer;
	pthread_t taker;
};

static uint64_t choose_deadline(const struct life *life, struct dice *dice)
{
	return monotonic_ns() + dice_below(dice, life->span_ns + 1);
}

static void move(struct life *life, struct fate *fate, struct dice *dice)
{
	uint64_t deadline_ns = choose_deadline(life, dice);
	int result = timerhub_rearm(life->rig.hub, fate->timer, deadline_ns, TIMERHUB_ABSOLUTE);

	expect(result == 0 || result == -ENOENT);
	if (result == 0)
		fate->deadline_ns = deadline_ns;
}

static void cancel(struct life *life, struct fate *fate)
{
	int result = timerhub_cancel(life->rig.hub, fate->timer);

	expect(result == 0 || result == -ENOENT);
	if (result == 0) {
		fate->cancelled = true;
		atomic_fetch_add(&life->cancelled, 1);
	}
}

static void *run_armer(void *arg)
{
	struct life *life = arg;
	struct dice dice = dice_new(1);

	for (unsigned i = 0; i < life->count; i++) {
		struct fate *fate = &life->fates[i];

		fate->deadline_ns = choose_deadline(life, &dice);
		fate->timer = arm_at(life->rig.queue, fate->deadline_ns, i);
		if (dice_below(&dice, 3) == 0)
			move(life, &life->fates[dice_below(&dice, i + 1)], &dice);
		if (dice_below(&dice, 6) == 0)
			cancel(life, &life->fates[dice_below(&dice, i + 1)]);
		if (i % 4 == 3)
			sleep_ns(dice_below(&dice, 8 * life->span_ns / life->count + 1));
	}
	return NULL;
}

static unsigned take(struct life *life)
{
	struct timerhub_event events[8];
	int count = timerhub_wait(life->rig.queue, events, COUNT_OF(events), 5 * MS);
	uint64_t now_ns = monotonic_ns();

	expect_cmp(count, >=, 0);
	for (int i = 0; i < count; i++) {
		struct fate *fate = &life->fates[events[i].data];

		expect(events[i].data < life->count);
		expect_cmp(events[i].expires_ns, <=, now_ns);
		expect_eq(events[i].count, 1);
		expect_eq(fate->delivered++, 0);
		fate->delivered_ns = events[i].expires_ns;
	}
	return (unsigned)count;
}

static void *run_taker(void *arg)
{
	struct life *life = arg;
	uint64_t until_ns = monotonic_ns() + life->span_ns + ARRIVES;
	unsigned taken = 0;

	while (taken + atomic_load(&life->cancelled) < life->count) {
		unsigned count = take(life);

		taken += count;
		expect(monotonic_ns() < until_ns);
	}
	return NULL;
}

static void judge(const struct fate *fate)
{
	expect_eq(fate->delivered, !fate->cancelled);
	if (fate->delivered)
		expect_eq(fate->delivered_ns, fate->deadline_ns);
}

void life_live(struct rig *rig, unsigned timers, uint64_t span_ns)
{
	struct life life = { .rig = *rig, .count = timers, .span_ns = span_ns };

	life.fates = calloc(timers, sizeof(*life.fates));
	expect(life.fates);
	thread_start(&life.taker, run_taker, &life);
	thread_start(&life.armer, run_armer, &life);
	thread_join(life.armer);
	thread_join(life.taker);
	expect_empty(rig->queue);
	for (unsigned i = 0; i < timers; i++)
		judge(&life.fates[i]);
	free(life.fates);
}

/* The kernel makes a clock's id from the thread's. */
static uint64_t thread_cpu_ns(pid_t tid)
{
	struct timespec used;

	expect_eq(clock_gettime((clockid_t)(~(unsigned)tid << 3 | 6), &used), 0);
	return (uint64_t)used.tv_sec * SEC + (uint64_t)used.tv_nsec;
}

/*
 * Fails if it wakes too often or uses too much CPU: without sleep it would make tens of thousands
 * of rounds. One that naps does so for 1 ms.
 */
static void watch_owner(struct timerhub *hub, bool may_nap)
{
	pid_t owner = timerhub_owner_tid(hub);
	uint64_t begun_ns = monotonic_ns();
	uint64_t used_ns = thread_cpu_ns(owner);
	uint64_t wakeups = stats_of(hub).owner_wakeups;
	uint64_t window_ns;

	sleep_ns(60 * MS);
	wakeups = stats_of(hub).owner_wakeups - wakeups;
	used_ns = thread_cpu_ns(owner) - used_ns;
	window_ns = monotonic_ns() - begun_ns;
	expect_cmp(wakeups, <=, may_nap ? 10 + 2 * window_ns / MS : 0);
	expect_cmp(used_ns, <, window_ns / 2);
}

void owner_rests(struct timerhub *hub)
{
	/* The close makes the owner forget cancelled timers now, so it does not wake for them. */
	timerhub_queue_close(queue_open(hub));
	(void)stats_settled(hub);
	watch_owner(hub, false);
}

void owner_only_naps(struct timerhub *hub)
{
	watch_owner(hub, true);
}
