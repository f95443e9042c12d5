/* SPDX-License-Identifier: MIT */
/* Lists the processes that can be watched. See processes.h. */
#include "processes.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>

#include "target.h"

static bool process_print(FILE *out, struct target *target, pid_t pid, bool first)
{
	bool found = target_open(target, pid) == 0;
	unsigned loops = 0;

	for (unsigned i = 0; found && i < target->hub_count; i++)
		loops += hub_is_loop(&target->hubs[i]);
	if (found && first)
		fprintf(out, "%7s %-15s %5s %5s\n", "PID", "COMMAND", "HUBS", "LOOPS");
	if (found)
		fprintf(out, "%7d %-15s %5u %5u\n", (int)pid, target->command,
		        target->hub_count - loops, loops);
	target_close(target);
	return found;
}

int processes_print(FILE *out)
{
	struct target *target = malloc(sizeof(*target));
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int count = target && proc ? 0 : -1;

	while (count >= 0 && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			count += process_print(out, target, (pid_t)atoi(entry->d_name), count == 0);
	if (proc)
		(void)closedir(proc);
	free(target);
	return count;
}
