/* SPDX-License-Identifier: MIT */
/*
 * Judges what a thread does and who is to blame, and shows it on a page. See outputs.h. Every
 * judgement rests on what the kernel has counted: if that shows nothing, the answer is "not known".
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "outputs.h"

#define WIDE_COLUMNS 130
#define SLOW_ROWS_MAX 8

/* the shortest time between two looks that says something: the kernel counts in steps of 4 ms */
#define LOOKS_APART_NS 8000000

enum work work_between(const struct thread *before, const struct thread *now)
{
	uint64_t ran_ns = now->ran_ns - before->ran_ns;
	uint64_t waited_ns = now->waited_ns - before->waited_ns;
	uint64_t elapsed_ns = now->at_ns - before->at_ns;
	bool compares = before->tid == now->tid && now->at_ns > before->at_ns + LOOKS_APART_NS;

	if (now->state == 'T' || now->state == 't')
		return WORK_STOPPED;
	if (compares && ran_ns >= elapsed_ns / 2)
		return WORK_COMPUTES;
	if (compares && now->has_waited_ns && waited_ns >= elapsed_ns / 2)
		return WORK_NO_CPU;
	if (now->state == 'S' || now->state == 'D')
		return WORK_BLOCKED;
	/*
	 * A wait for a CPU is not counted before it ends. But a thread that neither ran nor slept
	 * has waited.
	 */
	return compares && before->state == 'R' && now->state == 'R' &&
	                       now->sleeps == before->sleeps
	               ? WORK_NO_CPU
	               : WORK_UNKNOWN;
}

const char *work_name(enum work work)
{
	static const char *const names[] = {
		[WORK_UNKNOWN] = "not known",        [WORK_COMPUTES] = "computing",
		[WORK_NO_CPU] = "waiting for a CPU", [WORK_BLOCKED] = "blocked",
		[WORK_STOPPED] = "stopped",
	};

	return names[work];
}

/* ---- sentences ---- */

/* Lateness below that needs nobody to blame. */
#define LATE_NS (UINT64_C(1) << 20)
/* A thread that has waited for a CPU for a smaller part of the time is not blamed for that. */
#define CPU_SHARE 20

void tell(struct sentence *sentence, const char *format, ...)
{
	size_t length = strlen(sentence->text);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(sentence->text + length, sizeof(sentence->text) - length, format,
	                arguments);
	va_end(arguments);
}

static void tell_place(struct sentence *sentence, const struct running *running, bool with_timer)
{
	bool is_timeout = running->cell.loop != 0 && running->cell.queue == 0;

	if (running->cell.where == TIMERHUB_AWAY)
		tell(sentence, "away (handlers or wait)");
	else if (running->cell.where == TIMERHUB_IN_CALL)
		tell(sentence, "in its call, no callback");
	else
		tell(sentence, "in %s", running->function.text);
	if (running->cell.where == TIMERHUB_IN_CALLBACK && with_timer)
		tell(sentence, " (%s %" PRIx64 ")", is_timeout ? "timeout" : "timer",
		     running->cell.timer);
}

void tell_thread(struct sentence *sentence, const struct running *running, bool since_before)
{
	const struct thread *thread, *before;
	enum work work;
	bool waits;

	if (!running || running->thread.tid == 0) {
		tell(sentence, "no thread is known");
		return;
	}
	thread = &running->thread;
	before = &running->before;
	work = work_between(before, thread);
	tell(sentence, "thread %d \"%s\" ", thread->tid, thread->name);
	tell_place(sentence, running, since_before);
	if (running->cell.where == TIMERHUB_IN_CALLBACK && !since_before)
		tell(sentence, " for %s", span(running->for_ns).text);
	/* In these system calls a loop waits for its sockets, and a program for events. */
	waits = work == WORK_BLOCKED && running->cell.where == TIMERHUB_AWAY &&
	        (strstr(thread->syscall, "poll") || strstr(thread->syscall, "select") ||
	         strcmp(thread->syscall, "io_uring_enter") == 0);
	tell(sentence, ", %s", waits ? "asleep" : work_name(work));
	if (work == WORK_BLOCKED && thread->syscall[0] != 0)
		tell(sentence, " in %s%s", waits ? "its wait, " : "", thread->syscall);
	else if (work == WORK_BLOCKED && thread->wchan[0] != 0)
		tell(sentence, " in %s() of the kernel", thread->wchan);
	if (!since_before)
		return;
	tell(sentence, "; of %s", span(thread->at_ns - before->at_ns).text);
	tell(sentence, " it ran %s", span(thread->ran_ns - before->ran_ns).text);
	if (thread->has_waited_ns)
		tell(sentence, " and waited %s for a CPU",
		     span(thread->waited_ns - before->waited_ns).text);
}

/* ---- blame ---- */

/*
 * Begins a sentence, with the name of the hub or loop unless `about` is NULL. If there are too many
 * sentences, it is the last one again.
 */
static struct sentence *begin(struct blame *blame, const struct board_header *about)
{
	unsigned at = blame->count < BLAME_MAX ? blame->count++ : BLAME_MAX - 1;
	struct sentence *sentence = &blame->sentences[at];

	sentence->text[0] = 0;
	if (about && is_loop(about))
		tell(sentence, "loop %" PRIu64, about->serial);
	else if (about)
		tell(sentence, "hub %" PRIu64 " \"%s\"", about->serial, about->thread_name);
	return sentence;
}

/* Blames the callbacks that were slow since the reading before. Returns whether there are any. */
static bool tell_slow(struct sentence *sentence, const struct watch *watch,
                      const struct reading *now, uint64_t late_ns)
{
	const struct reading *before = now->before;
	bool found = false;

	for (unsigned i = 0; i < now->slow_count; i++) {
		const struct slow_reading *slow = &now->slow[i];
		uint64_t count = slow->count, sum_ns = slow->sum_ns;

		for (unsigned j = 0; j < before->slow_count; j++)
			if (before->slow[j].fn == slow->fn) {
				count = reading_more(count, before->slow[j].count);
				sum_ns = reading_more(sum_ns, before->slow[j].sum_ns);
			}
		if (count == 0 || sum_ns < late_ns / 4)
			continue;
		tell(sentence, "%s %s was slow ", found ? "," : "",
		     function_name(watch->names, slow->fn).text);
		if (count == 1)
			tell(sentence, "once, %s", span(sum_ns).text);
		else
			tell(sentence, "%s times, %s in all", number(count).text,
			     span(sum_ns).text);
		found = true;
	}
	return found;
}

/*
 * Adds to the sentence that a thread has waited for a CPU, if it has waited for long enough to be a
 * cause. `is_first`: the sentence names no other cause yet. Returns whether it was added.
 */
static bool tell_cpu(struct sentence *sentence, bool is_first, const struct thread *before,
                     const struct thread *now, uint64_t late_ns)
{
	uint64_t waited_ns = reading_more(now->waited_ns, before->waited_ns);
	uint64_t elapsed_ns = reading_more(now->at_ns, before->at_ns);

	if (before->tid == 0 || before->tid != now->tid || !now->has_waited_ns ||
	    waited_ns < late_ns / 4 || waited_ns < elapsed_ns / CPU_SHARE)
		return false;
	tell(sentence, "%s thread %d \"%s\" waited %s for a CPU", is_first ? "" : ";", now->tid,
	     now->name, span(waited_ns).text);
	return true;
}

/* Says why events came into their queue late, or were taken late, since the reading before. */
static void blame_late(struct blame *blame, const struct watch *watch, unsigned index)
{
	const struct reading *now = &watch->now[index];
	bool loop = is_loop(&now->about), known;
	uint64_t told_ns = lateness_of(now, TOLD_LATE, LATELY).below_ns[P99];
	uint64_t taken_ns = lateness_of(now, TAKEN_LATE, LATELY).below_ns[P99];
	uint64_t late_ns = loop ? told_ns : taken_ns;
	struct sentence *sentence;

	if (!loop && told_ns > LATE_NS) {
		sentence = begin(blame, &now->about);
		tell(sentence, " told late (p99 below %s) by its owner:", span(told_ns).text);
		if (!tell_cpu(sentence, true, &now->before->owner, &now->owner, told_ns))
			tell(sentence, " not known why");
	}
	sentence = begin(blame, &now->about);
	/* If events came into the queue as late as they were taken, no consumer is to blame. */
	if (late_ns <= LATE_NS || (!loop && told_ns >= taken_ns)) {
		/* Still name slow callbacks: what waits behind one does not count as late. */
		tell(sentence, " held up:");
		if (!tell_slow(sentence, watch, now, 0))
			blame->count--;
		return;
	}
	tell(sentence, "%s late (p99 below %s):", loop ? "" : " taken", span(late_ns).text);
	known = tell_slow(sentence, watch, now, late_ns);
	for (unsigned i = 0; i < watch->running->count; i++) {
		const struct running *running = &watch->running->rows[i];

		if (loop ? running->cell.loop == now->address
		         : running->serial == now->about.serial)
			known |= tell_cpu(sentence, !known, &running->before, &running->thread,
			                  late_ns);
	}
	if (!known)
		tell(sentence, " not known why (no slow callback, no wait for a CPU)");
}

void blame_fill(struct blame *blame, const struct watch *watch, unsigned index)
{
	const struct reading *now = &watch->now[index];
	struct sentence *sentence;

	blame->count = 0;
	if (now->before)
		blame_late(blame, watch, index);
	if (now->overdue_ns > LATE_NS) {
		sentence = begin(blame, &now->about);
		tell(sentence, " is due for %s: ", span(now->overdue_ns).text);
		tell_thread(sentence, running_at(watch->running, now->address), false);
	}
	for (uint32_t i = 0; i < now->queues_listed; i++) {
		const struct queue_reading *queue = &now->queues[i];

		if (queue->untaken_ns <= LATE_NS)
			continue;
		sentence = begin(blame, NULL);
		tell(sentence, "queue %" PRIu32 " of hub %" PRIu64 ": %s wait, none taken for %s: ",
		     queue->index, now->about.serial, number(queue->waiting).text,
		     span(queue->untaken_ns).text);
		tell_thread(sentence, running_at(watch->running, queue->address), false);
	}
}

/* ---- the page ---- */

/* Returns what the kernel says: the state, and where the thread sleeps. */
static struct sentence state_of(const struct running *running, bool is_wide)
{
	const struct thread *thread = &running->thread;
	struct sentence state = { { thread->state, ' ', 0 } };

	if (work_between(&running->before, thread) == WORK_NO_CPU)
		tell(&state, "waits for a CPU");
	else
		tell(&state, "%s", thread->syscall[0] != 0 ? thread->syscall : thread->wchan);
	if (is_wide && thread->syscall[0] != 0 && thread->wchan[0] != 0)
		tell(&state, ", %s", thread->wchan);
	return state;
}

/* Returns the growth of a thread's time: in % of a CPU if `parts` is 100, in ms/s if 1000. */
static struct sentence share(const struct running *running, uint64_t now, uint64_t before,
                             double parts, const char *unit)
{
	uint64_t elapsed_ns = running->thread.at_ns - running->before.at_ns;
	struct sentence text = { "-" };

	if (running->before.tid != 0)
		(void)snprintf(text.text, sizeof(text.text), "%.0f %s",
		               reading_rate(now, before, elapsed_ns) * parts / 1e9, unit);
	return text;
}

static void page_threads(struct page *page, const struct watch *watch)
{
	bool is_wide = page->columns >= WIDE_COLUMNS;
	int names = is_wide ? 26 : 19, places = is_wide ? 50 : 26, states = is_wide ? 60 : 11;

	page_add(page, "%-*s %-*s %7s %5s %7s %s", names, "thread", places, "now", "since", "cpu",
	         "no cpu", "state");
	for (unsigned i = 0; i < watch->running->count; i++) {
		const struct running *running = &watch->running->rows[i];
		const struct thread *thread = &running->thread, *before = &running->before;
		struct sentence name = { "" }, place = { "" }, waited = { "-" };

		tell(&name, "%d \"%s\"", thread->tid, thread->name);
		tell_place(&place, running, is_wide);
		if (thread->has_waited_ns)
			waited = share(running, thread->waited_ns, before->waited_ns, 1000, "ms");
		page_add(page, "%-*.*s %-*.*s %7s %5s %7s %.*s", names, names, name.text, places,
		         places, place.text, running->for_ns > 0 ? span(running->for_ns).text : "-",
		         share(running, thread->ran_ns, before->ran_ns, 100, "%").text, waited.text,
		         states, state_of(running, is_wide).text);
		page_mark(page, running->cell.where == TIMERHUB_IN_CALLBACK &&
		                        running->for_ns >= BOARD_SLOW_DEFAULT_NS);
	}
	if (watch->running->count == 0)
		page_add(page, "no thread has dispatched or turned a loop");
}

static void page_slow(struct page *page, const struct watch *watch)
{
	unsigned count = 0;

	for (unsigned i = 0; i < watch->count; i++)
		count += watch->now[i].slow_count;
	page_add(page, "%-36s %9s %9s %9s  %s", count > 0 ? "slow callbacks" : "no slow callback",
	         "count", "sum", "longest", "last");
	for (unsigned i = 0; i < watch->count; i++) {
		const struct reading *now = &watch->now[i];

		for (unsigned j = 0; j < now->slow_count && j < SLOW_ROWS_MAX; j++) {
			const struct slow_reading *slow = &now->slow[j];
			uint64_t ago_ns = reading_more(now->clock_ns, slow->last_ns);

			page_add(page, "%-36.36s %9s %9s %9s  %s%s",
			         function_name(watch->names, slow->fn).text,
			         number(slow->count).text, span(slow->sum_ns).text,
			         span(slow->longest_ns).text,
			         now->clock_ns > 0 ? span(ago_ns).text : "-",
			         now->clock_ns > 0 ? " ago" : "");
		}
	}
}

/* Adds a sentence, in lines that fit. */
static void page_sentence(struct page *page, const char *text)
{
	size_t columns = page->columns < 20 ? 20 : page->columns;
	const char *margin = "";

	while (*text) {
		size_t room = columns - strlen(margin), length = strlen(text);

		if (length > room)
			for (length = room; length > room / 2 && text[length] != ' ';)
				length--;
		page_add(page, "%s%.*s", margin, (int)length, text);
		text += length + strspn(text + length, " ");
		margin = "    ";
	}
}

void who_fill(struct page *page, const struct watch *watch)
{
	struct blame blame;

	page_add(page, "process %d (%s): who runs, who was slow, who is late",
	         (int)watch->target.pid, watch->target.command);
	page_threads(page, watch);
	page_add(page, "%s", "");
	page_slow(page, watch);
	page_add(page, "%s", "");
	for (unsigned i = 0; i < watch->count; i++) {
		blame_fill(&blame, watch, i);
		for (unsigned j = 0; j < blame.count; j++)
			page_sentence(page, blame.sentences[j].text);
	}
}
