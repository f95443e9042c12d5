/* SPDX-License-Identifier: MIT */
/*
 * The measured time begins when all members have started and have waited for each other. Members
 * are pinned, because two might share a CPU for a whole measurement otherwise.
 */
#include "thread_team.h"

#include <pthread.h>
#include <sched.h>

#include "clocks.h"
#include "subject.h"

struct member {
	pthread_t thread;
	unsigned number;
	uint64_t cpu_ns;
};

static pthread_barrier_t barrier;
static void (*team_body)(unsigned member, void *context);
static void *team_context;

unsigned cpus_count(void)
{
	cpu_set_t allowed;

	return sched_getaffinity(0, sizeof(allowed), &allowed) < 0 ? 1
	                                                           : (unsigned)CPU_COUNT(&allowed);
}

static void team_pin(unsigned member)
{
	unsigned left, cpu = 0;
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return;
	left = member % (unsigned)CPU_COUNT(&allowed);
	while (!CPU_ISSET(cpu, &allowed) || left-- > 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

static void *member_main(void *argument)
{
	struct member *member = argument;
	uint64_t cpu_ns;

	team_pin(member->number);
	(void)pthread_barrier_wait(&barrier);
	cpu_ns = thread_cpu_ns();
	team_body(member->number, team_context);
	member->cpu_ns = thread_cpu_ns() - cpu_ns;
	return NULL;
}

struct team_times team_run(unsigned members, void (*body)(unsigned member, void *context),
                           void *context)
{
	struct member list[TEAM_MAX];
	struct team_times times = { 0 };

	team_body = body;
	team_context = context;
	(void)pthread_barrier_init(&barrier, NULL, members + 1);
	for (unsigned i = 0; i < members; i++) {
		list[i] = (struct member){ .number = i };
		if (pthread_create(&list[i].thread, NULL, member_main, &list[i]) != 0)
			subject_fail("pthread_create", 0);
	}
	times.start_ns = now_ns();
	(void)pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < members; i++) {
		(void)pthread_join(list[i].thread, NULL);
		times.cpu_ns += list[i].cpu_ns;
	}
	(void)pthread_barrier_destroy(&barrier);
	return times;
}
