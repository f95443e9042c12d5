/* SPDX-License-Identifier: MIT */
/*
 * A hub for each group of event loops, for programs with more timers a second than the thread of
 * one hub can serve. It prints how many the hubs serve together; with one hub, that is the limit.
 *
 * Each loop has a queue in the hub of its group. As fast as it can, it takes the events that are
 * there, arms timers of 1 to 10 ms, and cancels half of them. When LIVE_MAX of its timers are live,
 * because the hub is behind, it waits for events. If a timer was lost or came twice, the exit
 * status is 1.
 *
 * Usage: hub_groups [HUBS LOOPS MILLISECONDS]
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timerhub.h>

#define MS UINT64_C(1000000)

enum { HUBS_MAX = 64, LOOPS_MAX = 64, LIVE_MAX = 65536, TURN = 64 };

struct loop {
	_Alignas(128) struct timerhub *hub; /* aligned, so that loops share no cache line */
	pthread_t thread;
	uint64_t until_ns, seed;
	uint64_t armed, cancelled, expired;
};

static struct timerhub *hubs[HUBS_MAX];
static struct loop loops[LOOPS_MAX];

/* Ends the program if `r` is an error, because the sums would be wrong. */
static int must(const char *what, int r)
{
	if (r >= 0)
		return r;
	fprintf(stderr, "hub_groups: %s: %s\n", what, strerror(-r));
	exit(1);
}

static uint64_t live(const struct loop *loop)
{
	return loop->armed - loop->cancelled - loop->expired;
}

static void arm(struct loop *loop, struct timerhub_queue *queue, timerhub_timer *timers)
{
	const uint64_t now = timerhub_now(loop->hub);
	struct timerhub_spec spec = { .size = sizeof(spec), .flags = TIMERHUB_ABSOLUTE };

	for (unsigned i = 0; i < TURN; i++) {
		loop->seed ^= loop->seed << 13;
		loop->seed ^= loop->seed >> 7;
		loop->seed ^= loop->seed << 17;
		spec.expires_ns = now + MS + loop->seed % (9 * MS);
		must("arm", timerhub_arm(queue, &spec, &timers[i]));
	}
	loop->armed += TURN;
}

static void cancel_half(struct loop *loop, const timerhub_timer *timers)
{
	for (unsigned i = 0; i < TURN; i += 2) {
		const int r = timerhub_cancel(loop->hub, timers[i]);

		if (r != -ENOENT) /* -ENOENT: it has expired, and its event counts */
			must("cancel", r);
		loop->cancelled += r == 0;
	}
}

static void *run(void *argument)
{
	struct loop *loop = argument;
	struct timerhub_event events[4 * TURN];
	timerhub_timer timers[TURN];
	struct timerhub_queue *queue;

	must("open queue", timerhub_queue_open(loop->hub, &queue, NULL));
	while (timerhub_now(loop->hub) < loop->until_ns) {
		arm(loop, queue, timers);
		loop->expired += (unsigned)must("drain", timerhub_drain(queue, events, 4 * TURN));
		cancel_half(loop, timers);
		while (live(loop) > LIVE_MAX - TURN)
			loop->expired += (unsigned)must(
				"wait", timerhub_wait(queue, events, 4 * TURN, UINT64_MAX));
	}
	return queue;
}

/* Takes the events of what is still armed, and returns whether each timer ended once. */
static int check_end(struct loop *loop, struct timerhub_queue *queue)
{
	struct timerhub_event event;
	int r = 1;

	for (; live(loop) > 0 && r > 0; loop->expired += (unsigned)r)
		r = must("wait", timerhub_wait(queue, &event, 1, 10000 * MS));
	return live(loop) == 0 && timerhub_drain(queue, &event, 1) == 0;
}

int main(int argc, char **argv)
{
	const unsigned long hub_count = argc > 1 ? strtoul(argv[1], NULL, 10) : 2;
	const unsigned long loop_count = argc > 2 ? strtoul(argv[2], NULL, 10) : 2;
	const unsigned long ms = argc > 3 ? strtoul(argv[3], NULL, 10) : 200;
	struct timerhub_config config = { .size = sizeof(config) };
	uint64_t start_ns, calls = 0, expired = 0;
	struct timerhub_queue *queues[LOOPS_MAX];
	int right = 1;

	if (argc > 4 || hub_count == 0 || loop_count < hub_count || loop_count > LOOPS_MAX ||
	    ms == 0) {
		fprintf(stderr, "usage: hub_groups [HUBS LOOPS MILLISECONDS], at most %d loops\n",
		        LOOPS_MAX);
		return 2;
	}
	/* with spare ones, because a thread that is preempted in a call may hold a free timer */
	config.timers_max = (uint32_t)((loop_count / hub_count + 1) * (LIVE_MAX + LOOPS_MAX));
	for (unsigned i = 0; i < hub_count; i++)
		must("open hub", timerhub_open(&hubs[i], &config));
	start_ns = timerhub_now(hubs[0]);
	for (unsigned i = 0; i < loop_count; i++) {
		loops[i].hub = hubs[i % hub_count];
		loops[i].until_ns = start_ns + ms * MS;
		loops[i].seed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
		must("start", -pthread_create(&loops[i].thread, NULL, run, &loops[i]));
	}
	for (unsigned i = 0; i < loop_count; i++) {
		void *queue;

		must("join", -pthread_join(loops[i].thread, &queue));
		queues[i] = queue;
		calls += loops[i].armed + loops[i].cancelled;
		expired += loops[i].expired;
	}
	const double us = (double)(timerhub_now(hubs[0]) - start_ns) / 1e3;

	for (unsigned i = 0; i < loop_count; i++)
		right &= check_end(&loops[i], queues[i]);
	printf("%lu hubs, %lu loops: %.1f million calls and %.1f million expiries a second%s\n",
	       hub_count, loop_count, (double)calls / us, (double)expired / us,
	       right ? "" : "; A TIMER GOT LOST OR CAME TWICE");
	for (unsigned i = 0; i < hub_count; i++)
		timerhub_close(hubs[i]);
	return !right;
}
