/* SPDX-License-Identifier: MIT */
/*
 * The public calls on a hub moved by hand: what each refuses, with which errno, and that it writes
 * nothing then (law 10). Every refusal once; the suite service has them on living hubs, and more.
 */
#include "harness.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <timerhub.h>
#include <unistd.h>

#include "hub.h"
#include "options.h"

#define NOTHING UINT64_C(0x5555555555555555)

static struct timerhub *hub;
static struct timerhub_queue *queue;

static void setup(void)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_MANUAL,
		                          .timers_max = 8 };

	expect_eq(timerhub_open(&hub, &config), 0);
	expect_eq(timerhub_queue_open(hub, &queue, NULL), 0);
}

/* An option struct of a later version: as large as it says, with `last` in its last byte. */
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

static int open_with(uint32_t size, unsigned char last)
{
	union options *with = options(size, last);
	struct timerhub *another = NULL;
	int result;

	if (size >= sizeof(with->config))
		with->config.flags = TIMERHUB_MANUAL;
	with->config.timers_max = 8;
	result = timerhub_open(&another, &with->config);
	expect_eq(another != NULL, result == 0);
	timerhub_close(another);
	return result;
}

static int queue_open_with(uint32_t size, unsigned char last)
{
	struct timerhub_queue *another = NULL;
	int result = timerhub_queue_open(hub, &another, &options(size, last)->queue_config);

	expect_eq(another != NULL, result == 0);
	timerhub_queue_close(another);
	return result;
}

static int arm_with(uint32_t size, unsigned char last)
{
	timerhub_timer timer = NOTHING;
	int result = timerhub_arm(queue, &options(size, last)->spec, &timer);

	expect_eq(timer != NOTHING, result == 0);
	return result;
}

START_TEST(options_of_a_later_version_are_known_by_their_zeroes)
{
	static const struct {
		int (*with)(uint32_t size, unsigned char last);
		uint32_t bytes;
	} calls[] = {
		{ open_with, sizeof(struct timerhub_config) },
		{ queue_open_with, sizeof(struct timerhub_queue_config) },
		{ arm_with, sizeof(struct timerhub_spec) },
	};

	setup();
	for (unsigned i = 0; i < COUNT_OF(calls); i++) {
		uint32_t bytes = calls[i].bytes;

		expect_context("call", i, bytes);
		expect_eq(calls[i].with(bytes, 0), 0);
		expect_eq(calls[i].with(bytes + 1, 0), 0);
		expect_eq(calls[i].with(OPTIONS_MAX_BYTES, 0), 0);
		expect_eq(calls[i].with(0, 0), -EINVAL);
		expect_eq(calls[i].with(bytes - 1, 0), -EINVAL);
		expect_eq(calls[i].with(bytes + 1, 1), -E2BIG);
		expect_eq(calls[i].with(bytes + 100, 1), -E2BIG);
		expect_eq(calls[i].with(OPTIONS_MAX_BYTES + 1, 0), -E2BIG);
		expect_eq(calls[i].with(UINT32_MAX, 0), -E2BIG);
	}
	timerhub_close(hub);
}
END_TEST

static void no_callback(const struct timerhub_event *event)
{
	(void)event;
	expect(false);
}

static int no_timer(const struct timerhub_event *timer, uint64_t interval_ns, void *context)
{
	(void)timer;
	(void)interval_ns;
	(void)context;
	expect(false);
	return 0;
}

START_TEST(null_is_refused_by_every_call)
{
	struct timerhub_spec spec = { .size = sizeof(spec) };
	struct timerhub_event event;
	struct timerhub_stats stats;
	timerhub_timer timer = NOTHING;
	uint64_t ns = NOTHING;

	setup();
	expect_eq(timerhub_open(NULL, NULL), -EINVAL);
	expect_eq(timerhub_queue_open(NULL, &queue, NULL), -EINVAL);
	expect_eq(timerhub_queue_open(hub, NULL, NULL), -EINVAL);
	expect_eq(timerhub_queue_fd(NULL), -EINVAL);
	expect_eq(timerhub_queue_attach_uring(NULL, 0, 0), -EINVAL);
	expect_eq(timerhub_queue_detach_uring(NULL), -EINVAL);
	expect_eq(timerhub_arm(NULL, &spec, &timer), -EINVAL);
	expect_eq(timerhub_arm(queue, NULL, &timer), -EINVAL);
	expect_eq(timerhub_after(NULL, 0, 0, &timer), -EINVAL);
	expect_eq(timerhub_call(NULL, 0, no_callback, NULL, &timer), -EINVAL);
	expect_eq(timerhub_call(queue, 0, NULL, NULL, &timer), -EINVAL);
	expect_eq(timerhub_arm_many(NULL, &spec, 1, &timer), -EINVAL);
	expect_eq(timerhub_arm_many(queue, NULL, 1, &timer), -EINVAL);
	expect_eq(timerhub_arm_many(queue, NULL, 0, &timer), 0);
	expect_eq(timerhub_rearm(NULL, 1, 0, 0), -EINVAL);
	expect_eq(timerhub_rearm_many(NULL, &timer, 1, 0, 0), -EINVAL);
	expect_eq(timerhub_rearm_many(hub, NULL, 1, 0, 0), -EINVAL);
	expect_eq(timerhub_rearm_many(hub, NULL, 0, 0, 0), 0);
	expect_eq(timerhub_rearm_many(hub, &timer, UINT32_MAX, 0, 0), -EINVAL);
	expect_eq(timerhub_cancel(NULL, 1), -EINVAL);
	expect_eq(timerhub_cancel_sync(NULL, 1), -EINVAL);
	expect_eq(timerhub_cancel_many(NULL, &timer, 1), -EINVAL);
	expect_eq(timerhub_cancel_many(hub, NULL, 1), -EINVAL);
	expect_eq(timerhub_cancel_many(hub, NULL, 0), 0);
	expect_eq(timerhub_cancel_many(hub, &timer, UINT32_MAX), -EINVAL);
	expect_eq(timerhub_remaining(NULL, 1, &ns), -EINVAL);
	expect_eq(timerhub_remaining(hub, 1, NULL), -EINVAL);
	expect_eq(timerhub_each(NULL, no_timer, NULL), -EINVAL);
	expect_eq(timerhub_each(hub, NULL, NULL), -EINVAL);
	expect_eq(timerhub_owner_tid(NULL), -EINVAL);
	expect_eq(timerhub_owner_tid(hub), -EINVAL); /* it has none */
	expect(!timerhub_queue_hub(NULL));
	expect(timerhub_queue_hub(queue) == hub);
	expect_eq(timerhub_drain(NULL, &event, 1), -EINVAL);
	expect_eq(timerhub_drain(queue, NULL, 1), -EINVAL);
	expect_eq(timerhub_drain(queue, NULL, 0), 0);
	expect_eq(timerhub_drain(queue, &event, UINT32_MAX), -EINVAL);
	expect_eq(timerhub_wait(NULL, &event, 1, 0), -EINVAL);
	expect_eq(timerhub_wait(queue, &event, 0, 0), -EINVAL);
	expect_eq(timerhub_wait(queue, NULL, 1, 0), -EINVAL);
	expect_eq(timerhub_dispatch(NULL, 1), -EINVAL);
	expect_eq(timerhub_advance(NULL, 1, &ns), -EINVAL);
	expect_eq(timerhub_wake_fd(NULL), -EINVAL);
	expect_eq(timerhub_stats(NULL, &stats), -EINVAL);
	expect_eq(timerhub_stats(hub, NULL), -EINVAL);
	expect_eq(timerhub_now(NULL), 0);
	timerhub_interrupt(NULL);
	timerhub_queue_stop(NULL);
	timerhub_queue_close(NULL);
	timerhub_close(NULL);
	expect_eq(timer, NOTHING);
	expect_eq(ns, NOTHING);
	timerhub_close(hub);
}
END_TEST

START_TEST(bad_values_are_refused)
{
	struct timerhub_config config = { .size = sizeof(config), .flags = 1u << 31 };
	struct timerhub_spec specs[2] = { { .size = sizeof(specs[0]) },
		                          { .size = sizeof(specs[0]) } };
	struct timerhub *another = NULL;
	timerhub_timer timers[2] = { NOTHING, NOTHING };
	timerhub_timer timer;
	uint64_t ns = NOTHING;

	setup();
	expect_eq(timerhub_open(&another, &config), -EINVAL);
	config = (struct timerhub_config){ .size = sizeof(config), .timers_max = 1u << 26 };
	expect_eq(timerhub_open(&another, &config), -EINVAL);
	config = (struct timerhub_config){ .size = sizeof(config), .clock = 3 };
	expect_eq(timerhub_open(&another, &config), -EINVAL);
	config = (struct timerhub_config){ .size = sizeof(config), .sleeper = 3 };
	expect_eq(timerhub_open(&another, &config), -EINVAL);
	expect(!another);

	specs[1].flags = 4;
	expect_eq(timerhub_arm_many(queue, specs, 2, timers), -EINVAL);
	specs[1].flags = TIMERHUB_KEEP;
	specs[1].interval_ns = 1;
	expect_eq(timerhub_arm_many(queue, specs, 2, timers), -EINVAL);
	specs[1].flags = 0;
	specs[1].interval_ns = 0;
	specs[1].expires_ns = UINT64_MAX - 1;
	expect_eq(timerhub_arm_many(queue, specs, 2, timers), -ERANGE);
	expect_eq(timerhub_arm(queue, &specs[1], timers), -ERANGE);
	specs[1].expires_ns = 0;
	specs[1].interval_ns = UINT64_MAX;
	expect_eq(timerhub_arm_many(queue, specs, 2, timers), -ERANGE);
	specs[1].interval_ns = 0;
	specs[1].size++;
	expect_eq(timerhub_arm_many(queue, specs, 2, timers), -EINVAL);
	expect_eq(timers[0], NOTHING);
	expect_eq(timers[1], NOTHING);

	expect_eq(timerhub_after(queue, UINT64_MAX - 1, 0, timers), -ERANGE);
	expect_eq(timerhub_after(queue, SEC, 0, &timer), 0);
	expect_eq(timerhub_call(queue, UINT64_MAX - 1, no_callback, NULL, timers), -ERANGE);
	expect_eq(timers[0], NOTHING);
	expect_eq(timerhub_rearm(hub, timer, 0, 2), -EINVAL);
	expect_eq(timerhub_rearm_many(hub, &timer, 1, 0, 2), -EINVAL);
	expect_eq(timerhub_rearm_many(hub, &timer, 1, UINT64_MAX - 1, 0), -ERANGE);
	expect_eq(timerhub_rearm(hub, timer, UINT64_MAX - 1, 0), -ERANGE);
	expect_eq(timerhub_remaining(hub, timer, &ns), 0);
	expect_eq(ns, SEC); /* as it was */
	expect_eq(timerhub_advance(hub, 5, NULL), 0);
	expect_eq(timerhub_advance(hub, 4, NULL), -EINVAL);
	expect_eq(timerhub_now(hub), 5);
#ifdef TIMERHUB_WITHOUT_IO_URING
	expect_eq(timerhub_queue_attach_uring(queue, -1, 0), -EOPNOTSUPP);
#else
	expect_eq(timerhub_queue_attach_uring(queue, -1, 0), -EBADF);
#endif
	expect_eq(timerhub_queue_detach_uring(queue), -ENOENT);
	timerhub_close(hub);
}
END_TEST

/* Of no timer, of another hub's, of one that is no more. The first handles of two hubs differ. */
START_TEST(handles_that_name_nothing_are_not_found)
{
	struct timerhub *first;
	timerhub_timer handles[4] = { 0, UINT64_MAX, 0, 0 };
	struct timerhub_event event;
	uint64_t ns = NOTHING;

	setup();
	first = hub;
	expect_eq(timerhub_after(queue, SEC, 0, &handles[2]), 0);
	setup();
	expect_eq(timerhub_after(queue, SEC, 0, &handles[3]), 0);
	expect(handles[2] != handles[3]);
	expect_eq(timerhub_advance(hub, SEC, NULL), 0);
	expect_eq(timerhub_drain(queue, &event, 1), 1);
	expect_eq(event.timer, handles[3]);
	for (unsigned i = 0; i < COUNT_OF(handles); i++) {
		expect_eq(timerhub_rearm(hub, handles[i], 2 * SEC, 0), -ENOENT);
		expect_eq(timerhub_rearm(hub, handles[i], 2 * SEC, TIMERHUB_ABSOLUTE), -ENOENT);
		expect_eq(timerhub_cancel(hub, handles[i]), -ENOENT);
		expect_eq(timerhub_cancel_sync(hub, handles[i]), -ENOENT);
		expect_eq(timerhub_remaining(hub, handles[i], &ns), -ENOENT);
	}
	expect_eq(timerhub_cancel_many(hub, handles, 4), 0);
	expect_eq(timerhub_rearm_many(hub, handles, 4, 2 * SEC, 0), 0);
	expect_eq(timerhub_each(hub, no_timer, NULL), 0);
	expect_eq(ns, NOTHING);
	timerhub_close(hub);
	timerhub_close(first);
}
END_TEST

/* In a forked child nobody keeps the timers. */
static void call_all_in_the_child(timerhub_timer timer)
{
	struct timerhub_spec spec = { .size = sizeof(spec) };
	struct timerhub_queue *another = NULL;
	struct timerhub_stats stats;
	struct timerhub_event event;
	timerhub_timer armed = NOTHING;
	uint64_t ns = NOTHING;

	expect_eq(timerhub_queue_open(hub, &another, NULL), -EOWNERDEAD);
	expect_eq(timerhub_arm(queue, &spec, &armed), -EOWNERDEAD);
	expect_eq(timerhub_after(queue, 0, 0, &armed), -EOWNERDEAD);
	expect_eq(timerhub_call(queue, 0, no_callback, NULL, &armed), -EOWNERDEAD);
	expect_eq(timerhub_arm_many(queue, &spec, 1, &armed), -EOWNERDEAD);
	expect_eq(timerhub_rearm(hub, timer, 0, 0), -EOWNERDEAD);
	expect_eq(timerhub_rearm(hub, timer, SEC, TIMERHUB_ABSOLUTE), -EOWNERDEAD);
	expect_eq(timerhub_rearm_many(hub, &timer, 1, SEC, 0), -EOWNERDEAD);
	expect_eq(timerhub_each(hub, no_timer, NULL), -EOWNERDEAD);
	expect_eq(timerhub_cancel(hub, timer), -EOWNERDEAD);
	expect_eq(timerhub_cancel_sync(hub, timer), -EOWNERDEAD);
	expect_eq(timerhub_cancel_many(hub, &timer, 1), -EOWNERDEAD);
	expect_eq(timerhub_remaining(hub, timer, &ns), -EOWNERDEAD);
	expect_eq(timerhub_drain(queue, &event, 1), -EOWNERDEAD);
	expect_eq(timerhub_wait(queue, &event, 1, UINT64_MAX), -EOWNERDEAD);
	expect_eq(timerhub_dispatch(queue, 1), -EOWNERDEAD);
	expect_eq(timerhub_queue_attach_uring(queue, 0, 0), -EOWNERDEAD);
	expect_eq(timerhub_queue_detach_uring(queue), -EOWNERDEAD);
	expect_eq(timerhub_advance(hub, 1, &ns), -EOWNERDEAD);
	expect_eq(timerhub_stats(hub, &stats), -EOWNERDEAD);
	timerhub_interrupt(queue);
	timerhub_queue_stop(queue);
	expect(!another);
	expect_eq(armed, NOTHING);
	expect_eq(ns, NOTHING);
	timerhub_queue_close(queue);
	timerhub_close(hub);
}

START_TEST(child_is_told_that_there_is_no_owner)
{
	timerhub_timer timer;
	int status;
	pid_t pid;

	setup();
	expect_eq(timerhub_after(queue, SEC, 0, &timer), 0);
	pid = fork();
	if (pid == 0) {
		call_all_in_the_child(timer);
		_exit(0);
	}
	expect_eq(waitpid(pid, &status, 0), pid);
	expect_eq(status, 0);
	expect_eq(timerhub_cancel(hub, timer), 0);
	timerhub_close(hub);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("calls", argc, argv);
	tests_add(options_of_a_later_version_are_known_by_their_zeroes, 20);
	tests_add(null_is_refused_by_every_call, 20);
	tests_add(bad_values_are_refused, 20);
	tests_add(handles_that_name_nothing_are_not_found, 20);
	tests_add(child_is_told_that_there_is_no_owner, 20);
	return tests_run();
}
