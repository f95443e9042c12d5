/* SPDX-License-Identifier: MIT */
/* Shows which thread does what, which callbacks were slow, and who is to blame. See pages.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "blame.h"
#include "pages.h"

#define WIDE_COLUMNS 130
#define SLOW_ROWS_MAX 8

/* Returns what a counter of ns has grown by in a second, in ns. */
static double share(uint64_t now, uint64_t before, const struct running *running)
{
	return reading_rate(now, before, running->thread.at_ns - running->before.at_ns);
}

/* What a row of the table is made of; a wide page has more room. */
struct widths {
	int thread, now;
	bool is_wide;
};

static struct widths widths_of(const struct page *page)
{
	return page->columns < WIDE_COLUMNS ? (struct widths){ 19, 26, false }
	                                    : (struct widths){ 26, 50, true };
}

static void tell_cell(const struct watch *watch, const struct running *running, bool is_wide,
                      char *text, size_t bytes)
{
	char name[FUNCTION_NAME_BYTES];

	if (running->cell.where == TIMERHUB_IN_CALL) {
		(void)snprintf(text, bytes, "in its call");
	} else if (running->cell.where == TIMERHUB_AWAY) {
		(void)snprintf(text, bytes, "away%s",
		               is_wide ? " (its own handlers or its wait)" : ": handlers or wait");
	} else {
		function_name(watch->names, running->cell.fn, name);
		if (is_wide)
			(void)snprintf(text, bytes, "in %s  (%s %" PRIx64 ")", name,
			               cell_names_timeout(&running->cell) ? "timeout" : "timer",
			               running->cell.timer);
		else
			(void)snprintf(text, bytes, "in %s", name);
	}
}

/* What the kernel says: the state, and where the thread sleeps. */
static void tell_state(const struct running *running, bool is_wide, char *text, size_t bytes)
{
	const struct thread *thread = &running->thread;
	const char *call = thread->syscall[0] != 0 ? thread->syscall : thread->wchan;

	if (work_between(&running->before, thread) == WORK_NO_CPU)
		call = "waits for a CPU";
	(void)snprintf(text, bytes, "%c %s", thread->state, call);
	if (is_wide && thread->syscall[0] != 0 && thread->wchan[0] != 0)
		(void)snprintf(text, bytes, "%c %s, %s", thread->state, call, thread->wchan);
}

static void page_thread(struct page *page, const struct watch *watch, const struct running *running)
{
	const struct thread *thread = &running->thread, *before = &running->before;
	char now[FUNCTION_NAME_BYTES + 64], name[THREAD_TEXT_BYTES + 16];
	char cpu[16] = "-", waited[32] = "-", state[3 * THREAD_TEXT_BYTES];
	struct widths widths = widths_of(page);

	tell_cell(watch, running, widths.is_wide, now, sizeof(now));
	tell_state(running, widths.is_wide, state, sizeof(state));
	(void)snprintf(name, sizeof(name), "%d \"%s\"", thread->tid, thread->name);
	if (before->tid != 0)
		(void)snprintf(cpu, sizeof(cpu), "%.0f %%",
		               share(thread->ran_ns, before->ran_ns, running) / 1e7);
	if (before->tid != 0 && thread->has_waited_ns)
		(void)snprintf(waited, sizeof(waited), "%.0f ms",
		               share(thread->waited_ns, before->waited_ns, running) / 1e6);
	page_add(page, "%-*.*s %-*.*s %7s %5s %7s %.*s", widths.thread, widths.thread, name,
	         widths.now, widths.now, now,
	         running->for_ns > 0 ? span(running->for_ns).text : "-", cpu, waited,
	         widths.is_wide ? 60 : 11, state);
}

static void page_threads(struct page *page, const struct watch *watch)
{
	struct widths widths = widths_of(page);

	page_add(page, "%-*s %-*s %7s %5s %7s %s", widths.thread, "thread", widths.now, "now",
	         "since", "cpu", "no cpu", "state");
	for (unsigned i = 0; i < watch->running->count; i++) {
		const struct running *running = &watch->running->rows[i];

		page_thread(page, watch, running);
		if (running->cell.where == TIMERHUB_IN_CALLBACK &&
		    running->for_ns >= BOARD_SLOW_DEFAULT_NS)
			page_mark(page);
	}
	if (watch->running->count == 0)
		page_add(page, "no thread has dispatched or turned a loop");
}

static void page_slow(struct page *page, const struct watch *watch, unsigned index)
{
	const struct reading *now = &watch->now[index];
	char name[FUNCTION_NAME_BYTES];

	for (unsigned i = 0; i < now->slow_count && i < SLOW_ROWS_MAX; i++) {
		const struct slow_reading *slow = &now->slow[i];
		uint64_t ago_ns = reading_more(now->clock_ns, slow->last_ns);

		function_name(watch->names, slow->fn, name);
		page_add(page, "%-36.36s %9s %9s %9s  %s%s", name, number(slow->count).text,
		         span(slow->sum_ns).text, span(slow->longest_ns).text,
		         now->clock_ns > 0 ? span(ago_ns).text : "-",
		         now->clock_ns > 0 ? " ago" : "");
	}
}

/* Adds the sentences, in lines that fit. */
static void page_blame(struct page *page, const struct watch *watch, unsigned index)
{
	struct blame blame;

	blame_fill(&blame, watch, index);
	for (unsigned i = 0; i < blame.count; i++) {
		const char *text = blame.sentences[i], *margin = "";
		size_t columns = page->columns < 20 ? 20 : page->columns;

		while (*text) {
			size_t room = columns - strlen(margin), length = strlen(text);

			if (length > room)
				for (length = room; length > room / 2 && text[length] != ' ';)
					length--;
			page_add(page, "%s%.*s", margin, (int)length, text);
			text += length + strspn(text + length, " ");
			margin = "    ";
		}
	}
}

void who_fill(struct page *page, const struct watch *watch)
{
	unsigned slow_count = 0;

	page_add(page, "process %d (%s): who runs, who was slow, who is late",
	         (int)watch->target.pid, watch->target.command);
	page_threads(page, watch);
	page_add(page, "%s", "");
	for (unsigned i = 0; i < watch->target.hub_count; i++)
		slow_count += watch->now[i].slow_count;
	page_add(page, "%-36s %9s %9s %9s  %s",
	         slow_count > 0 ? "slow callbacks" : "no slow callback", "count", "sum", "longest",
	         "last");
	for (unsigned i = 0; i < watch->target.hub_count; i++)
		page_slow(page, watch, i);
	page_add(page, "%s", "");
	for (unsigned i = 0; i < watch->target.hub_count; i++)
		page_blame(page, watch, i);
}
