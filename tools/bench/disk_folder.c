/* SPDX-License-Identifier: MIT */
/*
 * Makes a folder for each measurement. See disk_folder.h. The folder's name has the id of the
 * measuring process. Therefore the parent process can remove the folder, even if the measuring
 * process is killed.
 */
#include "disk_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "subject.h"

#define PATH_BYTES 512

static char folder[PATH_BYTES];

static const char *base(void)
{
	const char *given = getenv("TMPDIR");

	return given ? given : "/var/tmp";
}

static void folder_name(char path[PATH_BYTES], pid_t process)
{
	(void)snprintf(path, PATH_BYTES, "%s/timerhub-bench.%d", base(), (int)process);
}

const char *folder_make(void)
{
	if (folder[0] != '\0')
		return folder;
	folder_name(folder, getpid());
	if (mkdir(folder, 0700) < 0)
		subject_fail(folder, errno);
	return folder;
}

static void each_file(const char *path, void (*visit)(int directory, const char *name))
{
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			visit(dirfd(directory), entry->d_name);
	if (directory)
		(void)closedir(directory);
}

static void remove_file(int directory, const char *name)
{
	(void)unlinkat(directory, name, 0);
}

void folder_remove(pid_t process)
{
	char path[PATH_BYTES];

	folder_name(path, process);
	each_file(path, remove_file);
	(void)rmdir(path);
}

static void drop_cache(int directory, const char *name)
{
	int file = openat(directory, name, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return;
	(void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	(void)close(file);
}

void folder_drop_caches(void)
{
	each_file(folder, drop_cache);
}

bool folder_is_memory(void)
{
	static bool said;
	struct statfs status;

	if (statfs(base(), &status) < 0 ||
	    (status.f_type != TMPFS_MAGIC && status.f_type != RAMFS_MAGIC))
		return false;
	if (!said)
		(void)fprintf(stderr,
		              "timerhub-bench: %s is memory: what is said of durable "
		              "workloads says nothing; set TMPDIR\n",
		              base());
	said = true;
	return true;
}
