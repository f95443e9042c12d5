/* SPDX-License-Identifier: MIT */
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "base/clock.h"
#include "records.h"

struct records records;

static const struct subject *opened;
static struct subject_setup setup;
static sem_t settlings; /* posted by the timer of driver_settle() */

void records_open(const struct subject_setup *wanted, uint32_t bytes)
{
	if (wanted->records && bytes > RECORD_BYTES - RECORD_TIMER)
		subject_fail("the timer is larger than its record", 0);
	records.stride = wanted->records ? RECORD_BYTES : bytes;
	records.base =
		subject_allocate((uint64_t)wanted->timers + wanted->spare + 1, records.stride);
	records.timers = records.base + (wanted->records ? RECORD_TIMER : 0);
}

/* ---- a subject ---- */

static void driver_expired(uint32_t timer)
{
	if (timer == setup.timers)
		(void)sem_post(&settlings);
}

static bool driver_never(void)
{
	return false;
}

static void *driver_consume(void *argument)
{
	(void)argument;
	opened->run(driver_never);
	return NULL;
}

void driver_open(const struct run *run, const struct subject_setup *wanted)
{
	pthread_t consumer;

	setup = *wanted;
	opened = run->subject;
	if (!subject_expired)
		subject_expired = driver_expired;
	(void)sem_init(&settlings, 0, 0);
	opened->open(&setup);
	if (setup.records && !records.base)
		records_open(&setup, 0);
	if (setup.cross && pthread_create(&consumer, NULL, driver_consume, NULL) != 0)
		subject_fail("pthread_create", 0);
}

void driver_arm(uint32_t timer, uint64_t delay_ns)
{
	int result;

	while ((result = opened->arm(timer, delay_ns)) == -EAGAIN)
		(void)sched_yield();
	subject_must(result);
}

void driver_settle(void)
{
	if (!setup.cross)
		return;
	opened->tick();
	driver_arm(setup.timers, 0);
	while (sem_wait(&settlings) != 0) {
	}
}

/* ---- threads ---- */

struct member {
	pthread_t thread;
	unsigned number;
};

static pthread_barrier_t barrier;
static void (*team_body)(unsigned member);

unsigned cpus_count(void)
{
	cpu_set_t allowed;

	return sched_getaffinity(0, sizeof(allowed), &allowed) < 0 ? 1
	                                                           : (unsigned)CPU_COUNT(&allowed);
}

/* Pins the calling thread, because two members might share a CPU for a whole measurement. */
static void team_pin(unsigned member)
{
	unsigned left = member % cpus_count(), cpu = 0;
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return;
	while (!CPU_ISSET(cpu, &allowed) || left-- > 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

static void *member_main(void *argument)
{
	const struct member *member = argument;

	team_pin(member->number);
	(void)pthread_barrier_wait(&barrier);
	team_body(member->number);
	return NULL;
}

uint64_t team_run(unsigned members, void (*body)(unsigned member))
{
	struct member list[TEAM_MAX];
	uint64_t start_ns;

	team_body = body;
	(void)pthread_barrier_init(&barrier, NULL, members + 1);
	for (unsigned i = 0; i < members; i++) {
		list[i].number = i;
		if (pthread_create(&list[i].thread, NULL, member_main, &list[i]) != 0)
			subject_fail("pthread_create", 0);
	}
	start_ns = clock_monotonic_ns();
	(void)pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < members; i++)
		(void)pthread_join(list[i].thread, NULL);
	(void)pthread_barrier_destroy(&barrier);
	return start_ns;
}
