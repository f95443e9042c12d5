/* SPDX-License-Identifier: MIT */
/* Shows how late events were. See lateness_page.h. */
#include "lateness_page.h"

#include <stdio.h>
#include <string.h>

/* the largest number of rows of the histogram; the first row also counts all smaller buckets */
#define HISTOGRAM_ROWS 10
#define HISTOGRAM_ROWS_MIN 4
#define BAR_COLUMNS 9

void page_add_rhythm(struct page *page, const struct reading *now)
{
	page_add(page, "latest %*s|", READING_RHYTHM, now->rhythm);
}

void page_add_legend(struct page *page)
{
	page_add(page, "latest: . below 1 ms  : below 17 ms  + below 134 ms  # below 1 s  @ later");
}

static void page_percentiles(struct page *page, const char *name, const struct lateness *lately,
                             const struct lateness *since_open)
{
	const struct {
		const char *name;
		uint64_t lately_ns, since_open_ns;
	} rows[] = {
		{ "p50 <", lately->p50_below_ns, since_open->p50_below_ns },
		{ "p99 <", lately->p99_below_ns, since_open->p99_below_ns },
		{ "max <", lately->max_below_ns, since_open->max_below_ns },
	};

	page_add(page, "%-10s %8s %12s", name, "lately", "since open");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		page_add(page, "%-10s %8s %12s", rows[i].name,
		         lately->count > 0 ? span(rows[i].lately_ns).text : "-",
		         since_open->count > 0 ? span(rows[i].since_open_ns).text : "-");
}

struct bar {
	char text[BAR_COLUMNS + 1];
};

/*
 * A count above 0 gets at least one character. The length is computed as a double, because an
 * integer product would overflow for counts beyond 2^60.
 */
static struct bar bar(uint64_t count, uint64_t most)
{
	struct bar bar = { "" };
	size_t length = most > 0 ? (size_t)((double)count * BAR_COLUMNS / (double)most) : 0;

	if (count > 0)
		memset(bar.text, '#', length < 1 ? 1 : length);
	return bar;
}

static uint64_t count_in_row(const struct lateness *lateness, unsigned bucket, unsigned first)
{
	uint64_t count = lateness->buckets[bucket];

	for (unsigned i = 0; bucket == first && i < first; i++)
		count += lateness->buckets[i];
	return count;
}

static uint64_t most_in_row(const struct lateness *lateness, unsigned first, unsigned last)
{
	uint64_t most = 0;

	for (unsigned i = first; i <= last; i++)
		if (count_in_row(lateness, i, first) > most)
			most = count_in_row(lateness, i, first);
	return most;
}

static void page_histogram(struct page *page, const struct lateness *told,
                           const struct lateness *taken)
{
	unsigned first = BOARD_LATENESS_BUCKETS - 1, last = 0, rows = HISTOGRAM_ROWS;
	uint64_t told_most, taken_most;

	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++) {
		if (told->buckets[i] + taken->buckets[i] == 0)
			continue;
		last = i;
		first = i < first ? i : first;
	}
	if (page->rows > 0 && page->count + rows > page->rows)
		rows = page->rows > page->count + HISTOGRAM_ROWS_MIN ? page->rows - page->count
		                                                     : HISTOGRAM_ROWS_MIN;
	if (last >= rows && first < last + 1 - rows)
		first = last + 1 - rows;
	told_most = most_in_row(told, first, last);
	taken_most = most_in_row(taken, first, last);
	for (unsigned i = first; i <= last; i++)
		page_add(page, "< %8s  %-*s  %s", span(lateness_below_ns(i)).text, BAR_COLUMNS,
		         bar(count_in_row(told, i, first), told_most).text,
		         bar(count_in_row(taken, i, first), taken_most).text);
}

void page_add_lateness(struct page *page, const struct reading *now, const struct reading *before,
                       bool taken)
{
	const struct reading *earlier = before ? before : now;
	struct lateness lately = lateness_between(now->lateness, earlier->lateness);
	struct lateness since_open = lateness_between(now->lateness, NULL);
	struct lateness taken_lately =
		lateness_between(now->delivery_lateness, earlier->delivery_lateness);
	struct lateness taken_since_open = lateness_between(now->delivery_lateness, NULL);
	bool is_lately = lately.count + taken_lately.count > 0;

	if (taken)
		page_percentiles(page, "taken late", &taken_lately, &taken_since_open);
	page_percentiles(page, taken ? "told late" : "late", &lately, &since_open);
	page_add(page, "%-10s  %-*s  %s", is_lately ? "lately" : "since open", BAR_COLUMNS,
	         taken ? "told" : "", taken ? "taken" : "");
	page_histogram(page, is_lately ? &lately : &since_open,
	               is_lately ? &taken_lately : &taken_since_open);
}
