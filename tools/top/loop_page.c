/* SPDX-License-Identifier: MIT */
/* Shows one loop. See pages.h. */
#include "lateness_page.h"
#include "pages.h"

static void page_head(struct page *page, const struct target *target, unsigned index,
                      const struct reading *now)
{
	const struct board_header *about = &target->hubs[index].about;

	page_add(page, "process %d (%s), %u of %u: a loop, clock %s", (int)target->pid,
	         target->command, index + 1, target->hub_count,
	         clock_name(about->clock, about->manual != 0));
	page_add(page, "library %s, open for %s", about->library_version,
	         hours(reading_more(now->at_ns, about->opened_ns)).text);
	page_add_rhythm(page, now);
	page_add_legend(page);
}

static void page_counters(struct page *page, const struct reading *now,
                          const struct reading *before)
{
	const struct reading *then = before ? before : now;
	const struct counter rows[] = {
		{ "turns", now->turns, then->turns },
		{ "callbacks", now->callbacks, then->callbacks },
		{ "empty wake-ups", now->empty_wakes, then->empty_wakes },
		{ "refused calls", now->refused, then->refused },
	};

	page_add_counters(page, rows, sizeof(rows) / sizeof(rows[0]), now, before);
}

void loop_page_fill(struct page *page, const struct watch *watch, unsigned index)
{
	const struct reading *now = &watch->now[index], *before = watch_before(watch, index);
	struct page right = { .count = 0 };
	unsigned from;

	page_head(page, &watch->target, index, now);
	from = page->count;
	page_add(page, "%-16s %11s", "timeouts", number(now->added).text);
	page_add(page, "  room for %s", number(watch->target.hubs[index].about.timers_max).text);
	page_add(page, "%-16s %11s", "longest turn", span(now->turn_max_ns).text);
	page_add(page, "%s", "");
	page_counters(page, now, before);
	right.rows = page->rows > from ? page->rows - from : 0;
	page_add_lateness(&right, now, before, false);
	page_beside(page, from, &right);
}
