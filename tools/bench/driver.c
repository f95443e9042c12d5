/* SPDX-License-Identifier: MIT */
#include "driver.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "randoms.h"
#include "records.h"

struct records records;

static const struct subject *opened;
static struct subject_setup setup;
static void (*hook)(uint32_t timer); /* the workload's callback for each expiry, or NULL */
static sem_t settlings;              /* with setup.cross, posted by the timer of driver_settle() */
static bool settled;                 /* without, set by it */
static uint64_t delivered;           /* written by the thread that calls back */
static uint64_t awaited;             /* how many deliveries driver_await() waits for */

void records_open(const struct subject_setup *wanted, uint32_t bytes)
{
	if (wanted->records && bytes > RECORD_BYTES - RECORD_TIMER)
		subject_fail("the timer is larger than its record", 0);
	records.stride = wanted->records ? RECORD_BYTES : bytes;
	records.base =
		subject_allocate((uint64_t)wanted->timers + wanted->spare + 1, records.stride);
	records.timers = records.base + (wanted->records ? RECORD_TIMER : 0);
}

/* The owner's thread may run this, hence the releases. */
static void driver_expired(uint32_t timer)
{
	if (timer != setup.timers) {
		if (hook)
			hook(timer);
		__atomic_store_n(&delivered, delivered + 1, __ATOMIC_RELEASE);
	} else if (setup.cross) {
		(void)sem_post(&settlings);
	} else {
		__atomic_store_n(&settled, true, __ATOMIC_RELEASE);
	}
}

static bool driver_never(void)
{
	return false;
}

static bool driver_settled(void)
{
	return __atomic_load_n(&settled, __ATOMIC_ACQUIRE);
}

static bool driver_awaited(void)
{
	return __atomic_load_n(&delivered, __ATOMIC_ACQUIRE) >= awaited;
}

static void *driver_consume(void *argument)
{
	(void)argument;
	opened->run(driver_never);
	return NULL;
}

void driver_open(const struct run *run, const struct subject_setup *wanted,
                 void (*on_expiry)(uint32_t timer))
{
	pthread_t consumer;

	setup = *wanted;
	hook = on_expiry;
	opened = run->subject;
	subject_expired = driver_expired;
	(void)sem_init(&settlings, 0, 0);
	opened->open(&setup);
	if (setup.records && !records.base)
		records_open(&setup, 0);
	if (setup.cross && opened->run && (opened->can & SERVES_ITSELF) == 0 &&
	    pthread_create(&consumer, NULL, driver_consume, NULL) != 0)
		subject_fail("pthread_create", 0);
}

void driver_arm(uint32_t timer, uint64_t delay_ns)
{
	int result;

	while ((result = opened->arm(timer, delay_ns)) == -EAGAIN)
		(void)sched_yield();
	subject_must(result);
}

void driver_arm_all(uint64_t from_ns, uint64_t to_ns, uint64_t seed)
{
	struct randoms randoms = randoms_from(seed);

	for (uint32_t i = 0; i < setup.timers; i++) {
		if (i % TURN_OPS == 0)
			opened->tick();
		driver_arm(i, randoms_between(&randoms, from_ns, to_ns));
	}
}

void driver_settle(void)
{
	if ((opened->can & TIMERS) == 0 || (!setup.cross && (opened->can & OWNER) == 0))
		return; /* it applies each call at once */
	settled = false;
	opened->tick();
	driver_arm(setup.timers, 0);
	if (!setup.cross)
		opened->run(driver_settled);
	else
		while (sem_wait(&settlings) != 0) {
		}
}

void driver_await(uint64_t deliveries)
{
	awaited = deliveries;
	opened->run(driver_awaited);
}

void driver_within(void (*body)(void *), void *context)
{
	if (opened->within && !setup.cross)
		opened->within(body, context);
	else
		body(context);
}
