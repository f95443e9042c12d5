/* SPDX-License-Identifier: MIT */
/*
 * Tests the relay's modules that work without a server: addresses, commands, names of keys, error
 * replies, the back-off, the watch of Sentinels in virtual time, and the table of deliveries.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <harness.h>

#include "wire_of_bytes.h"

#include <relay/address.h>
#include <relay/command_buffer.h>
#include <relay/delivery_table.h>
#include <relay/error_reply.h>
#include <relay/handshake.h>
#include <relay/keys.h>
#include <relay/link.h>
#include <relay/request.h>
#include <relay/sentinel_watch.h>
#include <relay/wire.h>

TEST(addresses_are_read, 20)
{
	static const struct {
		const char *text;
		struct address wanted;
	} good[] = {
		{ NULL, { .host = "127.0.0.1", .port = "6379" } },
		{ "redis://a", { .host = "a", .port = "6379" } },
		{ "redis://a:1", { .host = "a", .port = "1" } },
		{ "redis://a/7", { .host = "a", .port = "6379", .database = 7 } },
		{ "redis://a/", { .host = "a", .port = "6379" } },
		{ "redis://u:p@a:65535/0",
		  { .host = "a", .port = "65535", .user = "u", .password = "p" } },
		{ "redis://:p%40%3a/@a", { .host = "a", .port = "6379", .password = "p@:/" } },
		{ "redis://u:@a", { .host = "a", .port = "6379", .user = "u" } },
		{ "redis://[::1]:7/3", { .host = "::1", .port = "7", .database = 3 } },
		{ "redis://[::1]", { .host = "::1", .port = "6379" } },
		{ "unix:/run/redis.sock", { .path = "/run/redis.sock" } },
		{ "unix:r?db=9", { .path = "r", .database = 9 } },
		{ "sentinel://u:p@a+b:7/main/3",
		  { .sentinels = "a+b:7",
		    .master = "main",
		    .user = "u",
		    .password = "p",
		    .database = 3 } },
		{ "sentinel://[::1]:1/m", { .sentinels = "[::1]:1", .master = "m" } },
		{ "rediss://u:p@a:1/2",
		  { .host = "a",
		    .port = "1",
		    .user = "u",
		    .password = "p",
		    .database = 2,
		    .tls = { .on = true } } },
		{ "cluster://u:p@a+[::1]:7",
		  { .nodes = "a+[::1]:7", .user = "u", .password = "p", .cluster = true } },
		{ "clusters://a", { .nodes = "a", .tls = { .on = true }, .cluster = true } },
		{ "sentinels://a/m", { .sentinels = "a", .master = "m", .tls = { .on = true } } },
	};
	for (unsigned i = 0; i < COUNT_OF(good); i++) {
		const char *text = good[i].text;
		struct address address, again;
		char url[ADDRESS_URL_BYTES];

		expect_eq(address_read(&address, &text), 0);
		expect(text == NULL);
		expect(strcmp(address.host, good[i].wanted.host) == 0);
		expect(strcmp(address.port, good[i].wanted.port) == 0);
		expect(strcmp(address.path, good[i].wanted.path) == 0);
		expect(strcmp(address.user, good[i].wanted.user) == 0);
		expect(strcmp(address.password, good[i].wanted.password) == 0);
		expect(strcmp(address.sentinels, good[i].wanted.sentinels) == 0);
		expect(strcmp(address.master, good[i].wanted.master) == 0);
		expect(strcmp(address.nodes, good[i].wanted.nodes) == 0);
		expect_eq(address.cluster, good[i].wanted.cluster);
		expect_eq(address.database, good[i].wanted.database);
		expect_eq(address.tls.on, good[i].wanted.tls.on);
		address_write(url, &address);
		expect(!strchr(url, '@'));
		text = url;
		expect_eq(address_read(&again, &text), 0);
		memset(address.user, 0, sizeof(address.user));
		memset(address.password, 0, sizeof(address.password));
		expect(memcmp(&again, &address, sizeof(address)) == 0);
	}
}

TEST(bad_addresses_are_refused, 20)
{
	static const char *const bad[] = { "sentinel://",
		                           "sentinel://a",
		                           "sentinel://a/",
		                           "sentinel:///m",
		                           "sentinel://a+/m",
		                           "sentinel://a+b:x/m",
		                           "sentinel://a/m/x",
		                           "",
		                           "redis:",
		                           "redis://",
		                           "redis://:1",
		                           "redis://a:",
		                           "redis://a:0",
		                           "redis://a:65536",
		                           "redis://a:1x",
		                           "redis://a/x",
		                           "redis://a/-1",
		                           "redis://[::1",
		                           "redis://[::1]7",
		                           "redis://u@a",
		                           "sentinel://u@a/m",
		                           "redis://:%zz@a",
		                           "redis://:%4@a",
		                           "redis://:%00@a",
		                           "unix:",
		                           "unix:?db=1",
		                           "unix:/r?d=1",
		                           "http://a",
		                           "redis://a/1000001",
		                           "redis://a/?insecure=1",
		                           "cluster://",
		                           "cluster://a+",
		                           "cluster://a/1",
		                           "cluster://a:x",
		                           "cluster://u@a",
		                           "cluster://a?cafile=x/y",
		                           "rediss://",
		                           "rediss://a?",
		                           "rediss://a?&insecure=1",
		                           "rediss://a?insecure=2",
		                           "rediss://a?insecure",
		                           "rediss://a?cafile=",
		                           "rediss://a?cafil=x",
		                           "rediss://a?key=x",
		                           "rediss://a?cert=%zz",
		                           "sentinels://a/?cafile=x" };

	for (unsigned i = 0; i < COUNT_OF(bad); i++) {
		const char *text = bad[i];
		struct address address;

		expect_eq(address_read(&address, &text), -EINVAL);
		expect(text == bad[i]);
	}
}

TEST(several_addresses_are_read_one_by_one, 20)
{
	const char *text = "redis://a,unix:/b,rediss://c";
	char longer[ADDRESS_TEXT_BYTES + 16];
	struct address address;

	expect_eq(address_read(&address, &text), 0);
	expect(strcmp(text, "unix:/b,rediss://c") == 0);
	expect_eq(address_read(&address, &text), 0);
	expect(strcmp(address.path, "/b") == 0);
	expect_eq(address_read(&address, &text), 0);
	expect(text == NULL && address.tls.on && strcmp(address.host, "c") == 0);
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "unix:", 5);
	longer[5 + ADDRESS_UNIX_BYTES] = '\0';
	text = longer;
	expect_eq(address_read(&address, &text), -EINVAL);
	longer[5 + ADDRESS_UNIX_BYTES - 1] = '\0';
	expect_eq(address_read(&address, &text), 0);
}

TEST(options_of_tls_are_read, 20)
{
	const char *text =
		"rediss://:p@a/3?cafile=/x%2Cy&insecure=0&cert=c&key=k&insecure=1,unix:/b";
	struct address address, sentinel;

	expect_eq(address_read(&address, &text), 0);
	expect(strcmp(text, "unix:/b") == 0);
	expect(address.tls.on && address.tls.insecure && address.database == 3);
	expect(strcmp(address.tls.cafile, "/x,y") == 0 && strcmp(address.tls.cert, "c") == 0);
	expect(strcmp(address.tls.key, "k") == 0);
	expect_eq(address_read(&address, &text), 0);
	expect(!address.tls.on && !address.tls.insecure);
	text = "sentinels://a+b/m?cafile=x";
	expect_eq(address_read(&address, &text), 0);
	expect_eq(address_first_sentinel(&sentinel, &address), 0);
	expect(strcmp(sentinel.host, "a") == 0 && sentinel.tls.on);
	expect(strcmp(sentinel.tls.cafile, "x") == 0);
}

TEST(redirections_are_followed_once, 20)
{
	static const struct {
		const char *text, *host, *port;
		bool asking;
	} good[] = {
		{ "MOVED 3999 10.0.0.1:6381", "10.0.0.1", "6381", false },
		{ "ASK 1 name.example:1", "name.example", "1", true },
		{ "MOVED 3999 ::1:6381", "::1", "6381", false },
		{ "MOVED 3999 :6382", "from", "6382", false },
	};
	static const char *const bad[] = { "MOVED",    "MOVED 1",           "MOVED 1 a",
		                           "ASK 1 a:", "MOVED 1 a:9999999", "TRYAGAIN 1 a:1",
		                           "" };
	const struct address from = { .host = "from" };

	for (unsigned i = 0; i < COUNT_OF(good); i++) {
		struct address address = { .nodes = "a", .cluster = true }, server = address;

		address_redirect(&address, good[i].text, &from);
		expect(address_take_redirect(&address, &server));
		expect(strcmp(server.host, good[i].host) == 0);
		expect(strcmp(server.port, good[i].port) == 0);
		expect(server.asking == good[i].asking && server.cluster && !server.nodes[0]);
		expect(!address_take_redirect(&address, &server) && !server.asking);
		expect(strcmp(address.nodes, "a") == 0);
	}
	for (unsigned i = 0; i < COUNT_OF(bad); i++) {
		struct address address = { .nodes = "a" }, server = address;

		address_redirect(&address, bad[i], &from);
		expect(!address_take_redirect(&address, &server));
	}
}

TEST(sentinels_are_read_and_name_a_server, 20)
{
	const char *text = "sentinel://:p@a+[::1]:7/main/3";
	struct address address, one;

	expect_eq(address_read(&address, &text), 0);
	text = address.sentinels;
	expect_eq(address_read_sentinel(&one, &text), 0);
	expect(strcmp(one.host, "a") == 0 && strcmp(one.port, "26379") == 0);
	expect_eq(address_read_sentinel(&one, &text), 0);
	expect(strcmp(one.host, "::1") == 0 && strcmp(one.port, "7") == 0 && text == NULL);
	expect(one.password[0] == '\0');
	expect_eq(address_set_server(&address, "", "1"), -EINVAL);
	expect_eq(address_set_server(&address, "h", "0"), -EINVAL);
	expect_eq(address_set_server(&address, "h", "65535"), 0);
	expect(strcmp(address.host, "h") == 0 && strcmp(address.port, "65535") == 0);
	expect(address.sentinels[0] == '\0' && strcmp(address.password, "p") == 0);
	expect_eq(address.database, 3);
}

TEST(ids_are_spread_as_zlib_does, 20)
{
	expect_eq(keys_shard("123456789", 1), 0);
	/* 0xcbf43926 is the check value of CRC-32. */
	expect_eq(keys_shard("123456789", 64), 0xcbf43926 % 64);
	expect_eq(keys_shard("123456789", 7), 0xcbf43926 % 7);
}

TEST(commands_are_arrays_of_bulk_strings, 20)
{
	static const char wanted[] =
		"*3\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$20\r\n18446744073709551615\r\n";
	struct bytes bytes = { .data = NULL };

	bytes_command(&bytes, 3);
	bytes_text(&bytes, "SET");
	bytes_word(&bytes, "a\0b", 3);
	bytes_number(&bytes, UINT64_MAX);
	expect(!bytes.failed);
	expect_eq(bytes.len, sizeof(wanted) - 1);
	expect(memcmp(bytes.data, wanted, bytes.len) == 0);
	bytes_consume(&bytes, 4);
	expect(bytes.len == sizeof(wanted) - 5 && memcmp(bytes.data, wanted + 4, bytes.len) == 0);
	for (unsigned i = 0; i < 10000; i++)
		bytes_text(&bytes, "more");
	expect_eq(bytes.len, sizeof(wanted) - 5 + 100000);
	bytes_consume(&bytes, bytes.len);
	expect_eq(bytes.len, 0);
	bytes_fini(&bytes);
}

/* If each of the 65536 pieces moved what is left of the 16 MiB, 512 GiB would be moved. */
TEST(what_is_sent_in_many_pieces_is_not_moved_each_time, 20)
{
	static char block[16 << 20];
	struct bytes bytes = { .data = NULL };

	bytes_add(&bytes, block, sizeof(block));
	for (unsigned i = 0; i < 65536; i++) {
		bytes_consume(&bytes, 256);
		bytes_add(&bytes, "x", 1);
	}
	expect(bytes.len == 65536 && bytes.data[0] == 'x' && bytes.data[65535] == 'x');
	bytes_fini(&bytes);
}

TEST(calls_name_all_their_keys, 20)
{
	static const char wanted[] =
		"*6\r\n$5\r\nFCALL\r\n$12\r\ntimerhub4_do\r\n$1\r\n2\r\n"
		"$14\r\ntimerhub:{q}:a\r\n$14\r\ntimerhub:{q}:b\r\n$1\r\nx\r\n";
	struct bytes bytes = { .data = NULL };
	char name[KEYS_NAME_BYTES], longest[KEYS_QUEUE_MAX + 2];
	struct keys keys;

	expect_eq(keys_init(&keys, "123456789"), 0);
	expect_eq(keys.slot, 0x31C3 % 16384); /* as CLUSTER KEYSLOT says */
	expect_eq(keys_init(&keys, "q"), 0);
	keys_call(&keys, &bytes, "do", "a b", 1);
	bytes_text(&bytes, "x");
	expect_eq(bytes.len, sizeof(wanted) - 1);
	expect(memcmp(bytes.data, wanted, bytes.len) == 0);
	bytes_fini(&bytes);
	memset(longest, 'z', sizeof(longest));
	longest[KEYS_QUEUE_MAX] = '\0';
	expect_eq(keys_init(&keys, longest), 0);
	keys_name(&keys, name, "ready");
	expect_eq(strlen(name), strlen("timerhub:{}:ready") + KEYS_QUEUE_MAX);
	longest[KEYS_QUEUE_MAX] = 'z';
	longest[KEYS_QUEUE_MAX + 1] = '\0';
	expect_eq(keys_init(&keys, longest), -EINVAL);
}

TEST(each_change_says_how_long_it_counts, 20)
{
	struct client client = { .holder = "4-a",
		                 .epoch = 7,
		                 .anchor_us = 1000000,
		                 .anchor_sent_ns = 4 * SEC,
		                 .anchor_read_ns = 5 * SEC };
	struct bytes bytes = { .data = NULL };

	for (unsigned kind = REQUEST_PUT; kind <= REQUEST_TOUCH; kind++) {
		struct request request = { .kind = kind,
			                   .id = "id",
			                   .flags = "",
			                   .delivery = "1-1",
			                   .data = "",
			                   .deadline_ns = 7 * SEC };

		expect_context("kind", kind, 0);
		request_encode(&client, &request, &bytes);
		bytes_word(&bytes, "", 1);
		expect(strstr(bytes.data, "\r\n3000000\r\n$3\r\n4-a\r\n$1\r\n7\r\n") != NULL);
		bytes_consume(&bytes, bytes.len);
	}
	bytes_fini(&bytes);
}

TEST(each_error_of_a_server_has_its_meaning, 20)
{
	static const struct {
		const char *text;
		struct error_reply wanted;
	} rows[] = {
		{ "READONLY You can't write against a read only replica.",
		  { -EROFS, ERROR_REPLY_LATER } },
		{ "LOADING Redis is loading the dataset in memory", { -EROFS, ERROR_REPLY_LATER } },
		{ "MASTERDOWN Link with MASTER is down", { -EROFS, ERROR_REPLY_LATER } },
		{ "NOREPLICAS Not enough good replicas to write.", { -EROFS, ERROR_REPLY_LATER } },
		{ "UNBLOCKED force unblock from blocking operation",
		  { -EROFS, ERROR_REPLY_LATER } },
		{ "BUSY Redis is busy running a script.", { -EROFS, ERROR_REPLY_LATER } },
		{ "NOGROUP No such key", { -EROFS, ERROR_REPLY_LATER } },
		{ "ERR Function not found", { -EROFS, ERROR_REPLY_LATER } },
		{ "OOM command not allowed when used memory > 'maxmemory'.",
		  { -ENOSPC, ERROR_REPLY_REFUSAL } },
		{ "MISCONF Redis is configured to save RDB snapshots",
		  { -EIO, ERROR_REPLY_REFUSAL } },
		{ "WRONGTYPE Operation against a key", { -EBADMSG, ERROR_REPLY_REFUSAL } },
		{ "NOAUTH Authentication required.", { -EACCES, ERROR_REPLY_REFUSAL } },
		{ "WRONGPASS invalid username-password pair", { -EACCES, ERROR_REPLY_REFUSAL } },
		{ "NOPERM this user has no permissions", { -EACCES, ERROR_REPLY_REFUSAL } },
		{ "ERR The user executing the script can't run this command",
		  { -EACCES, ERROR_REPLY_REFUSAL } },
		{ "ERR AUTH <password> called without any password configured",
		  { -EACCES, ERROR_REPLY_REFUSAL } },
		{ "ERR max number of clients reached", { -EMFILE, ERROR_REPLY_LATER } },
		{ "ERR DB index is out of range", { -EINVAL, ERROR_REPLY_REFUSAL } },
		{ "DENIED Redis is running in protected mode", { -EACCES, ERROR_REPLY_REFUSAL } },
		{ "MOVED 3999 127.0.0.1:6381", { -EROFS, ERROR_REPLY_LATER } },
		{ "ASK 3999 127.0.0.1:6381", { -EROFS, ERROR_REPLY_LATER } },
		{ "TRYAGAIN Multiple keys request", { -EROFS, ERROR_REPLY_LATER } },
		{ "CROSSSLOT Keys in request", { -EOPNOTSUPP, ERROR_REPLY_REFUSAL } },
		{ "CLUSTERDOWN Hash slot not served", { -EROFS, ERROR_REPLY_LATER } },
		{ "ERR unknown command 'FCALL'", { -EOPNOTSUPP, ERROR_REPLY_REFUSAL } },
		{ "ERR something new", { -EPROTO, ERROR_REPLY_FOREIGN } },
		{ "", { -EPROTO, ERROR_REPLY_FOREIGN } },
	};

	for (unsigned i = 0; i < COUNT_OF(rows); i++) {
		struct error_reply answer = error_reply_of(rows[i].text);

		expect_eq(answer.error, rows[i].wanted.error);
		expect_eq(answer.kind, rows[i].wanted.kind);
	}
}

/*
 * Let the connection fail `times` times with an error. Returns the longest wait before a new try.
 */
static uint64_t longest_wait_ns(struct link *link, int error, unsigned times)
{
	uint64_t longest_ns = 0;

	for (unsigned i = 0; i < times; i++) {
		uint64_t now_ns = i * SEC, wait_ns;

		link_back_off(link, error, now_ns);
		wait_ns = link->retry_ns - now_ns;
		expect_cmp(wait_ns, >=, link->backoff_ns / 2);
		expect_cmp(wait_ns, <, link->backoff_ns);
		longest_ns = wait_ns > longest_ns ? wait_ns : longest_ns;
	}
	return longest_ns;
}

TEST(a_refused_connection_is_tried_again_soon, 20)
{
	struct dice dice = dice_new(0);
	struct link link;

	link_init(&link, dice_roll(&dice));
	expect_cmp(longest_wait_ns(&link, -ECONNREFUSED, 1), <, 10 * MS);
	expect_cmp(longest_wait_ns(&link, -ECONNREFUSED, 1000), <, 500 * MS);
	/* The back-off after a silent server is longer, because each try takes up to a second. */
	expect_cmp(longest_wait_ns(&link, -EHOSTUNREACH, 1000), >, 2500 * MS);
	expect_cmp(link.backoff_ns, ==, 5 * SEC);
	expect_cmp(longest_wait_ns(&link, -ECONNREFUSED, 1000), <, 500 * MS);
}

TEST(a_step_of_a_handshake_has_a_share_of_the_calls_time, 20)
{
	struct link link;

	link_init(&link, 1);
	expect_eq(link_step_ns(&link, 40 * SEC), SEC);
	link.round_ns = SEC;
	expect_eq(link_step_ns(&link, 40 * SEC), 5 * SEC);
	expect_eq(link_step_ns(&link, 8 * SEC), 2 * SEC);
	expect_eq(link_step_ns(&link, SEC), SEC);
	link.round_ns = 0;
	for (unsigned i = 0; i < 3; i++) /* nothing is known of the network but that it is slow */
		link_back_off(&link, -EHOSTUNREACH, 0);
	expect_eq(link_step_ns(&link, 40 * SEC), 5 * SEC);
}

/* Returns the reply that these bytes are. They come over a connection. */
static struct reply *reply_of(const char *bytes)
{
	struct wire *wire = wire_of_bytes(bytes, strlen(bytes));
	struct reply *reply;

	expect_eq(wire_fill(wire), 0);
	expect_eq(wire_next(wire, &reply), 1);
	wire_close(wire);
	return reply;
}

/* A name with two addresses on this machine. */
static struct sockaddr_in both[2];

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **ret_found)
{
	static struct addrinfo found[2];

	(void)port;
	expect(strcmp(host, "two") == 0);
	for (unsigned i = 0; i < 2; i++)
		found[i] = (struct addrinfo){
			.ai_family = AF_INET,
			.ai_socktype = hints->ai_socktype,
			.ai_addr = (struct sockaddr *)&both[i],
			.ai_addrlen = sizeof(both[i]),
			.ai_next = i == 0 ? &found[1] : NULL,
		};
	*ret_found = found;
	return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
	(void)found;
}

static void serve_hello(int listener)
{
	static const char hello[] = "*6\r\n+version\r\n+7.0.0\r\n+mode\r\n+standalone\r\n"
				    "+role\r\n+master\r\n";
	int fd = accept(listener, NULL, NULL);
	char byte;

	expect_cmp(fd, >=, 0);
	expect_eq(read(fd, &byte, 1), 1);
	expect_eq(write(fd, hello, sizeof(hello) - 1), (ssize_t)sizeof(hello) - 1);
	while (read(fd, &byte, 1) > 0)
		;
	_exit(0);
}

/* Opens a socket at a free port of this machine, and stores its address. */
static int bind_at(struct sockaddr_in *name)
{
	socklen_t len = sizeof(*name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect_cmp(fd, >=, 0);
	*name = (struct sockaddr_in){ .sin_family = AF_INET };
	name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	expect_eq(bind(fd, (struct sockaddr *)name, len), 0);
	expect_eq(getsockname(fd, (struct sockaddr *)name, &len), 0);
	return fd;
}

TEST(each_address_of_a_name_is_tried, 60)
{
	struct address address = { .host = "two", .port = "1" }, server;
	struct wire *wire;
	int fds[2];
	pid_t child;

	for (unsigned i = 0; i < 2; i++)
		fds[i] = bind_at(&both[i]);
	expect_eq(listen(fds[1], 1), 0); /* the first refuses */
	child = fork();
	expect(child >= 0);
	if (child == 0)
		serve_hello(fds[1]);
	expect_eq(handshake_open(&wire, &address, &server, NULL, 20 * SEC), 0);
	wire_close(wire);
	expect_eq(server.tries, 1); /* the next connection begins with the good one */
	expect_eq(waitpid(child, NULL, 0), child);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* ---- the watch of Sentinels, whose time the tests give ---- */

static const struct address in_use = { .host = "h", .port = "1" };
static struct address watched;
static struct sentinel_watch watch;
static int sentinels_fd, sentinel_fd; /* this process is all Sentinels */

static void watch_begin(void)
{
	const char *text = "sentinel://two:1+two:2+two:3/main";

	sentinels_fd = bind_at(&both[0]);
	both[1] = both[0];
	expect_eq(listen(sentinels_fd, 8), 0);
	sentinel_fd = -1;
	expect_eq(address_read(&watched, &text), 0);
	sentinel_watch_init(&watch, &watched, 20 * SEC, 1);
}

static void watch_end(void)
{
	link_close(&watch.link);
	(void)close(sentinel_fd);
	(void)close(sentinels_fd);
}

static uint64_t pass_ms(uint64_t used_ms, uint64_t now_ms)
{
	return sentinel_watch_pass(&watch, used_ms * MS, now_ms * MS) / MS;
}

/* Expects that the watch asks the Sentinel `number` now. */
static void expect_question(uint64_t used_ms, uint64_t now_ms, char number)
{
	bool is_open = watch.link.wire != NULL;
	uint64_t turned_ns = watch.turned_ns;

	(void)pass_ms(used_ms, now_ms);
	expect_eq(watch.asked_ns, now_ms * MS);
	expect_eq(watched.sentinels[strlen("two:")], number);
	if (is_open && watch.turned_ns == turned_ns)
		return;
	(void)close(sentinel_fd);
	sentinel_fd = accept(sentinels_fd, NULL, NULL);
	expect_cmp(sentinel_fd, >=, 0);
}

/* Sends a Sentinel's answer, or hangs up if it is NULL. Returns what the watch says of it. */
static int answer(uint64_t now_ms, const char *text)
{
	struct pollfd fd = { .fd = wire_fd(watch.link.wire), .events = POLLIN };

	if (text)
		expect_eq(send(sentinel_fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	else
		expect_eq(shutdown(sentinel_fd, SHUT_WR), 0);
	expect_eq(poll(&fd, 1, -1), 1);
	return sentinel_watch_read(&watch, &in_use, now_ms * MS);
}

#define NAMES(port) "*2\r\n+h\r\n+" port "\r\n"
#define EPOCH(epoch) "*2\r\n+config-epoch\r\n+" epoch "\r\n"

TEST(sentinels_are_asked_in_turn_and_less_often_at_rest, 20)
{
	static const struct {
		uint64_t used_ms, soon_ms, asked_ms; /* the next question comes at asked_ms */
		char number;
	} rows[] = {
		{ 0, 1, 1000, '1' },       /* at rest from the beginning */
		{ 1001, 1100, 1250, '2' }, /* used since the question, and for half a second */
		{ 1251, 1499, 1500, '2' }, /* the same Sentinel a second time */
		{ 1501, 1749, 1750, '3' }, { 1750, 1751, 2750, '3' },
		{ 1750, 3000, 3750, '3' }, { 1750, 4000, 4750, '3' },
		{ 1750, 5000, 5750, '3' }, { 1750, 6000, 6750, '1' }, /* five seconds at rest */
	};

	watch_begin();
	for (unsigned i = 0; i < COUNT_OF(rows); i++) {
		expect_context("row", i, 0);
		expect_eq(pass_ms(rows[i].used_ms, rows[i].soon_ms), rows[i].asked_ms);
		expect_eq(pass_ms(rows[i].used_ms, rows[i].asked_ms - 1), rows[i].asked_ms);
		expect_question(rows[i].used_ms, rows[i].asked_ms, rows[i].number);
		expect_eq(answer(rows[i].asked_ms, NAMES("1") EPOCH("5")), 0);
	}
	/* Sentinel 1 does not answer for a second. Sentinel 2 is asked after a short pause. */
	expect_question(0, 7750, '1');
	expect_eq(pass_ms(0, 8000), 8750);
	expect_cmp(pass_ms(0, 8750), >=, 8755);
	expect(!watch.link.wire);
	expect_cmp(pass_ms(0, 8750), <, 8760);
	expect_question(0, 8760, '2');
	expect_eq(answer(8770, NAMES("1") EPOCH("5")), 0);
	/* A Sentinel that hangs up after an answer is asked again. */
	expect_eq(answer(8780, NULL), 0);
	expect(!watch.link.wire);
	expect_question(0, 9760, '2');
	watch_end();
}

TEST(sentinels_are_believed_by_their_epochs, 20)
{
	static const struct {
		const char *numbers; /* who is asked before each answer; '-': nobody */
		const char *answers[4];
		int results[4];
	} rows[] = {
		{ "22", { NAMES("1") EPOCH("5"), NAMES("2") EPOCH("5") }, { 0, -EROFS } },
		{ "2", { "*2\r\n+g\r\n+1\r\n" EPOCH("0") }, { -EROFS } },
		{ "2", { "*-1\r\n" }, { -EPROTO } }, /* knows no such master */
		/* One old epoch is ignored. Two in a row, of three Sentinels, are believed. */
		{ "2233",
		  { NAMES("1") EPOCH("5"), NAMES("2") EPOCH("4"), NAMES("1") EPOCH("5"),
		    NAMES("2") EPOCH("4") },
		  { 0, 0, 0, 0 } },
		{ "2233",
		  { NAMES("1") EPOCH("5"), NAMES("2") EPOCH("4"), NAMES("2") EPOCH("4"),
		    NAMES("2") EPOCH("4") },
		  { 0, 0, -EROFS, -EROFS } },
		/* A Sentinel that tells no epoch, or hangs up before, counts as epoch 0. */
		{ "2", { NAMES("2") "+OK\r\n" }, { -EROFS } },
		{ "2-", { NAMES("2"), NULL }, { 0, -EROFS } },
		{ "22", { NAMES("1") EPOCH("5"), NAMES("2") "+OK\r\n" }, { 0, 0 } },
	};

	for (unsigned i = 0; i < COUNT_OF(rows); i++) {
		watch_begin();
		for (unsigned k = 0; rows[i].numbers[k]; k++) {
			uint64_t now_ms = 10000 + 1000 * k;

			expect_context("row and answer", i, k);
			if (rows[i].numbers[k] != '-')
				expect_question(0, now_ms, rows[i].numbers[k]);
			expect_eq(answer(now_ms, rows[i].answers[k]), rows[i].results[k]);
		}
		watch_end();
	}
}

#define STREAM(count) "*1\r\n*2\r\n+stream\r\n*" count "\r\n"
#define ENTRY(entry, id)                                                                           \
	"*2\r\n+" entry "\r\n*8\r\n+id\r\n+" id "\r\n+due\r\n+5\r\n+n\r\n+1\r\n+data\r\n+x\r\n"

/* A server that took the place of a failed one may send an entry a second time. */
TEST(a_delivery_that_comes_twice_is_kept_once, 20)
{
	struct deliveries all = { .first = NULL };
	struct reply *reply = reply_of(STREAM("1") ENTRY("1-0", "a"));

	expect_eq(deliveries_read(&all, reply, 0, &(struct arrival){ .now_ns = 1 }), 1);
	expect_eq(deliveries_read(&all, reply, 0, &(struct arrival){ .now_ns = 1 }), 0);
	expect(deliveries_take(&all));
	expect_eq(deliveries_read(&all, reply, 0, &(struct arrival){ .now_ns = 1 }), 0);
	expect(deliveries_drop(&all, "1-0", "a"));
	expect_eq(deliveries_read(&all, reply, 0, &(struct arrival){ .now_ns = 1 }), 1);
	deliveries_fini(&all);
	reply_free(reply);
}

TEST(what_redis_did_not_confirm_comes_before_what_is_behind_it, 20)
{
	struct deliveries all = { .first = NULL };
	struct reply *reply = reply_of(STREAM("2") ENTRY("1-0", "a") ENTRY("2-0", "b"));
	struct delivery *one;

	expect_eq(deliveries_read(&all, reply, 0, &(struct arrival){ .now_ns = 1 }), 2);
	one = deliveries_take(&all);
	deliveries_set_aside(&all, one, 5);
	expect_eq(deliveries_bring_back(&all, 0, 4), 5);
	expect_eq(all.prefetched, 1);
	expect_eq(deliveries_bring_back(&all, 0, 5), UINT64_MAX);
	expect(deliveries_take(&all) == one);
	deliveries_fini(&all);
	reply_free(reply);
}
