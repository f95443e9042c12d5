/* SPDX-License-Identifier: MIT */
/*
 * Makes the lines of text that timerhub-top shows about one hub. See page.h. The page is plain text
 * and does not depend on a terminal. A small screen shows only the first lines of a page. Therefore
 * the most important lines come first.
 */
#include "page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RIGHT_COLUMN 46   /* first column of a page's right half */
#define TWO_HALVES_MIN 78 /* smallest width of a page with two halves */
/*
 * the largest number of rows of the histogram. The first row also counts all smaller buckets.
 */
#define HISTOGRAM_ROWS 10
#define BAR_COLUMNS 10

static __attribute__((format(printf, 2, 3))) void page_add(struct page *page, const char *format,
                                                           ...)
{
	va_list arguments;

	if (page->count == PAGE_LINES_MAX)
		return;
	va_start(arguments, format);
	(void)vsnprintf(page->lines[page->count++], PAGE_COLUMNS_MAX + 1, format, arguments);
	va_end(arguments);
}

/* the text of a number with commas: 1234567 is "1,234,567" */
struct number {
	char text[32];
};

static struct number number(uint64_t value)
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

/* Format the rate of a counter between two readings. If `earlier` is NULL, returns a dash. */
static struct number rate(uint64_t now, uint64_t before, const struct reading *reading,
                          const struct reading *earlier)
{
	struct number number_or_dash = { "-" };
	double value;

	if (!earlier)
		return number_or_dash;
	value = reading_rate(now, before, reading->at_ns - earlier->at_ns);
	if (value >= 99.95)
		return number((uint64_t)(value + 0.5));
	(void)snprintf(number_or_dash.text, sizeof(number_or_dash.text), "%.1f", value);
	return number_or_dash;
}

/* Format a time span of `ns` nanoseconds with three digits and a unit. */
static struct number span(uint64_t ns)
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

static void page_head(struct page *page, const struct target *target, unsigned index,
                      const struct reading *now)
{
	const struct board_header *about = &target->hubs[index].about;
	uint64_t age_s = reading_more(now->at_ns, about->opened_ns) / 1000000000;

	page_add(page, "process %d (%s), hub %u of %u: thread \"%s\", clock %s", (int)target->pid,
	         target->command, index + 1, target->hub_count, about->thread_name,
	         clock_name(about->clock, about->manual != 0));
	page_add(page,
	         "sleeper %s, library %s, open for %" PRIu64 ":%02" PRIu64 ":%02" PRIu64
	         ", queues %" PRIu32,
	         sleeper_name(now->sleeper), about->library_version, age_s / 3600, age_s / 60 % 60,
	         age_s % 60, now->queue_count);
	page_add(page, "%s", "");
}

static void page_depths(struct page *page, const struct board_header *about,
                        const struct reading *now)
{
	page_add(page, "%-16s %11s", "live timers", number(now->live).text);
	page_add(page, "  most %s, room for %s", number(now->live_max).text,
	         number(about->timers_max).text);
	page_add(page, "%-16s %11s", "in the inbox", number(now->inbox).text);
	page_add(page, "  most in one look %s", number(now->inbox_max).text);
	page_add(page, "%-16s %11s", "in the outboxes", number(now->outbox).text);
}

static void page_counters(struct page *page, const struct reading *now,
                          const struct reading *before)
{
	const struct reading zero = { .at_ns = 0 };
	const struct reading *then = before ? before : &zero;
	const struct {
		const char *name;
		uint64_t now, before;
	} rows[] = {
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

	page_add(page, "%-16s %11s %15s", "", "a second", "since open");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		page_add(page, "%-16s %11s %15s", rows[i].name,
		         rate(rows[i].now, rows[i].before, now, before).text,
		         number(rows[i].now).text);
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

	page_add(page, "%-8s %10s %12s", name, "lately", "since open");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		page_add(page, "%-8s %10s %12s", rows[i].name,
		         lately->count > 0 ? span(rows[i].lately_ns).text : "-",
		         since_open->count > 0 ? span(rows[i].since_open_ns).text : "-");
}

static void page_bar(struct page *page, uint64_t below_ns, uint64_t count, uint64_t most)
{
	char bar[BAR_COLUMNS + 1] = "";
	/*
	 * A count above 0 gets a bar of at least one character. The length of a bar is computed as
	 * a double, because an integer product would overflow for counts beyond 2^60.
	 */
	int length = (int)((double)count * BAR_COLUMNS / (double)most);

	if (count > 0)
		memset(bar, '#', length < 1 ? 1 : (size_t)length);
	page_add(page, "< %8s %-*s %9s", span(below_ns).text, BAR_COLUMNS, bar, number(count).text);
}

static void page_histogram(struct page *page, const struct lateness *lateness)
{
	unsigned first = 0, last = 0;
	uint64_t most = 1, lowest = 0;

	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++)
		if (lateness->buckets[i] > 0)
			last = i;
	while (first < last && lateness->buckets[first] == 0)
		first++;
	if (last - first >= HISTOGRAM_ROWS)
		first = last - HISTOGRAM_ROWS + 1;
	for (unsigned i = 0; i <= first; i++)
		lowest += lateness->buckets[i];
	for (unsigned i = first; i <= last; i++) {
		uint64_t count = i == first ? lowest : lateness->buckets[i];

		most = count > most ? count : most;
	}
	for (unsigned i = first; i <= last && lateness->count > 0; i++)
		page_bar(page, lateness_below_ns(i), i == first ? lowest : lateness->buckets[i],
		         most);
}

static uint64_t queue_before(const struct reading *before, const struct queue_reading *queue)
{
	for (uint32_t i = 0; before && i < before->queue_count && i < READING_QUEUES_MAX; i++)
		if (before->queues[i].index == queue->index)
			return before->queues[i].delivered;
	return queue->delivered;
}

static void page_queues(struct page *page, const struct reading *now, const struct reading *before)
{
	page_add(page, "%s", "");
	page_add(page, "%5s %5s %12s %15s %12s", "queue", "fd", "a second", "delivered", "waiting");
	for (uint32_t i = 0; i < now->queue_count && i < READING_QUEUES_MAX; i++) {
		const struct queue_reading *queue = &now->queues[i];

		page_add(page, "%5" PRIu32 " %5d %12s %15s %12s", queue->index, queue->fd,
		         rate(queue->delivered, queue_before(before, queue), now, before).text,
		         number(queue->delivered).text, number(queue->waiting).text);
	}
	if (now->queue_count > READING_QUEUES_MAX)
		page_add(page, "and %" PRIu32 " more", now->queue_count - READING_QUEUES_MAX);
}

/*
 * Write the lines of `right` beside the lines of `page`, from line `from` on.
 */
static void page_beside(struct page *page, unsigned from, const struct page *right)
{
	for (unsigned i = 0; i < right->count && from + i < PAGE_LINES_MAX; i++) {
		char *line = page->lines[from + i];
		char left[RIGHT_COLUMN + 1];

		(void)snprintf(left, sizeof(left), "%s", from + i < page->count ? line : "");
		(void)snprintf(line, PAGE_COLUMNS_MAX + 1, "%-*s  %s", RIGHT_COLUMN, left,
		               right->lines[i]);
		if (from + i >= page->count)
			page->count = from + i + 1;
	}
}

static void page_loop(struct page *page, const struct target *target, unsigned index,
                      const struct reading *now, const struct reading *before)
{
	const struct board_header *about = &target->hubs[index].about;
	const struct reading *earlier = before ? before : now;
	struct lateness lately = lateness_between(now->lateness, earlier->lateness);
	struct lateness since_open = lateness_between(now->lateness, NULL);

	page_add(page, "process %d (%s), %u of %u: a loop, clock %s", (int)target->pid,
	         target->command, index + 1, target->hub_count,
	         clock_name(about->clock, about->manual != 0));
	page_add(page, "%s", "");
	page_add(page, "%-16s %11s", "timeouts", number(now->added).text);
	page_add(page, "  room for %s", number(about->timers_max).text);
	page_add(page, "%-16s %11s", "longest turn", span(now->turn_max_ns).text);
	page_add(page, "%s", "");
	page_add(page, "%-16s %11s %15s", "", "a second", "since open");
	page_add(page, "%-16s %11s %15s", "turns",
	         rate(now->turns, earlier->turns, now, before).text, number(now->turns).text);
	page_add(page, "%-16s %11s %15s", "callbacks",
	         rate(now->callbacks, earlier->callbacks, now, before).text,
	         number(now->callbacks).text);
	page_add(page, "%-16s %11s %15s", "empty wake-ups",
	         rate(now->empty_wakes, earlier->empty_wakes, now, before).text,
	         number(now->empty_wakes).text);
	page_add(page, "%-16s %11s %15s", "refused calls",
	         rate(now->refused, earlier->refused, now, before).text, number(now->refused).text);
	page_add(page, "%s", "");
	page_percentiles(page, "lateness", &lately, &since_open);
	page_histogram(page, &since_open);
}

void page_fill(struct page *page, const struct target *target, unsigned index,
               const struct reading *now, const struct reading *before, unsigned columns)
{
	const struct reading *earlier = before ? before : now;
	struct lateness lately = lateness_between(now->lateness, earlier->lateness);
	struct lateness since_open = lateness_between(now->lateness, NULL);
	struct lateness taken_lately =
		lateness_between(now->delivery_lateness, earlier->delivery_lateness);
	struct lateness taken = lateness_between(now->delivery_lateness, NULL);
	struct page right = { .count = 0 };
	unsigned from;

	page->count = 0;
	if (hub_is_loop(&target->hubs[index])) {
		page_loop(page, target, index, now, before);
		return;
	}
	page_head(page, target, index, now);
	from = page->count;
	page_depths(page, &target->hubs[index].about, now);
	page_add(page, "%s", "");
	page_counters(page, now, before);
	page_percentiles(&right, "delivery", &taken_lately, &taken);
	page_percentiles(&right, "lateness", &lately, &since_open);
	page_histogram(&right, &since_open);
	if (columns >= TWO_HALVES_MIN) {
		page_beside(page, from, &right);
	} else {
		page_add(page, "%s", "");
		for (unsigned i = 0; i < right.count; i++)
			page_add(page, "%s", right.lines[i]);
	}
	page_queues(page, now, before);
	page_add(page, "%s", "");
	page_add(page,
	         "* number of timers that the owner scheduled again, because they were moved");
	page_add(page, "  to a later deadline. The calls that move timers are not counted.");
}
