/* SPDX-License-Identifier: MIT */
/* Parses and prints addresses of Redis servers (address.h). Tested by tests/relay/test_parts.c. */
#include "relay/address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATABASE_MAX 1000000u
#define PORT_MAX 65535u

/* A part of an address that has not been parsed yet. */
struct part {
	const char *at;
	size_t len;
};

static bool begins(const struct part *part, const char *word)
{
	size_t len = strlen(word);

	return part->len >= len && memcmp(part->at, word, len) == 0;
}

static void skip(struct part *part, size_t len)
{
	part->at += len;
	part->len -= len;
}

static int hex_digit(char digit)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *found = digit ? strchr(digits, digit) : NULL;
	int value = found ? (int)(found - digits) : -1;

	return value > 15 ? value - 6 : value;
}

/*
 * Copies a part of an address as a string. If `escaped` is true, each %XX becomes the byte whose
 * number is XX in hexadecimal.
 */
static int copy(char *to, const struct part *part, bool escaped)
{
	size_t used = 0;

	for (size_t i = 0; i < part->len; i++) {
		char byte = part->at[i];

		if (used + 1 >= ADDRESS_TEXT_BYTES)
			return -EINVAL;
		if (escaped && byte == '%') {
			int high = i + 2 < part->len ? hex_digit(part->at[i + 1]) : -1;
			int low = high >= 0 ? hex_digit(part->at[i + 2]) : -1;

			if (low < 0)
				return -EINVAL;
			byte = (char)(16 * high + low);
			i += 2;
		}
		if (byte == '\0')
			return -EINVAL;
		to[used++] = byte;
	}
	to[used] = '\0';
	return 0;
}

static int read_number(uint32_t *ret_number, const struct part *part, uint32_t most)
{
	uint32_t number = 0;

	if (part->len == 0 || part->len > 9)
		return -EINVAL;
	for (size_t i = 0; i < part->len; i++) {
		if (part->at[i] < '0' || part->at[i] > '9')
			return -EINVAL;
		number = 10 * number + (uint32_t)(part->at[i] - '0');
	}
	if (number > most)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

/*
 * Splits `part` at the first character `mark` in it, or at the last one if `last` is true. The mark
 * itself is in neither half. Returns false if there is no mark.
 */
static bool split(struct part *ret_head, struct part *part, char mark, bool last)
{
	const char *found = NULL;

	for (size_t i = 0; i < part->len && (!found || last); i++)
		if (part->at[i] == mark)
			found = part->at + i;
	if (!found)
		return false;
	*ret_head = (struct part){ .at = part->at, .len = (size_t)(found - part->at) };
	skip(part, ret_head->len + 1);
	return true;
}

static int read_login(struct address *address, struct part *part)
{
	struct part login, user;
	int result;

	if (!split(&login, part, '@', true))
		return 0;
	if (!split(&user, &login, ':', false))
		return -EINVAL; /* without a password Redis knows no user */
	result = copy(address->user, &user, true);
	return result == 0 ? copy(address->password, &login, true) : result;
}

static int read_port(struct address *address, const struct part *part)
{
	uint32_t port;

	if (read_number(&port, part, PORT_MAX) < 0 || port == 0 || part->len >= ADDRESS_PORT_BYTES)
		return -EINVAL;
	memcpy(address->port, part->at, part->len);
	address->port[part->len] = '\0';
	return 0;
}

static int read_host(struct address *address, struct part part, const char *port)
{
	struct part host = part;

	memcpy(address->port, port, strlen(port) + 1);
	if (begins(&part, "[")) { /* the host is an IPv6 address */
		skip(&part, 1);
		if (!split(&host, &part, ']', false))
			return -EINVAL;
		if (part.len > 0 && part.at[0] != ':')
			return -EINVAL;
		if (part.len > 0) {
			skip(&part, 1);
			if (read_port(address, &part) < 0)
				return -EINVAL;
		}
	} else if (split(&host, &part, ':', false) && read_port(address, &part) < 0) {
		return -EINVAL;
	}
	if (host.len == 0)
		return -EINVAL;
	return copy(address->host, &host, false);
}

static int read_redis(struct address *address, struct part part)
{
	struct part database = part, host;
	int result = read_login(address, &part);

	if (result < 0)
		return result;
	database = part;
	if (split(&host, &database, '/', false)) {
		part = host;
		if (database.len > 0 &&
		    read_number(&address->database, &database, DATABASE_MAX) < 0)
			return -EINVAL;
	}
	return read_host(address, part, "6379");
}

/* Checks the syntax of a Sentinel list such as "host:port+host:port". Returns 0 or -EINVAL. */
static int check_sentinels(const char *text)
{
	int result = 0;

	while (text && result == 0) {
		struct address one;

		result = address_read_sentinel(&one, &text);
	}
	return result;
}

static int read_sentinels(struct address *address, struct part part)
{
	struct part list, master;
	int result = read_login(address, &part);

	if (result < 0 || !split(&list, &part, '/', false))
		return -EINVAL;
	master = part;
	if (split(&master, &part, '/', false) && part.len > 0 &&
	    read_number(&address->database, &part, DATABASE_MAX) < 0)
		return -EINVAL;
	if (list.len == 0 || master.len == 0 || copy(address->sentinels, &list, false) < 0 ||
	    copy(address->master, &master, false) < 0)
		return -EINVAL;
	return check_sentinels(address->sentinels);
}

/* Reads the first host of a list like "host:port+host:port", and moves *text to the next one. */
static int read_one_of(struct address *ret_address, const char **text, const char *port)
{
	struct address address = { .database = 0 };
	const char *end = strchr(*text, '+');
	struct part part = { .at = *text, .len = end ? (size_t)(end - *text) : strlen(*text) };
	int result = read_host(&address, part, port);

	if (result < 0)
		return result;
	*ret_address = address;
	*text = end ? end + 1 : NULL;
	return 0;
}

int address_read_sentinel(struct address *ret_address, const char **text)
{
	return read_one_of(ret_address, text, "26379");
}

int address_read_node(struct address *ret_node, const char **text, const struct address *address)
{
	int result = read_one_of(ret_node, text, "6379");

	if (result < 0)
		return result;
	address_set_login(ret_node, address);
	ret_node->tls = address->tls;
	ret_node->tries = address->tries;
	ret_node->cluster = true;
	return 0;
}

static int read_cluster(struct address *address, struct part part)
{
	int result = read_login(address, &part);
	const char *text = address->nodes;

	if (result == 0)
		result = copy(address->nodes, &part, false);
	if (strchr(address->nodes, '/')) /* a cluster has no databases */
		result = -EINVAL;
	while (result == 0 && text) {
		struct address node;

		result = address_read_node(&node, &text, address);
	}
	address->cluster = true;
	return result;
}

void address_redirect(struct address *address, const char *text, const struct address *from)
{
	struct part part = { .at = text, .len = strlen(text) }, word, host;
	bool asking = begins(&part, "ASK ");

	if (!asking && !begins(&part, "MOVED "))
		return;
	if (!split(&word, &part, ' ', false) || !split(&word, &part, ' ', false) ||
	    !split(&host, &part, ':', true) || part.len == 0 || part.len >= ADDRESS_PORT_BYTES)
		return;
	if (host.len == 0)
		host = (struct part){ .at = from->host, .len = strlen(from->host) };
	if (copy(address->next_host, &host, false) < 0)
		return;
	memcpy(address->next_port, part.at, part.len);
	address->next_port[part.len] = '\0';
	address->next_asking = asking;
}

bool address_take_redirect(struct address *address, struct address *server)
{
	bool found = address->next_port[0] != '\0' &&
	             address_set_server(server, address->next_host, address->next_port) == 0;

	server->asking = found && address->next_asking;
	address->next_port[0] = server->next_port[0] = '\0';
	return found;
}

int address_first_sentinel(struct address *ret_sentinel, const struct address *address)
{
	const char *text = address->sentinels;
	int result = address_read_sentinel(ret_sentinel, &text);

	ret_sentinel->tls = address->tls;
	ret_sentinel->tries = address->tries;
	return result;
}

unsigned address_count_sentinels(const struct address *address)
{
	unsigned count = 1;

	for (const char *text = address->sentinels; *text; text++)
		count += *text == '+';
	return count;
}

void address_rotate_sentinels(struct address *address)
{
	char *text = address->sentinels, first[ADDRESS_TEXT_BYTES];
	char *rest = strchr(text, '+');
	size_t len, left;

	address->rotations++;
	if (!rest)
		return;
	len = (size_t)(rest - text);
	left = strlen(rest + 1);
	memcpy(first, text, len);
	memmove(text, rest + 1, left);
	text[left] = '+';
	memcpy(text + left + 1, first, len);
}

int address_set_server(struct address *address, const char *host, const char *port)
{
	struct part part = { .at = host, .len = strlen(host) };
	struct part number = { .at = port, .len = strlen(port) };

	address->sentinels[0] = address->nodes[0] = '\0';
	address->asking = false;
	if (part.len == 0 || copy(address->host, &part, false) < 0)
		return -EINVAL;
	return read_port(address, &number);
}

void address_set_login(struct address *address, const struct address *from)
{
	memcpy(address->user, from->user, sizeof(address->user));
	memcpy(address->password, from->password, sizeof(address->password));
}

/* Reads one TLS option of an address, such as "cafile=/etc/ca.pem". */
static int read_tls_option(struct address_tls *tls, struct part part)
{
	const struct {
		const char *name;
		char *value;
	} paths[] = { { "cafile", tls->cafile }, { "cert", tls->cert }, { "key", tls->key } };
	struct part name;

	if (!split(&name, &part, '=', false) || part.len == 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (name.len == strlen(paths[i].name) && begins(&name, paths[i].name))
			return copy(paths[i].value, &part, true);
	if (name.len != strlen("insecure") || !begins(&name, "insecure") || part.len != 1 ||
	    (part.at[0] != '0' && part.at[0] != '1'))
		return -EINVAL;
	tls->insecure = part.at[0] == '1';
	return 0;
}

/*
 * Reads the TLS options of an address, which follow a question mark, and removes them from `part`.
 */
static int read_tls(struct address_tls *tls, struct part *part)
{
	struct part rest = *part, head, one;
	int result = 0;

	tls->on = true;
	if (!split(&head, &rest, '?', false))
		return 0;
	*part = head;
	while (result == 0 && split(&one, &rest, '&', false))
		result = read_tls_option(tls, one);
	if (result == 0)
		result = read_tls_option(tls, rest);
	return result == 0 && tls->key[0] && !tls->cert[0] ? -EINVAL : result;
}

static int read_unix(struct address *address, struct part part)
{
	struct part path = part;

	if (split(&path, &part, '?', false)) {
		if (!begins(&part, "db="))
			return -EINVAL;
		skip(&part, 3);
		if (read_number(&address->database, &part, DATABASE_MAX) < 0)
			return -EINVAL;
	}
	if (path.len == 0 || path.len >= ADDRESS_UNIX_BYTES)
		return -EINVAL;
	return copy(address->path, &path, false);
}

static const struct {
	const char *begin;
	bool tls;
	int (*read)(struct address *address, struct part part);
} schemes[] = {
	{ "cluster://", false, read_cluster },
	{ "clusters://", true, read_cluster },
	{ "redis://", false, read_redis },
	{ "rediss://", true, read_redis },
	{ "sentinel://", false, read_sentinels },
	{ "sentinels://", true, read_sentinels },
	{ "unix:", false, read_unix },
};

int address_read(struct address *ret_address, const char **text)
{
	struct address address = { .database = 0 };
	const char *comma = *text ? strchr(*text, ',') : NULL;
	struct part part = { .at = *text ? *text : "redis://127.0.0.1" };
	int result = -EINVAL;

	part.len = comma ? (size_t)(comma - part.at) : strlen(part.at);
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (!begins(&part, schemes[i].begin))
			continue;
		skip(&part, strlen(schemes[i].begin));
		result = schemes[i].tls ? read_tls(&address.tls, &part) : 0;
		if (result == 0)
			result = schemes[i].read(&address, part);
		break;
	}
	if (result < 0)
		return result;
	*ret_address = address;
	*text = comma ? comma + 1 : NULL;
	return 0;
}

void address_write(char text[ADDRESS_URL_BYTES], const struct address *address)
{
	const char *open = strchr(address->host, ':') ? "[" : "", *close = *open ? "]" : "";
	const char *secure = address->tls.on ? "s" : "";
	char database[16] = "";

	if (address->database > 0)
		(void)snprintf(database, sizeof(database), "%s%" PRIu32,
		               address->path[0] ? "?db=" : "/", address->database);
	if (address->sentinels[0])
		(void)snprintf(text, ADDRESS_URL_BYTES, "sentinel%s://%s/%s%s", secure,
		               address->sentinels, address->master, database);
	else if (address->nodes[0])
		(void)snprintf(text, ADDRESS_URL_BYTES, "cluster%s://%s", secure, address->nodes);
	else if (address->path[0])
		(void)snprintf(text, ADDRESS_URL_BYTES, "unix:%s%s", address->path, database);
	else
		(void)snprintf(text, ADDRESS_URL_BYTES, "redis%s://%s%s%s:%s%s", secure, open,
		               address->host, close, address->port, database);
}
