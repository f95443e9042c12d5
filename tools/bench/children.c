/* SPDX-License-Identifier: MIT */
#include "children.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subject.h"

void children_begin(unsigned count, void (*body)(unsigned child))
{
	pid_t parent = getpid();

	for (unsigned i = 0; i < count; i++) {
		pid_t child = fork();

		if (child < 0)
			subject_fail("fork", errno);
		if (child > 0)
			continue;
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1); /* it has failed already */
		body(i);
		_exit(0);
	}
}

void children_await(unsigned count)
{
	int status;

	for (unsigned i = 0; i < count; i++)
		if (wait(&status) < 0 || status != 0)
			subject_fail("a process of the measurement", 0);
}

void *children_share(uint64_t bytes)
{
	void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		subject_fail("mmap", errno);
	return memory;
}
