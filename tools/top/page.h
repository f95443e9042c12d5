/* SPDX-License-Identifier: MIT */
/*
 * A page of text, which timerhub-top shows on a screen or prints, and the numbers on it. A small
 * screen shows only the first lines, so the most important ones come first.
 */
#ifndef TOP_PAGE_H
#define TOP_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#define PAGE_LINES_MAX 192
#define PAGE_COLUMNS_MAX 240

struct page {
	unsigned columns, rows; /* the size that the page should fit; longer pages are cut off */
	unsigned count;
	bool marked[PAGE_LINES_MAX]; /* whether the line tells of something that grows */
	char lines[PAGE_LINES_MAX][PAGE_COLUMNS_MAX + 1];
};

__attribute__((format(printf, 2, 3))) void page_add(struct page *page, const char *format, ...);

/* Marks the line that was added last. */
void page_mark(struct page *page);

/* Writes the lines of `right` beside those of `page` if it is wide enough, else below them. */
void page_beside(struct page *page, unsigned from, const struct page *right);

/* A number or a word, as it stands on a page. */
struct number {
	char text[32];
};

/* Formats a number with commas: 1234567 is "1,234,567". */
struct number number(uint64_t value);

/* Formats what happens so often in a second. Below 100 it has a decimal. */
struct number rate(double a_second);

/* Formats a time span of `ns` nanoseconds with three digits and a unit; UINT64_MAX is "any". */
struct number span(uint64_t ns);

/* Formats a time span in hours, minutes and seconds. */
struct number hours(uint64_t ns);

#endif
