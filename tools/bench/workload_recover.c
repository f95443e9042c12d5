/* SPDX-License-Identifier: MIT */
/*
 * Opens a journal of N live tasks with keys, as after a crash. The first open has an empty page
 * cache, as after a boot. The second has all files in the cache. The workload also reports a task's
 * memory without its data and key.
 */
#include <timerhub_journal.h>

#include "clocks.h"
#include "deposit.h"
#include "folder.h"
#include "process.h"
#include "workload_list.h"

#define DELAY_NS (3600 * NS_PER_SECOND)

static void fill(const char *folder, uint32_t tasks)
{
	static const char order[DURABLE_BYTES] = "an order";
	uint64_t due_ns = clock_read_ns(CLOCK_REALTIME) + DELAY_NS;

	deposit_open(folder);
	for (uint32_t i = 0; i < tasks; i++)
		deposit_put(due_ns + i, &i, sizeof(i), order, sizeof(order));
	deposit_close();
}

static struct timerhub_journal *open_full(const char *folder, uint32_t tasks)
{
	struct timerhub_journal_config config = { .size = sizeof(config), .tasks_max = tasks };
	struct timerhub_journal_stats stats;
	struct timerhub_journal *journal;
	int result = timerhub_journal_open(&journal, folder, &config);

	if (result == 0)
		result = timerhub_journal_stats(journal, &stats);
	if (result < 0 || stats.recovered != tasks)
		subject_fail("timerhub_journal_open", -result);
	return journal;
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
	journal = open_full(folder, run->timers);
	cold_ns = now_ns() - start_ns;
	resident = process_resident_bytes() - resident;
	timerhub_journal_close(journal);
	meter = meter_start();
	journal = open_full(folder, run->timers);
	meter_stop(&meter, result, run->timers);
	timerhub_journal_close(journal);
	result_add(result, "cold_s", (double)cold_ns * 1e-9);
	result_add(result, "warm_s", result->ns_per_op * run->timers * 1e-9);
	result_add(result, "bytes",
	           (double)resident / run->timers - DURABLE_BYTES - sizeof(uint32_t));
}
