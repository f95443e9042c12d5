/* SPDX-License-Identifier: MIT */
/* The process of a test, looked at from outside: descriptors, and what /proc tells. */
#ifndef TESTS_PROCESS_H
#define TESTS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

bool fd_readable(int fd);
bool fd_readable_within(int fd, uint64_t timeout_ns);

unsigned process_fd_count(void);
/* Without those that are leaving: a joined thread lingers for a moment. */
unsigned process_thread_count(void);
/*
 * The same before any hub is open: a sanitizer's own thread included, which comes with the first.
 */
unsigned process_threads_at_rest(void);
unsigned process_mapping_count(void);
uint64_t process_rss_bytes(void);
/* Fails where the process has grown since it had that many bytes resident. */
void process_rss_is_still(uint64_t before_bytes);
/* Waits until the process has `count` threads. */
void process_settles_at_threads(unsigned count);

/* The thread with this name, or 0. */
pid_t thread_find(const char *name);
/* The value of a line such as "SigBlk:" in the thread's status file. */
uint64_t thread_status(pid_t tid, const char *key, int base);

/* Does the thread sleep in the kernel? */
bool thread_is_blocked(pid_t tid);
/* Do all threads of this name? */
bool threads_are_blocked(const char *name);
/* Waits until the thread does. */
void thread_blocks(pid_t tid);

/* Waits for a child of ours and expects it to have ended with status 0. */
void child_ends_well(pid_t child);

#endif
