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

int main(int argc, char **argv)
{
	tests_begin("notifier", argc, argv);
	tests_add(signals_ring_once_until_cleared, 20);
	tests_add(clear_reads_only_what_was_rung, 20);
	tests_add(fd_read_by_the_caller_rings_again_after_the_next_clear, 20);
	return tests_run();
}
