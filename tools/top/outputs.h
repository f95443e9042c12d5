/* SPDX-License-Identifier: MIT */
/*
 * The ways in which timerhub-top shows what it has read of a process: pages of text on a terminal
 * or on standard output, JSON, OpenMetrics text, and lines that report stalls.
 */
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

/*
 * Marks the last line of the page if `grows` is true, which means that the line shows something
 * that only grows. The live view shows a marked line in bold and in colour.
 */
void page_mark(struct page *page, bool grows);

/* A number formatted for a page, or a word in its place. */
struct number {
	char text[32];
};

/* Formats a number with a comma after each group of three digits: 1234567 becomes "1,234,567". */
struct number number(uint64_t value);

/* Formats a time span with three digits and a unit, such as "1.23 ms". UINT64_MAX becomes "any". */
struct number span(uint64_t ns);

enum view {
	VIEW_ONE,      /* one hub or loop */
	VIEW_OVERVIEW, /* a line for each */
	VIEW_AHEAD,    /* how many timers of one hub or loop fall due within 1 ms to 1 h */
	VIEW_WHO,      /* the threads that dispatch or turn loops, slow callbacks and the blame */
};

/*
 * Writes a view into an empty page, whose `columns` and `rows` the caller has set. VIEW_ONE and
 * VIEW_AHEAD show the hub or loop watch->now[index].
 */
void page_fill(struct page *page, const struct watch *watch, enum view view, unsigned index);
void who_fill(struct page *page, const struct watch *watch);

/*
 * Shows the live view on a terminal, and reads the counters again in each interval. Returns 0 when
 * the user quits or `*stop` becomes 1. Returns -1 if the process has no hub or loop any more, with
 * the reason in watch->target.refusal. Also returns -1 if the type of the terminal is not known;
 * then `refusal` is empty.
 */
int screen_run(struct watch *watch, uint64_t interval_ns, const volatile sig_atomic_t *stop);

/* ---- words: what a thread does, and who is to blame for events that come late ---- */

/* What a thread was doing between two moments at which the tool has read its state from /proc. */
enum work {
	WORK_UNKNOWN,  /* nothing of the below is shown by what the kernel says */
	WORK_COMPUTES, /* it ran for most of the time */
	WORK_NO_CPU,   /* it could run, and for most of the time did not get a CPU */
	WORK_BLOCKED,  /* it sleeps in a system call */
	WORK_STOPPED   /* a signal or a debugger has stopped it */
};

/*
 * Tells what a thread was doing between `before` and `now`. If before->tid is 0, the result depends
 * on `now` alone.
 */
enum work work_between(const struct thread *before, const struct thread *now);

/*
 * Returns what a thread was doing in words, such as "computing". They are part of the sentences on
 * pages, and scripts find them in the JSON.
 */
const char *work_name(enum work work);

struct sentence {
	char text[512];
};

__attribute__((format(printf, 2, 3))) void tell(struct sentence *sentence, const char *format, ...);

/*
 * Appends to a sentence which thread this is, where it is in the program, and what it was doing.
 * With `since_before` it adds the timer whose callback the thread runs, and its CPU times since
 * running->before. Without, it adds how long the callback has been running. If `running` is NULL or
 * has no thread, the sentence says that no thread is known.
 */
void tell_thread(struct sentence *sentence, const struct running *running, bool since_before);

#define BLAME_MAX 16

struct blame {
	unsigned count;
	struct sentence sentences[BLAME_MAX];
};

/*
 * Writes sentences that say why events of the hub or loop watch->now[index] were more than 1 ms
 * late since the last reading, and what the threads are doing for which events wait now. A sentence
 * can also say that the reason is not known.
 */
void blame_fill(struct blame *blame, const struct watch *watch, unsigned index);

/* ---- for scripts ---- */

/*
 * Prints the latest readings as JSON. If there were readings before, it also prints by how much the
 * counters grow in a second.
 */
void json_print(const struct watch *watch);

/*
 * Begins a JSON object or array with the bracket '{' or '['. `name` is its name in the surrounding
 * object, or NULL in an array or at the beginning. All functions here take such a name. A line ends
 * when json_end() closes the outermost bracket.
 */
void json_begin(const char *name, char bracket);
void json_end(char bracket);

/* Writes a string. It must be printable ASCII. */
void json_text(const char *name, const char *text);
void json_number(const char *name, uint64_t value);

/*
 * Writes an object that says what a thread is doing. With `since_before` its CPU times count from
 * running->before on, and otherwise from the beginning of the thread.
 */
void json_thread(const char *name, const struct running *running, bool since_before);

/* Prints the latest readings as OpenMetrics text. Returns -1 if there is not enough memory. */
int metrics_print(const struct watch *watch);

/*
 * Prints a line when events of a queue, or the due timeouts of a loop, have waited for longer than
 * `threshold_ns`, and another line when that ends. Returns 0 when the process has ended or `*stop`
 * is 1, or -1 if standard output cannot be written.
 */
int stalls_run(struct watch *watch, uint64_t threshold_ns, bool json,
               const volatile sig_atomic_t *stop);

#endif
