/* SPDX-License-Identifier: MIT */
/* Reads figures about this process from /proc. See process_usage.h. */
#include "process_usage.h"

#include <stdio.h>
#include <sys/resource.h>
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

static uint64_t switches(int who)
{
	struct rusage usage;

	(void)getrusage(who, &usage);
	return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
}

uint64_t process_others_switches(void)
{
	return switches(RUSAGE_SELF) - switches(RUSAGE_THREAD);
}
