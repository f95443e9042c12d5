/* SPDX-License-Identifier: MIT */
/* The ways in which timerhub-top shows a watch: pages of text, JSON, OpenMetrics, stalls. */
#ifndef TOP_OUTPUTS_H
#define TOP_OUTPUTS_H

#include <signal.h>

#include "reading.h"

/* ---- pages of text, shown on a screen or printed, and the numbers on them ---- */

#define PAGE_LINES_MAX 192
#define PAGE_COLUMNS_MAX 240

struct page {
	unsigned columns, rows; /* the size that the page should fit; longer pages are cut off */
	unsigned count;
	bool marked[PAGE_LINES_MAX]; /* whether the line tells of something that grows */
	char lines[PAGE_LINES_MAX][PAGE_COLUMNS_MAX + 1];
};

__attribute__((format(printf, 2, 3))) void page_add(struct page *page, const char *format, ...);

/* Marks the line that was added last, if it tells of something that grows. */
void page_mark(struct page *page, bool grows);

/* A number or a word, as it stands on a page. */
struct number {
	char text[32];
};

/* Formats a number with commas: 1234567 is "1,234,567". */
struct number number(uint64_t value);

/* Formats a time span of `ns` nanoseconds with three digits and a unit; UINT64_MAX is "any". */
struct number span(uint64_t ns);

enum view {
	VIEW_ONE,      /* one hub or loop */
	VIEW_OVERVIEW, /* a line for each */
	VIEW_AHEAD,    /* how many timers of one hub or loop fall due within 1 ms to 1 h */
	VIEW_WHO,      /* the threads that dispatch or turn loops, slow callbacks and the blame */
};

/*
 * Fills an empty page, of which `columns` and `rows` are set. VIEW_ONE and VIEW_AHEAD are those of
 * the hub or loop watch->now[index].
 */
void page_fill(struct page *page, const struct watch *watch, enum view view, unsigned index);
void who_fill(struct page *page, const struct watch *watch);

/*
 * Shows the live view on a terminal, and reads the counters again in each interval. Returns 0 when
 * the user quits or `*stop` is set. When no hub is left, it returns -1 with the reason in the
 * target's `refusal`, which is empty if the terminal is unknown.
 */
int screen_run(struct watch *watch, uint64_t interval_ns, const volatile sig_atomic_t *stop);

/* ---- words: what a thread does, and who is to blame for events that come late ---- */

/* What a thread did between two looks of the kernel at it. */
enum work {
	WORK_UNKNOWN,  /* nothing of the below is shown by what the kernel says */
	WORK_COMPUTES, /* it ran for most of the time */
	WORK_NO_CPU,   /* it could run, and for most of the time did not get a CPU */
	WORK_BLOCKED,  /* it sleeps in a system call */
	WORK_STOPPED   /* a signal or a debugger has stopped it */
};

/* Judges by two looks. before->tid may be 0. */
enum work work_between(const struct thread *before, const struct thread *now);

/* Returns a word for scripts, such as "computing", which is also part of a sentence. */
const char *work_name(enum work work);

struct sentence {
	char text[512];
};

__attribute__((format(printf, 2, 3))) void tell(struct sentence *sentence, const char *format, ...);

/*
 * Adds a thread, where it is, and what the kernel says of it. `since_before` adds its timer, and
 * its CPU times since running->before. Otherwise a callback's duration is added. `running` may be
 * NULL, or have no thread.
 */
void tell_thread(struct sentence *sentence, const struct running *running, bool since_before);

#define BLAME_MAX 16

struct blame {
	unsigned count;
	struct sentence sentences[BLAME_MAX];
};

/*
 * Says why events came late by more than 1 ms since the reading before, or still wait. `index` is
 * the number of the hub or loop. A sentence may say that the reason is not known.
 */
void blame_fill(struct blame *blame, const struct watch *watch, unsigned index);

/* ---- for scripts ---- */

/* Prints the latest readings, with rates since the readings before if there are any. */
void json_print(const struct watch *watch);

/*
 * Begins an object or an array, by its opening bracket. `name` is NULL if it is no member of an
 * object, as for all functions. json_end() with the outermost bracket ends the line.
 */
void json_begin(const char *name, char bracket);
void json_end(char bracket);

/* Adds a text, which must be printable ASCII. */
void json_text(const char *name, const char *text);
void json_number(const char *name, uint64_t value);

/*
 * Adds what a thread does. Its times count since running->before if `since_before`, else since the
 * thread began.
 */
void json_thread(const char *name, const struct running *running, bool since_before);

/* Prints the latest readings as OpenMetrics text. Returns -1 if memory is short. */
int metrics_print(const struct watch *watch);

/*
 * Prints a line when events or a due loop have waited for too long, and when that ends, until the
 * process ends or `*stop` is set. Returns 0, or -1 if standard output cannot be written.
 */
int stalls_run(struct watch *watch, uint64_t threshold_ns, bool json,
               const volatile sig_atomic_t *stop);

#endif
