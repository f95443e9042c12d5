/* SPDX-License-Identifier: MIT */
/* Looks at the process of a test from outside: its descriptors and its data in /proc. */
#ifndef TESTS_PROCESS_USAGE_H
#define TESTS_PROCESS_USAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

bool fd_readable(int fd);
bool fd_readable_within(int fd, uint64_t timeout_ns);
/* Returns an epoll descriptor that reports the edges of `fd`. */
int edge_open(int fd);
/* Waits for an edge. timeout_ns must be a multiple of 1 ms. */
bool edge_seen(int epoll_fd, uint64_t timeout_ns);

unsigned process_fd_count(void);
/* Lets the process have descriptors below `limit` only, and returns the limit until now. */
rlim_t process_limit_fds(rlim_t limit);
/*
 * Returns the number of the process's threads, without those that are just ending, because a joined
 * thread stays in /proc for a moment.
 */
unsigned process_thread_count(void);
/*
 * Returns the number of threads before any hub is open. It includes the thread of a sanitizer,
 * which begins with the program's first thread.
 */
unsigned process_threads_at_rest(void);
unsigned process_mapping_count(void);
uint64_t process_rss_bytes(void);
/* Fails the test if the resident memory has grown by more than the error of the measurement. */
void process_rss_is_still(uint64_t before_bytes);
void process_settles_at_threads(unsigned count);

/* Returns the id of the thread with this name, or 0. */
pid_t thread_find(const char *name);
/* Returns the number in a line of the thread's status file in /proc, such as "SigBlk:". */
uint64_t thread_status(pid_t tid, const char *key, int base);

/* Returns true if the thread sleeps in the kernel. */
bool thread_is_blocked(pid_t tid);
bool threads_are_blocked(const char *name);
/* Waits until the thread sleeps in the kernel. */
void thread_blocks(pid_t tid);
/* Waits until a new thread has stored its id in *tid, where 0 was, and sleeps in the kernel. */
void thread_begins_and_blocks(const atomic_int *tid);

/* Waits for the child, and fails the test if its exit status is not 0. */
void child_ends_well(pid_t child);

#endif
