/* SPDX-License-Identifier: MIT */
/*
 * Says which process holds a journal. /proc/locks has the process that took a flock(2) lock, but it
 * may have ended and left the open file to a child, and the line's device is not that of stat(2) on
 * each file system. So a process is named only if it has the file open. Tested by
 * tests/journal/tool_test.py.
 */
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "task_commands.h"

static bool has_open(int process, const struct stat *info)
{
	char pattern[64];
	bool found = false;
	struct stat other;
	glob_t files;

	(void)snprintf(pattern, sizeof(pattern), "/proc/%d/fd/*", process);
	if (glob(pattern, GLOB_NOSORT, NULL, &files) != 0)
		return false;
	for (size_t i = 0; i < files.gl_pathc && !found; i++)
		found = stat(files.gl_pathv[i], &other) == 0 && other.st_dev == info->st_dev &&
		        other.st_ino == info->st_ino;
	globfree(&files);
	return found;
}

/* Returns 0 for a process that can't be seen: another user's, or outside of this PID namespace. */
static int find_holder(const char *path)
{
	FILE *locks = fopen("/proc/locks", "re");
	int process, found = 0;
	struct stat info;
	char line[256];
	uint64_t inode;

	if (!locks)
		return 0;
	while (stat(path, &info) == 0 && found == 0 && fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %*x:%*x:%" SCNu64, &process, &inode) == 2 &&
		    inode == info.st_ino && has_open(process, &info))
			found = process;
	(void)fclose(locks);
	return found;
}

enum status tool_in_use(const char *dir)
{
	char file[PATH_MAX], holder[32] = "";
	int process = find_holder(dir);

	/* a network file system locks only this file */
	if (process == 0 && snprintf(file, sizeof(file), "%s/lock", dir) < (int)sizeof(file))
		process = find_holder(file);
	if (process > 0)
		(void)snprintf(holder, sizeof(holder), " by process %d", process);
	(void)fprintf(stderr, "timerhub-journal: %s is in use%s\n", dir, holder);
	return FAILED;
}
