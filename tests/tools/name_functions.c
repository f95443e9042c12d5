/* SPDX-License-Identifier: MIT */
/*
 * Names functions of another process, as timerhub-top does. It reads addresses, one a line, and
 * answers each with a line, the function's name.
 *
 * Usage: name_functions PID
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "../../tools/top/function_names.h"

int main(int argc, char **argv)
{
	char path[64];
	struct function_names *names;
	uint64_t address;
	int proc;

	(void)snprintf(path, sizeof(path), "/proc/%.20s", argc > 1 ? argv[1] : "");
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0) {
		perror(path);
		return 1;
	}
	names = function_names_open(proc);
	while (scanf("%" SCNu64, &address) == 1) {
		(void)puts(function_name(names, address).text);
		(void)fflush(stdout);
	}
	function_names_close(names);
	return 0;
}
