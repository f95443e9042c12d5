/* SPDX-License-Identifier: MIT */
/* Implements the common steps of workloads. See workload_steps.h. */
#include "workload_steps.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "embedding_objects.h"
#include "mailbox.h"
#include "randoms.h"

static const struct subject *opened; /* the open measured service, or the service's mailbox */
static struct subject_setup setup;
static void (*hook)(uint32_t timer); /* the workload's callback for each expiry, or NULL */
/* whether the timer of driver_settle() has expired; used only if setup.cross is false */
static bool settled;
/* if setup.cross is true, the timer of driver_settle() posts this semaphore when it expires */
static sem_t settlings;
static uint64_t delivered; /* number of expiries; written by the thread that calls back */
static uint64_t awaited;   /* number of expiries at which driver_await() returns */

static void driver_expired(uint32_t timer)
{
	if (timer != setup.timers) {
		if (hook)
			hook(timer);
		__atomic_store_n(&delivered, delivered + 1, __ATOMIC_RELEASE);
	} else if (setup.cross) {
		(void)sem_post(&settlings);
	} else {
		/* The thread of the service's owner may execute this store. */
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

static void *driver_consume(void *argument)
{
	(void)argument;
	opened->run(driver_never);
	return NULL;
}

const struct subject *driver_open(const struct run *run, const struct subject_setup *wanted,
                                  void (*on_expiry)(uint32_t timer))
{
	bool wrap = wanted->cross && (run->subject->can & CAN_ANY_THREAD) == 0;
	pthread_t consumer;

	setup = *wanted;
	hook = on_expiry;
	subject_expired = driver_expired;
	(void)sem_init(&settlings, 0, 0);
	run->subject->open(&setup);
	if (setup.records && !records.base)
		records_open(&setup, 0);
	opened = wrap ? mailbox_wrap(run->subject) : run->subject;
	if (setup.cross && opened->run && (opened->can & CAN_SERVE_ITSELF) == 0 &&
	    pthread_create(&consumer, NULL, driver_consume, NULL) != 0)
		subject_fail("pthread_create", 0);
	return opened;
}

uint64_t driver_arm(const struct subject *subject, uint32_t timer, uint64_t delay_ns)
{
	uint64_t refused = 0;
	int result;

	for (; (result = subject->arm(timer, delay_ns)) == -EAGAIN; refused++)
		(void)sched_yield();
	subject_must(result);
	return refused;
}

void driver_settle(void)
{
	if ((opened->can & CAN_EXPIRE) == 0 || (!setup.cross && (opened->can & HAS_OWNER) == 0))
		return; /* the measured service applies each call at once */
	settled = false;
	opened->tick();
	(void)driver_arm(opened, setup.timers, 0);
	if (setup.cross) {
		while (sem_wait(&settlings) != 0) {
		}
	} else {
		opened->run(driver_settled);
	}
}

uint64_t driver_delivered(void)
{
	return __atomic_load_n(&delivered, __ATOMIC_ACQUIRE);
}

static bool driver_awaited(void)
{
	return driver_delivered() >= awaited;
}

void driver_await(uint64_t deliveries)
{
	awaited = deliveries;
	opened->run(driver_awaited);
}

struct subject_counts driver_counts(void)
{
	struct subject_counts counts = { 0 };

	if (opened->counts)
		opened->counts(&counts);
	return counts;
}

void driver_within(void (*body)(void *), void *context)
{
	if (opened->within && !setup.cross)
		opened->within(body, context);
	else
		body(context);
}

void driver_arm_all(uint32_t timers, uint64_t from_ns, uint64_t to_ns, uint64_t seed)
{
	struct randoms randoms = randoms_from(seed);

	for (uint32_t i = 0; i < timers; i++) {
		if (i % TURN_OPS == 0)
			opened->tick();
		subject_must(opened->arm(i, randoms_between(&randoms, from_ns, to_ns)));
	}
}
