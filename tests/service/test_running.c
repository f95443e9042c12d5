/* SPDX-License-Identifier: MIT */
/*
 * Who runs what: timerhub_each_running() names the callback of each thread, and never a wrong one;
 * timerhub_slow() and timerhub_loop_slow() tell which were slow; the statistics tell what waits.
 */
#include "rig.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOW_DEFAULT (10 * MS)

static struct rig rig_observable(uint32_t flags)
{
	return rig_open_config((struct timerhub_config){ .flags = flags | TIMERHUB_OBSERVABLE,
	                                                 .timers_max = 1024 });
}

static struct timerhub_loop *open_loop(struct timerhub *hub, uint64_t slow_ns)
{
	const struct timerhub_loop_config config = { .size = sizeof(config),
		                                     .flags = TIMERHUB_LOOP_OBSERVABLE,
		                                     .slow_ns = slow_ns };
	struct timerhub_loop *loop;

	expect_eq(timerhub_loop_open(&loop, hub, &config), 0);
	return loop;
}

static int32_t own_tid(void)
{
	return (int32_t)syscall(SYS_gettid);
}

/* ---- what each_running tells ---- */

/* Looks for the cell of a thread, or of a loop. */
struct search {
	int32_t tid;
	const void *loop;
	unsigned found, all;
	struct timerhub_running running;
};

static int on_running(const struct timerhub_running *running, void *context)
{
	struct search *search = context;

	expect_eq(running->size, sizeof(*running));
	expect(running->where == TIMERHUB_IN_CALLBACK ? running->fn != NULL && running->timer != 0
	                                              : running->fn == NULL && running->timer == 0);
	search->all++;
	if (running->tid != search->tid || running->loop != search->loop)
		return 0;
	search->found++;
	search->running = *running;
	return 0;
}

/* Fills in what the hub tells of a thread, or of its loop. Returns false if it tells nothing. */
static bool find(struct timerhub *hub, int32_t tid, const void *loop, struct timerhub_running *ret)
{
	struct search search = { .tid = tid, .loop = loop };

	expect_eq(timerhub_each_running(hub, on_running, &search), 0);
	expect_le(search.found, 1);
	*ret = search.running;
	return search.found == 1;
}

static bool is_fn(const struct timerhub_running *running, timerhub_fn *fn)
{
	return running->fn == (timerhub_any_fn *)fn;
}

static unsigned calls;

static void expect_self(const struct timerhub_event *event)
{
	struct timerhub *hub = timerhub_queue_hub(event->queue);
	struct timerhub_running running;

	calls++;
	expect(find(hub, own_tid(), NULL, &running));
	expect_eq(running.where, TIMERHUB_IN_CALLBACK);
	expect(is_fn(&running, expect_self));
	expect_eq(running.timer, event->timer);
	expect(running.queue == event->queue);
	expect_le(running.since_ns, timerhub_now(hub));
	expect_le(event->expires_ns, running.since_ns);
}

static void call(struct rig *rig, timerhub_fn *fn, void *ptr)
{
	expect_eq(timerhub_call(rig->queue, 0, fn, ptr, NULL), 0);
	(void)advance(rig->hub, timerhub_now(rig->hub) + 1);
	expect_eq(timerhub_dispatch(rig->queue, 100), 1);
}

static void dispatch_inside(const struct timerhub_event *event)
{
	struct timerhub *hub = timerhub_queue_hub(event->queue);
	struct rig inner = { .hub = hub, .queue = event->ptr };
	struct timerhub_running running;

	for (unsigned i = 0; i < 2; i++) {
		call(&inner, expect_self, NULL);
		expect(find(hub, own_tid(), NULL, &running));
		expect(is_fn(&running, dispatch_inside));
		expect_eq(running.timer, event->timer);
		expect(running.queue == event->queue);
	}
}

TEST(a_callback_that_dispatches_is_named_again, 20)
{
	struct rig rig = rig_observable(TIMERHUB_MANUAL);
	struct timerhub_queue *inner = queue_open(rig.hub);
	struct timerhub_running running;

	expect(!find(rig.hub, own_tid(), NULL, &running));
	call(&rig, dispatch_inside, inner);
	expect(find(rig.hub, own_tid(), NULL, &running));
	expect_eq(running.where, TIMERHUB_AWAY);
	expect(running.queue == rig.queue);
	call(&rig, expect_self, NULL);
	rig_close(&rig);
}

static atomic_int stuck_tid;
static atomic_bool stuck_may_go;

static void stick(const struct timerhub_event *event)
{
	(void)event;
	atomic_store(&stuck_tid, own_tid());
	while (!atomic_load(&stuck_may_go))
		sleep_ns(100 * US);
}

static void *dispatch_until_called(void *arg)
{
	while (timerhub_dispatch(arg, 1) == 0)
		sleep_ns(100 * US);
	return NULL;
}

TEST(a_stuck_callback_is_named_to_others, 60)
{
	struct rig rig = rig_observable(0);
	struct timerhub_running running;
	timerhub_timer timer = arm(rig.queue, SPEC(.fn = stick));
	pthread_t thread;

	thread_start(&thread, dispatch_until_called, rig.queue);
	while (atomic_load(&stuck_tid) == 0)
		sleep_ns(100 * US);
	expect(find(rig.hub, atomic_load(&stuck_tid), NULL, &running));
	expect(is_fn(&running, stick));
	expect_eq(running.timer, timer);
	expect_eq(running.where, TIMERHUB_IN_CALLBACK);
	atomic_store(&stuck_may_go, true);
	thread_join(thread);
	/* the kernel removes a thread a moment after it was joined */
	while (find(rig.hub, atomic_load(&stuck_tid), NULL, &running))
		sleep_ns(100 * US);
	rig_close(&rig);
}

static void end_thread(const struct timerhub_event *event)
{
	(void)event;
	thread_ends_here();
	pthread_exit(NULL);
}

static void *call_once(void *arg)
{
	struct rig *rig = arg;

	expect_eq(timerhub_dispatch(rig->queue, 1), 1);
	return NULL;
}

TEST(threads_that_end_give_their_cells_to_others, 60)
{
	struct rig rig = rig_observable(TIMERHUB_MANUAL);
	unsigned threads = 600;

	calls = 0;
	for (unsigned i = 0; i < threads; i++) {
		pthread_t thread;

		expect_eq(timerhub_call(rig.queue, 0, i % 8 == 0 ? end_thread : expect_self, NULL,
		                        NULL),
		          0);
		(void)advance(rig.hub, i + 1);
		thread_start(&thread, call_once, &rig);
		thread_join(thread);
	}
	expect_eq(calls, threads - threads / 8);
	rig_close(&rig);
}

#define CELLS 256
#define CROWD 260

static pthread_barrier_t crowd_meets;
static atomic_uint crowd;
static int32_t crowd_tids[CROWD]; /* in the order of the dispatches */

static void join_crowd(const struct timerhub_event *event)
{
	(void)event;
	crowd_tids[atomic_load(&crowd)] = own_tid();
	(void)atomic_fetch_add(&crowd, 1); /* the next thread may come */
}

static void *meet_and_dispatch(void *arg)
{
	struct rig *rig = arg;

	expect_eq(timerhub_dispatch(rig->queue, 1), 1);
	(void)pthread_barrier_wait(&crowd_meets);
	return NULL;
}

TEST(of_more_threads_than_cells_the_first_are_told, 60)
{
	struct rig rig = rig_observable(TIMERHUB_MANUAL);
	struct timerhub_running running;
	pthread_t threads[CROWD];

	expect_eq(pthread_barrier_init(&crowd_meets, NULL, CROWD + 1), 0);
	for (unsigned i = 0; i < CROWD; i++) {
		expect_eq(timerhub_call(rig.queue, 0, join_crowd, NULL, NULL), 0);
		(void)advance(rig.hub, i + 1);
		thread_start(&threads[i], meet_and_dispatch, &rig);
		while (atomic_load(&crowd) <= i)
			sleep_ns(10 * US);
	}
	for (unsigned i = 0; i < CROWD; i++)
		expect_eq(find(rig.hub, crowd_tids[i], NULL, &running), i < CELLS);
	(void)pthread_barrier_wait(&crowd_meets);
	for (unsigned i = 0; i < CROWD; i++)
		thread_join(threads[i]);
	rig_close(&rig);
}

static int end_walk(const struct timerhub_running *running, void *context)
{
	(void)running;
	++*(unsigned *)context;
	return 17;
}

TEST(a_result_ends_the_walk, 20)
{
	struct rig rig = rig_observable(TIMERHUB_MANUAL);
	struct timerhub_loop *loop = open_loop(rig.hub, 0);
	unsigned count = 0;

	call(&rig, ignore_event, NULL);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect_eq(timerhub_each_running(rig.hub, end_walk, &count), 17);
	expect_eq(count, 1);
	timerhub_loop_close(loop);
	rig_close(&rig);
}

/* ---- names are never wrong ---- */

#define TICKERS 3

static void tick_a(const struct timerhub_event *event)
{
	(void)event;
}

static void tick_b(const struct timerhub_event *event)
{
	(void)event;
	calls++;
}

static void tick_c(const struct timerhub_event *event)
{
	struct rig rig = { timerhub_queue_hub(event->queue), event->ptr };

	(void)timerhub_dispatch(rig.queue, 100);
}

static struct ticker {
	timerhub_fn *fn;
	timerhub_timer timer;
} tickers[TICKERS + 1] = { { tick_a, 0 }, { tick_b, 0 }, { tick_c, 0 }, { tick_b, 0 } };

static atomic_bool ticking_ends;

static void *tick(void *arg)
{
	struct rig *rig = arg;
	unsigned rounds = scaled(20000);

	for (unsigned i = 1; i <= rounds; i++) {
		for (unsigned k = 0; k <= TICKERS; k++)
			expect_le(0,
			          timerhub_rearm(rig->hub, tickers[k].timer, i, TIMERHUB_ABSOLUTE));
		(void)advance(rig->hub, i);
		expect_eq(timerhub_dispatch(rig->queue, 100), TICKERS);
	}
	atomic_store(&ticking_ends, true);
	return NULL;
}

static int check_name(const struct timerhub_running *running, void *context)
{
	unsigned *named = context;

	if (running->where != TIMERHUB_IN_CALLBACK)
		return 0;
	for (unsigned k = 0; k <= TICKERS; k++)
		if (running->timer == tickers[k].timer) {
			expect(is_fn(running, tickers[k].fn));
			++*named;
			return 0;
		}
	expect(false); /* no timer that was armed */
	return 0;
}

TEST(a_name_is_never_wrong_while_callbacks_change, 60)
{
	struct rig rig = rig_observable(TIMERHUB_MANUAL);
	struct timerhub_queue *inner = queue_open(rig.hub);
	unsigned named = 0;
	pthread_t thread;

	for (unsigned k = 0; k <= TICKERS; k++)
		tickers[k].timer = arm(k < TICKERS ? rig.queue : inner,
		                       SPEC(.flags = TIMERHUB_KEEP, .expires_ns = TIMERHUB_NEVER,
		                            .fn = tickers[k].fn, .ptr = inner));
	thread_start(&thread, tick, &rig);
	while (!atomic_load(&ticking_ends))
		expect_eq(timerhub_each_running(rig.hub, check_name, &named), 0);
	thread_join(thread);
	rig_close(&rig);
}

/* ---- loops ---- */

static struct timerhub *loops_hub;

static void expect_loop_named(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	struct timerhub_running running;

	calls++;
	expect(find(loops_hub, own_tid(), loop, &running));
	expect_eq(running.where, TIMERHUB_IN_CALLBACK);
	expect(running.fn == (timerhub_any_fn *)expect_loop_named);
	expect_eq(running.timer, (uint64_t)(uintptr_t)timeout);
	(void)advance(loops_hub, timerhub_now(loops_hub) + 20 * MS);
}

static void expect_loops_queue_named(const struct timerhub_event *event)
{
	struct timerhub_running running;

	calls++;
	expect(find(loops_hub, own_tid(), event->ptr, &running));
	expect_eq(running.where, TIMERHUB_IN_CALLBACK);
	expect(is_fn(&running, expect_loops_queue_named));
	expect(running.queue == event->queue);
	(void)advance(loops_hub, timerhub_now(loops_hub) + 30 * MS);
}

TEST(a_loop_tells_its_timeouts_and_its_queues_callbacks, 20)
{
	struct rig rig = rig_observable(TIMERHUB_MANUAL);
	struct timerhub_loop *loop = open_loop(rig.hub, 0);
	struct timerhub_slow_callback slow[4];
	struct timerhub_timeout timeout = { 0 };
	struct timerhub_loop_stats stats = { 0 };
	struct timerhub_running running;
	struct search all = { .tid = 0 };

	calls = 0;
	loops_hub = rig.hub;
	expect_eq(timerhub_timeout_add(loop, &timeout, expect_loop_named), 0);
	expect_eq(timerhub_timeout_set(loop, &timeout, MS), 0);
	expect_eq(
		timerhub_call(timerhub_loop_queue(loop), MS, expect_loops_queue_named, loop, NULL),
		0);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect(find(rig.hub, own_tid(), loop, &running));
	expect_eq(running.where, TIMERHUB_AWAY);
	(void)advance(rig.hub, MS);
	expect_eq(timerhub_loop_turn(loop), 2);
	expect_eq(calls, 2);
	expect(find(rig.hub, own_tid(), loop, &running));
	expect_eq(running.where, TIMERHUB_AWAY);
	expect_eq(running.since_ns, 51 * MS);
	expect_eq(timerhub_loop_slow(loop, slow, 4), 2);
	expect_eq(slow[0].longest_ns, 30 * MS);
	expect(slow[1].fn == (timerhub_any_fn *)expect_loop_named);
	expect_eq(slow[1].longest_ns, 20 * MS);
	expect_eq(slow[1].last_ns, 51 * MS);
	expect_eq(timerhub_slow(rig.hub, slow, 4), 1); /* the hub's callback alone */
	expect(slow[0].fn == (timerhub_any_fn *)expect_loops_queue_named);
	expect_eq(timerhub_loop_stats(loop, &stats), 0);
	expect_eq(stats.slow_callbacks, 2);
	expect_eq(stats.slow_sum_ns, 50 * MS);
	timerhub_loop_close(loop);
	expect_eq(timerhub_each_running(rig.hub, on_running, &all), 0);
	expect_eq(all.all, 0);
	rig_close(&rig);
}

static void close_all(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	struct timerhub *hub = timerhub_queue_hub(timerhub_loop_queue(loop));

	(void)timeout;
	timerhub_loop_close(loop);
	timerhub_close(hub);
}

TEST(a_callback_may_close_an_observable_loop_and_its_hub, 20)
{
	struct rig rig = rig_observable(TIMERHUB_MANUAL);
	struct timerhub_loop *loop = open_loop(rig.hub, 1);
	struct timerhub_timeout timeout = { 0 };

	expect_eq(timerhub_timeout_add(loop, &timeout, close_all), 0);
	expect_eq(timerhub_timeout_set(loop, &timeout, MS), 0);
	(void)advance(rig.hub, MS);
	expect_eq(timerhub_loop_turn(loop), 1);
}

static void *open_and_close_loops(void *arg)
{
	struct rig *rig = arg;

	for (unsigned i = scaled(200); i > 0; i--) {
		struct timerhub_loop *loop = open_loop(rig->hub, 0);

		expect_eq(timerhub_loop_turn(loop), 0);
		timerhub_loop_close(loop);
	}
	atomic_store(&ticking_ends, true);
	return NULL;
}

TEST(loops_may_be_closed_while_they_are_listed, 60)
{
	struct rig rig = rig_observable(0);
	struct search search = { .tid = -1 };
	pthread_t thread;

	thread_start(&thread, open_and_close_loops, &rig);
	while (!atomic_load(&ticking_ends))
		expect_eq(timerhub_each_running(rig.hub, on_running, &search), 0);
	thread_join(thread);
	rig_close(&rig);
}

/* ---- slow callbacks ---- */

static void take_time(const struct timerhub_event *event)
{
	struct timerhub *hub = timerhub_queue_hub(event->queue);

	(void)advance(hub, timerhub_now(hub) + event->data);
}

static void take_time_too(const struct timerhub_event *event)
{
	take_time(event);
}

/* Dispatches in one call a callback of each duration. */
static void call_for(struct rig *rig, const uint64_t *durations_ns, int count, timerhub_fn *fn)
{
	for (int i = 0; i < count; i++)
		(void)arm(rig->queue,
		          SPEC(.expires_ns = (uint64_t)i + 1, .data = durations_ns[i], .fn = fn));
	(void)advance(rig->hub, timerhub_now(rig->hub) + (uint64_t)count);
	expect_eq(timerhub_dispatch(rig->queue, 100), count);
}

TEST(slow_callbacks_are_told_with_their_durations, 20)
{
	static const uint64_t durations_ns[] = { SLOW_DEFAULT, SLOW_DEFAULT - 1, 25 * MS };
	static const uint64_t longest_ns[] = { 30 * MS };
	struct rig rig = rig_observable(TIMERHUB_MANUAL);
	struct timerhub_slow_callback slow[3];
	struct timerhub_stats stats;

	expect_eq(timerhub_slow(rig.hub, slow, 3), 0);
	call_for(&rig, durations_ns, 3, take_time);
	call_for(&rig, longest_ns, 1, take_time_too);
	expect_eq(timerhub_slow(rig.hub, slow, 3), 2);
	expect(slow[0].fn == (timerhub_any_fn *)take_time_too);
	expect(slow[1].fn == (timerhub_any_fn *)take_time);
	expect_eq(slow[1].count, 2);
	expect_eq(slow[1].sum_ns, SLOW_DEFAULT + 25 * MS);
	expect_eq(slow[1].longest_ns, 25 * MS);
	expect_eq(slow[1].last_ns, 3 + 2 * SLOW_DEFAULT - 1 + 25 * MS);
	expect_eq(timerhub_slow(rig.hub, slow, 1), 1);
	stats = stats_of(rig.hub);
	expect_eq(stats.slow_callbacks, 3);
	expect_eq(stats.slow_sum_ns, SLOW_DEFAULT + 55 * MS);
	rig_close(&rig);
}

/* In the last case, the config's size ends before slow_ns, so the library ignores that value. */
TEST_LOOP(slow_ns_decides_what_is_slow, 20, 5)
{
	static const struct {
		uint64_t slow_ns;
		unsigned count;
	} cases[] = { { 0, 1 }, { 5 * MS, 2 }, { 1, 3 }, { UINT64_MAX, 0 }, { UINT64_MAX, 1 } };
	static const uint64_t durations_ns[] = { MS, 6 * MS, 11 * MS };
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_OBSERVABLE | TIMERHUB_MANUAL,
		                          .timers_max = 8,
		                          .slow_ns = cases[_i].slow_ns };
	struct timerhub_loop_config loop_config = { .size = sizeof(loop_config) };
	struct timerhub_loop *loop;
	struct rig rig;

	if (_i == 4) {
		config.size = offsetof(struct timerhub_config, slow_ns);
		loop_config.size = offsetof(struct timerhub_loop_config, slow_ns);
	}
	expect_eq(timerhub_open(&rig.hub, &config), 0);
	rig.queue = queue_open(rig.hub);
	call_for(&rig, durations_ns, 3, take_time);
	expect_eq(stats_of(rig.hub).slow_callbacks, cases[_i].count);
	expect_eq(timerhub_loop_open(&loop, rig.hub, &loop_config), 0);
	timerhub_loop_close(loop);
	rig_close(&rig);
}

/* ---- what waits ---- */

TEST(what_waits_is_told_since_it_was_put_or_last_taken, 20)
{
	struct rig rig = rig_observable(TIMERHUB_MANUAL);
	struct timerhub_stats stats;

	for (unsigned i = 1; i <= 3; i++)
		(void)arm_at(rig.queue, i * MS, i);
	for (unsigned i = 1; i <= 3; i++)
		(void)advance(rig.hub, i * MS);
	(void)advance(rig.hub, 10 * MS);
	stats = stats_of(rig.hub);
	expect_eq(stats.waiting, 3);
	expect_eq(stats.untaken_ns, 9 * MS); /* since the first, which made it non-empty */
	expect_eq(take_up_to(rig.queue, 1), 1);
	(void)advance(rig.hub, 12 * MS);
	stats = stats_of(rig.hub);
	expect_eq(stats.waiting, 2);
	expect_eq(stats.untaken_ns, 2 * MS); /* since the drain */
	expect_eq(timerhub_dispatch(rig.queue, 1), 1);
	(void)advance(rig.hub, 15 * MS);
	expect_eq(stats_of(rig.hub).untaken_ns, 3 * MS); /* since the dispatch */
	expect_eq(drain_all(rig.queue), 1);
	stats = stats_of(rig.hub);
	expect_eq(stats.waiting, 0);
	expect_eq(stats.untaken_ns, 0);
	(void)arm_at(rig.queue, 20 * MS, 0);
	(void)advance(rig.hub, 20 * MS);
	(void)advance(rig.hub, 21 * MS);
	expect_eq(stats_of(rig.hub).untaken_ns, MS);
	rig_close(&rig);
}

static void expect_others_wait(const struct timerhub_event *event)
{
	struct timerhub *hub = timerhub_queue_hub(event->queue);

	expect_eq(stats_of(hub).untaken_ns, 0);
	(void)advance(hub, timerhub_now(hub) + MS);
	expect_eq(stats_of(hub).untaken_ns, stats_of(hub).waiting > 0 ? MS : 0);
}

TEST(a_dispatch_takes_with_each_callback, 20)
{
	struct rig rig = rig_observable(TIMERHUB_MANUAL);

	for (unsigned i = 0; i < 3; i++)
		(void)arm(rig.queue, SPEC(.fn = expect_others_wait));
	(void)advance(rig.hub, 1);
	expect_eq(timerhub_dispatch(rig.queue, 100), 3);
	rig_close(&rig);
}

/* ---- who cannot ask ---- */

TEST(a_hub_that_is_not_observable_tells_nothing, 20)
{
	static const uint64_t duration_ns = SEC;
	struct rig rig = rig_manual(8);
	struct timerhub_slow_callback slow;
	struct timerhub_loop *loop;
	struct search search = { .tid = 0 };

	call_for(&rig, &duration_ns, 1, take_time);
	expect_eq(timerhub_each_running(rig.hub, on_running, &search), -EOPNOTSUPP);
	expect_eq(timerhub_slow(rig.hub, &slow, 1), -EOPNOTSUPP);
	expect_eq(timerhub_each_running(NULL, on_running, NULL), -EINVAL);
	expect_eq(timerhub_each_running(rig.hub, NULL, NULL), -EINVAL);
	expect_eq(timerhub_slow(NULL, &slow, 1), -EINVAL);
	expect_eq(timerhub_slow(rig.hub, NULL, 1), -EINVAL);
	expect_eq(stats_of(rig.hub).slow_callbacks, 0);
	expect_eq(timerhub_loop_open(&loop, rig.hub, NULL), 0);
	expect_eq(timerhub_loop_slow(loop, &slow, 1), -EOPNOTSUPP);
	expect_eq(timerhub_loop_slow(NULL, &slow, 1), -EINVAL);
	timerhub_loop_close(loop);
	rig_close(&rig);
}

static void fork_inside(const struct timerhub_event *event)
{
	struct timerhub *hub = timerhub_queue_hub(event->queue);
	struct timerhub_slow_callback slow;
	struct timerhub_running running;
	struct search search = { .tid = 0 };
	pid_t child = fork();

	expect_le(0, child);
	if (child == 0) {
		expect_eq(timerhub_each_running(hub, on_running, &search), -EOWNERDEAD);
		expect_eq(timerhub_slow(hub, &slow, 1), -EOWNERDEAD);
		*(bool *)event->ptr = true;
		return;
	}
	child_ends_well(child);
	expect(find(hub, own_tid(), NULL, &running));
	expect(is_fn(&running, fork_inside));
}

TEST(a_forked_child_changes_nothing_that_the_parent_tells, 20)
{
	struct rig rig = rig_observable(TIMERHUB_MANUAL);
	struct timerhub_running running;
	bool is_child = false;

	(void)arm(rig.queue, SPEC(.fn = fork_inside, .ptr = &is_child));
	(void)advance(rig.hub, 1);
	expect_eq(timerhub_dispatch(rig.queue, 1), 1);
	if (is_child) {
		rig_close(&rig);
		_exit(0);
	}
	expect(find(rig.hub, own_tid(), NULL, &running));
	expect_eq(running.where, TIMERHUB_AWAY);
	rig_close(&rig);
}

static void sleep_long(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)timeout;
	(void)loop;
	sleep_ns(2 * MS);
}

/* It has no hub. */
TEST(a_child_that_adopts_a_loop_has_its_own_slow_callbacks, 20)
{
	struct timerhub_loop *loop = open_loop(NULL, MS);
	struct timerhub_slow_callback slow;
	struct timerhub_timeout timeout = { 0 };
	pid_t child;

	expect_eq(timerhub_timeout_add(loop, &timeout, sleep_long), 0);
	expect_eq(timerhub_timeout_set(loop, &timeout, 0), 0);
	expect_eq(timerhub_loop_settle(loop, NULL), 0);
	child = fork();
	expect_le(0, child);
	if (child == 0) {
		expect_eq(timerhub_loop_slow(loop, &slow, 1), -EOWNERDEAD);
		expect_eq(timerhub_loop_adopt(loop), 0);
		while (timerhub_loop_turn(loop) == 0)
			sleep_ns(MS);
		expect_eq(timerhub_loop_slow(loop, &slow, 1), 1);
		expect(slow.fn == (timerhub_any_fn *)sleep_long);
		expect_le(2 * MS, slow.longest_ns);
		expect_le(slow.last_ns, timerhub_loop_now(loop));
		timerhub_loop_close(loop);
		_exit(0);
	}
	child_ends_well(child);
	expect_eq(timerhub_loop_slow(loop, &slow, 1), 0);
	timerhub_loop_close(loop);
}
