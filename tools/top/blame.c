/* SPDX-License-Identifier: MIT */
/*
 * Judges what a thread does. See blame.h. Every judgement rests on what the kernel has counted: if
 * that shows nothing, the answer is "not known".
 */
#include "blame.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "page.h"

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
	if (now->state != 'R')
		return WORK_UNKNOWN;
	if (!compares)
		return WORK_UNMEASURED;
	/*
	 * A wait for a CPU is not counted before it ends. But a thread that neither ran nor slept
	 * has waited.
	 */
	return before->state == 'R' && now->sleeps == before->sleeps ? WORK_NO_CPU : WORK_UNKNOWN;
}

const char *work_name(enum work work)
{
	static const char *const names[] = {
		[WORK_UNKNOWN] = "not known",        [WORK_COMPUTES] = "computing",
		[WORK_NO_CPU] = "waiting for a CPU", [WORK_BLOCKED] = "blocked",
		[WORK_STOPPED] = "stopped",          [WORK_UNMEASURED] = "not known",
	};

	return names[work];
}

/* Returns whether a loop waits for its sockets in this system call, and a program for events. */
static bool is_wait(const char *syscall)
{
	static const char *const waits[] = { "poll",         "ppoll",         "select",
		                             "pselect6",     "epoll_wait",    "epoll_pwait",
		                             "epoll_pwait2", "io_uring_enter" };

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (strcmp(syscall, waits[i]) == 0)
			return true;
	return false;
}

void work_tell(enum work work, const struct thread *now, uint32_t where, char text[BLAME_BYTES])
{
	if (work != WORK_BLOCKED)
		(void)snprintf(text, BLAME_BYTES, "%s", work_name(work));
	else if (where == TIMERHUB_AWAY && is_wait(now->syscall))
		(void)snprintf(text, BLAME_BYTES, "asleep in its wait, %s", now->syscall);
	else if (now->syscall[0] != 0)
		(void)snprintf(text, BLAME_BYTES, "blocked in %s", now->syscall);
	else if (now->wchan[0] != 0)
		(void)snprintf(text, BLAME_BYTES, "blocked in %s() of the kernel", now->wchan);
	else
		(void)snprintf(text, BLAME_BYTES, "blocked");
}

/* ---- sentences ---- */

/* Lateness below that needs nobody to blame. */
#define LATE_NS (UINT64_C(1) << 20)

__attribute__((format(printf, 2, 3))) static void tell(char text[BLAME_BYTES], const char *format,
                                                       ...)
{
	size_t length = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text + length, BLAME_BYTES - length, format, arguments);
	va_end(arguments);
}

/* Returns an empty sentence. If there are too many, it is the last one again. */
static char *begin(struct blame *blame)
{
	char *text = blame->sentences[blame->count < BLAME_MAX ? blame->count++ : BLAME_MAX - 1];

	text[0] = 0;
	return text;
}

/* Adds what the thread does: a function or a place, since when, and what the kernel says. */
static void tell_thread(char text[BLAME_BYTES], const struct watch *watch,
                        const struct running *running)
{
	enum work work = work_between(&running->before, &running->thread);
	char name[FUNCTION_NAME_BYTES], does[BLAME_BYTES];

	tell(text, "thread %d \"%s\" ", running->thread.tid, running->thread.name);
	if (running->cell.where == TIMERHUB_IN_CALLBACK) {
		function_name(watch->names, running->cell.fn, name);
		tell(text, "in %s for %s", name, span(running->for_ns).text);
	} else {
		tell(text, "%s",
		     running->cell.where == TIMERHUB_IN_CALL ? "in its call, between callbacks"
		                                             : "outside the library");
	}
	work_tell(work, &running->thread, running->cell.where, does);
	tell(text, ", %s", does);
}

/* Blames the callbacks that were slow since the reading before. Returns whether there are any. */
static bool tell_slow(char text[BLAME_BYTES], const struct watch *watch, const struct reading *now,
                      const struct reading *before, uint64_t late_ns)
{
	char name[FUNCTION_NAME_BYTES];
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
		function_name(watch->names, slow->fn, name);
		tell(text, "%s %s was slow ", found ? "," : "", name);
		if (count == 1)
			tell(text, "once, %s", span(sum_ns).text);
		else
			tell(text, "%s times, %s in all", number(count).text, span(sum_ns).text);
		found = true;
	}
	return found;
}

/* Blames a thread that has waited for a CPU. Returns whether it has, for long enough. */
static bool tell_cpu(char text[BLAME_BYTES], const struct thread *before, const struct thread *now,
                     uint64_t late_ns)
{
	uint64_t waited_ns = reading_more(now->waited_ns, before->waited_ns);

	if (before->tid == 0 || before->tid != now->tid || !now->has_waited_ns ||
	    waited_ns < late_ns / 4)
		return false;
	tell(text, " thread %d \"%s\" waited %s for a CPU", now->tid, now->name,
	     span(waited_ns).text);
	return true;
}

/* Blames callbacks that were slow since the reading before, although nothing is known as late. */
static void blame_slow(struct blame *blame, const struct watch *watch, unsigned index)
{
	const struct hub *hub = &watch->target.hubs[index];
	char *text = begin(blame);

	if (hub_is_loop(hub))
		tell(text, "loop %u held up:", index + 1);
	else
		tell(text, "hub %u \"%s\" held up:", index + 1, hub->about.thread_name);
	if (!tell_slow(text, watch, &watch->now[index], watch_before(watch, index), 0))
		blame->count--;
}

/* Blames for what was told or taken late since the reading before. */
static void blame_late(struct blame *blame, const struct watch *watch, unsigned index)
{
	const struct hub *hub = &watch->target.hubs[index];
	const struct reading *now = &watch->now[index], *before = watch_before(watch, index);
	uint64_t told_ns = lateness_between(now->lateness, before->lateness).p99_below_ns;
	uint64_t taken_ns =
		lateness_between(now->delivery_lateness, before->delivery_lateness).p99_below_ns;
	uint64_t late_ns = hub_is_loop(hub) ? told_ns : taken_ns;
	bool known;
	char *text;

	if (!hub_is_loop(hub) && told_ns > LATE_NS) {
		text = begin(blame);
		tell(text, "hub %u \"%s\" told late (p99 below %s) by its owner:", index + 1,
		     hub->about.thread_name, span(told_ns).text);
		if (!tell_cpu(text, &before->owner, &now->owner, told_ns))
			tell(text, " not known why");
	}
	/* What was told late is taken late as well. */
	if (late_ns <= LATE_NS || (!hub_is_loop(hub) && told_ns >= taken_ns)) {
		/* A dispatch does not count how late it takes what waits behind a slow callback. */
		blame_slow(blame, watch, index);
		return;
	}
	text = begin(blame);
	if (hub_is_loop(hub))
		tell(text, "loop %u late (p99 below %s):", index + 1, span(late_ns).text);
	else
		tell(text, "hub %u \"%s\" taken late (p99 below %s):", index + 1,
		     hub->about.thread_name, span(late_ns).text);
	known = tell_slow(text, watch, now, before, late_ns);
	for (unsigned i = 0; i < watch->running->count; i++) {
		const struct running *running = &watch->running->rows[i];

		if (hub_is_loop(hub) ? running->cell.loop == now->address
		                     : running->serial == hub->about.serial)
			known |= tell_cpu(text, &running->before, &running->thread, late_ns);
	}
	if (!known)
		tell(text, " not known why (no slow callback, no wait for a CPU)");
}

void blame_fill(struct blame *blame, const struct watch *watch, unsigned index)
{
	const struct hub *hub = &watch->target.hubs[index];
	const struct reading *now = &watch->now[index];
	const struct running *running;
	char *text;

	blame->count = 0;
	if (watch_before(watch, index))
		blame_late(blame, watch, index);
	if (now->overdue_ns > LATE_NS) {
		running = runnings_of_loop(watch->running, now->address);
		text = begin(blame);
		tell(text, "loop %u is due for %s: ", index + 1, span(now->overdue_ns).text);
		if (running)
			tell_thread(text, watch, running);
		else
			tell(text, "no thread is known");
	}
	for (uint32_t i = 0; i < now->queue_count && i < READING_QUEUES_MAX; i++) {
		const struct queue_reading *queue = &now->queues[i];

		if (queue->untaken_ns <= LATE_NS)
			continue;
		running = runnings_of_queue(watch->running, hub->about.serial, queue->address);
		text = begin(blame);
		tell(text,
		     "queue %" PRIu32 " of hub %u: %s wait, none taken for %s: ", queue->index,
		     index + 1, number(queue->waiting).text, span(queue->untaken_ns).text);
		if (running)
			tell_thread(text, watch, running);
		else
			tell(text, "no thread is known to take from it");
	}
}
