/* SPDX-License-Identifier: MIT */
/* The pages of timerhub-top. Each fills an empty page, of which `columns` and `rows` are set. */
#ifndef TOP_PAGES_H
#define TOP_PAGES_H

#include "latest_readings.h"
#include "page.h"

/* The page about one hub, or one loop: number `index` of the watch. */
void hub_page_fill(struct page *page, const struct watch *watch, unsigned index);
void loop_page_fill(struct page *page, const struct watch *watch, unsigned index);

/* The page about the threads that dispatch or turn loops, the slow callbacks and the blame. */
void who_fill(struct page *page, const struct watch *watch);

/* The page with a line for each hub and loop of the process. */
void overview_fill(struct page *page, const struct watch *watch);

#endif
