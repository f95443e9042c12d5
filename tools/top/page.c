/* SPDX-License-Identifier: MIT */
/* Makes pages of text. See page.h. */
#include "page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"

#define RIGHT_COLUMN 46   /* first column of a page's right half */
#define TWO_HALVES_MIN 78 /* smallest width of a page with two halves */

void page_add(struct page *page, const char *format, ...)
{
	va_list arguments;

	if (page->count == PAGE_LINES_MAX)
		return;
	va_start(arguments, format);
	(void)vsnprintf(page->lines[page->count], PAGE_COLUMNS_MAX + 1, format, arguments);
	va_end(arguments);
	page->marked[page->count++] = false;
}

void page_mark(struct page *page)
{
	page->marked[page->count - 1] = true;
}

void page_beside(struct page *page, unsigned from, const struct page *right)
{
	if (page->columns < TWO_HALVES_MIN) {
		for (unsigned i = 0; i < right->count; i++)
			page_add(page, "%s", right->lines[i]);
		return;
	}
	for (unsigned i = 0; i < right->count && from + i < PAGE_LINES_MAX; i++) {
		char left[RIGHT_COLUMN + 1];

		while (page->count <= from + i)
			page_add(page, "%s", "");
		(void)snprintf(left, sizeof(left), "%s", page->lines[from + i]);
		(void)snprintf(page->lines[from + i], PAGE_COLUMNS_MAX + 1, "%-*s  %s",
		               RIGHT_COLUMN, left, right->lines[i]);
	}
}

struct number number(uint64_t value)
{
	struct number number;
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, value);
	char *to = number.text;

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = 0;
	return number;
}

struct number rate(double a_second)
{
	struct number number_below_100;

	if (a_second >= 99.95)
		return number((uint64_t)(a_second + 0.5));
	(void)snprintf(number_below_100.text, sizeof(number_below_100.text), "%.1f", a_second);
	return number_below_100;
}

struct number span(uint64_t ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	struct number number;
	double value = (double)ns;
	unsigned unit = 0;

	if (ns == UINT64_MAX)
		return (struct number){ "any" };
	while (unit < 3 && value >= 1000) {
		value /= 1000;
		unit++;
	}
	(void)snprintf(number.text, sizeof(number.text), "%.*f %s",
	               unit == 0 || value >= 100 ? 0 : (value >= 10 ? 1 : 2), value, units[unit]);
	return number;
}

struct number hours(uint64_t ns)
{
	uint64_t seconds = ns / NS_PER_S;
	struct number number;

	(void)snprintf(number.text, sizeof(number.text), "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64,
	               seconds / 3600, seconds / 60 % 60, seconds % 60);
	return number;
}
