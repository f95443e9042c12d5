/* SPDX-License-Identifier: MIT */
/* Shows all hubs and loops of a process. See pages.h. */
#include <stdio.h>
#include <string.h>

#include "lateness_page.h"
#include "pages.h"

#define RHYTHM_COLUMNS 20

/* Returns the rate of what the hub delivers, or the loop calls. */
static struct number rate_of(const struct hub *hub, const struct reading *now,
                             const struct reading *before)
{
	const struct reading *then = before ? before : now;

	return hub_is_loop(hub) ? rate(now->callbacks, then->callbacks, now, before)
	                        : rate(now->delivered, then->delivered, now, before);
}

/* Returns the 99th percentile of the lateness of delivery, or of a loop, between two readings. */
static struct number lateness_of(const struct hub *hub, const struct reading *now,
                                 const struct reading *before)
{
	const struct reading *then = before ? before : now;
	struct lateness lateness =
		hub_is_loop(hub)
			? lateness_between(now->lateness, then->lateness)
			: lateness_between(now->delivery_lateness, then->delivery_lateness);

	return lateness.count > 0 ? span(lateness.p99_below_ns) : (struct number){ "-" };
}

void overview_fill(struct page *page, const struct watch *watch)
{
	page_add(page, "process %d (%s)", (int)watch->target.pid, watch->target.command);
	page_add(page, "%3s %-16s %11s %10s %9s %8s  %s", "", "", "live", "a second", "waiting",
	         "p99 <", "latest");
	for (unsigned i = 0; i < watch->target.hub_count; i++) {
		const struct hub *hub = &watch->target.hubs[i];
		const struct reading *now = &watch->now[i], *before = watch_before(watch, i);
		size_t length = strlen(now->rhythm);

		page_add(page, "%3u %-16s %11s %10s %9s %8s  %s", i + 1,
		         hub_is_loop(hub) ? "a loop" : hub->about.thread_name,
		         number(hub_is_loop(hub) ? now->added : now->live).text,
		         rate_of(hub, now, before).text,
		         hub_is_loop(hub) ? "" : number(now->outbox).text,
		         lateness_of(hub, now, before).text,
		         now->rhythm + (length > RHYTHM_COLUMNS ? length - RHYTHM_COLUMNS : 0));
		if (now->queues[0].grew >= READING_GREW || now->inbox_grew >= READING_GREW)
			page_mark(page);
	}
	page_add_legend(page);
}
