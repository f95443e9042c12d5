/* SPDX-License-Identifier: MIT */
/* Makes the lines of text about one hub, which timerhub-top shows on a screen or prints. */
#ifndef TOP_PAGE_H
#define TOP_PAGE_H

#include "reading.h"
#include "target.h"

#define PAGE_LINES_MAX 128
#define PAGE_COLUMNS_MAX 160

struct page {
	unsigned count;
	char lines[PAGE_LINES_MAX][PAGE_COLUMNS_MAX + 1];
};

/*
 * Fill the page for hub number `index` of the target. If `before` is NULL, the page has no rates.
 * `columns` is the largest width of a line. On a wide page, the lateness is beside the counters.
 */
void page_fill(struct page *page, const struct target *target, unsigned index,
               const struct reading *now, const struct reading *before, unsigned columns);

#endif
