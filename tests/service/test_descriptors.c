/* SPDX-License-Identifier: MIT */
/*
 * No descriptor of the library is 0, 1 or 2, whichever of these the process has closed, and before
 * which open: the program writes to 1 and 2 and reads from 0 without harm. And a descriptor that is
 * closed with something due wakes nobody who still has it in an epoll, and its number is forgotten.
 */
#include "rig.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STREAMS 3

/* Of every kind, so that every call that makes a descriptor is made. */
static const struct timerhub_config hubs[] = {
	{ .flags = 0 },
	{ .sleeper = TIMERHUB_SLEEPER_POLL },
	{ .flags = TIMERHUB_OBSERVABLE },
	{ .flags = TIMERHUB_MANUAL },
	{ .clock = TIMERHUB_CLOCK_BOOTTIME },
	{ .clock = TIMERHUB_CLOCK_REALTIME, .sleeper = TIMERHUB_SLEEPER_POLL },
};
static const struct timerhub_loop_config loops[] = {
	{ .size = sizeof(loops[0]), .clock = TIMERHUB_CLOCK_MONOTONIC },
	{ .size = sizeof(loops[0]), .clock = TIMERHUB_CLOCK_BOOTTIME },
	{ .size = sizeof(loops[0]), .clock = TIMERHUB_CLOCK_REALTIME },
	{ .size = sizeof(loops[0]), .flags = TIMERHUB_LOOP_OBSERVABLE },
};

static unsigned closed; /* bit i: the test has closed descriptor i */

static void close_streams(unsigned which)
{
	closed = which;
	for (int fd = 0; fd < STREAMS; fd++)
		if ((which >> fd & 1) != 0)
			expect_eq(close(fd), 0);
}

static void expect_streams_closed(void)
{
	for (int fd = 0; fd < STREAMS; fd++)
		if ((closed >> fd & 1) != 0)
			expect(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
}

/* What a program does to its standard streams. */
static void use_streams(void)
{
	char bytes[8];

	for (int fd = 0; fd < STREAMS; fd++)
		if ((closed >> fd & 1) != 0) {
			expect_eq(write(fd, "started\n", 8), -1);
			expect_eq(read(fd, bytes, sizeof(bytes)), -1);
		}
}

static void timers_come(const struct rig *rig, bool manual)
{
	int fd = timerhub_queue_fd(rig->queue);

	for (uint64_t i = 1; i < 4; i++) {
		use_streams();
		arm_after(rig->queue, 100 * US, i);
		if (manual)
			advance(rig->hub, i * MS);
		expect(fd_readable_within(fd, ARRIVES));
		expect_eq(take_one(rig->queue).data, i);
		expect_eq(timerhub_dispatch(rig->queue, 1), 0);
		use_streams();
		expect(!fd_readable(fd));
	}
}

static void timeouts_come(struct timerhub_loop *loop)
{
	int fd = timerhub_loop_fd(loop), turned = 0;
	struct timerhub_timeout timeout = { .owner = 0 };

	expect_cmp(fd, >=, STREAMS);
	expect_streams_closed();
	expect_eq(timerhub_timeout_add(loop, &timeout, ignore_timeout), 0);
	expect_eq(timerhub_timeout_set(loop, &timeout, MS), 0);
	while (turned == 0) {
		turned = timerhub_loop_turn(loop);
		use_streams();
		expect(turned > 0 || fd_readable_within(fd, ARRIVES));
	}
	expect_eq(turned, 1);
	timerhub_timeout_remove(loop, &timeout);
}

static void live_with_hub(struct timerhub_config config)
{
	bool manual = (config.flags & TIMERHUB_MANUAL) != 0;
	struct timerhub_loop *loop;
	struct rig rig;

	config.size = sizeof(config);
	config.timers_max = 64;
	expect_eq(hub_open(&rig.hub, &config), 0);
	expect_streams_closed();
	rig.queue = queue_open(rig.hub);
	expect_streams_closed();
	timers_come(&rig, manual);
	if (!manual) {
		expect_eq(timerhub_loop_open(&loop, rig.hub, NULL), 0);
		expect_streams_closed();
		timeouts_come(loop);
		timerhub_loop_close(loop);
	}
	rig_close(&rig);
	expect_streams_closed();
}

TEST_LOOP(no_descriptor_is_a_standard_stream, 60, (1 << STREAMS) - 1)
{
	unsigned before;

	close_streams((unsigned)_i + 1);
	before = process_fd_count();
	for (unsigned i = 0; i < COUNT_OF(hubs); i++)
		live_with_hub(hubs[i]);
	for (unsigned i = 0; i < COUNT_OF(loops); i++) {
		struct timerhub_loop *loop;

		expect_eq(timerhub_loop_open(&loop, NULL, &loops[i]), 0);
		expect_streams_closed();
		timeouts_come(loop);
		timerhub_loop_close(loop);
	}
	expect_eq(process_fd_count(), before);
}

static atomic_bool printing_ends;

/*
 * Keeps writing to stdout and stderr, enough to overwrite a hub's counters. It uses syscall(2),
 * because ThreadSanitizer reports a write() to a descriptor that another thread opens or closes.
 */
static void *print_on_and_on(void *unused)
{
	static const char text[512] = "a long message";

	while (!atomic_load(&printing_ends))
		for (int fd = STDOUT_FILENO; fd < STREAMS; fd++)
			(void)syscall(SYS_write, fd, text, sizeof(text));
	return unused;
}

/* An open may use descriptor 1 or 2 for a moment. What is printed then must not reach the hub. */
TEST(what_is_printed_during_an_open_gets_nowhere, 60)
{
	pthread_t printer;

	close_streams(6);
	thread_start(&printer, print_on_and_on, NULL);
	for (unsigned i = 0; i < scaled(1000); i++) {
		struct rig rig = rig_open_config((struct timerhub_config){
			.timers_max = 64, .flags = TIMERHUB_MANUAL | TIMERHUB_OBSERVABLE });
		struct timerhub_stats stats = stats_of(rig.hub), none = { .armed = 0 };

		expect_context("open", i, 0);
		expect_eq(memcmp(&stats, &none, sizeof(stats)), 0);
		expect(!fd_readable(timerhub_queue_fd(rig.queue)));
		expect(!fd_readable(timerhub_wake_fd(rig.hub)));
		rig_close(&rig);
	}
	atomic_store(&printing_ends, true);
	thread_join(printer);
}

/* Only 0, 1 and 2 are free: the same error as where nothing is. */
TEST_LOOP(no_other_descriptor_is_an_error, 30, 2)
{
	struct timerhub_config config = { .size = sizeof(config), .timers_max = 64 };
	struct timerhub *hub = NULL;
	struct timerhub_queue *queue = NULL;
	struct timerhub_loop *loop = NULL;
	struct rig rig = rig_open(64);
	rlim_t before;

	expect_eq(timerhub_loop_open(&loop, NULL, NULL), 0);
	close_streams(7);
	if (_i == 1 && fcntl(STREAMS, F_GETFD) == -1)
		expect_eq(dup2(timerhub_queue_fd(rig.queue), STREAMS), STREAMS);
	/* the limit permits no descriptor above 2 (run 0), or only 3, which is taken (run 1) */
	before = process_limit_fds(_i == 0 ? STREAMS : STREAMS + 1);
	expect_eq(timerhub_open(&hub, &config), -EMFILE);
	expect_eq(timerhub_queue_open(rig.hub, &queue, NULL), -EMFILE);
	expect_eq(timerhub_loop_fd(loop), -EMFILE);
	expect(!hub && !queue);
	expect_streams_closed();
	/* a leak checker, at the exit, waits until it can open files */
	(void)process_limit_fds(before);
	timerhub_loop_close(loop);
	rig_close(&rig);
}

/* ---- closed descriptors that another process has too ---- */

/*
 * Another descriptor of the same file keeps the file, and the registration in an epoll, as a forked
 * child's copy would.
 */
struct watcher {
	int copy;
	int edges; /* an epoll */
};

static struct watcher watch(int fd)
{
	struct watcher watcher = { .copy = dup(fd), .edges = edge_open(fd) };

	expect_le(0, watcher.copy);
	expect(fd_readable_within(fd, ARRIVES));
	expect(edge_seen(watcher.edges, ARRIVES));
	return watcher;
}

static void expect_silence(const struct watcher *watcher)
{
	expect(!fd_readable_within(watcher->copy, 10 * MS));
	expect(!edge_seen(watcher->edges, 0));
	expect_eq(close(watcher->copy), 0);
	expect_eq(close(watcher->edges), 0);
}

/* Once a queue or its hub is closed, no copy of their descriptors is readable or wakes an epoll. */
TEST_LOOP(closed_queue_wakes_nobody, 30, 4)
{
	bool by_hub = _i % 2 == 1, manual = _i / 2 == 1;
	struct rig rig = manual ? rig_manual(8) : rig_open(8);
	struct watcher hub, queue;

	arm_after(rig.queue, 0, 1);
	if (manual)
		advance(rig.hub, MS);
	queue = watch(timerhub_queue_fd(rig.queue));
	if (manual) {
		arm_after(rig.queue, 0, 2);
		hub = watch(timerhub_wake_fd(rig.hub));
	}
	if (!by_hub) {
		timerhub_queue_close(rig.queue);
		expect_silence(&queue);
	}
	timerhub_close(rig.hub);
	if (by_hub)
		expect_silence(&queue);
	if (manual)
		expect_silence(&hub);
}

static bool closes_loop; /* the timeout's callback does */

static void maybe_close(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)timeout;
	if (closes_loop)
		timerhub_loop_close(loop);
}

/* Once a loop is closed, inside a callback or outside, no copy of its descriptor is readable. */
TEST_LOOP(closed_loop_wakes_nobody, 30, 8)
{
	struct timerhub_loop_config config = { .size = sizeof(config) };
	struct timerhub_timeout timeouts[2] = { { .owner = 0 }, { .owner = 0 } };
	struct watcher watcher;
	struct timerhub_loop *loop;
	struct rig rig = rig_open(8);

	closes_loop = _i % 2 == 1;
	config.clock = _i / 2 < 3 ? (uint32_t)_i / 2 : 0;
	expect_eq(timerhub_loop_open(&loop, _i / 2 < 3 ? NULL : rig.hub, &config), 0);
	for (unsigned i = 0; i < COUNT_OF(timeouts); i++) {
		expect_eq(timerhub_timeout_add(loop, &timeouts[i], maybe_close), 0);
		expect_eq(timerhub_timeout_set(loop, &timeouts[i], MS), 0);
	}
	expect_eq(timerhub_loop_turn(loop), 0);
	watcher = watch(timerhub_loop_fd(loop));
	if (closes_loop)
		expect_eq(timerhub_loop_turn(loop), 1);
	else
		timerhub_loop_close(loop);
	expect_silence(&watcher);
	rig_close(&rig);
}

/* A dispatch on a closed queue does not read another file that has got its descriptor's number. */
TEST(fd_of_a_closed_queue_is_forgotten, 30)
{
	struct rig rig = rig_manual(64);
	int fd = timerhub_queue_fd(rig.queue), pipe_fds[2];
	uint64_t now_ns = 0;
	char bytes[16];

	arm_and_expire(&rig, &now_ns, 1);
	timerhub_queue_close(rig.queue);
	expect_eq(pipe(pipe_fds), 0);
	/* the pipe gets the number of the closed queue's fd */
	expect_eq(dup2(pipe_fds[0], fd), fd);
	expect_eq(write(pipe_fds[1], "12345678", 8), 8);
	(void)timerhub_dispatch(rig.queue, 1);
	expect_eq(write(pipe_fds[1], ".", 1), 1);
	expect_eq(read(fd, bytes, sizeof(bytes)), 9);
	expect_cmp(timerhub_queue_fd(rig.queue), <, 0);
	timerhub_close(rig.hub);
}
