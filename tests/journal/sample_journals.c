/* SPDX-License-Identifier: MIT */
/*
 * Makes two journals for format_page_test.py: one with records of every type that needs no
 * compaction, one with copies that compaction made, not closed. Prints for each "NAME ID DUE
 * ATTEMPTS LENGTH REASON INTERVAL KEY MORE". scribe DIR OTHER-DIR
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timerhub_journal.h>
#include <unistd.h>

#define FAR_NS (UINT64_C(1) << 62)
#define CHURN 2000

static const char text[] = "what a task has to say, for as long as it takes";
static struct timerhub_journal *journal;

static void must(int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "scribe: %s\n", strerror(-result));
	exit(1);
}

static void say(const char *name, uint64_t id, uint64_t due_ns, uint64_t attempts, size_t length)
{
	printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %zu 0 0 - 0\n", name, id, due_ns, attempts,
	       length);
}

static uint64_t put(uint64_t due_ns, size_t length)
{
	uint64_t id = 0;

	must(timerhub_journal_put(journal, due_ns, TIMERHUB_ABSOLUTE, text, length, &id));
	say("put", id, due_ns, 0, length);
	return id;
}

static void move(uint64_t id, uint64_t due_ns)
{
	must(timerhub_journal_move(journal, id, due_ns, TIMERHUB_ABSOLUTE));
	say("move", id, due_ns, 0, 0);
}

static struct timerhub_journal_task take(uint64_t wanted, uint64_t attempts)
{
	struct timerhub_journal_task task;

	must(timerhub_journal_take(journal, &task, UINT64_MAX));
	if (task.id != wanted || task.attempts != attempts)
		must(-ENOENT);
	say("take", task.id, 0, task.attempts, 0);
	return task;
}

/* Two tasks in one commit; the first is periodic, has a key, and loses one period. */
static void commit(void)
{
	struct timerhub_journal_change changes[2] = {
		{ .op = TIMERHUB_JOURNAL_PUT,
		  .flags = TIMERHUB_ABSOLUTE,
		  .when_ns = 3,
		  .interval_ns = FAR_NS,
		  .key = "every",
		  .key_len = 5,
		  .data = text,
		  .data_len = 3 },
		{ .op = TIMERHUB_JOURNAL_PUT, .flags = TIMERHUB_ABSOLUTE, .when_ns = FAR_NS },
	};
	struct timerhub_journal_task task;

	must(timerhub_journal_commit(journal, changes, 2));
	printf("put %" PRIu64 " 3 0 3 0 %" PRIu64 " every 1\n", changes[0].id, FAR_NS);
	say("put", changes[1].id, FAR_NS, 0, 0);
	task = take(changes[0].id, 1);
	must(timerhub_journal_done(journal, &task));
	say("renew", task.id, 3 + FAR_NS, 0, 0);
}

/* One call after the other, so that the order is known. */
static uint64_t each_type(void)
{
	uint64_t kept = put(1, 11), ended, cancelled;
	struct timerhub_journal_task task = take(kept, 1);

	must(timerhub_journal_retry(journal, &task, TIMERHUB_NEVER));
	say("retry", kept, TIMERHUB_NEVER, 0, 0);
	ended = put(FAR_NS, 0);
	move(ended, 2);
	task = take(ended, 1);
	must(timerhub_journal_done(journal, &task));
	say("done", ended, 0, 0, 0);
	cancelled = put(FAR_NS, 8);
	must(timerhub_journal_cancel(journal, cancelled));
	say("cancel", cancelled, 0, 0, 0);
	commit();
	move(kept, 4);
	task = take(kept, 2);
	must(timerhub_journal_park(journal, &task, 77));
	printf("park %" PRIu64 " 4 2 0 77 0 - 0\n", kept);
	return kept;
}

static void churn(void)
{
	struct timerhub_journal_stats stats = { .segments_dropped = 0 };
	uint64_t id;

	for (unsigned i = 0; i < CHURN && stats.segments_dropped == 0; i++) {
		must(timerhub_journal_put(journal, FAR_NS, TIMERHUB_ABSOLUTE, text, sizeof(text),
		                          &id));
		must(timerhub_journal_cancel(journal, id));
		must(timerhub_journal_stats(journal, &stats));
	}
}

static void open_journal(const char *dir)
{
	struct timerhub_journal_config config = { .size = sizeof(config),
		                                  .segment_bytes = 4096,
		                                  .data_max = sizeof(text),
		                                  .tasks_max = 9 };

	must(timerhub_journal_open(&journal, dir, &config));
}

int main(int argc, char **argv)
{
	uint64_t kept;

	if (argc != 3)
		return 2;
	open_journal(argv[1]);
	(void)each_type();
	timerhub_journal_close(journal);
	say("close", 0, 0, 0, 0);
	open_journal(argv[2]);
	kept = each_type();
	churn();
	printf("copy %" PRIu64 " 4 2 11 77 0 - 0\n", kept);
	(void)fflush(stdout);
	/* not closed, so the last segment keeps its zeros */
	_exit(0);
}
