/* SPDX-License-Identifier: MIT */
/*
 * Measures timerhub's journal. "journal": any number of threads put tasks; a put returns when the
 * task is on disk. "journal-submit": one thread keeps thousands of puts in flight, whose ends an
 * eventfd signals. "journal-take": the same thread, when all are on disk, polls the journal's fd
 * with epoll and takes due tasks.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <timerhub_journal.h>
#include <unistd.h>

#include "clocks.h"
#include "disk_folder.h"
#include "subject.h"

#define SUBMIT_MAX 4000u
#define SUBMIT_TOGETHER 256u

static const char order[DURABLE_BYTES] = "an order";
static struct timerhub_journal *journal;

static void subject_open(const struct subject_setup *setup)
{
	struct timerhub_journal_config config = { .size = sizeof(config),
		                                  .tasks_max = setup->timers };
	int result;

	(void)folder_is_memory();
	result = timerhub_journal_open(&journal, folder_make(), &config);
	if (result < 0)
		subject_fail("timerhub_journal_open", -result);
}

static void subject_close(void)
{
	timerhub_journal_close(journal);
}

static int subject_arm(uint32_t timer, uint64_t delay_ns)
{
	(void)timer;
	return timerhub_journal_put(journal, delay_ns, 0, order, sizeof(order), NULL);
}

static int subject_finish(void)
{
	struct timerhub_journal_task task;
	int result = timerhub_journal_take(journal, &task, UINT64_MAX);

	return result < 0 ? result : timerhub_journal_done(journal, &task);
}

static void subject_counts(struct subject_counts *ret_counts)
{
	struct timerhub_journal_stats stats;

	subject_must(timerhub_journal_stats(journal, &stats));
	*ret_counts = (struct subject_counts){ .syncs = stats.syncs };
}

SUBJECT(journal, "journal", "put, take, done, each call until it is on disk",
        CAN_PUT_DURABLY | CAN_FINISH_DURABLY | CAN_RECOVER | CAN_ANY_THREAD | CAN_CROSS,
        .open = subject_open, .close = subject_close, .arm = subject_arm, .finish = subject_finish,
        .counts = subject_counts)

/* ---- journal-submit ---- */

static unsigned in_flight;

/* Wait until at most `most` puts are in flight. */
static int submit_await(unsigned most)
{
	struct pollfd poll_fd = { .events = POLLIN };
	struct timerhub_journal_completion completions[SUBMIT_TOGETHER];

	poll_fd.fd = timerhub_journal_completion_fd(journal);
	while (in_flight > most) {
		int count = timerhub_journal_completions(journal, completions, SUBMIT_TOGETHER);

		if (count < 0)
			return count;
		for (int i = 0; i < count; i++)
			if (completions[i].result < 0)
				return completions[i].result;
		in_flight -= (unsigned)count;
		if (count == 0 && poll(&poll_fd, 1, -1) < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

/* Begin a put. If too many puts are in flight, wait first. */
static int submit_put(uint64_t when_ns, uint32_t flags, const void *data, size_t data_len)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_PUT,
		.flags = flags,
		.when_ns = when_ns,
		.data = data,
		.data_len = data_len,
	};
	int result;

	do
		result = timerhub_journal_submit(journal, &change, 1, 0);
	while (result == -EAGAIN && in_flight > 0 && submit_await(in_flight - 1) == 0);
	if (result < 0)
		return result;
	in_flight++;
	return in_flight > SUBMIT_MAX ? submit_await(SUBMIT_MAX - SUBMIT_TOGETHER) : 0;
}

static int submit_arm(uint32_t timer, uint64_t delay_ns)
{
	(void)timer;
	return submit_put(delay_ns, 0, order, sizeof(order));
}

static int submit_flush(void)
{
	return submit_await(0);
}

SUBJECT(journal_submit, "journal-submit",
        "timerhub_journal_submit, 4000 in flight, polled for completions", CAN_PUT_DURABLY,
        .alone = true, .open = subject_open, .close = subject_close, .arm = submit_arm,
        .flush = submit_flush, .counts = subject_counts)

/* ---- journal-take ---- */

static void take_tick(void)
{
	subject_cached_ns = clock_read_ns(CLOCK_REALTIME);
}

static int take_arm(uint32_t timer, uint64_t delay_ns)
{
	return submit_put(subject_cached_ns + delay_ns, TIMERHUB_ABSOLUTE, &timer, sizeof(timer));
}

static void take_run(bool (*done)(void))
{
	struct epoll_event event;
	struct timerhub_journal_task task;
	uint32_t timer;
	int epoll_fd = subject_epoll(timerhub_journal_fd(journal)), result = submit_await(0);

	subject_must(result);
	while (!done()) {
		if (epoll_wait(epoll_fd, &event, 1, -1) < 0 && errno != EINTR)
			subject_fail("epoll_wait", errno);
		while ((result = timerhub_journal_take(journal, &task, 0)) == 1) {
			memcpy(&timer, task.data, sizeof(timer));
			subject_expired(timer);
		}
		subject_must(result);
	}
	(void)close(epoll_fd);
}

SUBJECT(journal_take, "journal-take", "timerhub_journal_take of tasks on disk, polled with epoll",
        CAN_BE_LATE, .open = subject_open, .tick = take_tick, .arm = take_arm, .run = take_run)
