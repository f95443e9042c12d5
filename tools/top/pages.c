/* SPDX-License-Identifier: MIT */
/* Makes pages of text: the tools for it, and the pages of one hub or loop and of all. */
#include "outputs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define RIGHT_COLUMN 46      /* first column of a page's right half */
#define TWO_HALVES_MIN 78    /* smallest width of a page with two halves */
#define ROWS_BELOW_QUEUES 15 /* the counters, which are to be on the screen too */
#define QUEUE_ROWS_MIN 3
#define OVERVIEW_RHYTHM 20

/* the largest number of rows of the histogram; the first row also counts all smaller buckets */
#define HISTOGRAM_ROWS 10
#define HISTOGRAM_ROWS_MIN 4
#define BAR_COLUMNS 9

static const char full_bar[] = "#########"; /* BAR_COLUMNS of them */

/* explains the characters of a rhythm, see reading.c */
static const char legend[] =
	"latest: . below 1 ms  : below 17 ms  + below 134 ms  # below 1 s  @ later";

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

void page_mark(struct page *page, bool grows)
{
	page->marked[page->count - 1] |= grows;
}

/* Writes the lines of `right` beside those of `page` if it is wide enough, else below them. */
static void page_beside(struct page *page, unsigned from, const struct page *right)
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

/* ---- how late events were ---- */

/* Formats a rate, or a dash if there is no reading before. */
static struct number rate(const struct reading *now, uint64_t count, uint64_t count_before)
{
	struct number text = { "-" };
	double a_second;

	if (!now->before)
		return text;
	a_second = reading_rate(count, count_before, now->at_ns - now->before->at_ns);
	if (a_second >= 99.95)
		return number((uint64_t)(a_second + 0.5));
	(void)snprintf(text.text, sizeof(text.text), "%.1f", a_second);
	return text;
}

static struct number bound_of(const struct lateness *lateness, enum bound bound)
{
	return lateness->count > 0 ? span(lateness->below_ns[bound]) : (struct number){ "-" };
}

static void page_bounds(struct page *page, const char *name, const struct lateness *lateness)
{
	static const char *const names[BOUNDS] = { "p50 <", "p99 <", "max <" };

	page_add(page, "%-10s %8s %12s", name, "lately", "since open");
	for (unsigned i = 0; i < BOUNDS; i++)
		page_add(page, "%-10s %8s %12s", names[i], bound_of(&lateness[LATELY], i).text,
		         bound_of(&lateness[SINCE_OPEN], i).text);
}

/*
 * Returns the length of a bar. A count above 0 gets at least one character. It is computed as a
 * double, because an integer product would overflow for counts beyond 2^60.
 */
static int bar(uint64_t count, uint64_t most)
{
	int length = most > 0 ? (int)((double)count * BAR_COLUMNS / (double)most) : 0;

	return count > 0 && length < 1 ? 1 : length;
}

/* Adds the buckets below `first` to that one. Returns the highest count of all rows. */
static uint64_t fold(uint64_t *buckets, unsigned first, unsigned last)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < first; i++)
		buckets[first] += buckets[i];
	for (unsigned i = first; i <= last; i++)
		most = u64_max(most, buckets[i]);
	return most;
}

static void page_histogram(struct page *page, struct lateness told, struct lateness taken)
{
	unsigned first = BOARD_LATENESS_BUCKETS - 1, last = 0, rows = HISTOGRAM_ROWS;
	uint64_t told_most, taken_most;

	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++) {
		if (told.buckets[i] + taken.buckets[i] == 0)
			continue;
		last = i;
		first = i < first ? i : first;
	}
	if (page->rows > 0 && page->count + rows > page->rows)
		rows = page->rows > page->count + HISTOGRAM_ROWS_MIN ? page->rows - page->count
		                                                     : HISTOGRAM_ROWS_MIN;
	if (last >= rows && first < last + 1 - rows)
		first = last + 1 - rows;
	told_most = fold(told.buckets, first, last);
	taken_most = fold(taken.buckets, first, last);
	for (unsigned i = first; i <= last; i++)
		page_add(page, "< %8s  %-*.*s  %.*s", span(lateness_below_ns(i)).text, BAR_COLUMNS,
		         bar(told.buckets[i], told_most), full_bar,
		         bar(taken.buckets[i], taken_most), full_bar);
}

static void page_lateness(struct page *page, const struct reading *now)
{
	const struct lateness told[] = { lateness_of(now, TOLD_LATE, LATELY),
		                         lateness_of(now, TOLD_LATE, SINCE_OPEN) };
	const struct lateness taken[] = { lateness_of(now, TAKEN_LATE, LATELY),
		                          lateness_of(now, TAKEN_LATE, SINCE_OPEN) };
	enum period period = told[LATELY].count + taken[LATELY].count > 0 ? LATELY : SINCE_OPEN;
	bool loop = is_loop(&now->about);

	if (!loop)
		page_bounds(page, "taken late", taken);
	page_bounds(page, loop ? "late" : "told late", told);
	page_add(page, "%-10s  %-*s  %s", period == LATELY ? "lately" : "since open", BAR_COLUMNS,
	         loop ? "" : "told", loop ? "" : "taken");
	page_histogram(page, told[period], taken[period]);
}

/* ---- one hub or loop ---- */

static void page_head(struct page *page, const struct watch *watch, unsigned index)
{
	const struct reading *now = &watch->now[index];
	const struct board_header *about = &now->about;
	uint64_t seconds = reading_more(now->at_ns, about->opened_ns) / NS_PER_S;
	struct number open;

	(void)snprintf(open.text, sizeof(open.text), "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64,
	               seconds / 3600, seconds / 60 % 60, seconds % 60);
	page_add(page, "process %d (%s), %s %" PRIu64 " (%u of %u), clock %s",
	         (int)watch->target.pid, watch->target.command, is_loop(about) ? "loop" : "hub",
	         about->serial, index + 1, watch->count, clock_name(about));
	if (is_loop(about))
		page_add(page, "open for %s, library %s", open.text, about->library_version);
	else
		page_add(page, "open for %s, library %s, thread \"%s\", sleeper %s", open.text,
		         about->library_version, about->thread_name,
		         sleeper_name(now->stats.sleeper));
	page_add(page, "latest %*s|", READING_RHYTHM, now->rhythm);
}

/* Shows so many queues that the counters are on the screen, too. */
static void page_queues(struct page *page, const struct reading *now)
{
	uint32_t others = page->count + 1 + ROWS_BELOW_QUEUES;
	uint32_t rows = page->rows > others + QUEUE_ROWS_MIN ? page->rows - others : QUEUE_ROWS_MIN;

	if (page->rows == 0) /* this is no screen */
		rows = READING_QUEUES_MAX;
	else if (now->queue_count > rows && rows > QUEUE_ROWS_MIN)
		rows--; /* for the line that says how many more there are */
	rows = rows < now->queues_listed ? rows : now->queues_listed;
	if (now->queue_count > 0)
		page_add(page, "%5s %5s %12s %15s %12s", "queue", "fd", "a second", "delivered",
		         "waiting");
	for (uint32_t i = 0; i < rows; i++) {
		const struct queue_reading *queue = &now->queues[i];
		bool grew = queue->grew >= READING_GREW;

		page_add(page, "%5" PRIu32 " %5d %12s %15s %12s%s", queue->index, queue->fd,
		         rate(now, queue->delivered, queue->delivered_before).text,
		         number(queue->delivered).text, number(queue->waiting).text,
		         grew ? " grows" : "");
		page_mark(page, grew);
	}
	if (now->queue_count > rows)
		page_add(page, "and %" PRIu32 " more in which less waits", now->queue_count - rows);
}

static void page_depths(struct page *page, const struct reading *now)
{
	struct number room = number(now->about.timers_max);
	bool grew = now->inbox_grew >= READING_GREW;

	if (is_loop(&now->about)) {
		page_add(page, "%-16s %11s", "timeouts", number(now->added).text);
		page_add(page, "  room for %s", room.text);
		page_add(page, "%-16s %11s", "longest turn", span(now->turn_max_ns).text);
		page_add(page, "%s", "");
		return;
	}
	page_add(page, "%-16s %11s", "live timers", number(now->stats.live).text);
	page_add(page, "  most %s, room for %s", number(now->stats.live_max).text, room.text);
	page_add(page, "%-16s %11s%s", "in the inbox", number(now->inbox).text,
	         grew ? " grows" : "");
	page_mark(page, grew);
	page_add(page, "%-16s %11s", "in the outboxes", number(now->stats.waiting).text);
}

static void page_counters(struct page *page, const struct reading *now)
{
	page_add(page, "%-16s %11s %15s", "", "a second", "since open");
	for (const struct counter *counter = counters_of(now->about.kind); counter->name;
	     counter++) {
		uint64_t value = counter_value(counter, now);
		uint64_t before = now->before ? counter_value(counter, now->before) : 0;

		if (counter->row)
			page_add(page, "%-16s %11s %15s", counter->row,
			         rate(now, value, before).text, number(value).text);
	}
}

static void one_fill(struct page *page, const struct watch *watch, unsigned index)
{
	const struct reading *now = &watch->now[index];
	struct page right = { .count = 0 };
	unsigned from;

	page_head(page, watch, index);
	page_queues(page, now);
	page_add(page, "%s", legend);
	from = page->count;
	page_depths(page, now);
	page_counters(page, now);
	right.rows = page->rows > from ? page->rows - from : 0;
	page_lateness(&right, now);
	page_beside(page, from, &right);
	if (is_loop(&now->about))
		return;
	page_add(page, "%s", "");
	page_add(page,
	         "* number of timers that the owner scheduled again, because they were moved");
	page_add(page, "  to a later deadline. The calls that move timers are not counted.");
}

static void overview_fill(struct page *page, const struct watch *watch)
{
	page_add(page, "process %d (%s)", (int)watch->target.pid, watch->target.command);
	page_add(page, "%3s %-16s %11s %10s %9s %8s  %s", "", "", "live", "a second", "waiting",
	         "p99 <", "latest");
	for (unsigned i = 0; i < watch->count; i++) {
		const struct reading *now = &watch->now[i], *then = now->before ? now->before : now;
		bool loop = is_loop(&now->about);
		struct lateness late = lateness_of(now, loop ? TOLD_LATE : TAKEN_LATE, LATELY);
		struct number often = loop ? rate(now, now->callbacks, then->callbacks)
		                           : rate(now, now->stats.delivered, then->stats.delivered);
		size_t length = strlen(now->rhythm);

		page_add(page, "%3u %-16s %11s %10s %9s %8s  %s", i + 1,
		         loop ? "a loop" : now->about.thread_name,
		         number(loop ? now->added : now->stats.live).text, often.text,
		         loop ? "" : number(now->stats.waiting).text, bound_of(&late, P99).text,
		         now->rhythm + (length > OVERVIEW_RHYTHM ? length - OVERVIEW_RHYTHM : 0));
		page_mark(page,
		          now->queues[0].grew >= READING_GREW || now->inbox_grew >= READING_GREW);
	}
	page_add(page, "%s", legend);
}

/* Shows how many timers fall due within 1 ms, 10 ms and so on, by the hub's latest count. */
static void ahead_fill(struct page *page, const struct watch *watch, unsigned index)
{
	const struct reading *now = &watch->now[index];
	uint64_t together = 0, most = 0;

	page_head(page, watch, index);
	if (now->ahead_at_ns == 0) {
		page_add(page, "what falls due is not known yet, or the hub is manual");
		return;
	}
	page_add(page, "what falls due, as it was %s ago",
	         span(reading_more(now->clock_ns, now->ahead_at_ns)).text);
	for (unsigned i = 0; i < AHEAD_RANGES; i++)
		most = u64_max(most, now->ahead[i]);
	page_add(page, "%-10s %15s %15s", "within", "timers", "together");
	for (unsigned i = 0; i < AHEAD_RANGES; i++) {
		together += now->ahead[i];
		page_add(page, "%-10s %15s %15s  %.*s", span(ahead_within_ns(i)).text,
		         number(now->ahead[i]).text, number(together).text,
		         bar(now->ahead[i], most), full_bar);
	}
}

void page_fill(struct page *page, const struct watch *watch, enum view view, unsigned index)
{
	if (view == VIEW_OVERVIEW)
		overview_fill(page, watch);
	else if (view == VIEW_WHO)
		who_fill(page, watch);
	else if (view == VIEW_AHEAD)
		ahead_fill(page, watch, index);
	else
		one_fill(page, watch, index);
}
