/* SPDX-License-Identifier: MIT */
/*
 * The owner's pass on a manual hub: when it plans the next, after a few timers and a burst, and
 * which re-arms cost it nothing. Some tests switch coalescing on, as with an owner thread.
 */
#include "rig.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/test_point.h"
#include "hub/hub.h"
#include "hub_check.h"

#define GATHER_NS (250 * US)
#define CROWD 128
#define TIMERS 1024
/* OWNER_REST: slots read before the inbox is read again */
#define REST 256

static uint64_t next_ns; /* next instant that the last advance announced */

static struct rig rig_gathering(bool gathers)
{
	struct rig rig = rig_manual(TIMERS);

	rig.hub->owner.gathers = gathers;
	return rig;
}

/* Moves the clock to `now_ns` and returns the number of events drained. */
static unsigned rig_advance(struct rig *rig, uint64_t now_ns)
{
	struct timerhub_event events[TIMERS];
	int count;

	next_ns = advance(rig->hub, now_ns);
	expect_unbroken(hub_check(rig->hub, HUB_HAS_NO_CALLERS));
	count = timerhub_drain(rig->queue, events, TIMERS);
	expect_le(0, count);
	for (int i = 0; i < count; i++)
		expect_le(events[i].expires_ns, now_ns);
	return (unsigned)count;
}

/* Arms `count` timers that are due a microsecond apart. */
static void rig_arm_burst(struct rig *rig, uint64_t at_ns, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		arm_at(rig->queue, at_ns + i * US, 0);
}

/* If few timers expire, the owner plans to wake up for each of them, at its deadline. */
TEST(few_are_not_gathered, 20)
{
	struct rig rig = rig_gathering(true);

	for (uint64_t i = 1; i <= 1000; i++)
		arm_at(rig.queue, i * 100 * US + i, 0);
	for (uint64_t i = 1; i <= 1000; i++) {
		expect_eq(rig_advance(&rig, i * 100 * US + i), 1);
		expect_eq(next_ns, i < 1000 ? (i + 1) * 100 * US + i + 1 : UINT64_MAX);
	}
	timerhub_close(rig.hub);
}

/*
 * Expires `count` timers soon after `begin_ns`, and advances to `look_ns`. Another timer is due 10
 * us later. Returns whether the owner puts that one off, to expire several at once.
 */
static bool gathered(bool gathers, unsigned count, uint64_t begin_ns, uint64_t look_ns)
{
	struct rig rig = rig_gathering(gathers);
	uint64_t soon_ns = look_ns + 10 * US;
	bool put_off;

	/* the owner begins to count expiries at begin_ns */
	expect_eq(rig_advance(&rig, begin_ns), 0);
	rig_arm_burst(&rig, begin_ns + 10 * US, count);
	arm_at(rig.queue, soon_ns, 0);
	arm_at(rig.queue, look_ns + HOUR, 0);
	expect_eq(rig_advance(&rig, begin_ns + 900 * US), count);
	expect_eq(rig_advance(&rig, look_ns), 0);
	expect(next_ns == soon_ns || next_ns == look_ns + GATHER_NS);
	put_off = next_ns != soon_ns;
	expect_eq(rig_advance(&rig, look_ns + GATHER_NS), 1);
	/* The owner never delays a far deadline. */
	expect_eq(next_ns, look_ns + HOUR);
	/* After a millisecond without a burst, the owner delays no deadline. */
	arm_at(rig.queue, look_ns + 3 * MS, 0);
	arm_at(rig.queue, look_ns + 3 * MS + US, 0);
	expect_eq(rig_advance(&rig, look_ns + 3 * MS), 1);
	expect_eq(next_ns, look_ns + 3 * MS + US);
	timerhub_close(rig.hub);
	return put_off;
}

TEST(crowd_is_gathered, 20)
{
	uint64_t begin_ns = 7 * SEC;

	expect(gathered(true, CROWD, begin_ns, begin_ns + MS));
	expect(gathered(true, CROWD + 100, begin_ns, begin_ns + 2 * MS - 1));
	/* one too few, too long ago, or off */
	expect(!gathered(true, CROWD - 1, begin_ns, begin_ns + MS));
	expect(!gathered(true, CROWD, begin_ns, begin_ns + 2 * MS));
	expect(!gathered(false, CROWD, begin_ns, begin_ns + MS));
	/* expiries count as a burst only after a whole millisecond */
	expect(!gathered(true, CROWD, begin_ns, begin_ns + MS - 1));
}

/* An owner thread gathers, unless the program has asked for punctual timers. */
TEST(spin_ns_switches_gathering_off, 20)
{
	for (uint64_t spin_ns = 0; spin_ns < 2; spin_ns++) {
		struct rig rig = rig_open_config((struct timerhub_config){ .spin_ns = spin_ns });

		expect_eq(rig.hub->owner.gathers, spin_ns == 0);
		rig_close(&rig);
	}
}

/* If no timer is left after a burst, the owner announces no next time. */
TEST(after_a_crowd_there_may_be_nothing, 20)
{
	struct rig rig = rig_gathering(true);

	expect_eq(rig_advance(&rig, SEC), 0);
	rig_arm_burst(&rig, SEC + US, 2 * CROWD);
	expect_eq(rig_advance(&rig, SEC + MS), 2 * CROWD);
	expect_eq(next_ns, UINT64_MAX);
	expect_eq(rig_advance(&rig, SEC + MS + US), 0);
	expect_eq(next_ns, UINT64_MAX);
	timerhub_close(rig.hub);
}

/* A re-arm to a later time changes the deadline only, and puts nothing into the owner's inbox. */
TEST(moved_later_changes_the_deadline_alone, 20)
{
	static const uint64_t later_ns[] = { 4098, 4098, 4099, 3 * SEC, UINT64_MAX };

	for (unsigned i = 0; i < 4; i++) {
		struct rig rig = rig_gathering(false);
		struct pair pair = { .deadline_ns = 0 };
		timerhub_timer timer =
			arm(rig.queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = 4097,
		                            .interval_ns = i % 2 * 777, .slack_ns = i / 2 * 555));

		expect_eq(rig_advance(&rig, 1), 0);
		for (unsigned j = 0; j < COUNT_OF(later_ns); j++) {
			struct pair before = pair;

			pair = timer_snapshot(&rig.hub->arena.timers.pairs[handle_slot(timer)]);
			expect(state_is_armed(pair.state, timer, 0));
			expect(!state_claimed(pair.state));
			expect_eq(pair.deadline_ns, j == 0 ? 4097 : later_ns[j - 1]);
			expect(j == 0 || pair.state == before.state);
			expect_eq(timerhub_rearm(rig.hub, timer, later_ns[j], TIMERHUB_ABSOLUTE),
			          0);
		}
		timerhub_close(rig.hub);
	}
}

/* Once the owner has seen that a timer was moved later, it plans no wake-up at the old time. */
TEST(moved_later_is_found_before_its_old_instant_comes, 20)
{
	struct rig rig = rig_gathering(false);
	timerhub_timer timer = arm_at(rig.queue, SEC, 0);

	expect_eq(rig_advance(&rig, 1), 0);
	expect_eq(next_ns, SEC);
	expect_eq(timerhub_rearm(rig.hub, timer, 3 * SEC, TIMERHUB_ABSOLUTE), 0);
	expect_eq(rig_advance(&rig, 2), 0);
	expect_eq(next_ns, 3 * SEC);
	expect_eq(stats_of(rig.hub).refiled, 1);
	expect_eq(rig_advance(&rig, 3 * SEC - 1), 0);
	expect_eq(rig_advance(&rig, 3 * SEC), 1);
	timerhub_close(rig.hub);
}

/* Used by hooks that run while the owner corrects the earliest entries of its schedule. */
static struct {
	struct rig *rig;
	timerhub_timer timer; /* timer that the hook moves before the owner corrects an entry */
	uint64_t move_to_ns, move_by_ns;
	unsigned looks; /* number of entries that the owner has read in all passes */
	unsigned passes;
	unsigned looks_armed; /* value of `looks` when the due timer was armed */
	unsigned looks_due;   /* value of `looks` when the due timer expired */
	uint64_t armed_ns;
} rest;

static void rest_moving_hook(enum test_point point)
{
	if (point != TEST_POINT_OWNER_BEFORE_REFILE)
		return;
	rest.looks++;
	expect_eq(timerhub_rearm(rest.rig->hub, rest.timer, rest.move_to_ns, TIMERHUB_ABSOLUTE), 0);
	rest.move_to_ns += rest.move_by_ns;
}

static void rest_advance(struct rig *rig, uint64_t now_ns, void (*hook)(enum test_point))
{
	rest.rig = rig;
	rest.looks = rest.passes = 0;
	test_point_hook = hook;
	next_ns = advance(rig->hub, now_ns);
	test_point_hook = NULL;
}

/*
 * The timer is moved each time that the owner has read its deadline. The owner must stop
 * nevertheless, and plan to wake up no later than at the deadline that it read last.
 */
TEST(rest_ends_while_timers_keep_moving, 20)
{
	struct rig rig = rig_gathering(false);

	rest.timer = arm_at(rig.queue, SEC, 0);
	expect_eq(rig_advance(&rig, 1), 0);
	rest.move_to_ns = 2 * SEC;
	rest.move_by_ns = US;
	rest_advance(&rig, 2, rest_moving_hook);
	/* once at the old deadline and once at the new */
	expect_le(rest.looks, 2);
	expect_le(SEC, next_ns);
	expect_le(next_ns, 2 * SEC + US);
	timerhub_close(rig.hub);
}

/* Re-arms the timer to an earlier time, which puts it into the inbox, and then to a later one. */
static void rest_second_pass_hook(enum test_point point)
{
	if (point != TEST_POINT_OWNER_AFTER_PROMISE || rest.looks++ > 0)
		return;
	expect_eq(timerhub_rearm(rest.rig->hub, rest.timer, 9 * MS, TIMERHUB_ABSOLUTE), 0);
	expect_eq(timerhub_rearm(rest.rig->hub, rest.timer, SEC, TIMERHUB_ABSOLUTE), 0);
}

/* If an outdated entry becomes the earliest in a second pass, the owner corrects it as well. */
TEST(rest_checks_the_earliest_entry_of_a_second_pass, 20)
{
	struct rig rig = rig_gathering(false);
	timerhub_timer moved;

	(void)arm_at(rig.queue, 5 * MS, 0);
	rest.timer = arm_at(rig.queue, 10 * MS, 0);
	moved = arm_at(rig.queue, 20 * MS, 0);
	expect_eq(rig_advance(&rig, 1), 0);
	expect_eq(timerhub_rearm(rig.hub, moved, 2 * SEC, TIMERHUB_ABSOLUTE), 0);
	rest_advance(&rig, 6 * MS, rest_second_pass_hook);
	expect_lt(0, rest.looks);
	expect_eq(next_ns, SEC);
	timerhub_close(rig.hub);
}

/* A timer that is moved to earlier, right after the owner has read its deadline, is not late. */
TEST(rest_misses_no_timer_that_is_moved_to_earlier, 20)
{
	struct rig rig = rig_gathering(false);

	rest.timer = arm_at(rig.queue, SEC, 0);
	expect_eq(rig_advance(&rig, 1), 0);
	expect_eq(timerhub_rearm(rig.hub, rest.timer, 3 * SEC, TIMERHUB_ABSOLUTE), 0);
	rest.move_to_ns = SEC / 2;
	rest.move_by_ns = 0;
	rest_advance(&rig, 2, rest_moving_hook);
	expect_eq(next_ns, SEC / 2);
	expect_eq(rig_advance(&rig, SEC / 2), 1);
	timerhub_close(rig.hub);
}

/* Arms a due timer after 2.5 * REST corrected entries, and counts entries and passes. */
static void rest_arming_hook(enum test_point point)
{
	if (point == TEST_POINT_OWNER_BEFORE_REFILE)
		rest.looks++;
	if (point == TEST_POINT_OWNER_BEFORE_PUBLISH)
		rest.looks_due = rest.looks;
	if (point == TEST_POINT_OWNER_BEFORE_REFILE && rest.looks == 2 * REST + REST / 2) {
		(void)arm_at(rest.rig->queue, rest.armed_ns, 0);
		rest.looks_armed = rest.looks;
	}
	rest.passes += point == TEST_POINT_OWNER_BEFORE_INBOX;
}

/* While the owner corrects many entries, a timer that is due waits for REST of them at most. */
TEST(rest_looks_at_the_inbox_between_portions, 20)
{
	enum { MOVED = 10 * REST };
	struct rig rig = rig_manual(MOVED + 1);
	timerhub_timer *timers = calloc(MOVED, sizeof(*timers));

	expect(timers);
	for (unsigned i = 0; i < MOVED; i++)
		timers[i] = arm_at(rig.queue, SEC + i * US, 0);
	advance(rig.hub, 1);
	expect_eq(timerhub_rearm_many(rig.hub, timers, MOVED, HOUR, TIMERHUB_ABSOLUTE), MOVED);
	rest.armed_ns = 2;
	rest_advance(&rig, 100, rest_arming_hook);
	expect_eq(next_ns, HOUR);
	expect_eq(rest.looks, MOVED);
	expect_le(MOVED / REST, rest.passes);
	expect_le(rest.passes, MOVED / REST + 1);
	expect_lt(rest.looks_armed, rest.looks_due);
	expect_le(rest.looks_due, rest.looks_armed + REST);
	expect_eq(take_up_to(rig.queue, 1), 1);
	timerhub_close(rig.hub);
	free(timers);
}

/* Callers wake the owner once, for an earlier deadline or if very many timers wait in the inbox. */
TEST(owner_is_woken_once_a_pass_also_by_many, 20)
{
	enum { MANY = 20000 };
	struct rig rig = rig_manual(MANY + 4);
	const atomic_u64 *wakes = &rig.hub->board->callers.submit_wakes;

	arm_at(rig.queue, SEC, 0);
	expect_eq(rig_advance(&rig, 1), 0);
	expect_eq(u64_load_relaxed(wakes), 1);
	arm_at(rig.queue, SEC / 2, 0);
	arm_at(rig.queue, SEC / 3, 0);
	expect_eq(u64_load_relaxed(wakes), 2);
	expect_eq(rig_advance(&rig, 2), 0);
	rig_arm_burst(&rig, HOUR, 100);
	expect_eq(u64_load_relaxed(wakes), 2);
	rig_arm_burst(&rig, HOUR, MANY - 100);
	expect_eq(u64_load_relaxed(wakes), 3);
	timerhub_close(rig.hub);
}

/* ---- law 13: fair ---- */

/* PUBLISHER_UNTOLD_MAX: most slots that the owner takes between an expiry and the signal. */
#define UNTOLD_MAX 1024
/* PUBLISHER_BATCH: number of events of one queue that are published together */
#define PUBLISH_BATCH 64
#define QUEUES_MAX 300

/* The order of a pass's signals, and the work before each. */
static struct {
	struct timerhub *hub;
	struct timerhub_queue *queues[QUEUES_MAX];
	unsigned count;
	unsigned told[QUEUES_MAX]; /* numbers of the queues, in the order of their signals */
	unsigned told_count;
	/* by queue: expired and moved timers handled before its signal */
	uint64_t work[QUEUES_MAX];
	/* by queue: slots sorted before its signal */
	uint64_t sorted[QUEUES_MAX];
	uint64_t cascaded; /* number of slots sorted before the pass began */
	uint64_t works;    /* number of slots expired so far */
	uint64_t ring_ns;  /* time that the signal to a queue takes, on the hub's clock */
} fair;

/* Returns the queue whose notifier has begun a signal and not finished it. */
static unsigned fair_rung(void)
{
	for (unsigned i = 0; i < fair.count; i++)
		if ((u64_load_relaxed(&fair.queues[i]->notifier.rings.writes) & UINT16_MAX) != 0)
			return i;
	expect(false); /* the owner is signalling no queue */
	return 0;
}

static void fair_hook(enum test_point point)
{
	const struct owner *owner = &fair.hub->owner;
	unsigned rung;

	if (point == TEST_POINT_OWNER_BEFORE_PUBLISH)
		fair.works++;
	if (point != TEST_POINT_RING_BEFORE_COUNT)
		return;
	/* only signals move the clock, each by ring_ns */
	expect(clock_set(&fair.hub->clock, timerhub_now(fair.hub) + fair.ring_ns));
	rung = fair_rung();
	fair.work[rung] = fair.works + u64_load_relaxed(&owner->counts->refiled);
	fair.sorted[rung] = owner->schedule.cascaded - fair.cascaded;
	/* No consumer clears the notifiers, so the owner signals each queue only once. */
	expect_lt(fair.told_count, fair.count);
	fair.told[fair.told_count++] = rung;
}

static void fair_open(unsigned queues, uint32_t timers)
{
	struct rig rig = rig_manual(timers);

	fair.hub = rig.hub;
	fair.queues[0] = rig.queue;
	for (unsigned i = 1; i < queues; i++)
		fair.queues[i] = queue_open(rig.hub);
	fair.count = queues;
	fair.told_count = 0;
	fair.works = fair.ring_ns = 0;
}

static timerhub_timer fair_arm(unsigned queue, uint64_t at_ns)
{
	return arm_at(fair.queues[queue], at_ns, 0);
}

static void fair_advance(uint64_t now_ns)
{
	test_point_hook = fair_hook;
	fair.cascaded = fair.hub->owner.schedule.cascaded;
	expect_eq(timerhub_advance(fair.hub, now_ns, NULL), 0);
	test_point_hook = NULL;
	expect_eq(fair.told_count, fair.count);
	timerhub_close(fair.hub);
}

TEST(fair_first_come_first_told, 20)
{
	enum { QUEUES = QUEUES_MAX };

	fair_open(QUEUES, 20 * QUEUES);
	/* the queues' first events are due in the order of the queues, other events in between */
	for (unsigned i = 0; i < QUEUES; i++)
		for (unsigned j = 0; j < 20; j++)
			fair_arm(j == 0 ? i : i * j % (i + 1), SEC + i * US + j);
	fair_advance(2 * SEC);
	for (unsigned i = 0; i < QUEUES; i++)
		expect_eq(fair.told[i], i);
}

/* One event of queue 0 is due before 20,000 events of queue 1. */
TEST(fair_beside_a_storm_of_one_queue, 20)
{
	fair_open(2, 20001);
	for (unsigned i = 0; i < 20000; i++)
		fair_arm(1, SEC);
	fair_arm(0, SEC - US);
	fair_advance(2 * SEC);
	expect_eq(fair.told[0], 0);
	expect_eq(fair.work[0], 1);
	expect_eq(fair.sorted[0], 0);
	/* queue 1 is signalled after a first batch, and does not wait for all its 20,000 events */
	expect_eq(fair.work[1], 1 + PUBLISH_BATCH);
}

/* A due event is signalled before the owner sorts 20,000 timers that are due later. */
TEST(fair_beside_a_bucket_that_is_entered, 20)
{
	uint64_t edge_ns = UINT64_C(3) << 28;

	fair_open(1, 20001);
	for (unsigned i = 0; i < 20000; i++)
		fair_arm(0, edge_ns + (UINT64_C(1) << 27) + i * US);
	fair_arm(0, edge_ns - 64);
	fair_advance(edge_ns + 64);
	expect_eq(fair.work[0], 1);
	expect_eq(fair.sorted[0], 0);
}

/* That counts as work, like an expiry. */
TEST(fair_beside_timers_that_were_moved, 20)
{
	enum { MOVED = 20000 };
	timerhub_timer *timers = calloc(MOVED, sizeof(*timers));

	expect(timers);
	fair_open(2, MOVED + 2);
	for (unsigned i = 0; i < MOVED; i++)
		timers[i] = fair_arm(0, SEC);
	fair_arm(1, SEC - US);
	/* makes the owner signal queue 0 before it sorts the timers that are due at SEC */
	fair_arm(0, SEC - 2 * US);
	expect_eq(timerhub_advance(fair.hub, MS, NULL), 0);
	for (unsigned i = 0; i < MOVED; i++)
		expect_eq(timerhub_rearm(fair.hub, timers[i], HOUR, TIMERHUB_ABSOLUTE), 0);
	fair_advance(2 * SEC);
	expect_eq(fair.work[0], 1);
	expect_eq(fair.sorted[0], 0);
	expect_le(fair.work[1], 1 + UNTOLD_MAX);
	free(timers);
}

/* An event's lateness includes the signals to the queues before it, which take 1 ms each here. */
TEST(lateness_is_from_the_deadline_to_the_telling, 20)
{
	enum { QUEUES = 200 };
	uint64_t expected[TIMERHUB_LATENESS_BUCKETS] = { 0 };
	struct board_owner *counts;

	fair_open(QUEUES, 5 * QUEUES);
	fair.ring_ns = MS;
	for (unsigned i = 0; i < QUEUES; i++)
		for (unsigned j = 0; j < 5; j++)
			fair_arm(i, SEC + i * 1024 + j * 64);
	for (unsigned i = 0; i < QUEUES; i++)
		for (unsigned j = 0; j < 5; j++)
			expected[bits_highest(SEC + i * MS - (i * 1024 + j * 64))]++;
	test_point_hook = fair_hook;
	expect_eq(timerhub_advance(fair.hub, 2 * SEC, NULL), 0);
	test_point_hook = NULL;
	counts = fair.hub->owner.counts;
	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		expect_eq(u64_load_relaxed(&counts->lateness[i]), expected[i]);
	timerhub_close(fair.hub);
}

/* An open that fails halfway may close it twice, when another file may have its number. */
TEST(closed_deadline_fd_has_no_descriptor, 20)
{
	struct clock clock;
	struct deadline_fd deadline_fd;
	int fd;

	clock_init(&clock, TIMERHUB_CLOCK_REALTIME, false);
	deadline_fd_init(&deadline_fd, &clock);
	expect_eq(deadline_fd_create(&deadline_fd), 0);
	fd = deadline_fd.fd;
	deadline_fd_close(&deadline_fd);
	expect(deadline_fd.fd == -1);
	expect_eq(dup2(STDOUT_FILENO, fd), fd);
	deadline_fd_close(&deadline_fd);
	expect_eq(close(fd), 0);
}
