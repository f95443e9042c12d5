/* SPDX-License-Identifier: MIT */
/*
 * Shows one hub. See pages.h. The queues stand directly under the head, because the one in which
 * events wait names the guilty consumer, and of these the ones in which most waits come first.
 */
#include <inttypes.h>
#include <stdio.h>

#include "lateness_page.h"
#include "pages.h"

#define ROWS_BELOW_QUEUES 15 /* the counters, which are to be on the screen too */
#define QUEUE_ROWS_MIN 3

static void page_head(struct page *page, const struct target *target, unsigned index,
                      const struct reading *now)
{
	const struct board_header *about = &target->hubs[index].about;

	page_add(page, "process %d (%s), hub %u of %u: thread \"%s\", clock %s", (int)target->pid,
	         target->command, index + 1, target->hub_count, about->thread_name,
	         clock_name(about->clock, about->manual != 0));
	page_add(page, "sleeper %s, library %s, open for %s, queues %" PRIu32,
	         sleeper_name(now->sleeper), about->library_version,
	         hours(reading_more(now->at_ns, about->opened_ns)).text, now->queue_count);
	page_add_rhythm(page, now);
}

/* Returns how many queues are shown, so that the counters are on the screen, too. */
static uint32_t queue_rows(const struct page *page, uint32_t queue_count)
{
	uint32_t others = page->count + 1 + ROWS_BELOW_QUEUES;
	uint32_t rows = page->rows > others + QUEUE_ROWS_MIN ? page->rows - others : QUEUE_ROWS_MIN;

	if (page->rows == 0) /* this is no screen */
		rows = READING_QUEUES_MAX;
	else if (queue_count > rows && rows > QUEUE_ROWS_MIN)
		rows--; /* for the line that says how many more there are */
	return rows < READING_QUEUES_MAX ? rows : READING_QUEUES_MAX;
}

static void page_queues(struct page *page, const struct reading *now, const struct reading *before)
{
	uint32_t rows = queue_rows(page, now->queue_count);

	if (now->queue_count > 0)
		page_add(page, "%5s %5s %12s %15s %12s", "queue", "fd", "a second", "delivered",
		         "waiting");
	for (uint32_t i = 0; i < now->queue_count && i < rows; i++) {
		const struct queue_reading *queue = &now->queues[i];
		const struct queue_reading *then =
			before ? reading_queue(before, queue->index) : NULL;
		bool grew = queue->grew >= READING_GREW;

		page_add(page, "%5" PRIu32 " %5d %12s %15s %12s%s", queue->index, queue->fd,
		         rate(queue->delivered, then ? then->delivered : queue->delivered, now,
		              before)
		                 .text,
		         number(queue->delivered).text, number(queue->waiting).text,
		         grew ? " grows" : "");
		if (grew)
			page_mark(page);
	}
	if (now->queue_count > rows)
		page_add(page, "and %" PRIu32 " more in which less waits", now->queue_count - rows);
}

static void page_depths(struct page *page, const struct board_header *about,
                        const struct reading *now)
{
	bool grew = now->inbox_grew >= READING_GREW;

	page_add(page, "%-16s %11s", "live timers", number(now->live).text);
	page_add(page, "  most %s, room for %s", number(now->live_max).text,
	         number(about->timers_max).text);
	page_add(page, "%-16s %11s%s", "in the inbox", number(now->inbox).text,
	         grew ? " grows" : "");
	if (grew)
		page_mark(page);
	page_add(page, "%-16s %11s", "in the outboxes", number(now->outbox).text);
}

static void page_counters(struct page *page, const struct reading *now,
                          const struct reading *before)
{
	const struct reading zero = { .at_ns = 0 };
	const struct reading *then = before ? before : &zero;
	const struct counter rows[] = {
		{ "armed", now->armed, then->armed },
		{ "refiled *", now->refiled, then->refiled },
		{ "cancelled", now->cancelled, then->cancelled },
		{ "expired", now->expired, then->expired },
		{ "delivered", now->delivered, then->delivered },
		{ "overruns", now->overruns, then->overruns },
		{ "owner wake-ups", now->owner_wakeups, then->owner_wakeups },
		{ "woken by callers", now->submit_wakes, then->submit_wakes },
		{ "queue signals", now->queue_signals, then->queue_signals },
	};

	page_add_counters(page, rows, sizeof(rows) / sizeof(rows[0]), now, before);
}

void hub_page_fill(struct page *page, const struct watch *watch, unsigned index)
{
	const struct reading *now = &watch->now[index], *before = watch_before(watch, index);
	struct page right = { .count = 0 };
	unsigned from;

	page_head(page, &watch->target, index, now);
	page_queues(page, now, before);
	page_add_legend(page);
	from = page->count;
	page_depths(page, &watch->target.hubs[index].about, now);
	page_counters(page, now, before);
	right.rows = page->rows > from ? page->rows - from : 0;
	page_add_lateness(&right, now, before, true);
	page_beside(page, from, &right);
	page_add(page, "%s", "");
	page_add(page,
	         "* number of timers that the owner scheduled again, because they were moved");
	page_add(page, "  to a later deadline. The calls that move timers are not counted.");
}
