/* SPDX-License-Identifier: MIT */
/* Law 10: a misuse returns an error and writes no output. test_fork.c has calls after a fork. */
#include "rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define UNTOUCHED UINT64_C(0x5ca1ab1e0ddba11)

/* a larger option struct is refused */
#define OPTIONS_MAX_BYTES 4096

static void *const untouched = (void *)&untouched;

static int open_with(struct timerhub_config config)
{
	struct timerhub *hub = untouched;
	int result;

	if (!config.size)
		config.size = sizeof(config);
	result = timerhub_open(&hub, &config);
	expect((result < 0) == (hub == untouched));
	if (result == 0)
		timerhub_close(hub);
	return result;
}

TEST(misuse_of_open, 30)
{
	static const struct {
		struct timerhub_config config;
		int result;
	} cases[] = {
		{ { .flags = TIMERHUB_MANUAL }, 0 },
		{ { .size = 4 }, -EINVAL },
		{ { .flags = TIMERHUB_OBSERVABLE }, 0 },
		{ { .flags = TIMERHUB_MANUAL | TIMERHUB_OBSERVABLE }, 0 },
		{ { .flags = TIMERHUB_HUGE_PAGES }, 0 },
		{ { .flags = 1u << 3 }, -EINVAL },
		{ { .flags = 1u << 31 }, -EINVAL },
		{ { .timers_max = 67108863 }, -EINVAL },
		{ { .timers_max = UINT32_MAX }, -EINVAL },
		{ { .clock = TIMERHUB_CLOCK_BOOTTIME }, 0 },
		{ { .clock = TIMERHUB_CLOCK_REALTIME }, 0 },
		{ { .clock = 3 }, -EINVAL },
		{ { .sleeper = 3 }, -EINVAL },
		{ { .sleeper = UINT32_MAX }, -EINVAL },
		{ { .cpu_plus_one = 100000 }, -EINVAL },
		{ { .cpu_plus_one = UINT32_MAX }, -EINVAL },
		{ { .thread_name = "" }, 0 },
		{ { .thread_name = "longer than fifteen bytes" }, 0 },
	};
	unsigned fds = process_fd_count();
	unsigned threads = process_threads_at_rest();

	for (unsigned i = 0; i < COUNT_OF(cases); i++)
		expect_eq(open_with(cases[i].config), cases[i].result);
	expect_eq(process_fd_count(), fds);
	process_settles_at_threads(threads);
}

/* The board is a file: beyond the limit the open fails, without a signal. */
TEST(misuse_by_observable_beyond_the_file_size_limit, 30)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_MANUAL | TIMERHUB_OBSERVABLE,
		                          .timers_max = 1 };
	struct timerhub *hub = untouched;
	struct rlimit before, small;
	unsigned fds = process_fd_count();
	int result;

	expect_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){ .rlim_cur = 4096, .rlim_max = before.rlim_max };
	expect_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	result = timerhub_open(&hub, &config);
	expect_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	expect_eq(result, -EFBIG);
	expect(hub == untouched);
	expect_eq(process_fd_count(), fds);
}

/* An option struct of a size that this version does not know. options() sets its last byte. */
union options {
	unsigned char bytes[OPTIONS_MAX_BYTES + 8];
	struct timerhub_config config;
	struct timerhub_queue_config queue_config;
	struct timerhub_spec spec;
};

static union options *options(uint32_t size, unsigned char last)
{
	static union options options;

	memset(&options, 0, sizeof(options));
	memcpy(options.bytes, &size, sizeof(size));
	if (size > sizeof(size) && size <= sizeof(options))
		options.bytes[size - 1] = last;
	return &options;
}

static int open_later(const struct rig *rig, uint32_t size, unsigned char last)
{
	union options *with = options(size, last);
	struct timerhub *another = NULL;
	int result;

	(void)rig;
	if (size >= sizeof(with->config))
		with->config.flags = TIMERHUB_MANUAL;
	with->config.timers_max = 8;
	result = timerhub_open(&another, &with->config);
	expect_eq(another != NULL, result == 0);
	timerhub_close(another);
	return result;
}

static int queue_open_later(const struct rig *rig, uint32_t size, unsigned char last)
{
	union options *with = options(size, last);
	struct timerhub_queue *another = NULL;
	int result = timerhub_queue_open(rig->hub, &another, &with->queue_config);

	expect_eq(another != NULL, result == 0);
	timerhub_queue_close(another);
	if (size >= sizeof(with->queue_config)) {
		with->queue_config.flags = 1;
		expect_lt(timerhub_queue_open(rig->hub, &another, &with->queue_config), 0);
	}
	return result;
}

static int arm_later(const struct rig *rig, uint32_t size, unsigned char last)
{
	timerhub_timer timer = UNTOUCHED;
	int result = timerhub_arm(rig->queue, &options(size, last)->spec, &timer);

	expect_eq(timer != UNTOUCHED, result == 0);
	return result;
}

static int arm_many_later(const struct rig *rig, uint32_t size, unsigned char last)
{
	timerhub_timer timer = UNTOUCHED;
	int result = timerhub_arm_many(rig->queue, &options(size, last)->spec, 1, &timer);

	expect_eq(timer != UNTOUCHED, result == 1);
	return result == 1 ? 0 : result;
}

TEST(misuse_of_sizes_of_a_later_version, 30)
{
	static const struct {
		int (*with)(const struct rig *rig, uint32_t size, unsigned char last);
		uint32_t bytes;
	} calls[] = {
		{ open_later, sizeof(struct timerhub_config) },
		{ queue_open_later, sizeof(struct timerhub_queue_config) },
		{ arm_later, sizeof(struct timerhub_spec) },
		{ arm_many_later, sizeof(struct timerhub_spec) },
	};
	struct rig rig = rig_manual(8);

	for (unsigned i = 0; i < COUNT_OF(calls); i++) {
		uint32_t bytes = calls[i].bytes;

		expect_context("call", i, bytes);
		expect_eq(calls[i].with(&rig, bytes, 0), 0);
		expect_eq(calls[i].with(&rig, bytes + 1, 0), 0);
		expect_eq(calls[i].with(&rig, OPTIONS_MAX_BYTES, 0), 0);
		expect_eq(calls[i].with(&rig, 0, 0), -EINVAL);
		expect_eq(calls[i].with(&rig, bytes - 1, 0), -EINVAL);
		expect_eq(calls[i].with(&rig, bytes + 1, 1), -E2BIG);
		expect_eq(calls[i].with(&rig, bytes + 100, 1), -E2BIG);
		expect_eq(calls[i].with(&rig, OPTIONS_MAX_BYTES + 1, 0), -E2BIG);
		expect_eq(calls[i].with(&rig, UINT32_MAX, 0), -E2BIG);
	}
	rig_close(&rig);
}

/* Returns memory of this size that ends where an inaccessible page begins. */
static void *before_an_abyss(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(pages != MAP_FAILED);
	expect_eq(mprotect(pages + page, page, PROT_NONE), 0);
	return pages + page - bytes;
}

/* No byte beyond a struct's size, or beyond the stride in an array. */
TEST(misuse_of_sizes_reads_nothing_beyond, 30)
{
	struct rig rig = rig_manual(4);
	/* AddressSanitizer reports a read beyond the 4 bytes of `small` */
	uint32_t *small = malloc(sizeof(*small));
	struct timerhub_spec *pair = before_an_abyss(2 * sizeof(*pair));
	struct timerhub_spec odd[3] = { SPEC(.expires_ns = 10) };
	timerhub_timer timer = UNTOUCHED;

	expect(small);
	*small = sizeof(*small);
	expect_eq(timerhub_arm(rig.queue, (struct timerhub_spec *)small, &timer), -EINVAL);
	expect_eq(timerhub_arm_many(rig.queue, (struct timerhub_spec *)small, 1, &timer), -EINVAL);
	pair[0] = SPEC(.expires_ns = 10);
	pair[1] = pair[0];
	pair[1].size = 4096;
	expect_eq(timerhub_arm_many(rig.queue, pair, 2, &timer), -EINVAL);
	pair[1].size = 0x7fffffff;
	expect_eq(timerhub_arm(rig.queue, &pair[1], &timer), -E2BIG);
	/* the first spec's size is the stride, which must leave the second one aligned */
	odd[0].size++;
	memcpy((unsigned char *)odd + odd[0].size, &odd[0], sizeof(odd[0]));
	expect_eq(timerhub_arm_many(rig.queue, odd, 2, &timer), -EINVAL);
	expect(timer == UNTOUCHED);
	free(small);
	rig_close(&rig);
}

TEST(misuse_by_null_is_told_by_every_call, 30)
{
	struct rig rig = rig_manual(8);
	struct timerhub_spec spec = SPEC(.expires_ns = 0);
	struct timerhub_queue *queue = untouched;
	struct timerhub_event event;
	struct timerhub_stats stats;
	timerhub_timer timer = UNTOUCHED;
	uint64_t ns = UNTOUCHED;

	expect_eq(timerhub_open(NULL, NULL), -EINVAL);
	expect_eq(timerhub_queue_open(NULL, &queue, NULL), -EINVAL);
	expect_eq(timerhub_queue_open(rig.hub, NULL, NULL), -EINVAL);
	expect_eq(timerhub_queue_fd(NULL), -EINVAL);
	expect_eq(timerhub_arm(NULL, &spec, &timer), -EINVAL);
	expect_eq(timerhub_arm(rig.queue, NULL, &timer), -EINVAL);
	expect_eq(timerhub_after(NULL, 0, 0, &timer), -EINVAL);
	expect_eq(timerhub_call(NULL, 0, no_callback, NULL, &timer), -EINVAL);
	expect_eq(timerhub_call(rig.queue, 0, NULL, NULL, &timer), -EINVAL);
	expect_eq(timerhub_arm_many(NULL, &spec, 1, &timer), -EINVAL);
	expect_eq(timerhub_arm_many(rig.queue, NULL, 1, &timer), -EINVAL);
	expect_eq(timerhub_arm_many(rig.queue, NULL, 0, &timer), 0);
	expect_eq(timerhub_rearm(NULL, 1, 0, 0), -EINVAL);
	expect_eq(timerhub_rearm_many(NULL, &timer, 1, 0, 0), -EINVAL);
	expect_eq(timerhub_rearm_many(rig.hub, NULL, 1, 0, 0), -EINVAL);
	expect_eq(timerhub_rearm_many(rig.hub, NULL, 0, 0, 0), 0);
	expect_eq(timerhub_rearm_many(rig.hub, &timer, UINT32_MAX, 0, 0), -EINVAL);
	expect_eq(timerhub_cancel(NULL, 1), -EINVAL);
	expect_eq(timerhub_cancel_sync(NULL, 1), -EINVAL);
	expect_eq(timerhub_cancel_many(NULL, &timer, 1), -EINVAL);
	expect_eq(timerhub_cancel_many(rig.hub, NULL, 1), -EINVAL);
	expect_eq(timerhub_cancel_many(rig.hub, NULL, 0), 0);
	expect_eq(timerhub_cancel_many(rig.hub, &timer, UINT32_MAX), -EINVAL);
	expect_eq(timerhub_remaining(NULL, 1, &ns), -EINVAL);
	expect_eq(timerhub_remaining(rig.hub, 1, NULL), -EINVAL);
	expect_eq(timerhub_each(NULL, no_timer, NULL), -EINVAL);
	expect_eq(timerhub_each(rig.hub, NULL, NULL), -EINVAL);
	expect_eq(timerhub_owner_tid(NULL), -EINVAL);
	/* no owner thread */
	expect_eq(timerhub_owner_tid(rig.hub), -EINVAL);
	expect(!timerhub_queue_hub(NULL));
	expect(timerhub_queue_hub(rig.queue) == rig.hub);
	expect_eq(timerhub_drain(NULL, &event, 1), -EINVAL);
	expect_eq(timerhub_drain(rig.queue, NULL, 1), -EINVAL);
	expect_eq(timerhub_drain(rig.queue, NULL, 0), 0);
	expect_eq(timerhub_drain(rig.queue, &event, UINT32_MAX), -EINVAL);
	expect_eq(timerhub_wait(NULL, &event, 1, 0), -EINVAL);
	expect_eq(timerhub_wait(rig.queue, &event, 0, 0), -EINVAL);
	expect_eq(timerhub_wait(rig.queue, NULL, 1, 0), -EINVAL);
	expect_eq(timerhub_dispatch(NULL, 1), -EINVAL);
	expect_eq(timerhub_advance(NULL, 1, &ns), -EINVAL);
	expect_eq(timerhub_wake_fd(NULL), -EINVAL);
	expect_eq(timerhub_stats(NULL, &stats), -EINVAL);
	expect_eq(timerhub_stats(rig.hub, NULL), -EINVAL);
	expect_eq(timerhub_now(NULL), 0);
	timerhub_queue_stop(NULL);
	timerhub_queue_close(NULL);
	timerhub_close(NULL);
	expect(queue == untouched);
	expect(timer == UNTOUCHED && ns == UNTOUCHED);
	rig_close(&rig);
}

TEST(misuse_of_arm, 30)
{
	const uint64_t last_ns = (UINT64_C(1) << 63) - 128;
	const struct {
		struct timerhub_spec spec;
		int result;
	} cases[] = {
		{ { .size = 8 }, -EINVAL },
		{ SPEC(.flags = 4), -EINVAL },
		{ SPEC(.flags = TIMERHUB_KEEP, .interval_ns = 1), -EINVAL },
		{ SPEC(.flags = 1u << 31), -EINVAL },
		{ SPEC(.expires_ns = UINT64_MAX - 1), -ERANGE },
		{ SPEC(.expires_ns = last_ns + 1), -ERANGE },
		/* clock (1000 ns) plus delay: 1 ns too late */
		{ SPEC(.expires_ns = last_ns - 999), -ERANGE },
		{ SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = last_ns + 1), -ERANGE },
		{ SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = UINT64_MAX - 1), -ERANGE },
		{ SPEC(.interval_ns = last_ns + 1), -ERANGE },
	};
	struct rig rig = rig_manual(4);
	timerhub_timer timer = UNTOUCHED;

	advance(rig.hub, 1000);
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		expect_eq(timerhub_arm(rig.queue, &cases[i].spec, &timer), cases[i].result);
		expect_eq(timerhub_arm_many(rig.queue, &cases[i].spec, 1, &timer), cases[i].result);
		expect(timer == UNTOUCHED);
	}
	expect_eq(timerhub_call(rig.queue, UINT64_MAX - 1, no_callback, NULL, &timer), -ERANGE);
	expect_eq(timerhub_after(rig.queue, UINT64_MAX - 1, 0, &timer), -ERANGE);
	expect_eq(timerhub_after(rig.queue, last_ns - 999, 0, &timer), -ERANGE);
	expect(timer == UNTOUCHED);
	expect_eq(stats_of(rig.hub).armed, 0);
	rig_close(&rig);
}

TEST(misuse_begins_only_beyond_the_last_deadline, 30)
{
	struct rig rig = rig_manual(4);
	uint64_t last_ns = (UINT64_C(1) << 63) - 128;
	timerhub_timer timer, periodic;
	uint64_t left_ns;

	advance(rig.hub, 1000);
	timer = arm_at(rig.queue, last_ns, 1);
	arm_after(rig.queue, last_ns - 1000, 2);
	expect_eq(timerhub_arm(rig.queue, &SPEC(.interval_ns = last_ns), &periodic), 0);
	expect_eq(timerhub_cancel(rig.hub, periodic), 0);
	expect_eq(timerhub_rearm(rig.hub, timer, last_ns, TIMERHUB_ABSOLUTE), 0);
	expect_eq(timerhub_rearm(rig.hub, timer, last_ns + 1, TIMERHUB_ABSOLUTE), -ERANGE);
	expect_eq(timerhub_rearm(rig.hub, timer, last_ns - 1000, 0), 0);
	expect_eq(timerhub_rearm(rig.hub, timer, last_ns - 999, 0), -ERANGE);
	expect_eq(timerhub_remaining(rig.hub, timer, &left_ns), 0);
	expect_eq(left_ns, last_ns - 1000);
	expect_eq(advance(rig.hub, 2000), last_ns);
	advance(rig.hub, last_ns - 1);
	expect_empty(rig.queue);
	advance(rig.hub, last_ns);
	expect_eq(drain_all(rig.queue), 2);
	rig_close(&rig);
}

/* A hub may be advanced to UINT64_MAX: an advance announces that time if no timer is armed. */
TEST(misuse_is_not_to_reach_the_end_of_time, 20)
{
	struct rig rig = rig_manual(4);
	struct timerhub_event event;

	arm(rig.queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .interval_ns = 1));
	for (unsigned i = 0; i < 2; i++)
		expect(advance(rig.hub, UINT64_MAX) == UINT64_MAX);
	expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
	expect_eq(event.expires_ns, 0);
	/* from time 0 to the largest deadline */
	expect_eq(event.count, (UINT64_C(1) << 63) - 127);
	expect_empty(rig.queue);
	arm(rig.queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = 7, .data = 7));
	arm(rig.queue, SPEC(.expires_ns = UINT64_MAX));
	expect_eq(timerhub_after(rig.queue, 0, 0, NULL), -ERANGE);
	expect(advance(rig.hub, UINT64_MAX) == UINT64_MAX);
	expect_eq(take_one(rig.queue).data, 7);
	rig_close(&rig);
}

TEST(misuse_of_rearm, 30)
{
	struct rig rig = rig_manual(4);
	timerhub_timer timer = arm_after(rig.queue, 640, 0);
	uint64_t left_ns = UNTOUCHED;

	expect_eq(timerhub_rearm(rig.hub, timer, 1, 2), -EINVAL);
	expect_eq(timerhub_rearm(rig.hub, timer, 1, 1u << 31), -EINVAL);
	expect_eq(timerhub_rearm(rig.hub, timer, UINT64_MAX - 1, 0), -ERANGE);
	expect_eq(timerhub_rearm(rig.hub, timer, UINT64_MAX - 1, TIMERHUB_ABSOLUTE), -ERANGE);
	expect_eq(timerhub_rearm_many(rig.hub, &timer, 1, 1, 2), -EINVAL);
	expect_eq(timerhub_rearm_many(rig.hub, &timer, 1, UINT64_MAX - 1, 0), -ERANGE);
	expect_eq(timerhub_remaining(rig.hub, timer, &left_ns), 0);
	expect_eq(left_ns, 640); /* none of the failed calls has moved the timer */
	rig_close(&rig);
}

TEST(misuse_of_manual_calls, 30)
{
	struct rig real = rig_open(4);
	struct rig manual = rig_manual(4);
	uint64_t next_ns = UNTOUCHED;

	expect_eq(timerhub_advance(real.hub, UINT64_C(1) << 62, &next_ns), -EINVAL);
	expect_eq(timerhub_wake_fd(real.hub), -EINVAL);
	expect_eq(timerhub_now(manual.hub), 0);
	expect_eq(timerhub_advance(manual.hub, 1000, NULL), 0);
	expect_eq(timerhub_advance(manual.hub, 999, &next_ns), -EINVAL);
	expect(next_ns == UNTOUCHED);
	expect_eq(timerhub_now(manual.hub), 1000);
	expect_eq(timerhub_advance(manual.hub, 1000, &next_ns), 0);
	expect(next_ns == UINT64_MAX);
	rig_close(&real);
	rig_close(&manual);
}

static void expect_stale(struct timerhub *hub, timerhub_timer timer)
{
	uint64_t left_ns = UNTOUCHED;

	expect_eq(timerhub_cancel(hub, timer), -ENOENT);
	expect_eq(timerhub_cancel_sync(hub, timer), -ENOENT);
	expect_eq(timerhub_rearm(hub, timer, 1, 0), -ENOENT);
	expect_eq(timerhub_rearm(hub, timer, 2 * SEC, TIMERHUB_ABSOLUTE), -ENOENT);
	expect_eq(timerhub_rearm(hub, timer, UINT64_MAX, 0), -ENOENT);
	expect_eq(timerhub_remaining(hub, timer, &left_ns), -ENOENT);
	expect(left_ns == UNTOUCHED);
}

/*
 * A handle that names a slot after the last one is rejected, although the memory there, which has
 * the data of other timers, looks like an armed timer.
 */
TEST(stale_handles_beyond_the_last_timer_are_told, 30)
{
	enum { TIMERS = 256 };
	timerhub_timer beyond = UINT64_C(2) << 26 | TIMERS;
	struct timerhub_spec spec = {
		.size = sizeof(spec),
		.expires_ns = HOUR,
		.data = HOUR,
		.fn = (timerhub_fn *)(uintptr_t)((beyond - TIMERS) | 1),
	};
	struct rig rig = rig_manual(TIMERS);

	for (unsigned i = 0; i < TIMERS; i++)
		expect_eq(timerhub_arm(rig.queue, &spec, NULL), 0);
	expect_stale(rig.hub, beyond);
	expect_eq(timerhub_cancel_many(rig.hub, &beyond, 1), 0);
	expect_eq(timerhub_rearm_many(rig.hub, &beyond, 1, 2 * HOUR, 0), 0);
	advance(rig.hub, HOUR);
	for (unsigned i = 0; i < TIMERS; i++)
		expect_eq(take_one(rig.queue).data, HOUR);
	rig_close(&rig);
}

/* A hub rejects the handles of another hub, although it has live timers in the same slots. */
TEST(stale_handles_of_another_hub_are_told, 30)
{
	struct rig home = rig_manual(1000);
	struct rig abroad = rig_manual(1000);
	timerhub_timer timers[1000];

	for (unsigned i = 0; i < COUNT_OF(timers); i++) {
		timers[i] = arm_after(home.queue, 640, i);
		arm_after(abroad.queue, 640, i);
	}
	for (unsigned i = 0; i < COUNT_OF(timers); i++)
		expect_stale(abroad.hub, timers[i]);
	expect_eq(timerhub_cancel_many(abroad.hub, timers, COUNT_OF(timers)), 0);
	expect_eq(timerhub_rearm_many(abroad.hub, timers, COUNT_OF(timers), SEC, 0), 0);
	advance(home.hub, 640);
	advance(abroad.hub, 640);
	expect_eq(drain_all(home.queue), COUNT_OF(timers));
	expect_eq(drain_all(abroad.queue), COUNT_OF(timers));
	rig_close(&home);
	rig_close(&abroad);
}
