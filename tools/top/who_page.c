/* SPDX-License-Identifier: MIT */
/* Shows which thread does what, which callbacks were slow, and who is to blame. See outputs.h. */
#include <stdio.h>
#include <string.h>

#include "outputs.h"

#define WIDE_COLUMNS 130
#define SLOW_ROWS_MAX 8

/* The columns of the table, of which a wide page has more. */
struct widths {
	int thread, now, state;
	bool is_wide;
};

static struct widths widths_of(const struct page *page)
{
	return page->columns < WIDE_COLUMNS ? (struct widths){ 19, 26, 11, false }
	                                    : (struct widths){ 26, 50, 60, true };
}

static struct sentence place_of(const struct watch *watch, const struct running *running,
                                bool is_wide)
{
	struct sentence place = { "" };

	if (running->cell.where == TIMERHUB_IN_CALL)
		tell(&place, "in its call");
	else if (running->cell.where == TIMERHUB_AWAY)
		tell(&place, "away: handlers or wait");
	else
		tell(&place, "in %s", watch_name(watch, running->cell.fn).text);
	if (running->cell.where == TIMERHUB_IN_CALLBACK && is_wide)
		tell_timer(&place, running);
	return place;
}

/* Returns what the kernel says: the state, and where the thread sleeps. */
static struct sentence state_of(const struct running *running, bool is_wide)
{
	const struct thread *thread = &running->thread;
	struct sentence state = { { thread->state, ' ', 0 } };

	if (work_between(&running->before, thread) == WORK_NO_CPU)
		tell(&state, "waits for a CPU");
	else
		tell(&state, "%s", thread->syscall[0] != 0 ? thread->syscall : thread->wchan);
	if (is_wide && thread->syscall[0] != 0 && thread->wchan[0] != 0)
		tell(&state, ", %s", thread->wchan);
	return state;
}

/* Returns how much of each second a time of the thread has grown by, in parts of 1 s / `parts`. */
static struct sentence share(const struct running *running, uint64_t now, uint64_t before,
                             double parts, const char *unit)
{
	uint64_t elapsed_ns = running->thread.at_ns - running->before.at_ns;
	struct sentence text = { "-" };

	if (running->before.tid != 0)
		(void)snprintf(text.text, sizeof(text.text), "%.0f %s",
		               reading_rate(now, before, elapsed_ns) * parts / 1e9, unit);
	return text;
}

static void page_thread(struct page *page, const struct watch *watch, const struct running *running)
{
	const struct thread *thread = &running->thread, *before = &running->before;
	struct widths widths = widths_of(page);
	struct sentence name = { "" };

	tell(&name, "%d \"%s\"", thread->tid, thread->name);
	page_add(page, "%-*.*s %-*.*s %7s %5s %7s %.*s", widths.thread, widths.thread, name.text,
	         widths.now, widths.now, place_of(watch, running, widths.is_wide).text,
	         running->for_ns > 0 ? span(running->for_ns).text : "-",
	         share(running, thread->ran_ns, before->ran_ns, 100, "%").text,
	         thread->has_waited_ns
	                 ? share(running, thread->waited_ns, before->waited_ns, 1000, "ms").text
	                 : "-",
	         widths.state, state_of(running, widths.is_wide).text);
	if (running->cell.where == TIMERHUB_IN_CALLBACK && running->for_ns >= BOARD_SLOW_DEFAULT_NS)
		page_mark(page);
}

static void page_threads(struct page *page, const struct watch *watch)
{
	struct widths widths = widths_of(page);

	page_add(page, "%-*s %-*s %7s %5s %7s %s", widths.thread, "thread", widths.now, "now",
	         "since", "cpu", "no cpu", "state");
	for (unsigned i = 0; i < watch->running->count; i++)
		page_thread(page, watch, &watch->running->rows[i]);
	if (watch->running->count == 0)
		page_add(page, "no thread has dispatched or turned a loop");
}

static void page_slow(struct page *page, const struct watch *watch)
{
	unsigned count = 0;

	for (unsigned i = 0; i < watch->count; i++)
		count += watch->now[i].slow_count;
	page_add(page, "%-36s %9s %9s %9s  %s", count > 0 ? "slow callbacks" : "no slow callback",
	         "count", "sum", "longest", "last");
	for (unsigned i = 0; i < watch->count; i++) {
		const struct reading *now = &watch->now[i];

		for (unsigned j = 0; j < now->slow_count && j < SLOW_ROWS_MAX; j++) {
			const struct slow_reading *slow = &now->slow[j];
			uint64_t ago_ns = reading_more(now->clock_ns, slow->last_ns);

			page_add(page, "%-36.36s %9s %9s %9s  %s%s",
			         watch_name(watch, slow->fn).text, number(slow->count).text,
			         span(slow->sum_ns).text, span(slow->longest_ns).text,
			         now->clock_ns > 0 ? span(ago_ns).text : "-",
			         now->clock_ns > 0 ? " ago" : "");
		}
	}
}

/* Adds a sentence, in lines that fit. */
static void page_sentence(struct page *page, const char *text)
{
	size_t columns = page->columns < 20 ? 20 : page->columns;
	const char *margin = "";

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

void who_fill(struct page *page, const struct watch *watch)
{
	struct blame blame;

	page_add(page, "process %d (%s): who runs, who was slow, who is late",
	         (int)watch->target.pid, watch->target.command);
	page_threads(page, watch);
	page_add(page, "%s", "");
	page_slow(page, watch);
	page_add(page, "%s", "");
	for (unsigned i = 0; i < watch->count; i++) {
		blame_fill(&blame, watch, i);
		for (unsigned j = 0; j < blame.count; j++)
			page_sentence(page, blame.sentences[j].text);
	}
}
