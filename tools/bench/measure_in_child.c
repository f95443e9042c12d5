/* SPDX-License-Identifier: MIT */
/*
 * Forks a process for each measurement. See measure_in_child.h. The process uses CPU time and
 * memory for only one subject (a measured service), and measurements do not affect each other. A
 * subject that hangs or crashes does not end the run.
 */
#include "measure_in_child.h"

#include <sys/wait.h>
#include <unistd.h>

#include "disk_folder.h"

#define MEASURE_SECONDS_MAX 600

static void measure_inside(const struct workload *workload, const struct run *run, int out)
{
	static struct result result;

	(void)alarm(MEASURE_SECONDS_MAX);
	if (run->subject->measure)
		run->subject->measure(workload, run, &result);
	else
		workload->measure(run, &result);
	_exit(write(out, &result, sizeof(result)) == sizeof(result) ? 0 : 1);
}

bool measure(const struct workload *workload, const struct run *run, struct result *ret_result)
{
	int fds[2], status = 1;
	ssize_t got;
	pid_t child;

	if (pipe(fds) < 0)
		return false;
	child = fork();
	if (child == 0)
		measure_inside(workload, run, fds[1]);
	(void)close(fds[1]);
	got = read(fds[0], ret_result, sizeof(*ret_result));
	(void)close(fds[0]);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	folder_remove(child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 && got == sizeof(*ret_result);
}
