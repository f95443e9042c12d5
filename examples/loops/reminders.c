/* SPDX-License-Identifier: MIT */
/*
 * What the examples of this folder have in common: threads that read lines, and callbacks that
 * print them. The callbacks run in timerhub_loop_turn(), on the loop's thread, so they need no
 * lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reminders.h"

struct reader {
	pthread_t thread;
	const char *path;
	/* a timer armed for NEVER; the reader re-arms the timer when its file has ended */
	timerhub_timer over;
	/*
	 * number of lines given to the loop; the loop's thread must not read this number before the
	 * timer `over` has expired
	 */
	int64_t given;
};

struct reminder {
	/* timeout of the reminder; only the loop's thread uses it */
	struct timerhub_timeout timeout;
	uint64_t due_ns; /* time at which to print the text, on the hub's clock */
	char text[];
};

static struct {
	struct timerhub *hub;
	struct timerhub_loop *loop;
	struct reader *readers;
	int reader_count;
	int running;  /* number of readers whose timer `over` has not expired */
	int64_t left; /* number of lines of ended readers, minus printed lines; may be negative */
} job;

/*
 * Ends the program if there is an error, because a reminder could be lost. It calls _Exit(),
 * because a reader's thread may call it, and exit() would clean up what other threads use.
 */
static void must(const char *what, int error)
{
	if (error == 0)
		return;
	fprintf(stderr, "reminders: %s: %s\n", what, strerror(error));
	fflush(stdout);
	_Exit(1);
}

/* ---- on the loop's thread ---- */

static void reminder_due(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	struct reminder *reminder = (void *)((char *)timeout - offsetof(struct reminder, timeout));

	puts(reminder->text);
	must("standard output", fflush(stdout) == 0 ? 0 : errno);
	must("remove", -timerhub_timeout_remove(loop, timeout));
	free(reminder);
	job.left--;
}

static void reminder_given(const struct timerhub_event *event)
{
	struct reminder *reminder = event->ptr;

	must("add", -timerhub_timeout_add(job.loop, &reminder->timeout, reminder_due));
	must("set", -timerhub_timeout_set_at(job.loop, &reminder->timeout, reminder->due_ns));
}

static void reader_over(const struct timerhub_event *event)
{
	const struct reader *reader = event->ptr;

	job.left += reader->given;
	job.running--;
}

/* ---- on a reader's thread ---- */

/* Gives a line "MS TEXT" to the loop's thread. The delay MS counts from the call of remind(). */
static void remind(const char *line)
{
	uint64_t delay_ms;
	int text = 0;

	must(line, sscanf(line, "%9" SCNu64 " %n", &delay_ms, &text) == 1 && text > 0 ? 0 : EINVAL);
	const size_t length = strcspn(line + text, "\n");
	struct reminder *reminder = calloc(1, sizeof(*reminder) + length + 1);
	must("calloc", reminder == NULL ? errno : 0);
	reminder->due_ns = timerhub_now(job.hub) + delay_ms * 1000000;
	memcpy(reminder->text, line + text, length);
	must("call",
	     -timerhub_call(timerhub_loop_queue(job.loop), 0, reminder_given, reminder, NULL));
}

static void *reader_run(void *argument)
{
	struct reader *reader = argument;
	FILE *file = fopen(reader->path, "re");
	char *line = NULL;
	size_t size = 0;

	must(reader->path, file == NULL ? errno : 0);
	for (; getline(&line, &size, file) >= 0; reader->given++)
		remind(line);
	free(line);
	fclose(file);
	/*
	 * The timer `over` tells the loop that the file has ended. The thread moves this timer,
	 * because a call that arms a new timer may find no free slot.
	 */
	must("rearm", -timerhub_rearm(job.hub, reader->over, 0, 0));
	return NULL;
}

/* ---- from main() ---- */

struct timerhub_loop *reminders_open(int file_count, char **files)
{
	must("hub", -timerhub_open(&job.hub, NULL));
	must("loop", -timerhub_loop_open(&job.loop, job.hub, NULL));
	job.running = job.reader_count = file_count > 0 ? file_count : 1;
	job.readers = calloc((size_t)job.reader_count, sizeof(*job.readers));
	must("calloc", job.readers == NULL ? errno : 0);
	for (int i = 0; i < job.reader_count; i++) {
		struct reader *reader = &job.readers[i];
		reader->path = file_count > 0 ? files[i] : "/dev/stdin";
		must("arm", -timerhub_call(timerhub_loop_queue(job.loop), TIMERHUB_NEVER,
		                           reader_over, reader, &reader->over));
		must("thread", pthread_create(&reader->thread, NULL, reader_run, reader));
	}
	return job.loop;
}

bool reminders_left(void)
{
	return job.running > 0 || job.left > 0;
}

int reminders_close(void)
{
	if (reminders_left()) /* the loop ended early, and a reader may block for ever */
		return 1;
	/*
	 * Every reader's timer `over` has expired, but the reader may still be inside
	 * timerhub_rearm().
	 */
	for (int i = 0; i < job.reader_count; i++)
		pthread_join(job.readers[i].thread, NULL);
	timerhub_loop_close(job.loop);
	timerhub_close(job.hub);
	free(job.readers);
	return 0;
}
