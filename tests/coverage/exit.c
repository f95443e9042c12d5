/* SPDX-License-Identifier: MIT */
/*
 * Replaces _exit() for tools/run-coverage. The new _exit() writes the coverage counters of a forked
 * child, and then ends the child. Without this file, tools/run-coverage does not see the code that
 * only children reach.
 *
 * The file is compiled in two ways. With PRELOADED the file becomes a preloaded library. Its
 * _exit() calls the registered functions and then ends the process. Without PRELOADED the file
 * becomes a part of each program and library. There it registers the function that writes the
 * coverage counters.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef void coverage_dump(void);

#ifdef PRELOADED
void coverage_at_exit(coverage_dump *dump);

static coverage_dump *dumps[8];
static unsigned dumps_count;

void coverage_at_exit(coverage_dump *dump)
{
	if (dumps_count < sizeof(dumps) / sizeof(dumps[0]))
		dumps[dumps_count++] = dump;
}

void _exit(int status)
{
	while (dumps_count > 0)
		dumps[--dumps_count]();
	for (;;)
		(void)syscall(SYS_exit_group, status);
}
#else
void __gcov_dump(void);

static __attribute__((constructor)) void coverage_enlist(void)
{
	void (*enlist)(coverage_dump *) =
		(void (*)(coverage_dump *))dlsym(RTLD_DEFAULT, "coverage_at_exit");

	if (enlist)
		enlist(__gcov_dump);
}
#endif
