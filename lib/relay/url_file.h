/* SPDX-License-Identifier: MIT */
/*
 * Addresses in a file, "@PATH" in place of a list of addresses. The file keeps a password out of
 * the program's configuration, and may get a new one while the queue is open.
 * An empty file is -EINVAL.
 */
#ifndef RELAY_URL_FILE_H
#define RELAY_URL_FILE_H

#include <stdbool.h>

#include "relay/address.h"

/*
 * Finds the list of addresses: `redis` itself, or in the file "@path". The caller frees *ret_text.
 */
int url_file_open(const char *redis, const char **ret_list, char **ret_text);

/* Reads user and password again from the address's file. Returns whether they have changed. */
bool url_file_renew(struct address *address);

#endif
