/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the parser of server addresses with any text, by libFuzzer. The parser must parse each
 * address up to its comma or refuse the address. A parsed address must have a host, a path or
 * Sentinels, and its texts must fit in their fields. The address of each Sentinel must fulfil these
 * conditions too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <relay/address.h>

#include "harness.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static void check_text(const char *text, size_t room)
{
	expect_cmp(strnlen(text, room), <, room);
}

static void check_fields(const struct address *address)
{
	check_text(address->host, sizeof(address->host));
	check_text(address->port, sizeof(address->port));
	check_text(address->path, sizeof(address->path));
	check_text(address->sentinels, sizeof(address->sentinels));
	check_text(address->master, sizeof(address->master));
	check_text(address->user, sizeof(address->user));
	check_text(address->nodes, sizeof(address->nodes));
	check_text(address->password, sizeof(address->password));
	check_text(address->tls.cafile, sizeof(address->tls.cafile));
	check_text(address->tls.cert, sizeof(address->tls.cert));
	check_text(address->tls.key, sizeof(address->tls.key));
}

static void check_sentinels(const struct address *address)
{
	const char *text = address->sentinels;

	expect(address->master[0] != '\0');
	while (text) {
		const char *before = text;
		struct address one;
		int result = address_read_sentinel(&one, &text);

		expect_eq(result, 0); /* address_read() has already checked all Sentinels */
		check_fields(&one);
		expect(one.host[0] != '\0' && one.port[0] != '\0');
		expect(!text || text > before);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
	char *list = calloc(1, count + 1);
	const char *text = list;
	int result = 0;

	expect(list);
	memcpy(list, bytes, count);
	while (text && result == 0) {
		const char *before = text;
		struct address address;

		result = address_read(&address, &text);
		if (result < 0) {
			expect_eq(result, -EINVAL);
			break;
		}
		expect_eq(result, 0);
		check_fields(&address);
		expect_eq((address.host[0] != '\0') + (address.path[0] != '\0') +
		                  (address.sentinels[0] != '\0') + (address.nodes[0] != '\0'),
		          1);
		if (address.sentinels[0])
			check_sentinels(&address);
		expect(!text || text > before);
	}
	free(list);
	return 0;
}
