/* SPDX-License-Identifier: MIT */
/*
 * In "notice", another process puts a task that is due at once while the taker rests. Lateness is
 * the time from the put's call until the take has returned; the part after the put had returned is
 * reported too, because the put includes the commit.
 *
 * In "waiting", N tasks wait while one thread puts a later one, puts one that is due, takes this
 * and finishes it, again and again.
 */
#include <semaphore.h>
#include <sqlite3.h>
#include <stdio.h>

#include "children.h"
#include "clocks.h"
#include "disk_folder.h"
#include "process_usage.h"
#include "randoms.h"
#include "subject_store.h"
#include "workload_functions.h"
#include "workload_steps.h"

#define REST_NS (10 * NS_PER_MS)
#define LATER_NS (3600 * NS_PER_SECOND)
#define DURATIONS 5

/* ---- notice ---- */

static struct notice {
	sem_t taken, put; /* the taker may be put to, the putter has put */
	uint64_t begun_ns, ended_ns;
} * notice;
static const struct run *plan;

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0) {
	}
}

static void notice_put(unsigned child)
{
	struct subject_setup setup = { .threads = 1 };

	(void)child;
	await(&notice->taken);
	(void)driver_open(plan, &setup, NULL);
	for (uint32_t i = 0; i < plan->timers; i++) {
		sleep_until_ns(now_ns() + REST_NS);
		notice->begun_ns = now_ns();
		subject_must(plan->subject->arm(0, 0));
		notice->ended_ns = now_ns();
		(void)sem_post(&notice->put);
		await(&notice->taken);
	}
}

void notice_measure(const struct run *run, struct result *result)
{
	static struct histogram late, after;
	struct timerhub_store_task task;
	struct timerhub_store *store;

	plan = run;
	notice = children_share(sizeof(*notice));
	(void)sem_init(&notice->taken, 1, 0);
	(void)sem_init(&notice->put, 1, 0);
	(void)folder_make();
	children_begin(1, notice_put);
	store = store_open();
	for (uint32_t i = 0; i < run->timers; i++) {
		uint64_t now;

		(void)sem_post(&notice->taken);
		subject_must(timerhub_store_take(store, &task, 1, UINT64_MAX));
		now = now_ns();
		await(&notice->put);
		histogram_add(&late, now - notice->begun_ns);
		histogram_add(&after, now > notice->ended_ns ? now - notice->ended_ns : 0);
		subject_must(timerhub_store_done(store, &task));
	}
	(void)sem_post(&notice->taken);
	children_await(1);
	timerhub_store_close(store);
	result_add_percentiles(result, &late, "us", (const double[]){ 50, 99, 0 });
	(void)result_value(result, "p50_us", &result->ns_per_op);
	result->ns_per_op *= NS_PER_US;
	result_add(result, "after_p50_us", histogram_quantile_ns(&after, 0.5) / NS_PER_US);
	result_add(result, "after_p99_us", histogram_quantile_ns(&after, 0.99) / NS_PER_US);
}

/* ---- waiting ---- */

/* In a process of its own, because the memory of the measuring process is measured. */
static void fill(unsigned child)
{
	char sql[512];
	sqlite3 *db;

	(void)child;
	(void)snprintf(sql, sizeof(sql),
	               "INSERT INTO timerhub_tasks(due_us,data) WITH RECURSIVE task(i) AS"
	               " (SELECT 1 UNION ALL SELECT i+1 FROM task WHERE i<%u) SELECT"
	               " CAST(unixepoch() AS INTEGER)*1000000+%llu*(1000000+i*1000000/%u),"
	               "zeroblob(%d) FROM task",
	               plan->timers, LATER_NS / NS_PER_SECOND, plan->timers, DURABLE_BYTES);
	if (sqlite3_open(store_path(), &db) != SQLITE_OK || timerhub_store_install(db) < 0 ||
	    sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK || sqlite3_close(db) != SQLITE_OK)
		subject_fail("filling a database", 0);
}

static uint64_t put(struct timerhub_store *store, uint64_t delay_ns)
{
	static const char order[DURABLE_BYTES] = "an order";
	struct timerhub_store_put put = {
		.size = sizeof(put),
		.when_ns = delay_ns,
		.data = order,
		.data_len = sizeof(order),
	};
	uint64_t before = now_ns();

	subject_must(timerhub_store_put(store, &put, NULL));
	return now_ns() - before;
}

void waiting_measure(const struct run *run, struct result *result)
{
	static struct histogram puts, takes;
	struct randoms randoms = randoms_from(run->seed);
	struct timerhub_store_task task;
	struct timerhub_store *store;
	uint64_t resident, end;
	struct meter meter;

	plan = run;
	(void)folder_make();
	children_begin(1, fill);
	children_await(1);
	resident = process_resident_bytes();
	store = store_open();
	meter = meter_start();
	end = now_ns() + run->duration_ns * DURATIONS;
	while (now_ns() < end) {
		uint64_t before;

		histogram_add(&puts, put(store, randoms_between(&randoms, LATER_NS, 2 * LATER_NS)));
		(void)put(store, 0);
		before = now_ns();
		subject_must(timerhub_store_take(store, &task, 1, UINT64_MAX));
		histogram_add(&takes, now_ns() - before);
		subject_must(timerhub_store_done(store, &task));
	}
	meter_stop(&meter, result, puts.count);
	resident = process_resident_bytes() - resident;
	timerhub_store_close(store);
	result->ns_per_op = histogram_quantile_ns(&puts, 0.5);
	result_add(result, "put_p50_us", result->ns_per_op / NS_PER_US);
	result_add(result, "take_p50_us", histogram_quantile_ns(&takes, 0.5) / NS_PER_US);
	result_add(result, "MiB", (double)resident / (1 << 20));
}
