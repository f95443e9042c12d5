/* SPDX-License-Identifier: MIT */
/* Looks at the process of a test from outside: its descriptors and its data in /proc. */
#ifndef TESTS_PROCESS_USAGE_H
#define TESTS_PROCESS_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

bool fd_readable(int fd);
bool fd_readable_within(int fd, uint64_t timeout_ns);
/* An epoll descriptor that reports the edges of the fd. */
int edge_open(int fd);
/* timeout_ns is a multiple of 1 ms */
bool edge_seen(int epoll_fd, uint64_t timeout_ns);

unsigned process_fd_count(void);
/* Without those that are ending: a joined thread stays in /proc for a moment. */
unsigned process_thread_count(void);
/* Before any hub is open: with a sanitizer's own thread, which comes with the first. */
unsigned process_threads_at_rest(void);
unsigned process_mapping_count(void);
uint64_t process_rss_bytes(void);
/* Fails if the resident memory has grown by more than the error of the measurement. */
void process_rss_is_still(uint64_t before_bytes);
void process_settles_at_threads(unsigned count);

/* or 0 */
pid_t thread_find(const char *name);
/* of a line of the thread's status file, such as "SigBlk:" */
uint64_t thread_status(pid_t tid, const char *key, int base);

/* sleeps in the kernel */
bool thread_is_blocked(pid_t tid);
bool threads_are_blocked(const char *name);
/* waits until it does */
void thread_blocks(pid_t tid);

/* waits, and expects status 0 */
void child_ends_well(pid_t child);

#endif
