/* SPDX-License-Identifier: MIT */
/* Looks at the process of a test from outside: its descriptors and its data in /proc. */
#ifndef TESTS_PROCESS_USAGE_H
#define TESTS_PROCESS_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

bool fd_readable(int fd);
bool fd_readable_within(int fd, uint64_t timeout_ns);
/* Returns an epoll descriptor that reports an edge whenever the fd becomes readable. */
int edge_open(int fd);
/* Returns whether an edge comes within timeout_ns, which is a multiple of 1 ms. */
bool edge_seen(int epoll_fd, uint64_t timeout_ns);

unsigned process_fd_count(void);
/*
 * Counts the threads of the process, except threads that are ending. A joined thread remains in
 * /proc for a moment.
 */
unsigned process_thread_count(void);
/*
 * Counts the threads of the process before any hub is open. The number includes a sanitizer's own
 * thread, which starts with the first thread of the process.
 */
unsigned process_threads_at_rest(void);
unsigned process_mapping_count(void);
uint64_t process_rss_bytes(void);
/*
 * Fails if the resident memory is larger than `before_bytes` by more than the error of the
 * measurement.
 */
void process_rss_is_still(uint64_t before_bytes);
/* Waits until the process has `count` threads. */
void process_settles_at_threads(unsigned count);

/* Returns the id of the thread with this name, or 0. */
pid_t thread_find(const char *name);
/* Returns the value of a line, such as "SigBlk:", in the thread's status file in /proc. */
uint64_t thread_status(pid_t tid, const char *key, int base);

/* Returns whether the thread sleeps in the kernel. */
bool thread_is_blocked(pid_t tid);
/* Returns whether all threads of this name sleep in the kernel. */
bool threads_are_blocked(const char *name);
/* Waits until the thread sleeps in the kernel. */
void thread_blocks(pid_t tid);

/* Waits for a child process and expects that it ended with status 0. */
void child_ends_well(pid_t child);

#endif
