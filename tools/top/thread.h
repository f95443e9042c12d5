/* SPDX-License-Identifier: MIT */
/* What the kernel tells of one thread in /proc, to whoever may read the process's /proc. */
#ifndef TOP_THREAD_H
#define TOP_THREAD_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#define PROC_STATUS_BYTES 4096 /* room for /proc/PID/status */
#define THREAD_TEXT_BYTES 32

struct thread {
	int tid; /* the number that the process itself sees */
	char name[THREAD_TEXT_BYTES];
	char state;         /* as in proc(5): R runs or waits for a CPU, S and D sleep, T stopped */
	bool has_waited_ns; /* false if the kernel does not keep waited_ns */
	uint64_t at_ns;     /* when the thread was looked at, by CLOCK_MONOTONIC */
	uint64_t ran_ns;    /* how long it has run on a CPU */
	uint64_t waited_ns; /* how long it has waited for a CPU, in waits that have ended */
	uint64_t sleeps;    /* how often it has gone to sleep of its own accord */
	char wchan[THREAD_TEXT_BYTES];   /* the kernel function in which it sleeps; "": not known */
	char syscall[THREAD_TEXT_BYTES]; /* the system call in which it sleeps; "": not known */
};

/*
 * Looks at the thread that its process calls `tid`. `proc` is the process's folder in /proc.
 * Returns false if there is no such thread, or if it may not be looked at.
 */
bool thread_look(int proc, int tid, struct thread *ret_thread);

/* Reads the beginning of a file. Returns false, and stores "", if there is nothing to read. */
bool proc_read(int folder, const char *path, char *text, size_t bytes);

/* Opens a folder. Returns NULL, and sets errno, on failure. */
DIR *proc_folder(int folder, const char *path);

/*
 * Returns the last number in the line `name` of /proc/PID/status, which is that of the innermost
 * PID namespace. Returns `without` if there is no such line, as before Linux 4.1.
 */
uint32_t proc_inner_number(const char *status, const char *name, uint32_t without);

#endif
