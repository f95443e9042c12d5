/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a worker by power_test.py: records, in one order, what is written to the database
 * and the WAL, what is synced, and the lines of the book. The trace is the file $RECORDER_TRACE.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

struct record {
	char kind; /* Written, zeros ('0'), Truncated, Synced, Book */
	char file; /* Database, Wal, Book */
	char unused[2];
	uint32_t bytes;
	uint64_t at;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int trace = -1;

static ssize_t real_write(int fd, const void *data, size_t bytes)
{
	static ssize_t (*real)(int, const void *, size_t);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	return real(fd, data, bytes);
}

/* 0: a file that is not recorded */
static char file_of(int fd)
{
	char link[64], path[512];
	ssize_t length;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0)
		return 0;
	path[length] = '\0';
	if (strstr(path, "/book-"))
		return 'B';
	if (length > 9 && strcmp(path + length - 9, "/t.db-wal") == 0)
		return 'W';
	return length > 5 && strcmp(path + length - 5, "/t.db") == 0 ? 'D' : 0;
}

static void add(const struct record *record, const void *data)
{
	if (trace < 0)
		trace = open(getenv("RECORDER_TRACE"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
		             0666);
	if (real_write(trace, record, sizeof(*record)) != (ssize_t)sizeof(*record) ||
	    (data && real_write(trace, data, record->bytes) != (ssize_t)record->bytes))
		abort();
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
	static ssize_t (*real)(int, const void *, size_t, off_t);
	struct record record = { .kind = 'W', .file = file_of(fd), .at = (uint64_t)at };
	const char *text = data;
	ssize_t written;

	(void)pthread_mutex_lock(&mutex);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
	written = real(fd, data, bytes, at);
	if (written > 0 && record.file) {
		record.bytes = (uint32_t)written;
		if (text[0] == 0 && memcmp(text, text + 1, (size_t)written - 1) == 0)
			record.kind = '0';
		add(&record, record.kind == 'W' ? data : NULL);
	}
	(void)pthread_mutex_unlock(&mutex);
	return written;
}

__typeof__(pwrite) pwrite64 __attribute__((alias("pwrite")));

/* Only records a write to the book; other writes pass. SQLite writes by pwrite(). */
ssize_t write(int fd, const void *data, size_t bytes)
{
	struct record record = { .kind = 'B', .file = file_of(fd), .bytes = (uint32_t)bytes };

	if (record.file != 'B')
		return real_write(fd, data, bytes);
	(void)pthread_mutex_lock(&mutex);
	add(&record, data);
	(void)pthread_mutex_unlock(&mutex);
	return (ssize_t)bytes;
}

int ftruncate(int fd, off_t bytes)
{
	static int (*real)(int, off_t);
	struct record record = { .kind = 'T', .file = file_of(fd), .at = (uint64_t)bytes };
	int result;

	(void)pthread_mutex_lock(&mutex);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "ftruncate64");
	result = real(fd, bytes);
	if (result == 0 && record.file)
		add(&record, NULL);
	(void)pthread_mutex_unlock(&mutex);
	return result;
}

__typeof__(ftruncate) ftruncate64 __attribute__((alias("ftruncate")));

/* Nothing is written meanwhile, so all that was recorded before is synced. */
static int recorded_sync(int fd, const char *name)
{
	int (*real)(int);
	struct record record = { .kind = 'S', .file = file_of(fd) };
	int result;

	*(void **)&real = dlsym(RTLD_NEXT, name);
	(void)pthread_mutex_lock(&mutex);
	result = real(fd);
	if (result == 0 && record.file)
		add(&record, NULL);
	(void)pthread_mutex_unlock(&mutex);
	return result;
}

int fdatasync(int fd)
{
	return recorded_sync(fd, "fdatasync");
}

int fsync(int fd)
{
	return recorded_sync(fd, "fsync");
}
