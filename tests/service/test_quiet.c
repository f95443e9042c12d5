/* SPDX-License-Identifier: MIT */
/*
 * Law 8: the owner wakes only when a timer is due, however many are cancelled or moved later, and
 * only an earliest deadline makes a system call. Counted in virtual time by the advances asked for,
 * else by the hub's counters and the kernel's context switches.
 */
#include "forbid_system_calls.h"
#include "rig.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Connections with an idle timeout of 3 s, data every 0.5 to 1.5 s, a turn for each millisecond of
 * virtual time.
 */
#define BEAT_TURNS 2048 /* larger than the number of turns between two receptions of data */
#define BEAT_IDLE_NS (3 * SEC)

struct beat {
	struct rig rig;
	struct dice dice;
	uint64_t next_ns; /* time at which the hub wants its next advance */
	uint64_t now_ms;
	unsigned calls; /* number of advances that the hub has asked for */
	unsigned count;
	timerhub_timer *timers;
	uint32_t *next; /* next[i] is the connection after connection i in the list of a turn */
	uint32_t turns[BEAT_TURNS];
};

static void beat_plan(struct beat *beat, uint32_t connection)
{
	uint32_t *turn =
		&beat->turns[(beat->now_ms + 500 + dice_below(&beat->dice, 1000)) % BEAT_TURNS];

	beat->next[connection] = *turn;
	*turn = connection;
}

static void beat_start(struct beat *beat, unsigned count)
{
	*beat = (struct beat){ .rig = rig_manual(0), .dice = dice_new(count), .count = count };
	beat->timers = calloc(count, sizeof(*beat->timers));
	beat->next = calloc(count, sizeof(*beat->next));
	expect(beat->timers && beat->next);
	memset(beat->turns, 0xff, sizeof(beat->turns));
	for (uint32_t i = 0; i < count; i++) {
		beat->timers[i] = arm_after(beat->rig.queue, BEAT_IDLE_NS, i);
		beat_plan(beat, i);
	}
	beat->next_ns = advance(beat->rig.hub, 0);
}

/* Runs the connections until `end_ms`, and advances the hub only to times that it has announced. */
static void beat_until(struct beat *beat, uint64_t end_ms)
{
	for (; beat->now_ms < end_ms; beat->now_ms++) {
		uint64_t now_ns = beat->now_ms * MS;
		uint32_t connection = beat->turns[beat->now_ms % BEAT_TURNS];

		for (; beat->next_ns <= now_ns; beat->calls++)
			beat->next_ns = advance(beat->rig.hub, beat->next_ns);
		beat->turns[beat->now_ms % BEAT_TURNS] = UINT32_MAX;
		for (uint32_t next; connection != UINT32_MAX; connection = next) {
			next = beat->next[connection];
			expect_eq(timerhub_rearm(beat->rig.hub, beat->timers[connection],
			                         now_ns + BEAT_IDLE_NS, TIMERHUB_ABSOLUTE),
			          0);
			beat_plan(beat, connection);
		}
	}
}

/* The connections get no more data. Checks that each timer expires exactly at its deadline. */
static void beat_fall_silent(struct beat *beat)
{
	struct timerhub_event events[64];
	unsigned expired = 0;
	int count;

	for (; beat->next_ns != UINT64_MAX; beat->calls++) {
		uint64_t now_ns = beat->next_ns;

		beat->next_ns = advance(beat->rig.hub, now_ns);
		while ((count = timerhub_drain(beat->rig.queue, events, COUNT_OF(events))) > 0)
			for (int i = 0; i < count; i++, expired++)
				expect_eq(events[i].expires_ns, now_ns);
	}
	expect_eq(expired, beat->count);
}

TEST_LOOP(quiet_beats_wake_once_a_timeout, 60, 3)
{
	const unsigned counts[] = { 10, 1000, scaled(100000) };
	enum { WARM_S = 4, SECONDS = 10 };
	struct beat beat;

	beat_start(&beat, counts[_i]);
	beat_until(&beat, WARM_S * 1000);
	beat.calls = 0;
	beat_until(&beat, (WARM_S + SECONDS) * 1000);
	expect_cmp(beat.calls, <=, SECONDS);
	expect_empty(beat.rig.queue);
	beat.calls = 0;
	beat_fall_silent(&beat);
	/* one advance for each of the 1,500 ms in which a connection got its last data, plus two */
	expect_cmp(beat.calls, <=, 1500 + 2);
	rig_close(&beat.rig);
	free(beat.timers);
	free(beat.next);
}

static uint64_t owner_switches(pid_t owner)
{
	return thread_status(owner, "voluntary_ctxt_switches:", 10);
}

struct watch {
	struct rig *rig;
	pid_t owner;
	uint64_t switches;
	struct timerhub_stats stats;
};

static struct watch watch_start(struct rig *rig)
{
	struct watch watch = { .rig = rig, .owner = timerhub_owner_tid(rig->hub) };

	expect(watch.owner > 0);
	do {
		watch.stats = stats_settled(rig->hub);
		thread_blocks(watch.owner);
		watch.switches = owner_switches(watch.owner);
	} while (stats_of(rig->hub).owner_wakeups != watch.stats.owner_wakeups);
	return watch;
}

static uint64_t watch_wakeups(const struct watch *watch)
{
	return stats_of(watch->rig->hub).owner_wakeups - watch->stats.owner_wakeups;
}

/* Checks that neither the hub nor the kernel has counted a wake-up of the owner meanwhile. */
static void expect_nothing_stirred(const struct watch *watch)
{
	expect_eq(watch_wakeups(watch), 0);
	expect_eq(stats_of(watch->rig->hub).submit_wakes, watch->stats.submit_wakes);
	expect_eq(owner_switches(watch->owner), watch->switches);
}

TEST(quiet_with_a_million_timers_far_away, 60)
{
	unsigned count = scaled(1000000) < 1000000 ? scaled(1000000) : 1000000;
	struct dice dice = dice_new(0);
	struct rig rig = rig_open(count);
	struct watch watch;

	for (unsigned i = 0; i < count; i++)
		arm_after(rig.queue, HOUR + dice_magnitude(&dice, 45), i);
	watch = watch_start(&rig);
	sleep_ns(200 * MS);
	expect_nothing_stirred(&watch);
	expect_eq(watch.stats.live, count);
	rig_close(&rig);
}

TEST(quiet_when_what_is_armed_is_not_the_earliest, 60)
{
	struct rig rig = rig_open(0);
	timerhub_timer first = arm_after(rig.queue, HOUR, 0);
	timerhub_timer timers[1000];
	struct watch watch = watch_start(&rig);

	for (unsigned i = 0; i < COUNT_OF(timers); i++)
		timers[i] = arm_after(rig.queue, 2 * HOUR + i, i);
	for (unsigned i = 0; i < COUNT_OF(timers); i++) {
		uint64_t delay_ns = i % 2 ? 3 * HOUR : HOUR + HOUR / 2;

		expect_eq(timerhub_rearm(rig.hub, timers[i], delay_ns, 0), 0);
	}
	for (unsigned i = 0; i < 100000; i++)
		expect_eq(timerhub_rearm(rig.hub, first, HOUR + i * US, 0), 0);
	for (unsigned i = 0; i < COUNT_OF(timers); i += 2)
		expect_eq(timerhub_cancel(rig.hub, timers[i]), 0);
	sleep_ns(50 * MS);
	expect_nothing_stirred(&watch);
	rig_close(&rig);
}

/* Allows one wake-up for one timer, two for 2,000 at one time. Returns false if armed too late. */
static bool watch_one_instant(uint64_t margin_ns)
{
	bool in_time = true;

	for (unsigned timers = 1; in_time && timers <= 2000; timers += 1999) {
		struct rig rig = rig_open(4000);
		uint64_t deadline_ns = monotonic_ns() + margin_ns;
		struct watch watch;

		for (unsigned i = 0; i < timers; i++)
			arm_at(rig.queue, deadline_ns, i);
		watch = watch_start(&rig);
		in_time = monotonic_ns() < deadline_ns;
		for (unsigned i = 0; in_time && i < timers; i++)
			take_one(rig.queue);
		stats_settled(rig.hub);
		if (in_time)
			expect_le(watch_wakeups(&watch), timers == 1 ? 1 : 2);
		rig_close(&rig);
	}
	return in_time;
}

/*
 * The owner subtracts the kernel's usual lateness; if it is woken before the deadline, it must not
 * sleep again.
 */
#define LEAD_TIMERS 1500

TEST(quiet_one_wake_for_each_timer_with_a_lead, 60)
{
	struct rig rig = rig_open(8);
	struct timerhub_stats before = stats_of(rig.hub), after;

	for (unsigned i = 0; i < LEAD_TIMERS; i++) {
		arm_after(rig.queue, 500 * US, i);
		take_one(rig.queue);
	}
	stats_settled(rig.hub);
	after = stats_of(rig.hub);
	/* for each expiry, and for each arm that found it asleep */
	expect_cmp(after.owner_wakeups - before.owner_wakeups, <=,
	           LEAD_TIMERS + after.submit_wakes - before.submit_wakes);
	rig_close(&rig);
}

TEST(quiet_one_wake_for_one_instant, 60)
{
	until_in_time(watch_one_instant, 300 * MS);
}

/* 5 us apart, for a consumer on another CPU, who must not be woken for each. */
#define STREAM 40000

static bool watch_a_stream(uint64_t margin_ns)
{
	struct rig rig = rig_open(STREAM);
	uint64_t first_ns = timerhub_now(rig.hub) + margin_ns;
	uint64_t wakeups = stats_of(rig.hub).owner_wakeups;
	struct timerhub_event events[64];
	bool in_time;

	for (unsigned i = 0; i < STREAM; i++)
		arm_at(rig.queue, first_ns + i * 5 * US, i);
	in_time = timerhub_now(rig.hub) < first_ns; /* if false, arming may have woken the owner */
	for (unsigned delivered = 0; in_time && delivered < STREAM;) {
		int count = timerhub_wait(rig.queue, events, COUNT_OF(events), ARRIVES);

		expect_cmp(count, >, 0);
		delivered += (unsigned)count;
	}
	wakeups = stats_of(rig.hub).owner_wakeups - wakeups;
	if (in_time)
		expect_cmp(wakeups, <, STREAM / 16);
	rig_close(&rig);
	return in_time;
}

TEST(quiet_in_a_stream, 60)
{
	until_in_time(watch_a_stream, 200 * MS);
}

static void submit_in_silence(struct rig *rig, timerhub_timer first)
{
	timerhub_timer timers[500];
	uint64_t left_ns;

	for (unsigned i = 0; i < COUNT_OF(timers); i++)
		timers[i] = arm_after(rig->queue, 2 * HOUR + i, i);
	for (unsigned i = 0; i < 10000; i++)
		expect_eq(timerhub_rearm(rig->hub, first, HOUR + i * US, 0), 0);
	for (unsigned i = 0; i < COUNT_OF(timers); i++) {
		expect_eq(timerhub_rearm(rig->hub, timers[i], 3 * HOUR, 0), 0);
		expect_eq(timerhub_remaining(rig->hub, timers[i], &left_ns), 0);
	}
	expect_eq(timerhub_cancel_many(rig->hub, timers, COUNT_OF(timers)), COUNT_OF(timers));
	expect_empty(rig->queue);
}

TEST(quiet_submission_makes_no_system_call, 60)
{
	pid_t child = fork();

	if (child == 0) {
		struct rig rig = rig_open(0);
		timerhub_timer first = arm_after(rig.queue, HOUR, 0);

		stats_settled(rig.hub);
		forbid_system_calls(SCMP_SYS(getcpu));
		submit_in_silence(&rig, first);
		syscall(SYS_exit_group, EXIT_SUCCESS);
	}
	child_ends_well(child);
}

/* The seccomp filter of the other tests works: it kills a process that arms an earlier timer. */
TEST(quiet_submission_of_the_earliest_makes_a_system_call, 60)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct rig rig = rig_open(0);

		arm_after(rig.queue, HOUR, 0);
		stats_settled(rig.hub);
		forbid_system_calls(SCMP_SYS(getcpu));
		arm_after(rig.queue, HOUR / 2, 0);
		syscall(SYS_exit_group, EXIT_SUCCESS);
	}
	expect_eq(waitpid(child, &status, 0), child);
	expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

#define UNDRAINED 100000

/* Periodic timers whose events nobody takes do not wake the owner again or delay other queues. */
TEST(quiet_although_periods_are_not_drained, 60)
{
	struct rig rig = rig_open(UNDRAINED + 10);
	struct timerhub_queue *punctual = queue_open(rig.hub);
	struct dice dice = dice_new(0);
	uint64_t deadline_ns = monotonic_ns() + ARRIVES;
	struct timerhub_stats before;
	uint64_t rss_bytes;

	for (unsigned i = 0; i < UNDRAINED; i++)
		arm(rig.queue, SPEC(.expires_ns = dice_below(&dice, 20 * MS), .data = i,
		                    .interval_ns = MS + dice_below(&dice, 20 * MS)));
	for (unsigned i = 0; i < 100; i++) {
		arm_after(punctual, dice_below(&dice, 2 * MS), i);
		expect_eq(take_one(punctual).data, i);
	}
	while (stats_of(rig.hub).expired < UNDRAINED + 100) {
		expect(monotonic_ns() < deadline_ns);
		sleep_ns(MS);
	}
	before = stats_settled(rig.hub);
	rss_bytes = process_rss_bytes();
	sleep_ns(100 * MS);
	expect_eq(stats_of(rig.hub).owner_wakeups, before.owner_wakeups);
	expect_eq(stats_of(rig.hub).expired, before.expired);
	process_rss_is_still(rss_bytes);
	expect_eq(stats_of(rig.hub).live, UNDRAINED);
	rig_close(&rig);
}

/* ---- a rest that looks like one ---- */

/* Of all processors, in 1/sysconf(_SC_CLK_TCK) of a second. */
static uint64_t machine_iowait(void)
{
	FILE *file = fopen("/proc/stat", "re");
	uint64_t ticks = 0;

	expect(file);
	expect_eq(fscanf(file, "cpu %*u %*u %*u %*u %" SCNu64, &ticks), 1);
	fclose(file);
	return ticks;
}

/*
 * Passes once the machine's iowait grows by less than 100 ms in 200 ms. An owner that counted as
 * iowait would add 200 ms each time, and other processes do not wait for disks all the time.
 */
static void expect_no_iowait(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	uint64_t half = (uint64_t)sysconf(_SC_CLK_TCK) * 2 / 10 / 2;
	uint64_t before;

	do {
		expect(monotonic_ns() < until_ns);
		before = machine_iowait();
		sleep_ns(200 * MS);
	} while (machine_iowait() - before >= half);
}

/* Checks that the owner blocks in ppoll(), or in io_uring with the flag that avoids iowait. */
static void expect_blocks_well(pid_t owner)
{
	const unsigned no_iowait = 1u << 7;
	unsigned long arguments[4];
	char path[64];
	long call;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", owner);
	thread_blocks(owner);
	file = fopen(path, "re");
	if (!file) { /* a kernel may lack it */
		printf("skipped: %s: %s\n", path, strerror(errno));
		return;
	}
	expect_eq(fscanf(file, "%ld %lx %lx %lx %lx", &call, &arguments[0], &arguments[1],
	                 &arguments[2], &arguments[3]),
	          5);
	fclose(file);
	if (call == SYS_io_uring_enter)
		expect(arguments[3] & no_iowait);
	else
		expect_eq(call, SYS_ppoll);
}

/* With no timer, or one that is far away. */
TEST_LOOP(quiet_idle_owner_is_no_iowait, 60, 2)
{
	struct rig rig = rig_open(4);

	if (_i == 1)
		arm_after(rig.queue, HOUR, 1);
	owner_settles(rig.hub);
	expect_blocks_well(timerhub_owner_tid(rig.hub));
	expect_no_iowait();
	rig_close(&rig);
}
