/* SPDX-License-Identifier: MIT */
/*
 * Tests the notifier (the eventfd and the futex that signal a queue's consumers). The queue's fd
 * becomes readable when the owner publishes an event. Until a consumer clears the notifier, the
 * owner signals the notifier only once. The simulation tests the races.
 */
#include "harness.h"
#include "process_usage.h"

#include <unistd.h>

#include "base/bell.h"
#include "base/futex.h"
#include "base/test_point.h"
#include "queue/notifier.h"

static void open_notifier(struct notifier *notifier)
{
	static struct bell_words bells;
	static atomic_u32 tickets[8];
	static unsigned opened;

	bell_words_init(&bells);
	*notifier = (struct notifier){
		.fd = bell_open(),
		.bells = &bells,
		.ticket = &tickets[opened++ % COUNT_OF(tickets)],
	};
	notifier_begin(notifier);
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
	futex_wait(notifier.ticket, ticket, UINT64_MAX);
	notifier_wait_leave(&notifier);
	ticket = notifier_wait_enter(&notifier);
	notifier_wake(&notifier, UINT32_MAX);
	futex_wait(notifier.ticket, ticket, UINT64_MAX);
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
	futex_wait(notifier.ticket, ticket, 20 * MS);
	notifier_wait_leave(&notifier);
	expect_le(before_ns + 20 * MS, monotonic_ns());
	bell_close(notifier.fd);
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
	return tests_run();
}
