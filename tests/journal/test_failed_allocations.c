/* SPDX-License-Identifier: MIT */
/*
 * One life on a simulated disk, again and again, with another allocation failing each time (the
 * linker redirects them here). A call without memory says so and changes nothing, and succeeds when
 * repeated; the end is that of a run without failures, and all memory is freed.
 */
#include <errno.h>
#include <stdlib.h>

#include "model.h"

#define MANY 40
#define CHURNS 60

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static unsigned asked;     /* number of allocations so far in this run */
static unsigned refuse_at; /* number of the allocation that fails, or 0 */
static int had;            /* number of allocations that are not freed */
static bool refused;       /* an allocation has failed in the present step */

static bool refuses(void)
{
	if (refuse_at == 0 || ++asked != refuse_at)
		return false;
	refused = true;
	return true;
}

static void *note(void *memory)
{
	had += memory ? 1 : 0;
	return memory;
}

void *__wrap_malloc(size_t bytes)
{
	return refuses() ? NULL : note(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return refuses() ? NULL : note(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	if (refuses())
		return NULL;
	return memory ? __real_realloc(memory, bytes) : note(__real_malloc(bytes));
}

void __wrap_free(void *memory)
{
	had -= memory ? 1 : 0;
	__real_free(memory);
}

/* ---- the steps of a life; a negative result says that nothing was done ---- */

static struct sim_disk sim;
static struct test_timer test_timer;
static struct timerhub_journal_config config;
static struct timerhub_journal *journal;
static struct timerhub_journal_task task;
static char data[900];
static unsigned told;

static int open_it(void)
{
	sim.locked = false;
	return journal_open(&journal, &sim.disk, &test_timer.timer, &config, false);
}

static int close_it(void)
{
	timerhub_journal_close(journal);
	journal = NULL;
	return 0;
}

static int put_due(void)
{
	return timerhub_journal_put(journal, 0, 0, data, 10, NULL);
}

static int put_with_key(void)
{
	return timerhub_journal_put_key(journal, "key", 3, HOUR, 0, data, 20, NULL);
}

static int commit_two(void)
{
	struct timerhub_journal_change changes[2] = {
		{ .op = TIMERHUB_JOURNAL_PUT, .when_ns = HOUR, .data = data, .data_len = 7 },
		{ .op = TIMERHUB_JOURNAL_PUT, .when_ns = HOUR, .interval_ns = HOUR },
	};

	return timerhub_journal_commit(journal, changes, 2);
}

/* Completes together with the next. */
static int submit_one(void)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_PUT, .when_ns = HOUR, .data = data, .data_len = 30
	};

	return timerhub_journal_submit(journal, &change, 1, 5);
}

static int complete_one(void)
{
	struct timerhub_journal_completion completion;

	expect_eq(timerhub_journal_completions(journal, &completion, 1), 1);
	expect_eq(completion.tag, 5);
	return completion.result;
}

static int take_one(void)
{
	return timerhub_journal_take(journal, &task, 0);
}

static int done_it(void)
{
	return timerhub_journal_done(journal, &task);
}

/* Put and cancel a task, so that compaction has work. */
static int churn(void)
{
	uint64_t id;
	int result = timerhub_journal_put(journal, HOUR, 0, data, sizeof(data), &id);

	return result < 0 ? result : timerhub_journal_cancel(journal, id);
}

static int tell_one(void *context, const struct timerhub_journal_info *info)
{
	(void)context;
	(void)info;
	told++;
	return 0;
}

static int tell_all(void)
{
	told = 0;
	return timerhub_journal_each(journal, tell_one, NULL);
}

static const struct step {
	int (*make)(void);
	unsigned times;
} steps[] = {
	{ open_it, 1 },    { put_due, 1 },    { put_with_key, 1 }, { commit_two, 1 },
	{ submit_one, 1 }, { put_due, MANY }, { complete_one, 1 }, { take_one, MANY },
	{ done_it, 1 },    { churn, CHURNS }, { tell_all, 1 },     { close_it, 1 },
	{ open_it, 1 },    { tell_all, 1 },
};

/* Returns whether the run reached the allocation `number`. */
static bool live(unsigned number)
{
	bool ever = false;
	int had_before = had;

	sim_open(&sim, 1);
	test_timer_open(&test_timer, SEC);
	asked = 0;
	for (unsigned i = 0; i < COUNT_OF(steps); i++) {
		for (unsigned k = 0; k < steps[i].times; k++) {
			int result;

			refused = false;
			refuse_at = number;
			result = steps[i].make();
			refuse_at = 0;
			ever = ever || refused;
			expect(result >= 0 || (refused && result == -ENOMEM));
			if (result < 0)
				expect_le(0, steps[i].make());
		}
	}
	/* all live tasks, and none that is done */
	expect_eq(told, MANY + 1 + 1 + 2 + 1 - 1);
	expect_eq(timerhub_journal_cancel_key(journal, "key", 3), 0);
	expect_eq(close_it(), 0);
	sim_close(&sim);
	expect_eq(had, had_before);
	return ever;
}

START_TEST(call_that_is_refused_memory_says_so_and_changes_nothing)
{
	unsigned number = 1;

	config = (struct timerhub_journal_config){
		.size = sizeof(config),
		.segment_bytes = 4096,
		.data_max = sizeof(data),
		.tasks_max = 1000,
	};
	expect_eq(journal_read_config(&config, &config), 0);
	while (live(number))
		number++;
	expect_lt(MANY, number);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("memory", argc, argv);
	tests_add(call_that_is_refused_memory_says_so_and_changes_nothing, 120);
	return tests_run();
}
