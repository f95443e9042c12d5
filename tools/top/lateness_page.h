/* SPDX-License-Identifier: MIT */
/* The parts of a page that show how late events were. */
#ifndef TOP_LATENESS_PAGE_H
#define TOP_LATENESS_PAGE_H

#include "page.h"

/* Adds a line with a character for each of the last readings: how late the latest event was. */
void page_add_rhythm(struct page *page, const struct reading *now);

/* Adds a line that explains the characters of page_add_rhythm(). */
void page_add_legend(struct page *page);

/*
 * Adds the percentiles of the lateness with which the events were made visible, and if `taken`, of
 * that with which they were taken, and a histogram with a bar for each.
 */
void page_add_lateness(struct page *page, const struct reading *now, const struct reading *before,
                       bool taken);

#endif
