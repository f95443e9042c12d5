/* SPDX-License-Identifier: MIT */
/*
 * Finds the names of functions. See function_names.h. elfutils reads the symbols: of the mapped
 * file, or if that is stripped, of the file of debugging symbols that has the same build-id.
 *
 * The path in a line of /proc/PID/maps may name another file here than it does for the process,
 * because the process can live in another mount namespace, or because a new version was installed
 * under the path. A wrong file would give wrong names. So the file is opened through the mapping
 * itself (map_files), for which the kernel wants a privilege, or by its path, and then it must have
 * the inode of the mapping.
 *
 * Tested by tests/tools/test_function_names.py.
 */
#define _GNU_SOURCE
#include "function_names.h"

#include <inttypes.h>
#include <stdio.h>

#ifdef TOP_WITH_ELFUTILS
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct function_names {
	int proc;
	Dwfl *dwfl;
	char *maps; /* the /proc/PID/maps from which `dwfl` knows its files; NULL: none yet */
	char *code; /* the lines of `maps` that are of code */
	char debug_path[96];
	char *debug_paths; /* elfutils wants a pointer to a pointer */
	Dwfl_Callbacks callbacks;
};

/*
 * elfutils passes no argument of ours to its callbacks, so this is whose modules are reported or
 * searched at the moment. The tool has one thread.
 */
static const struct function_names *current;

/* Reads the whole file, whose size is not known before, and which has no zero byte. */
static char *read_maps(int proc)
{
	int fd = openat(proc, "maps", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	bool is_read = false;
	char *text = NULL;
	size_t room = 0;

	if (file) {
		is_read = getdelim(&text, &room, 0, file) > 0 && !ferror(file);
		(void)fclose(file);
	} else if (fd >= 0) {
		(void)close(fd);
	}
	if (is_read)
		return text;
	free(text);
	return NULL;
}

/* Finds the line of the maps that begins with this address. */
static bool maps_find(const char *maps, uint64_t start, uint64_t *ret_end, uint64_t *ret_inode)
{
	for (const char *line = maps; *line; line += strcspn(line, "\n") + 1) {
		uint64_t from;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %" SCNu64, &from, ret_end,
		           ret_inode) == 3 &&
		    from == start)
			return true;
		if (!strchr(line, '\n'))
			break;
	}
	return false;
}

/* Opens the file under this path, if it is a file with this inode. */
static int open_inode(int folder, const char *path, uint64_t inode)
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat stat;

	if (fd >= 0 && (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode) || stat.st_ino != inode)) {
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

static int find_elf(Dwfl_Module *module, void **data, const char *path, Dwarf_Addr start,
                    char **ret_path, Elf **ret_elf)
{
	char mapping[64], *inside;
	uint64_t end, inode;
	int fd;

	(void)module, (void)data, (void)ret_path;
	*ret_elf = NULL;
	if (*path != '/' || !maps_find(current->maps, start, &end, &inode))
		return -1;
	(void)snprintf(mapping, sizeof(mapping), "map_files/%" PRIx64 "-%" PRIx64, start, end);
	fd = openat(current->proc, mapping, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 || asprintf(&inside, "root%s", path) < 0)
		return fd;
	fd = open_inode(current->proc, inside, inode);
	free(inside);
	/* If the process is only in a chroot, `path` begins at the root of this process. */
	return fd >= 0 ? fd : open_inode(AT_FDCWD, path, inode);
}

/* Returns the lines of mapped code, because the heap changes all the time, the code hardly ever. */
static char *code_of(const char *maps)
{
	char *code = strdup(maps), *to = code;

	while (code && *maps) {
		const char *blank = strchrnul(maps, ' '), *end = strchrnul(maps, '\n');

		if (end - blank > 4 && blank[3] == 'x')
			to = mempcpy(to, maps, (size_t)(end - maps));
		maps = *end ? end + 1 : end;
	}
	if (code)
		*to = 0;
	return code;
}

/* Begins anew if the process has mapped or unmapped code since the last time. */
static bool names_refresh(struct function_names *names)
{
	char *maps = read_maps(names->proc), *code = maps ? code_of(maps) : NULL;
	bool is_same = code && names->code && names->dwfl && strcmp(code, names->code) == 0;
	FILE *file;

	free(is_same ? maps : names->maps);
	free(is_same ? code : names->code);
	if (is_same)
		return true;
	names->maps = maps;
	names->code = code;
	if (names->dwfl)
		dwfl_end(names->dwfl);
	names->dwfl = NULL;
	if (!maps)
		return false;
	names->dwfl = dwfl_begin(&names->callbacks);
	file = names->dwfl ? fmemopen(maps, strlen(maps), "r") : NULL;
	if (!file)
		return false;
	dwfl_report_begin(names->dwfl);
	(void)dwfl_linux_proc_maps_report(names->dwfl, file);
	(void)fclose(file);
	return dwfl_report_end(names->dwfl, NULL, NULL) == 0;
}

/*
 * Stores the symbol at exactly this address. The nearest symbol before it would be a guess, because
 * a stripped file keeps the symbols of a few functions only.
 */
static bool name_from_symbols(struct function_names *names, uint64_t address, char *ret_name)
{
	Dwfl_Module *module = dwfl_addrmodule(names->dwfl, address);
	const char *symbol, *path;
	Dwarf_Addr start;
	GElf_Off offset;
	GElf_Sym about;

	if (!module)
		return false;
	current = names;
	symbol = dwfl_module_addrinfo(module, address, &offset, &about, NULL, NULL, NULL);
	path = dwfl_module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
	if (symbol && offset == 0)
		(void)snprintf(ret_name, FUNCTION_NAME_BYTES, "%s", symbol);
	else if (path && *path == '/')
		(void)snprintf(ret_name, FUNCTION_NAME_BYTES, "%s+0x%" PRIx64,
		               strrchr(path, '/') + 1, address - start);
	else
		return false;
	for (char *c = ret_name; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '?';
	return true;
}

struct function_names *function_names_open(int proc)
{
	struct function_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	/* A server of debugging symbols would be asked over the network while the stall goes on. */
	(void)unsetenv("DEBUGINFOD_URLS");
	names->proc = proc;
	/* Symbols are looked for where the process would find them, and then on this machine. */
	(void)snprintf(names->debug_path, sizeof(names->debug_path),
	               "/proc/self/fd/%d/root/usr/lib/debug:/usr/lib/debug", proc);
	names->debug_paths = names->debug_path;
	names->callbacks.find_elf = find_elf;
	names->callbacks.find_debuginfo = dwfl_build_id_find_debuginfo;
	names->callbacks.debuginfo_path = &names->debug_paths;
	return names;
}

void function_names_close(struct function_names *names)
{
	if (!names)
		return;
	if (names->dwfl)
		dwfl_end(names->dwfl);
	free(names->maps);
	free(names->code);
	free(names);
}

#else

struct function_names *function_names_open(int proc)
{
	(void)proc;
	return NULL;
}

void function_names_close(struct function_names *names)
{
	(void)names;
}

#endif

struct name function_name(struct function_names *names, uint64_t address)
{
	struct name name = { "" };

	if (address == 0)
		return name;
#ifdef TOP_WITH_ELFUTILS
	if (names && names_refresh(names) && name_from_symbols(names, address, name.text))
		return name;
#else
	(void)names;
#endif
	(void)snprintf(name.text, sizeof(name.text), "0x%" PRIx64, address);
	return name;
}
