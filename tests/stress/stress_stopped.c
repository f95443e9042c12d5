/* SPDX-License-Identifier: MIT */
/*
 * Tests law 6. A thread may be stopped for ever at any instruction inside arm, re-arm or cancel. It
 * then delays the timer of its call, but no other timer and no other thread.
 *
 * One thread, the victim, makes the same call many times, once for each instruction of the library
 * on the call's path. In each call, the victim is stopped by ptrace before one of these
 * instructions (single_stepper.h). While the victim is stopped, other threads arm, re-arm, cancel
 * and receive events. If another thread waited for the victim, that thread would hang. When the
 * other threads have finished, the victim continues, and its call must return a result that the
 * contract allows. If ptrace is not available, only tests/service/test_lock_free.c stops threads,
 * at random instants by a signal.
 */
#include "rig.h"
#include "single_stepper.h"

#include <stdio.h>
#include <stdlib.h>

#define STOPS_CHOSEN 200 /* number of stops in each scene, in a sanitized build */
#define STOPS_STEPPED 50 /* number of stops in each scene, if a stop needs single steps */
#define OTHERS 8         /* number of timers that the other threads arm */
#define LEARNINGS 10
#define LEARNINGS_SANITIZED 3 /* number of recorded calls in a sanitized build */
#define LESSONS 5             /* number of attempts to find a path that the call takes often */
#define TRIES 6               /* number of attempts to stop a call at one instruction */
#define BATCH 3               /* number of timers that one call of timerhub_arm_many() arms */

static struct rig rig;
static struct timerhub_queue *victims_queue;

/* Arguments and results of the call that the victim makes. */
static struct {
	timerhub_timer timer;
	timerhub_timer armed[BATCH];
	int result;
} job;

/*
 * A scene stops the victim inside `call`. The other functions run before, during and after the
 * stop.
 */
struct scene {
	const char *name;
	void (*prepare)(void);
	void (*call)(void *);
	void (*others)(void);
	void (*conclude)(void);
};

/* ---- playing ---- */

static void play(const struct scene *scene)
{
	scene->prepare();
	tracer_call(scene->call, NULL);
}

/*
 * The shortest and the longest recorded path of the victim's call. The path of the first call is
 * not used, because the first call resolves symbols and has page faults. The paths of two calls
 * differ if the owner's state or the CPU's number of free slots differs.
 */
static struct tracer_way shortest;
static struct tracer_way longest;

static void learn(const struct scene *scene)
{
	for (unsigned i = 0; i < (sanitized() ? LEARNINGS_SANITIZED : LEARNINGS); i++) {
		const struct tracer_way *way;

		play(scene);
		way = tracer_learn();
		expect_cmp(way->length, >, 10);
		if (i <= 1 || way->length < shortest.length)
			shortest = *way;
		if (i <= 1 || way->length > longest.length)
			longest = *way;
		scene->others();
		scene->conclude();
	}
}

static bool play_until(const struct scene *scene, const struct tracer_way *way, unsigned at)
{
	for (unsigned tries = 0; tries < TRIES; tries++) {
		bool stopped;

		play(scene);
		stopped = tracer_stop_at(way, at);
		scene->others();
		if (stopped)
			tracer_finish();
		scene->conclude();
		if (stopped)
			return true;
	}
	return false; /* the victim did not take this path in any of TRIES calls */
}

/*
 * Returns whether it takes long to stop the victim at an instruction. With a sanitizer the path of
 * a call is many times as long. Without breakpoints each stop needs single steps.
 */
static bool stops_are_dear(void)
{
	return sanitized() || tracer_only_steps();
}

/*
 * Stops the victim at each instruction of the shortest path. If stops take long, stop_along() stops
 * the victim only at a random choice of instructions. Returns false if fewer than half of the stops
 * succeed. The victim then seldom takes the recorded path again. For example, another program that
 * used the processor may have changed the path during the recording.
 */
static bool stop_along(const struct scene *scene, struct dice *dice)
{
	unsigned choice = scaled(tracer_only_steps() ? STOPS_STEPPED : STOPS_CHOSEN);
	bool all = !stops_are_dear() || choice >= shortest.length;
	unsigned stops = all ? shortest.length : choice;
	unsigned stopped = 0;

	for (unsigned i = 0; i < stops; i++)
		stopped += play_until(scene, &shortest,
		                      all ? i : (unsigned)dice_below(dice, shortest.length));
	printf("%s: stopped at %u of %u instructions", scene->name, stopped, shortest.length);
	return stopped >= stops / 2;
}

static bool on_the_shortest(uintptr_t instruction)
{
	for (unsigned i = 0; i < shortest.length; i++)
		if (shortest.instructions[i] == instruction)
			return true;
	return false;
}

static void stop_on_detours(const struct scene *scene)
{
	unsigned stopped = 0;
	unsigned all = 0;

	for (unsigned i = 0; i < longest.length; i++)
		if (!on_the_shortest(longest.instructions[i])) {
			all++;
			stopped += play_until(scene, &longest, i);
		}
	printf(", at %u of %u on detours", stopped, all);
}

static void stop_everywhere(const struct scene *scene, int salt)
{
	struct dice dice = dice_new((uint64_t)salt);
	unsigned lessons = 0;

	do {
		expect_cmp(lessons++, <, LESSONS);
		learn(scene);
	} while (!stop_along(scene, &dice));
	if (!stops_are_dear())
		stop_on_detours(scene);
	printf("\n");
}

/* ---- submitting ---- */

static void prepare_nothing(void)
{
}

static void prepare_far(void)
{
	job.timer = arm_after(victims_queue, 2 * HOUR, 0);
}

static void prepare_expired(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	uint64_t left_ns = 1;

	job.timer = arm_after(victims_queue, 0, 0);
	while (left_ns || !fd_readable(timerhub_queue_fd(victims_queue))) {
		expect(monotonic_ns() < until_ns);
		expect_eq(timerhub_remaining(rig.hub, job.timer, &left_ns), 0);
	}
}

static void call_arm(void *argument)
{
	(void)argument;
	job.result = timerhub_after(victims_queue, HOUR, 0, &job.timer);
}

static void call_arm_at_once(void *argument)
{
	(void)argument;
	job.result = timerhub_after(victims_queue, 0, 0, &job.timer);
}

static void call_arm_many(void *argument)
{
	static const struct timerhub_spec specs[BATCH] = { SPEC(.expires_ns = 2 * HOUR),
		                                           SPEC(.expires_ns = 0),
		                                           SPEC(.expires_ns = HOUR) };

	(void)argument;
	job.result = timerhub_arm_many(victims_queue, specs, BATCH, job.armed);
}

static void call_rearm_earlier(void *argument)
{
	(void)argument;
	job.result = timerhub_rearm(rig.hub, job.timer, HOUR, 0);
}

static void call_rearm_at_once(void *argument)
{
	(void)argument;
	job.result = timerhub_rearm(rig.hub, job.timer, 0, 0);
}

static void call_rearm_later(void *argument)
{
	(void)argument;
	job.result = timerhub_rearm(rig.hub, job.timer, 3 * HOUR, 0);
}

static void call_cancel(void *argument)
{
	(void)argument;
	job.result = timerhub_cancel(rig.hub, job.timer);
}

/*
 * While the victim is stopped, make each call of the library once or a few times. A call that
 * waited for the victim would hang or be refused.
 */
static void others_are_served(void)
{
	timerhub_timer timers[OTHERS];

	for (unsigned i = 0; i < OTHERS; i++)
		timers[i] = arm_after(rig.queue, i % 2 ? HOUR : 0, i);
	for (unsigned i = 0; i < OTHERS / 2; i++)
		expect_eq(take_one(rig.queue).data % 2, 0);
	expect_eq(timerhub_cancel(rig.hub, timers[1]), 0);
	for (unsigned i = 3; i < OTHERS; i += 2)
		expect_eq(timerhub_rearm(rig.hub, timers[i], 0, 0), 0);
	for (unsigned i = 3; i < OTHERS; i += 2)
		expect_eq(take_one(rig.queue).data % 2, 1);
	for (unsigned i = 0; i < 20; i++)
		expect_eq(timerhub_cancel(rig.hub, arm_after(rig.queue, HOUR, i)), 0);
}

/*
 * Expects that the victim's timer is live, and that its remaining time is more than `after_ns` and
 * at most `until_ns`. Cancels the timer.
 */
static void conclude_live(uint64_t after_ns, uint64_t until_ns)
{
	uint64_t left_ns = 0;

	expect_eq(job.result, 0);
	expect_eq(timerhub_remaining(rig.hub, job.timer, &left_ns), 0);
	expect(left_ns > after_ns && left_ns <= until_ns);
	expect_empty(victims_queue);
	expect_eq(timerhub_cancel(rig.hub, job.timer), 0);
}

static void conclude_in_an_hour(void)
{
	conclude_live(0, HOUR + 64);
}

static void conclude_later(void)
{
	conclude_live(2 * HOUR, 3 * HOUR + 64);
}

static void conclude_delivered(void)
{
	expect_eq(job.result, 0);
	expect_eq(take_one(victims_queue).timer, job.timer);
	expect_empty(victims_queue);
}

static void conclude_batch(void)
{
	expect_eq(job.result, BATCH);
	job.result = 0;
	job.timer = job.armed[1];
	conclude_delivered();
	expect_eq(timerhub_cancel_many(rig.hub, job.armed, BATCH), BATCH - 1);
}

static void conclude_cancelled(void)
{
	expect_eq(job.result, 0);
	expect_eq(timerhub_cancel(rig.hub, job.timer), -ENOENT);
	expect_empty(victims_queue);
}

#define SUBMISSION(name, prepare, call, conclude)                                                  \
	{                                                                                          \
		name, prepare, call, others_are_served, conclude                                   \
	}

static const struct scene submissions[] = {
	SUBMISSION("arm", prepare_nothing, call_arm, conclude_in_an_hour),
	SUBMISSION("arm at once", prepare_nothing, call_arm_at_once, conclude_delivered),
	SUBMISSION("arm of many", prepare_nothing, call_arm_many, conclude_batch),
	SUBMISSION("rearm earlier", prepare_far, call_rearm_earlier, conclude_in_an_hour),
	SUBMISSION("rearm at once", prepare_far, call_rearm_at_once, conclude_delivered),
	SUBMISSION("rearm later", prepare_far, call_rearm_later, conclude_later),
	SUBMISSION("rearm of an expired one", prepare_expired, call_rearm_later, conclude_later),
	SUBMISSION("cancel", prepare_far, call_cancel, conclude_cancelled),
	SUBMISSION("cancel of an expired one", prepare_expired, call_cancel, conclude_cancelled),
};

START_TEST(stopped_while_submitting_it_delays_nobody)
{
	if (!tracer_open())
		return;
	thread_pin(0);
	rig = rig_open(64);
	victims_queue = queue_open(rig.hub);
	stop_everywhere(&submissions[_i], _i);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
	tracer_close();
}
END_TEST

/*
 * A producer is delayed in a submission while other threads submit. When the producer continues, it
 * must find the current end of the inbox after at most one cache line of cells. The producer must
 * not walk over the new entries. The hub is manual and has one lane, into which other threads push
 * 1,600 entries. A walk over 1,600 entries would take about 16,000 instructions. Six kinds of calls
 * are delayed, each at the instruction where the delay costs most. A delay makes a call execute
 * additional instructions. SIX_CALLS_MORE_MAX is the largest permitted sum of the additional
 * instructions of the six calls.
 */
#define MEANWHILE_ROUNDS 100
#define MEANWHILE 16
#define SIX_CALLS_MORE_MAX 2500

static uint64_t held_up_ns;

static void others_submit(void)
{
	timerhub_timer timers[MEANWHILE];

	for (unsigned round = 0; round < MEANWHILE_ROUNDS; round++) {
		for (unsigned i = 0; i < MEANWHILE; i++)
			timers[i] = arm_after(rig.queue, HOUR, i);
		expect_eq(timerhub_cancel_many(rig.hub, timers, MEANWHILE), MEANWHILE);
		advance(rig.hub, held_up_ns += 64);
	}
}

static void conclude_any(void)
{
	struct timerhub_event event;

	expect_eq(job.result, 0);
	(void)timerhub_cancel(rig.hub, job.timer);
	advance(rig.hub, held_up_ns += 64);
	(void)timerhub_drain(victims_queue, &event, 1);
	expect_eq(stats_of(rig.hub).live, 0);
}

static const struct scene six_calls[] = {
	{ "arm", prepare_nothing, call_arm, others_submit, conclude_any },
	{ "arm at once", prepare_nothing, call_arm_at_once, others_submit, conclude_any },
	{ "rearm earlier", prepare_far, call_rearm_earlier, others_submit, conclude_any },
	{ "rearm at once", prepare_far, call_rearm_at_once, others_submit, conclude_any },
	{ "rearm later", prepare_far, call_rearm_later, others_submit, conclude_any },
	{ "cancel", prepare_far, call_cancel, others_submit, conclude_any },
};

/*
 * Delays the scene's call at each instruction of its path. Returns the largest number of additional
 * instructions that a delay causes.
 */
static unsigned dearest(const struct scene *scene)
{
	unsigned most = 0;

	learn(scene);
	for (unsigned i = 0; i < shortest.length; i += stops_are_dear() ? 7 : 1) {
		play(scene);
		if (tracer_stop_at(&shortest, i)) {
			scene->others();
			unsigned length = i + tracer_learn_rest()->length;

			most = length > most ? length : most;
		}
		scene->conclude();
	}
	printf("%s: %u instructions, held up %u\n", scene->name, shortest.length, most);
	return most > shortest.length ? most - shortest.length : 0;
}

START_TEST(held_up_while_submitting_it_finds_the_end_of_today)
{
	unsigned total = 0;

	if (sanitized() || !tracer_open())
		return;
	thread_pin(0);
	rig = rig_manual(64);
	held_up_ns = 0;
	victims_queue = queue_open(rig.hub);
	for (unsigned i = 0; i < COUNT_OF(six_calls); i++)
		total += dearest(&six_calls[i]);
	printf("six calls: %u instructions more\n", total);
	expect_cmp(total, <=, SIX_CALLS_MORE_MAX);
	rig_close(&rig);
	tracer_close();
}
END_TEST

/* ---- consuming ---- */

/*
 * A consumer that is stopped for ever keeps only the events that it has taken. The hub is manual,
 * so that the test knows which events wait.
 */
#define DUE 3

static uint64_t virtual_ns;
static uint64_t taken; /* number of events that all consumers have taken */
static uint64_t given;

static void call_drain_one(void *argument)
{
	struct timerhub_event event;

	(void)argument;
	job.result = timerhub_drain(rig.queue, &event, 1);
}

static void call_drain_all(void *argument)
{
	struct timerhub_event events[DUE + 1];

	(void)argument;
	job.result = timerhub_drain(rig.queue, events, DUE + 1);
}

static void call_dispatch_all(void *argument)
{
	(void)argument;
	job.result = timerhub_dispatch(rig.queue, DUE + 1);
}

static void prepare_events(void)
{
	for (unsigned i = 0; i < DUE; i++)
		arm_after(rig.queue, 1, i);
	given += DUE;
	virtual_ns += US;
	advance(rig.hub, virtual_ns);
}

static void others_are_told(void)
{
	int fd = timerhub_queue_fd(rig.queue);

	taken += drain_all(rig.queue);
	expect(!fd_readable(fd));
	for (unsigned i = 0; i < 3; i++) {
		prepare_events();
		expect(fd_readable(fd));
		expect_eq(drain_all(rig.queue), DUE);
		expect(!fd_readable(fd));
	}
	prepare_events();
	for (unsigned i = 0; i < DUE; i++)
		take_one(rig.queue);
	taken += 4 * DUE;
}

/* Checks that each event has come once, and that the queue's descriptor is unreadable. */
static void conclude_taken(void)
{
	expect_cmp(job.result, >=, 0);
	taken += (unsigned)job.result;
	expect_empty(rig.queue);
	expect_eq(taken, given);
	expect(!fd_readable(timerhub_queue_fd(rig.queue)));
}

static const struct scene consumptions[] = {
	{ "drain of one", prepare_events, call_drain_one, others_are_told, conclude_taken },
	{ "drain of all", prepare_events, call_drain_all, others_are_told, conclude_taken },
	{ "dispatch of all", prepare_events, call_dispatch_all, others_are_told, conclude_taken },
};

START_TEST(stopped_while_consuming_it_delays_nobody)
{
	if (!tracer_open())
		return;
	thread_pin(0);
	rig = rig_manual(64);
	stop_everywhere(&consumptions[_i], _i);
	rig_close(&rig);
	tracer_close();
}
END_TEST

/* ---- arming the last slots ---- */

/*
 * Laws 6 and 7: one thread is stopped while it arms a timer. The other threads must get all other
 * slots, even if the stopped thread was moving many free slots. Each stop uses a new hub. In the
 * first scene no slot has been used. In the second scene all free slots are on the free stack of
 * another CPU.
 */
#define SLOTS 2048

static unsigned filled;

static unsigned fill(void)
{
	unsigned count = 0;

	while (timerhub_after(rig.queue, HOUR, 0, NULL) == 0)
		count++;
	return count;
}

static void prepare_untouched(void)
{
	rig = rig_manual(SLOTS);
}

static void prepare_used_by_another_cpu(void)
{
	static timerhub_timer timers[SLOTS];

	thread_pin(1);
	rig = rig_manual(SLOTS);
	for (unsigned i = 0; i < SLOTS; i++)
		timers[i] = arm_after(rig.queue, HOUR, i);
	expect_eq(timerhub_cancel_many(rig.hub, timers, SLOTS), SLOTS);
	thread_pin(0);
}

static void call_arm_here(void *argument)
{
	(void)argument;
	job.result = timerhub_after(rig.queue, HOUR, 0, NULL);
}

static void others_have_the_rest(void)
{
	filled = fill();
	expect_cmp(filled, >=, SLOTS - 1);
}

static void conclude_full(void)
{
	expect(job.result == 0 || job.result == -EAGAIN);
	expect_eq(filled + fill() + (job.result == 0), SLOTS);
	rig_close(&rig);
}

static const struct scene armings[] = {
	{ "arm in a new hub", prepare_untouched, call_arm_here, others_have_the_rest,
	  conclude_full },
	{ "arm after another CPU", prepare_used_by_another_cpu, call_arm_here, others_have_the_rest,
	  conclude_full },
};

START_TEST(stopped_while_arming_it_keeps_one_slot)
{
	if (!tracer_open())
		return;
	thread_pin(0);
	stop_everywhere(&armings[_i], _i);
	tracer_close();
}
END_TEST

/*
 * Returns true if this run tests no manual hubs. The program runs once with each sleeper. Manual
 * hubs have no sleeper, so one run tests them. If the kernel permits io_uring, this is the run with
 * io_uring.
 */
static bool manual_elsewhere(void)
{
	return sleeper_asked() == TIMERHUB_SLEEPER_POLL && uring_refused() == 0;
}

int main(int argc, char **argv)
{
	rigs_begin("stress_stopped", argc, argv);
	tests_add_loop(stopped_while_submitting_it_delays_nobody, 120, COUNT_OF(submissions));
	if (manual_elsewhere())
		return tests_run();
	tests_add(held_up_while_submitting_it_finds_the_end_of_today, 300);
	tests_add_loop(stopped_while_consuming_it_delays_nobody, 120, COUNT_OF(consumptions));
	tests_add_loop(stopped_while_arming_it_keeps_one_slot, 120, COUNT_OF(armings));
	return tests_run();
}
