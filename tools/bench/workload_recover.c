/* SPDX-License-Identifier: MIT */
/*
 * Measures the open of a journal of N live tasks with keys, as after a crash. The first open has an
 * empty page cache, as after a boot. The second open has all files in the page cache. The workload
 * also reports the memory of a task without its data and key.
 */
#include <errno.h>
#include <sys/wait.h>
#include <timerhub_journal.h>
#include <unistd.h>

#include "clocks.h"
#include "disk_folder.h"
#include "process_usage.h"
#include "workload_functions.h"

#define DELAY_NS (3600 * NS_PER_SECOND)
#define TOGETHER 256

static struct timerhub_journal *open_with(const char *folder, uint32_t tasks, uint64_t recovered)
{
	struct timerhub_journal_config config = { .size = sizeof(config), .tasks_max = tasks };
	struct timerhub_journal_stats stats;
	struct timerhub_journal *journal;
	int result = timerhub_journal_open(&journal, folder, &config);

	if (result == 0)
		result = timerhub_journal_stats(journal, &stats);
	if (result < 0 || stats.recovered != recovered)
		subject_fail("timerhub_journal_open", -result);
	return journal;
}

/* Wait until at least one put has ended. Returns the number of puts that have ended. */
static unsigned await_puts(struct timerhub_journal *journal)
{
	struct timerhub_journal_completion completions[TOGETHER];
	int count;

	(void)subject_poll(timerhub_journal_completion_fd(journal), UINT64_MAX);
	count = timerhub_journal_completions(journal, completions, TOGETHER);
	subject_must(count);
	for (int i = 0; i < count; i++)
		subject_must(completions[i].result);
	return (unsigned)count;
}

static void put_all(struct timerhub_journal *journal, uint32_t tasks)
{
	static const char order[DURABLE_BYTES] = "an order";

	for (uint32_t begun = 0, ended = 0; ended < tasks;) {
		struct timerhub_journal_change change = {
			.op = TIMERHUB_JOURNAL_PUT,
			.when_ns = DELAY_NS,
			.key = &begun,
			.key_len = sizeof(begun),
			.data = order,
			.data_len = sizeof(order),
		};
		int result =
			begun < tasks ? timerhub_journal_submit(journal, &change, 1, 0) : -EAGAIN;

		if (result == 0)
			begun++;
		else if (result == -EAGAIN)
			ended += await_puts(journal);
		else
			subject_must(result);
	}
}

/*
 * Fill the journal with tasks, in a child process. The parent process later measures its own
 * memory, which must not include this work.
 */
static void fill(const char *folder, uint32_t tasks)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		put_all(open_with(folder, tasks, 0), tasks);
		_exit(0); /* do not close the journal, as in a crash */
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		subject_fail("filling a journal", 0);
}

void recover_measure(const struct run *run, struct result *result)
{
	const char *folder = folder_make();
	uint64_t start_ns, cold_ns, resident;
	struct timerhub_journal *journal;
	struct meter meter;

	fill(folder, run->timers);
	folder_drop_caches();
	resident = process_resident_bytes();
	start_ns = now_ns();
	journal = open_with(folder, run->timers, run->timers);
	cold_ns = now_ns() - start_ns;
	resident = process_resident_bytes() - resident;
	timerhub_journal_close(journal);
	meter = meter_start();
	journal = open_with(folder, run->timers, run->timers);
	meter_stop(&meter, result, run->timers);
	timerhub_journal_close(journal);
	result_add(result, "cold_s", (double)cold_ns * 1e-9);
	result_add(result, "warm_s", result->ns_per_op * run->timers * 1e-9);
	result_add(result, "bytes",
	           (double)resident / run->timers - DURABLE_BYTES - sizeof(uint32_t));
}
