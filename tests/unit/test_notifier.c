/* SPDX-License-Identifier: MIT */
/*
 * The eventfd and futex that signal a queue's consumers: the fd is readable once an event is
 * published, and signalled once until a consumer clears it. Races are the simulation's.
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

TEST(signals_ring_once_until_cleared, 20)
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

/*
 * Law 8: a clear without a signal makes no system call, so it does not read what the test has
 * written.
 */
TEST(clear_reads_only_what_was_rung, 20)
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

/* Law 9: the first signal after the clear makes it readable again. */
TEST(fd_read_by_the_caller_rings_again_after_the_next_clear, 20)
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
