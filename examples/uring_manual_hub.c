/* SPDX-License-Identifier: MIT */
/*
 * A manual hub, which has no thread, in an io_uring loop. timerhub_advance() says when it must be
 * called again, and the loop sleeps in its ring until then. If another thread arms an earlier
 * timer, the hub's wake fd wakes the loop; to arm a later one takes no system call.
 *
 * Each line "MS TEXT" of a FILE, or of standard input if there is none, makes the program print
 * TEXT when MS milliseconds have passed. The loop reads the files itself, or with -t a thread for
 * each file does so and arms the timers. A FILE may be a fifo. The program ends when all files have
 * ended and all lines are printed.
 *
 * Usage: uring_manual [-t] [FILE...]
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <timerhub_uring.h>
#include <unistd.h>

#define NS_PER_S 1000000000u
#define NS_PER_MS 1000000u

/* User data of the wake fd's poll. The user data of a read is the address of its struct file. */
#define ON_WAKE 1

enum { RING_ENTRIES = 64, BATCH = 16, LINE_BYTES = 4096 };

struct file {
	const char *path;
	int fd;
	int64_t lines;          /* number of lines read so far */
	unsigned length;        /* number of bytes of an incomplete line in `bytes` */
	char bytes[LINE_BYTES]; /* buffer into which the loop reads */
	pthread_t thread;
};

static struct {
	struct io_uring ring;
	struct timerhub *hub;
	struct timerhub_queue *queue;
	int files_open;
	/* number of lines in all ended files, minus number of printed lines; may be negative */
	int64_t left;
} loop;

/* Ends the program after an error, because a line could be lost. */
static int must(const char *what, int result)
{
	if (result >= 0)
		return result;
	fprintf(stderr, "uring_manual: %s: %s\n", what, strerror(-result));
	exit(1);
}

static struct io_uring_sqe *request_new(void)
{
	struct io_uring_sqe *sqe;

	/*
	 * A submission makes the kernel take all entries, so the queue has space for new entries.
	 */
	while ((sqe = io_uring_get_sqe(&loop.ring)) == NULL)
		must("submit", io_uring_submit(&loop.ring));
	return sqe;
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/*
 * Arms a timer, on any thread. Its deadline is absolute, because a delay would count from the hub's
 * last advance.
 */
static void arm(uint64_t delay_ms, timerhub_fn *fn, void *data)
{
	struct timerhub_spec spec = { .size = sizeof(spec),
		                      .flags = TIMERHUB_ABSOLUTE,
		                      .expires_ns = clock_ns() + delay_ms * NS_PER_MS,
		                      .ptr = data,
		                      .fn = fn };

	must("arm", timerhub_arm(loop.queue, &spec, NULL));
}

/* ---- callbacks, on the loop's thread ---- */

static void line_due(const struct timerhub_event *event)
{
	char *text = event->ptr;

	puts(text);
	must("standard output", fflush(stdout) == 0 ? 0 : -errno);
	free(text);
	loop.left--;
}

static void file_over(const struct timerhub_event *event)
{
	const struct file *file = event->ptr;

	loop.left += file->lines;
	loop.files_open--;
}

/* ---- reading ---- */

static void line_read(struct file *file, const char *line)
{
	uint64_t delay_ms;
	int text = 0;

	if (sscanf(line, "%9" SCNu64 " %n", &delay_ms, &text) != 1 || text == 0)
		must(line, -EINVAL);
	char *copy = strdup(line + text);
	must("strdup", copy != NULL ? 0 : -errno);
	file->lines++;
	arm(delay_ms, line_due, copy);
}

static void file_read(struct file *file)
{
	struct io_uring_sqe *sqe = request_new();

	io_uring_prep_read(sqe, file->fd, file->bytes + file->length, LINE_BYTES - 1 - file->length,
	                   (uint64_t)-1);
	io_uring_sqe_set_data(sqe, file);
}

static void file_has_read(struct file *file, int result)
{
	char *line = file->bytes;
	char *end;

	if (must(file->path, result) == 0) {
		if (file->length > 0) /* the last line of the file may have no newline */
			line_read(file, file->bytes);
		close(file->fd);
		arm(0, file_over, file);
		return;
	}
	file->length += (unsigned)result;
	file->bytes[file->length] = '\0';
	for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		line_read(file, line);
	}
	file->length -= (unsigned)(line - file->bytes);
	must("line too long", file->length < LINE_BYTES - 1 ? 0 : -EMSGSIZE);
	memmove(file->bytes, line, file->length);
	file_read(file);
}

static void *file_read_by_thread(void *argument)
{
	struct file *file = argument;
	FILE *stream = fdopen(file->fd, "r");
	char *line = NULL;
	size_t size = 0;

	must(file->path, stream != NULL ? 0 : -errno);
	while (getline(&line, &size, stream) >= 0) {
		line[strcspn(line, "\n")] = '\0';
		line_read(file, line);
	}
	must(file->path, ferror(stream) ? -EIO : 0);
	free(line);
	fclose(stream);
	arm(0, file_over, file);
	return NULL;
}

static void file_open(struct file *file, const char *path, bool by_thread)
{
	file->path = path;
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	must(path, file->fd >= 0 ? 0 : -errno);
	loop.files_open++;
	if (by_thread)
		must("thread", -pthread_create(&file->thread, NULL, file_read_by_thread, file));
	else
		file_read(file);
}

/* ---- the loop ---- */

/*
 * Polls the hub's wake fd, by a multishot poll that stays in the ring until a completion says that
 * it has ended.
 */
static void wake_poll(void)
{
	struct io_uring_sqe *sqe = request_new();

	io_uring_prep_poll_multishot(sqe, timerhub_wake_fd(loop.hub), POLLIN);
	io_uring_sqe_set_data64(sqe, ON_WAKE);
}

/* Submits the requests, and sleeps until a request completes or the time `until_ns` has come. */
static void loop_sleep(uint64_t until_ns)
{
	uint64_t now_ns = clock_ns();
	uint64_t timeout_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct __kernel_timespec timeout = { .tv_sec = (int64_t)(timeout_ns / NS_PER_S),
		                             .tv_nsec = (int64_t)(timeout_ns % NS_PER_S) };
	struct io_uring_cqe *cqe;
	int result = io_uring_submit_and_wait_timeout(
		&loop.ring, &cqe, 1, until_ns == UINT64_MAX ? NULL : &timeout, NULL);

	/*
	 * After a timeout or a signal the loop continues, and the clock decides which timers are
	 * due.
	 */
	if (result != -ETIME && result != -EINTR)
		must("io_uring", result);
}

static void loop_complete(void)
{
	struct io_uring_cqe *cqe;

	while (io_uring_peek_cqe(&loop.ring, &cqe) == 0) {
		uint64_t user_data = cqe->user_data;
		int result = cqe->res;
		bool ended = timerhub_uring_ended(cqe);

		io_uring_cqe_seen(&loop.ring, cqe);
		if (user_data != ON_WAKE)
			file_has_read((struct file *)(uintptr_t)user_data, result);
		else if (must("poll", result) >= 0 && ended)
			wake_poll();
	}
}

static void loop_run(void)
{
	uint64_t next_ns;

	while (loop.files_open > 0 || loop.left > 0) {
		/*
		 * Expires what is due by now, and makes the wake fd no longer readable.
		 */
		must("advance", timerhub_advance(loop.hub, clock_ns(), &next_ns));
		/*
		 * A dispatch can leave events even if it took fewer than BATCH. Other completions
		 * are handled before the next one.
		 */
		if (must("dispatch", timerhub_dispatch(loop.queue, BATCH)) > 0)
			next_ns = 0;
		if (loop.files_open > 0 || loop.left > 0)
			loop_sleep(next_ns);
		loop_complete();
	}
}

int main(int argc, char **argv)
{
	const struct timerhub_config config = { .size = sizeof(config), .flags = TIMERHUB_MANUAL };
	bool by_thread = argc > 1 && strcmp(argv[1], "-t") == 0;
	char *standard_input = "/dev/stdin";
	char **paths = argv + 1 + by_thread;
	int count = argc - 1 - by_thread;

	if (count == 0) {
		paths = &standard_input;
		count = 1;
	}
	struct file *files = calloc((size_t)count, sizeof(*files));
	must("calloc", files != NULL ? 0 : -errno);
	must("io_uring", io_uring_queue_init(RING_ENTRIES, &loop.ring, 0));
	must("hub", timerhub_open(&loop.hub, &config));
	must("queue", timerhub_queue_open(loop.hub, &loop.queue, NULL));
	wake_poll();
	for (int i = 0; i < count; i++)
		file_open(&files[i], paths[i], by_thread);
	loop_run();
	/*
	 * A thread that has read its whole file arms a last timer. The loop may get this timer's
	 * event while the thread is still inside timerhub_arm().
	 */
	for (int i = 0; by_thread && i < count; i++)
		pthread_join(files[i].thread, NULL);
	timerhub_close(loop.hub);
	io_uring_queue_exit(&loop.ring);
	free(files);
	return 0;
}
