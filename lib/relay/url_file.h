/* SPDX-License-Identifier: MIT */
/*
 * Addresses in a file, "@PATH" in place of a list of addresses. The file keeps a password out of
 * the program's configuration, and may get a new one while the queue is open.
 */
#ifndef RELAY_URL_FILE_H
#define RELAY_URL_FILE_H

#include <stdbool.h>

#include "relay/address.h"

/*
 * Stores in *ret_list the addresses: `redis` itself, or the first line of the file "@path". The
 * caller frees *ret_text, which may be NULL. Returns -EINVAL if the file is empty.
 */
int url_file_open(const char *redis, const char **ret_list, char **ret_text);

/*
 * Reads user and password of an address again, if the address came from a file. Returns true if
 * they have changed, so that it is worth logging in again.
 */
bool url_file_renew(struct address *address);

#endif
