/* SPDX-License-Identifier: MIT */
/*
 * The owner's pass, moved by hand: when it is to look again, alone and in a crowd, and what arming
 * leaves for it in the words. A manual hub never gathers; here it is told to, as one with a thread
 * is.
 */
#include "harness.h"

#include <timerhub.h>

#include "hub.h"

#define GATHER_NS (250 * US)
#define CROWD 128
#define TIMERS 1024

struct rig {
	struct timerhub *hub;
	struct timerhub_queue *queue;
	uint64_t next_ns; /* as the last call of advance told */
};

static struct rig rig_open(bool gathers)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_MANUAL,
		                          .timers_max = TIMERS };
	struct rig rig;

	expect_eq(timerhub_open(&rig.hub, &config), 0);
	expect_eq(timerhub_queue_open(rig.hub, &rig.queue, NULL), 0);
	rig.hub->owner.gathers = gathers;
	return rig;
}

static timerhub_timer rig_arm(struct rig *rig, uint64_t at_ns)
{
	struct timerhub_spec spec = { .size = sizeof(spec),
		                      .flags = TIMERHUB_ABSOLUTE,
		                      .expires_ns = at_ns };
	timerhub_timer timer;

	expect_eq(timerhub_arm(rig->queue, &spec, &timer), 0);
	return timer;
}

/* Moves the clock; returns how many timers came. */
static unsigned rig_advance(struct rig *rig, uint64_t now_ns)
{
	struct timerhub_event events[TIMERS];
	int count;

	expect_eq(timerhub_advance(rig->hub, now_ns, &rig->next_ns), 0);
	count = timerhub_drain(rig->queue, events, TIMERS);
	expect_le(0, count);
	for (int i = 0; i < count; i++)
		expect_le(events[i].expires_ns, now_ns);
	return (unsigned)count;
}

/* `count` timers, a microsecond apart. */
static void rig_arm_burst(struct rig *rig, uint64_t at_ns, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		rig_arm(rig, at_ns + i * US);
}

/* Few are told at their own nanosecond, however many they have been in all. */
START_TEST(few_are_not_gathered)
{
	struct rig rig = rig_open(true);

	for (uint64_t i = 1; i <= 1000; i++)
		rig_arm(&rig, i * 100 * US + i);
	for (uint64_t i = 1; i <= 1000; i++) {
		unsigned came = rig_advance(&rig, i * 100 * US + i);

		expect_eq(came, 1);
		expect_eq(rig.next_ns, i < 1000 ? (i + 1) * 100 * US + i + 1 : UINT64_MAX);
	}
	timerhub_close(rig.hub);
}
END_TEST

/*
 * A crowd is so many in a millisecond, of which the last is yet to come: `count` in the first
 * millisecond, then a look when `elapsed_ns` of the next are over. Is what comes next put off?
 */
static bool gathered(bool gathers, unsigned count, uint64_t begin_ns, uint64_t look_ns)
{
	struct rig rig = rig_open(gathers);
	uint64_t soon_ns = look_ns + 10 * US;
	bool put_off;

	expect_eq(rig_advance(&rig, begin_ns), 0); /* counts from here on */
	rig_arm_burst(&rig, begin_ns + 10 * US, count);
	rig_arm(&rig, soon_ns);
	rig_arm(&rig, look_ns + HOUR);
	expect_eq(rig_advance(&rig, begin_ns + 900 * US), count);
	expect_eq(rig_advance(&rig, look_ns), 0);
	expect(rig.next_ns == soon_ns || rig.next_ns == look_ns + GATHER_NS);
	put_off = rig.next_ns != soon_ns;
	expect_eq(rig_advance(&rig, look_ns + GATHER_NS), 1);
	/* What is far away is never put off. */
	expect_eq(rig.next_ns, look_ns + HOUR);
	/* A millisecond without a crowd, and that is over. */
	rig_arm(&rig, look_ns + 3 * MS);
	rig_arm(&rig, look_ns + 3 * MS + US);
	expect_eq(rig_advance(&rig, look_ns + 3 * MS), 1);
	expect_eq(rig.next_ns, look_ns + 3 * MS + US);
	timerhub_close(rig.hub);
	return put_off;
}

START_TEST(crowd_is_gathered)
{
	uint64_t begin_ns = 7 * SEC;

	expect(gathered(true, CROWD, begin_ns, begin_ns + MS));
	expect(gathered(true, CROWD + 100, begin_ns, begin_ns + 2 * MS - 1));
	/* One fewer; too long ago; not asked for. */
	expect(!gathered(true, CROWD - 1, begin_ns, begin_ns + MS));
	expect(!gathered(true, CROWD, begin_ns, begin_ns + 2 * MS));
	expect(!gathered(false, CROWD, begin_ns, begin_ns + MS));
	/* The millisecond is not over. */
	expect(!gathered(true, CROWD, begin_ns, begin_ns + MS - 1));
}
END_TEST

/* And with nothing to come it is not asked to look. */
START_TEST(after_a_crowd_there_may_be_nothing)
{
	struct rig rig = rig_open(true);

	expect_eq(rig_advance(&rig, SEC), 0);
	rig_arm_burst(&rig, SEC + US, 2 * CROWD);
	expect_eq(rig_advance(&rig, SEC + MS), 2 * CROWD);
	expect_eq(rig.next_ns, UINT64_MAX);
	expect_eq(rig_advance(&rig, SEC + MS + US), 0);
	expect_eq(rig.next_ns, UINT64_MAX);
	timerhub_close(rig.hub);
}
END_TEST

/* Law 8: what re-arming is quick for; see timerhub_rearm(). */
START_TEST(one_shot_in_whole_units_has_a_bare_aux_word)
{
	struct rig rig = rig_open(false);
	timerhub_timer timer = rig_arm(&rig, 64 * TIMER_UNIT_NS);
	const struct timer_hot *hot = &rig.hub->arena.hot[handle_slot(timer)];
	uint64_t aux, alike_ns;

	expect_eq(u64_load_relaxed(&hot->aux), aux_make(handle_generation(timer), 0, 0));
	/* One with nanoseconds keeps them when it moves later, until they would say something. */
	timer = rig_arm(&rig, 64 * TIMER_UNIT_NS + 1);
	hot = &rig.hub->arena.hot[handle_slot(timer)];
	aux = u64_load_relaxed(&hot->aux);
	expect(aux != aux_make(handle_generation(timer), 0, 0));
	expect_eq(timerhub_rearm(rig.hub, timer, 66 * TIMER_UNIT_NS, TIMERHUB_ABSOLUTE), 0);
	expect_eq(u64_load_relaxed(&hot->aux), aux);
	alike_ns = (AUX_LOW_MASK >> 1) + 66 * TIMER_UNIT_NS;
	expect(aux_speaks_of(aux, word_armed(0, units_from_ns(alike_ns))));
	expect_eq(timerhub_rearm(rig.hub, timer, alike_ns, TIMERHUB_ABSOLUTE), 0);
	expect_eq(u64_load_relaxed(&hot->aux), aux_make(handle_generation(timer), 0, 0));
	timerhub_close(rig.hub);
}
END_TEST

/* Law 8: moved later, it costs the owner one look at the old instant, and no sooner one. */
START_TEST(moved_later_is_found_when_its_old_instant_comes)
{
	struct rig rig = rig_open(false);
	timerhub_timer timer = rig_arm(&rig, SEC);
	struct timerhub_stats stats;

	expect_eq(rig_advance(&rig, 1), 0);
	expect_eq(timerhub_rearm(rig.hub, timer, 3 * SEC, TIMERHUB_ABSOLUTE), 0);
	expect_eq(rig_advance(&rig, SEC - 1), 0);
	expect_le(rig.next_ns, SEC);
	expect_eq(rig_advance(&rig, SEC), 0);
	expect_eq(timerhub_stats(rig.hub, &stats), 0);
	expect_eq(stats.refiled, 1);
	expect_eq(rig_advance(&rig, 3 * SEC - 1), 0);
	expect_eq(rig_advance(&rig, 3 * SEC), 1);
	timerhub_close(rig.hub);
}
END_TEST

/* Closing it again, as who opens halfway may, closes nobody's descriptor. */
START_TEST(closed_alarm_has_no_descriptor)
{
	struct clock clock;
	struct alarm alarm;

	clock_init(&clock, CLOCK_KIND_REALTIME);
	expect_eq(alarm_open(&alarm, &clock), 0);
	expect_le(0, alarm.fd);
	alarm_close(&alarm);
	expect(alarm.fd == -1);
	alarm_close(&alarm);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("owner", argc, argv);
	tests_add(few_are_not_gathered, 20);
	tests_add(crowd_is_gathered, 20);
	tests_add(after_a_crowd_there_may_be_nothing, 20);
	tests_add(one_shot_in_whole_units_has_a_bare_aux_word, 20);
	tests_add(moved_later_is_found_when_its_old_instant_comes, 20);
	tests_add(closed_alarm_has_no_descriptor, 20);
	return tests_run();
}
