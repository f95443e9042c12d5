/* SPDX-License-Identifier: MIT */
/*
 * Makes the names of a queue's keys and channels in Redis (keys.h). Tested by
 * tests/relay/test_parts.c.
 */
#include "relay/keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/invariant.h"
#include "relay/functions.h"

#define SLOTS 16384u

static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

/* Computes the CRC-16 (XMODEM) by which a Redis cluster maps a key's hash tag to a slot. */
static uint16_t crc16(const char *text)
{
	uint16_t crc = 0;

	for (; *text; text++) {
		crc = (uint16_t)(crc ^ (unsigned char)*text << 8);
		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0));
	}
	return crc;
}

int keys_init(struct keys *keys, const char *queue)
{
	size_t len = strlen(queue);

	if (len == 0 || len > KEYS_QUEUE_MAX || strspn(queue, allowed) != len)
		return -EINVAL;
	(void)snprintf(keys->prefix, sizeof(keys->prefix), "timerhub:{%s}:", queue);
	keys->slot = crc16(queue) % SLOTS;
	return 0;
}

void keys_name(const struct keys *keys, char name[KEYS_NAME_BYTES], const char *part)
{
	(void)snprintf(name, KEYS_NAME_BYTES, "%s%s", keys->prefix, part);
}

/*
 * Computes the CRC-32 of an id, the same as zlib's, because clients in other languages must choose
 * the same server.
 */
static uint32_t crc32(const char *text)
{
	uint32_t crc = UINT32_MAX;

	for (; *text; text++) {
		crc ^= (unsigned char)*text;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xEDB88320) : 0);
	}
	return ~crc;
}

uint32_t keys_shard(const char *id, uint32_t shards)
{
	invariant(shards > 0 && shards <= KEYS_SHARDS_MAX);
	return shards > 1 ? crc32(id) % shards : 0;
}

static unsigned count_parts(const char *parts)
{
	unsigned count = parts[0] ? 1 : 0;

	for (; *parts; parts++)
		count += *parts == ' ';
	return count;
}

void keys_call(const struct keys *keys, struct bytes *bytes, const char *function,
               const char *parts, unsigned arguments)
{
	unsigned count = count_parts(parts);

	bytes_command(bytes, 3 + count + arguments);
	bytes_text(bytes, "FCALL");
	bytes_joined(bytes, "timerhub" FUNCTIONS_OWN "_", function, strlen(function));
	bytes_number(bytes, count);
	while (*parts) {
		size_t len = strcspn(parts, " ");

		bytes_joined(bytes, keys->prefix, parts, len);
		parts += len + (parts[len] == ' ');
	}
}
