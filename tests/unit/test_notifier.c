/* SPDX-License-Identifier: MIT */
/*
 * Tests the notifier (the eventfd and the futex that signal a queue's consumers). The queue's fd
 * becomes readable when the owner publishes an event. Until a consumer clears the notifier, the
 * owner signals the notifier only once. No event is lost between an owner that publishes and a
 * consumer that clears the notifier or blocks.
 */
#include "harness.h"
#include "process_usage.h"

#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/futex.h"
#include "base/test_point.h"
#include "queue/notifier.h"

static void open_notifier(struct notifier *notifier)
{
	*notifier = (struct notifier){ .fd = bell_open() };
	expect_le(0, notifier->fd);
}

START_TEST(bell_is_sticky_until_cleared)
{
	int fd = bell_open();

	expect_le(0, fd);
	expect(!fd_readable(fd));
	bell_clear(fd); /* the fd's count is 0, and bell_clear() does not block */
	bell_ring(fd);
	bell_ring(fd);
	expect(fd_readable(fd));
	expect(fd_readable(fd));
	bell_clear(fd);
	expect(!fd_readable(fd));
	bell_close(fd);
	bell_close(-1);
}
END_TEST

START_TEST(full_bell_is_readable_as_it_is)
{
	int fd = bell_open();
	uint64_t most = UINT64_MAX - 1;

	expect_eq(write(fd, &most, sizeof(most)), sizeof(most));
	bell_ring(fd); /* the fd's count is at its maximum, and bell_ring() does not block */
	expect(fd_readable(fd));
	bell_clear(fd);
	expect(!fd_readable(fd));
	bell_close(fd);
}
END_TEST

/* Law 8: until a consumer clears the notifier, only the first signal writes the eventfd. */
START_TEST(signals_ring_once_until_cleared)
{
	struct notifier notifier;

	open_notifier(&notifier);
	expect(!fd_readable(notifier.fd));
	for (unsigned round = 0; round < 3; round++) {
		expect(notifier_signal(&notifier, 1));
		for (unsigned i = 0; i < 10; i++)
			expect(!notifier_signal(&notifier, 1));
		expect(fd_readable(notifier.fd));
		notifier_clear(&notifier);
		expect(!fd_readable(notifier.fd));
		notifier_clear(&notifier); /* the notifier is already clear */
		expect(!fd_readable(notifier.fd));
	}
	bell_close(notifier.fd);
}
END_TEST

/*
 * Law 8: if the owner has not signalled, notifier_clear() makes no system call. The test writes a
 * value into the fd itself, and notifier_clear() must not read this value.
 */
START_TEST(clear_reads_only_what_was_rung)
{
	struct notifier notifier;

	open_notifier(&notifier);
	for (unsigned round = 0; round < 3; round++) {
		expect(notifier_signal(&notifier, 1));
		notifier_clear(&notifier);
		expect(!fd_readable(notifier.fd));
		bell_ring(notifier.fd);
		notifier_clear(&notifier);
		expect(fd_readable(notifier.fd));
		bell_clear(notifier.fd);
	}
	bell_close(notifier.fd);
}
END_TEST

/*
 * Law 9: a caller that reads the fd before draining loses no event. The first signal after
 * notifier_clear() makes the fd readable again.
 */
START_TEST(fd_read_by_the_caller_rings_again_after_the_next_clear)
{
	struct notifier notifier;
	uint64_t count;

	open_notifier(&notifier);
	expect(notifier_signal(&notifier, 1));
	expect_eq(read(notifier.fd, &count, sizeof(count)), sizeof(count));
	expect(!fd_readable(notifier.fd));
	/* timerhub_drain() makes this call after a partial drain */
	notifier_signal_again(&notifier);
	expect(fd_readable(notifier.fd));
	notifier_clear(&notifier);
	expect(!fd_readable(notifier.fd));
	expect(notifier_signal(&notifier, 1));
	expect(fd_readable(notifier.fd));
	bell_close(notifier.fd);
}
END_TEST

/* An edge-triggered poller gets an edge for each write to the eventfd. */
START_TEST(signal_again_is_a_new_edge)
{
	struct notifier notifier;
	uint64_t count;

	open_notifier(&notifier);
	expect(notifier_signal(&notifier, 1));
	notifier_signal_again(&notifier);
	expect_eq(read(notifier.fd, &count, sizeof(count)), sizeof(count));
	expect_eq(count, 2);
	bell_close(notifier.fd);
}
END_TEST

static struct notifier late;

/*
 * Acts as the owner, which signals an event while a consumer clears the notifier. The consumer has
 * already drained the event.
 */
static void signal_late(enum test_point point)
{
	if (point == TEST_POINT_CONSUME_IN_CLEAR)
		notifier_signal(&late, 1);
}

/*
 * Law 9: a signal comes during notifier_clear(). If notifier_clear() reads the count of the signal,
 * it must also reset the signal's flag.
 */
START_TEST(late_signal_in_the_middle_of_a_clear_silences_nobody)
{
	open_notifier(&late);
	/* In the second round, the owner has already signalled once before notifier_clear(). */
	for (unsigned rung_before = 0; rung_before < 2; rung_before++) {
		if (rung_before == 1)
			notifier_signal_again(&late);
		test_point_hook = signal_late;
		notifier_clear(&late);
		test_point_hook = NULL;
		notifier_signal(&late, 1);
		expect(fd_readable(late.fd));
		notifier_clear(&late);
		expect(!fd_readable(late.fd));
	}
	bell_close(late.fd);
}
END_TEST

START_TEST(wait_ends_for_what_was_published_after_enter)
{
	struct notifier notifier;
	uint32_t ticket;

	open_notifier(&notifier);
	ticket = notifier_wait_enter(&notifier);
	(void)notifier_signal(&notifier, 1);
	futex_wait(&notifier.ticket, ticket, UINT64_MAX);
	notifier_wait_leave(&notifier);
	ticket = notifier_wait_enter(&notifier);
	notifier_wake(&notifier, UINT32_MAX);
	futex_wait(&notifier.ticket, ticket, UINT64_MAX);
	notifier_wait_leave(&notifier);
	bell_close(notifier.fd);
}
END_TEST

START_TEST(wait_ends_when_its_time_is_over_and_not_before)
{
	struct notifier notifier;
	uint64_t before_ns = monotonic_ns();
	uint32_t ticket;

	open_notifier(&notifier);
	ticket = notifier_wait_enter(&notifier);
	futex_wait(&notifier.ticket, ticket, 20 * MS);
	notifier_wait_leave(&notifier);
	expect_le(before_ns + 20 * MS, monotonic_ns());
	bell_close(notifier.fd);
}
END_TEST

/* ---- threads: the outbox is two counters ---- */

#define CONSUMERS 2
#define LOST_NS (20 * SEC) /* an item is lost if no consumer takes it within this time */

static struct {
	struct notifier notifier;
	atomic_ullong published; /* number of items put by the owner */
	atomic_ullong taken;     /* number of items taken by all consumers */
	uint64_t items;
	atomic_bool lost;
} race;

static bool race_over(void)
{
	return atomic_load(&race.taken) >= race.items || atomic_load(&race.lost);
}

static bool take_one(void)
{
	unsigned long long taken = atomic_load(&race.taken);

	while (taken < atomic_load(&race.published))
		if (atomic_compare_exchange_weak(&race.taken, &taken, taken + 1))
			return true;
	return false;
}

static bool nothing_to_take(void)
{
	return atomic_load(&race.taken) == atomic_load(&race.published);
}

/*
 * Takes items as timerhub_drain() does. The consumer takes all items, and then clears the notifier.
 * If an item is left after the clear, the consumer begins again.
 */
static void drain(void)
{
	do {
		while (take_one()) {
		}
		notifier_clear(&race.notifier);
	} while (!nothing_to_take());
}

static void *waiter_main(void *arg)
{
	(void)arg;
	while (!race_over()) {
		uint32_t ticket;

		drain();
		ticket = notifier_wait_enter(&race.notifier);
		if (nothing_to_take() && !race_over())
			futex_wait(&race.notifier.ticket, ticket, UINT64_MAX);
		notifier_wait_leave(&race.notifier);
	}
	notifier_wake(&race.notifier, UINT32_MAX); /* ends the other waiters after the last item */
	return NULL;
}

static void *poller_main(void *arg)
{
	(void)arg;
	while (!race_over()) {
		struct pollfd pollfd = { .fd = race.notifier.fd, .events = POLLIN };

		(void)poll(&pollfd, 1, -1);
		drain();
	}
	bell_ring(race.notifier.fd); /* ends the other pollers after the last item */
	return NULL;
}

/*
 * Waits until a consumer has taken the item. Returns false if the time limit passes. In this case,
 * the item's wake-up was lost. Consumers have no time limit of their own, since another consumer
 * may take every item.
 */
static bool is_taken(uint64_t item)
{
	uint64_t until_ns = monotonic_ns() + LOST_NS;

	for (unsigned spins = 0; atomic_load(&race.taken) <= item; spins++)
		if (spins % 1000 == 999) {
			if (monotonic_ns() > until_ns)
				return false;
			sleep_ns(5 * US);
		}
	return true;
}

/*
 * Publishes the items one by one, each after a consumer has taken the previous item. If the wake-up
 * of an item is lost, the thread stops publishing.
 */
static void *owner_main(void *arg)
{
	struct dice dice = dice_new(3000);

	(void)arg;
	for (uint64_t item = 0; item < race.items && !atomic_load(&race.lost); item++) {
		(void)atomic_fetch_add(&race.published, 1);
		/*
		 * The owner pauses between publishing and signalling, so that sometimes a consumer
		 * takes the item before the signal.
		 */
		for (uint64_t spins = dice_below(&dice, 100); spins > 0; spins--)
			cpu_relax();
		(void)notifier_signal(&race.notifier, 1);
		atomic_store(&race.lost, !is_taken(item));
	}
	/* After the last item, the owner wakes the consumers that still wait. */
	notifier_wake(&race.notifier, UINT32_MAX);
	bell_ring(race.notifier.fd);
	return NULL;
}

static void check_race(void *(*consumer_main)(void *), unsigned consumers, uint64_t items)
{
	pthread_t owner, threads[CONSUMERS];

	open_notifier(&race.notifier);
	atomic_store(&race.published, 0);
	atomic_store(&race.taken, 0);
	race.items = items;
	for (unsigned i = 0; i < consumers; i++)
		thread_start(&threads[i], consumer_main, NULL);
	thread_start(&owner, owner_main, NULL);
	for (unsigned i = 0; i < consumers; i++)
		thread_join(threads[i]);
	thread_join(owner);
	expect(!atomic_load(&race.lost));
	bell_close(race.notifier.fd);
}

START_TEST(waiters_lose_no_wakeup)
{
	check_race(waiter_main, 1, scaled(1000));
	check_race(waiter_main, CONSUMERS, scaled(1000));
}
END_TEST

START_TEST(pollers_that_drain_lose_no_wakeup)
{
	check_race(poller_main, 1, scaled(1000));
	check_race(poller_main, CONSUMERS, scaled(1500));
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("notifier", argc, argv);
	tests_add(bell_is_sticky_until_cleared, 20);
	tests_add(full_bell_is_readable_as_it_is, 20);
	tests_add(signals_ring_once_until_cleared, 20);
	tests_add(clear_reads_only_what_was_rung, 20);
	tests_add(fd_read_by_the_caller_rings_again_after_the_next_clear, 20);
	tests_add(signal_again_is_a_new_edge, 20);
	tests_add(late_signal_in_the_middle_of_a_clear_silences_nobody, 20);
	tests_add(wait_ends_for_what_was_published_after_enter, 20);
	tests_add(wait_ends_when_its_time_is_over_and_not_before, 20);
	tests_add(waiters_lose_no_wakeup, 60);
	tests_add(pollers_that_drain_lose_no_wakeup, 60);
	return tests_run();
}
