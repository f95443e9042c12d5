/* SPDX-License-Identifier: MIT */
/* See process.h. Reads /proc. */
#include "process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t process_resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long total = 0, resident = 0;

	if (file && fscanf(file, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	if (file)
		(void)fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t thread_switches(const char *thread)
{
	unsigned long long voluntary = 0, other = 0, value;
	char path[64], line[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", thread);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &value) == 1)
			voluntary = value;
		else if (sscanf(line, "nonvoluntary_ctxt_switches: %llu", &value) == 1)
			other = value;
	}
	if (file)
		(void)fclose(file);
	return voluntary + other;
}

uint64_t process_others_switches(void)
{
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *thread;
	uint64_t switches = 0;

	while (threads && (thread = readdir(threads)))
		if (thread->d_name[0] != '.' && atoi(thread->d_name) != gettid())
			switches += thread_switches(thread->d_name);
	if (threads)
		(void)closedir(threads);
	return switches;
}
