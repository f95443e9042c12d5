/* SPDX-License-Identifier: MIT */
/*
 * Reads the addresses of servers from a file, "@PATH" (url_file.h). Tested by
 * tests/relay/servers_test.py.
 */
#include "relay/url_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/whole_read.h"

#define LINE_MAX_BYTES 65536 /* addresses of many servers, with their passwords */

/* Reads the first line of a file into memory that the caller frees. */
static int read_line(const char *path, char **ret_line)
{
	int fd = DESCRIPTOR_ABOVE_STDIO(open(path, O_RDONLY | O_CLOEXEC)), result = 0;
	char *line = fd < 0 ? NULL : calloc(1, LINE_MAX_BYTES);
	long length;

	if (fd < 0)
		return fd;
	length = line ? whole_read(fd, line, LINE_MAX_BYTES - 1) : -ENOMEM;
	(void)close(fd);
	if (length <= 0)
		result = length < 0 ? (int)length : -EINVAL;
	if (result < 0) {
		free(line);
		return result;
	}
	line[strcspn(line, "\n")] = '\0';
	*ret_line = line;
	return 0;
}

int url_file_open(const char *redis, const char **ret_list, char **ret_text)
{
	int result = 0;

	*ret_text = NULL;
	if (redis && redis[0] == '@')
		result = read_line(redis + 1, ret_text);
	*ret_list = *ret_text ? *ret_text : redis;
	return result;
}

bool url_file_renew(struct address *address)
{
	struct address fresh;
	const char *list;
	char *text = NULL;
	int result = address->file ? read_line(address->file, &text) : -ENOENT;

	list = text;
	for (uint32_t i = 0; i <= address->index && result == 0; i++)
		result = list ? address_read(&fresh, &list) : -EINVAL;
	free(text);
	if (result < 0 || (strcmp(fresh.user, address->user) == 0 &&
	                   strcmp(fresh.password, address->password) == 0))
		return false;
	address_set_login(address, &fresh);
	return true;
}
