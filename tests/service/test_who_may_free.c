/* SPDX-License-Identifier: MIT */
/*
 * Programs that a user could write after reading "who may free when", each freeing as soon as it
 * says: AddressSanitizer finds where it is wrong. test_exceptions.cc has callbacks that throw.
 */
#include "rig.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What a timer's data points to; the mark shows a freed one without a sanitizer. */
#define MARK UINT64_C(0x5e551011)

struct session {
	uint64_t mark;
	timerhub_timer timer;
	atomic_uint inside;
	struct session *peer; /* the session of the other socket of the same connection */
	struct session *next; /* the next session in the list `dead` */
	bool closed;
};

static struct rig rig;
static atomic_bool over;
static atomic_uint sessions;

static struct session *session_new(void)
{
	struct session *session = calloc(1, sizeof(*session));

	expect(session != NULL);
	session->mark = MARK;
	atomic_fetch_add(&sessions, 1);
	return session;
}

static void session_free(struct session *session)
{
	expect_eq(session->mark, MARK);
	memset(session, 0x55, sizeof(*session));
	free(session);
	atomic_fetch_sub(&sessions, 1);
}

static void *dispatch_until_over(void *unused)
{
	(void)unused;
	while (!atomic_load(&over)) {
		(void)fd_readable_within(timerhub_queue_fd(rig.queue), MS);
		expect_cmp(timerhub_dispatch(rig.queue, 8), >=, 0);
	}
	return NULL;
}

static void dispatchers_start(pthread_t *threads, unsigned count)
{
	atomic_store(&over, false);
	for (unsigned i = 0; i < count; i++)
		thread_start(&threads[i], dispatch_until_over, NULL);
}

static void dispatchers_end(const pthread_t *threads, unsigned count)
{
	atomic_store(&over, true);
	for (unsigned i = 0; i < count; i++)
		thread_join(threads[i]);
	expect_eq(atomic_load(&sessions), 0);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}

/* ---- a periodic timer that one thread dispatches and another cancels ---- */

static void touch_slowly(const struct timerhub_event *event)
{
	struct session *session = event->ptr;

	for (unsigned i = 0; i < 50; i++) {
		expect_eq(session->mark, MARK);
		(void)sched_yield();
	}
}

TEST(frees_after_cancel_sync, 120)
{
	pthread_t threads[2];

	rig = rig_open(64);
	dispatchers_start(threads, COUNT_OF(threads));
	for (unsigned i = 0; i < scaled(3000); i++) {
		struct session *session = session_new();
		uint32_t kept = i % 2 == 0 ? TIMERHUB_KEEP : 0;

		session->timer = arm(rig.queue, SPEC(.flags = kept, .expires_ns = 10 * US,
		                                     .interval_ns = kept ? 0 : 20 * US,
		                                     .ptr = session, .fn = touch_slowly));
		sleep_ns(i % 128 * US);
		expect_eq(timerhub_cancel_sync(rig.hub, session->timer), 0);
		session_free(session);
	}
	dispatchers_end(threads, COUNT_OF(threads));
}

/* ---- inside its own callback, which two threads run at once ---- */

static atomic_uint freed_inside;

static void cancel_in_callback(const struct timerhub_event *event)
{
	struct session *session = event->ptr;

	expect_eq(session->mark, MARK);
	atomic_fetch_add(&session->inside, 1);
	for (unsigned i = 0; i < 100 && atomic_load(&session->inside) < 2; i++)
		(void)sched_yield();
	/*
	 * -ENOENT: the other thread's callback has cancelled, and frees after this one has returned
	 */
	if (timerhub_cancel_sync(timerhub_queue_hub(event->queue), event->timer) != 0) {
		expect_eq(session->mark, MARK);
		return;
	}
	session_free(session);
	atomic_fetch_add(&freed_inside, 1);
}

TEST(frees_inside_the_callback, 120)
{
	unsigned rounds = scaled(3000);
	pthread_t threads[2];

	rig = rig_open(64);
	dispatchers_start(threads, COUNT_OF(threads));
	for (unsigned i = 0; i < rounds; i++) {
		struct session *session = session_new();

		arm(rig.queue, SPEC(.expires_ns = 1 * US, .interval_ns = 1 * US, .ptr = session,
		                    .fn = cancel_in_callback));
		while (atomic_load(&freed_inside) == i)
			(void)sched_yield();
	}
	dispatchers_end(threads, COUNT_OF(threads));
}

static void free_in_callback(const struct timerhub_event *event)
{
	struct session *session = event->ptr;

	expect_eq(session->mark, MARK);
	expect_eq(timerhub_cancel_sync(timerhub_queue_hub(event->queue), event->timer), -ENOENT);
	session_free(session); /* the callback of a one-shot timer runs only once */
}

TEST(frees_a_one_shot_in_its_callback_or_after_a_cancel, 120)
{
	pthread_t threads[2];

	rig = rig_open(64);
	dispatchers_start(threads, COUNT_OF(threads));
	for (unsigned i = 0; i < scaled(10000); i++) {
		struct session *session = session_new();
		timerhub_timer timer;

		expect_eq(timerhub_call(rig.queue, i % 64 * US, free_in_callback, session, &timer),
		          0);
		if (i % 4 != 0)
			sleep_ns(i % 64 * US);
		if (timerhub_cancel(rig.hub, timer) == 0)
			session_free(session);
	}
	while (atomic_load(&sessions) > 0)
		sleep_ns(100 * US);
	dispatchers_end(threads, COUNT_OF(threads));
}

/* ---- drained in batches: an event in the caller's array counts as delivered ---- */

static struct session *dead;

static void close_one(struct session *session)
{
	if (session->closed)
		return;
	session->closed = true;
	if (timerhub_cancel(rig.hub, session->timer) == 0) {
		session_free(session);
	} else { /* the event of the timer is, or was, in the drained batch */
		session->next = dead;
		dead = session;
	}
}

static void free_the_dead(void)
{
	while (dead) {
		struct session *session = dead;

		dead = session->next;
		session_free(session);
	}
}

TEST(frees_at_the_end_of_the_batch, 120)
{
	unsigned pairs = scaled(20000), in_batch = 0;
	struct dice dice = dice_new(1);
	uint64_t now_ns = 0;

	rig = rig_manual(128);
	for (unsigned done = 0; done < pairs;) {
		struct timerhub_event events[64];
		int count;

		for (unsigned i = 0; i < 32; i++, done++) {
			struct session *one = session_new(), *other = session_new();

			one->peer = other;
			other->peer = one;
			one->timer = arm(rig.queue,
			                 SPEC(.expires_ns = dice_below(&dice, 193), .ptr = one));
			other->timer = arm(rig.queue, SPEC(.expires_ns = dice_below(&dice, 193),
			                                   .ptr = other));
		}
		for (unsigned step = 0; step < 4; step++) {
			advance(rig.hub, now_ns += 64);
			count = timerhub_drain(rig.queue, events, COUNT_OF(events));
			for (int i = 0; i < count; i++) {
				struct session *session = events[i].ptr;
				struct session *peer = session->peer;

				expect_eq(session->mark, MARK);
				in_batch += session->closed;
				if (session->closed)
					continue;
				close_one(session);
				close_one(peer);
			}
			free_the_dead();
		}
		expect_eq(atomic_load(&sessions), 0);
	}
	/* sessions with an event in the batch */
	expect_cmp(in_batch, >, 0);
	rig_close(&rig);
}

/* ---- workers, and the end of their waits ---- */

static void *work(void *taken)
{
	struct timerhub_event events[4];
	int count;

	while ((count = timerhub_wait(rig.queue, events, COUNT_OF(events), UINT64_MAX)) > 0)
		atomic_fetch_add((atomic_uint *)taken, (unsigned)count);
	expect_eq(count, -ESHUTDOWN);
	return NULL;
}

TEST(stops_joins_and_closes, 120)
{
	for (unsigned round = 0; round < scaled(300); round++) {
		pthread_t threads[3];
		atomic_uint taken = 0;

		rig = rig_open(256);
		for (unsigned i = 0; i < COUNT_OF(threads); i++)
			thread_start(&threads[i], work, &taken);
		for (unsigned i = 0; i < 100; i++)
			arm_after(rig.queue, i % 10 * US, i);
		sleep_ns(round % 8 * 50 * US);
		timerhub_queue_stop(rig.queue);
		for (unsigned i = 0; i < COUNT_OF(threads); i++)
			thread_join(threads[i]);
		/* nobody takes what expires after the last worker has left */
		expect_eq(stats_of(rig.hub).delivered, atomic_load(&taken));
		timerhub_queue_close(rig.queue);
		expect_eq(stats_of(rig.hub).live, 0);
		timerhub_close(rig.hub);
	}
}

/* ---- a heartbeat is one call, and any thread makes it ---- */

static atomic_uint expiries;

static void count_expiry(const struct timerhub_event *event)
{
	(void)event;
	atomic_fetch_add(&expiries, 1);
}

struct beater {
	pthread_t thread;
	timerhub_timer timer;
	unsigned started; /* number of re-arms that started the idle timer */
	struct dice dice;
};

static void *beat(void *argument)
{
	struct beater *beater = argument;

	for (unsigned i = 0; i < scaled(60000); i++) {
		int result = timerhub_rearm(rig.hub, beater->timer,
		                            dice_magnitude(&beater->dice, 15), 0);

		expect(result == 0 || result == 1);
		beater->started += result == 1;
	}
	return NULL;
}

TEST(beats_from_two_threads, 120)
{
	struct beater beaters[2];
	pthread_t threads[2];
	timerhub_timer timer;
	unsigned started = 1; /* the arm starts the timer for the first time */
	uint64_t until_ns;

	rig = rig_open(4);
	timer = arm(rig.queue,
	            SPEC(.flags = TIMERHUB_KEEP, .expires_ns = 10 * US, .fn = count_expiry));
	dispatchers_start(threads, COUNT_OF(threads));
	for (unsigned i = 0; i < COUNT_OF(beaters); i++) {
		beaters[i] = (struct beater){ .timer = timer, .dice = dice_new(i) };
		thread_start(&beaters[i].thread, beat, &beaters[i]);
	}
	for (unsigned i = 0; i < COUNT_OF(beaters); i++) {
		thread_join(beaters[i].thread);
		started += beaters[i].started;
	}
	/* Each start of the timer must end in one expiry. */
	until_ns = monotonic_ns() + ARRIVES;
	while (atomic_load(&expiries) < started) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(100 * US);
	}
	expect_eq(timerhub_rearm(rig.hub, timer, HOUR, 0), 1);
	expect_eq(atomic_load(&expiries), started);
	expect_eq(timerhub_cancel(rig.hub, timer), 0);
	dispatchers_end(threads, COUNT_OF(threads));
}
