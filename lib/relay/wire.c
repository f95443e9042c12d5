/* SPDX-License-Identifier: MIT */
/*
 * Sends commands to a Redis server and reads its replies (wire.h). No other file uses sockets or
 * hiredis. Of hiredis only the parser of replies is used, because hiredis's own connections raise
 * SIGPIPE. Without TLS the bytes on the socket are those of the buffers. With TLS they go through
 * tls.h.
 *
 * connect_socket(): If the program has closed its stderr, the server's socket must not get
 * descriptor 2, because a message that the program prints before the connect would raise SIGPIPE.
 * So dummy sockets take the numbers 0 to 2 that are free, until the server's socket is open. A
 * write to a datagram socket that is not connected fails without a signal.
 */
#define _GNU_SOURCE
#include "relay/wire.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "relay/error_reply.h"
#include "relay/tls.h"

#define READ_BYTES 65536u
#define PLAIN_BYTES 16384u     /* most bytes of a TLS record */
#define ELEMENTS_MAX (1 << 20) /* hiredis allocates as many as a reply claims to have */

struct wire {
	int fd;
	bool open;
	bool more; /* the host's name has further addresses */
	redisReader *reader;
	struct bytes output;
	/*
	 * If a command ASKING goes before each command, two replies come for each. True if the
	 * first of them has come and was skipped.
	 */
	bool is_second;
	struct tls *tls;     /* NULL without TLS */
	struct bytes sealed; /* with TLS: encrypted bytes that the socket has not taken yet */
};

/* ---- connect ---- */

/*
 * Returns the errno for a refused connect. It is never -ENOENT, which callers take to mean that a
 * task is missing.
 */
static int refusal(int error)
{
	return error == ENOENT || error == EAGAIN ? -ECONNREFUSED : -error;
}

static int connect_socket(int family, const struct sockaddr *to, socklen_t len, int *ret_fd)
{
	int fd = DESCRIPTOR_BEHIND(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
	                           socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	int one = 1, result = 0;

	if (fd < 0)
		return fd;
	if (family != AF_UNIX) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	}
	if (connect(fd, to, len) < 0 && errno != EINPROGRESS)
		result = refusal(errno);
	if (result < 0) {
		(void)close(fd);
		return result;
	}
	*ret_fd = fd;
	return 0;
}

static int connect_unix(const char *path, int *ret_fd)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	_Static_assert(sizeof(to.sun_path) == ADDRESS_UNIX_BYTES, "address_read() refuses more");
	memcpy(to.sun_path, path, strlen(path) + 1);
	return connect_socket(AF_UNIX, (const struct sockaddr *)&to, sizeof(to), ret_fd);
}

/*
 * Begins to connect to the host, and does not wait until it is connected. If the host has several
 * IP addresses, address->tries says which one to try first.
 */
static int connect_host(const struct address *address, int *ret_fd, bool *ret_more)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	unsigned count = 0, skip;
	int result = -EHOSTUNREACH;

	if (getaddrinfo(address->host, address->port, &hints, &found) != 0)
		return -EHOSTUNREACH;
	for (const struct addrinfo *one = found; one; one = one->ai_next)
		count++;
	skip = address->tries % count;
	for (const struct addrinfo *one = found; one && result < 0; one = one->ai_next)
		if (skip > 0)
			skip--;
		else
			result = connect_socket(one->ai_family, one->ai_addr, one->ai_addrlen,
			                        ret_fd);
	*ret_more = address->tries % count + 1 < count;
	freeaddrinfo(found);
	return result;
}

int wire_open(struct wire **ret_wire, const struct address *address)
{
	struct wire *wire = calloc(1, sizeof(*wire));
	int result = 0;

	if (!wire)
		return -ENOMEM;
	wire->fd = -1;
	wire->output.asking = address->asking;
	wire->reader = redisReaderCreate();
#ifdef REDIS_READER_MAX_ARRAY_ELEMENTS /* hiredis before 1.0.1 has no limit that can be set */
	if (wire->reader)
		wire->reader->maxelements = ELEMENTS_MAX;
#endif
	if (!wire->reader)
		result = -ENOMEM;
	else if (address->tls.on)
		result = tls_open(&wire->tls, address);
	if (result == 0)
		result = address->host[0] ? connect_host(address, &wire->fd, &wire->more)
		                          : connect_unix(address->path, &wire->fd);
	if (result < 0) {
		wire_close(wire);
		return result;
	}
	*ret_wire = wire;
	return 0;
}

void wire_close(struct wire *wire)
{
	if (!wire)
		return;
	if (wire->reader)
		redisReaderFree(wire->reader);
	if (wire->fd >= 0) {
		/*
		 * close() alone would leave the connection open if a forked child has a copy of the
		 * descriptor, and a read that is blocked on it would take tasks.
		 */
		(void)shutdown(wire->fd, SHUT_RDWR);
		(void)close(wire->fd);
	}
	tls_close(wire->tls);
	bytes_fini(&wire->sealed);
	bytes_fini(&wire->output);
	free(wire);
}

void wire_leave(struct wire *wire)
{
	if (wire)
		(void)close(wire->fd);
}

bool wire_has_more(const struct wire *wire)
{
	return wire->more;
}

int wire_fd(const struct wire *wire)
{
	return wire->fd;
}

/* Returns true if there are bytes that can be sent now. */
bool wire_has_output(const struct wire *wire)
{
	if (!wire->tls)
		return wire->output.len > 0;
	return wire->sealed.len > 0 || tls_has_output(wire->tls) ||
	       (wire->output.len > 0 && tls_is_ready(wire->tls));
}

struct bytes *wire_output(struct wire *wire)
{
	return &wire->output;
}

/* ---- bytes ---- */

/*
 * Returns the errno for a failed call on the socket. Every loss of an open connection is
 * -EHOSTUNREACH.
 */
static int lost(int error)
{
	switch (error) {
	case ECONNRESET:
	case EPIPE:
	case ETIMEDOUT:
		return -EHOSTUNREACH;
	default:
		return -error;
	}
}

static bool is_for_later(int error)
{
	return error == EAGAIN || error == EINTR || error == ENOTCONN;
}

static int send_bytes(struct wire *wire, struct bytes *bytes)
{
	size_t sent = 0;
	int result = 0;

	if (bytes->failed)
		return -ENOMEM;
	while (sent < bytes->len && result == 0) {
		ssize_t count = send(wire->fd, bytes->data + sent, bytes->len - sent,
		                     MSG_NOSIGNAL | MSG_DONTWAIT);

		if (count >= 0) {
			wire->open = true;
			sent += (size_t)count;
		} else if (is_for_later(errno)) {
			break;
		} else {
			result = lost(errno);
		}
	}
	bytes_consume(bytes, sent);
	return result;
}

/*
 * Sends encrypted bytes. If that fails, the server may have closed the connection with a TLS alert,
 * which is still unread: read it and return its error.
 */
static int send_sealed(struct wire *wire)
{
	int result = send_bytes(wire, &wire->sealed), told;

	if (result == 0)
		return 0;
	told = wire_fill(wire);
	return told == -EACCES ? told : result;
}

int wire_flush(struct wire *wire)
{
	int result;

	if (!wire->tls || wire->output.failed)
		return send_bytes(wire, &wire->output);
	do {
		result = tls_seal(wire->tls, &wire->output, &wire->sealed);
		if (result == 0)
			result = send_sealed(wire);
	} while (result == 0 && wire->sealed.len == 0 && wire_has_output(wire));
	return result;
}

static int feed(struct wire *wire, const char *bytes, size_t count)
{
	if (redisReaderFeed(wire->reader, bytes, count) != REDIS_OK)
		return wire->reader->err == REDIS_ERR_OOM ? -ENOMEM : -EPROTO;
	return 0;
}

static int feed_sealed(struct wire *wire, const char *bytes, size_t count)
{
	char plain[PLAIN_BYTES];
	int result = tls_put(wire->tls, bytes, count), found;

	while (result == 0 && (found = tls_get(wire->tls, plain, sizeof(plain))) != 0)
		result = found < 0 ? found : feed(wire, plain, (size_t)found);
	return result;
}

int wire_fill(struct wire *wire)
{
	char bytes[READ_BYTES];

	for (;;) {
		ssize_t count = recv(wire->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		int result;

		if (count < 0 && is_for_later(errno))
			return 0;
		if (count < 0)
			return lost(errno);
		if (count == 0)
			return -EHOSTUNREACH;
		result = wire->tls ? feed_sealed(wire, bytes, (size_t)count)
		                   : feed(wire, bytes, (size_t)count);
		if (result < 0 || (size_t)count < sizeof(bytes))
			return result;
	}
}

int wire_next(struct wire *wire, struct reply **ret_reply)
{
	void *reply = NULL;

	if (redisReaderGetReply(wire->reader, &reply) != REDIS_OK)
		return wire->reader->err == REDIS_ERR_OOM ? -ENOMEM : -EPROTO;
	if (!reply)
		return 0;
	if (wire->output.asking) {
		wire->is_second = !wire->is_second;
		if (wire->is_second) {
			freeReplyObject(reply);
			return wire_next(wire, ret_reply);
		}
	}
	*ret_reply = reply;
	return 1;
}

/*
 * Returns the error for an overdue reply. If the TLS handshake is unanswered, also notes the likely
 * cause: the server has no TLS.
 */
static int overdue(const struct wire *wire)
{
	if (wire->open && wire->tls && !tls_is_ready(wire->tls))
		error_reply_note(
			-EHOSTUNREACH,
			"the server does not answer the handshake of TLS: does it have TLS?");
	return wire->open ? -ETIMEDOUT : -EHOSTUNREACH;
}

int wire_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns)
{
	uint64_t begin_ns = clock_monotonic_ns();

	for (;;) {
		struct pollfd poll_fd = { .fd = wire->fd, .events = POLLIN };
		uint64_t passed_ns = clock_monotonic_ns() - begin_ns;
		int result = wire_flush(wire);

		if (result == 0)
			result = wire_fill(wire);
		if (result >= 0) {
			int found = wire_next(wire, ret_reply);

			if (found != 0)
				return found < 0 ? found : 0;
		}
		if (result < 0)
			return result;
		if (passed_ns >= timeout_ns)
			return overdue(wire);
		if (wire_has_output(wire))
			poll_fd.events |= POLLOUT;
		(void)poll(&poll_fd, 1, (int)((timeout_ns - passed_ns) / NS_PER_MS) + 1);
	}
}

/* ---- replies ---- */

static const redisReply *inside(const struct reply *reply)
{
	return (const redisReply *)(const void *)reply;
}

void reply_free(struct reply *reply)
{
	if (reply)
		freeReplyObject(reply);
}

enum reply_type reply_type(const struct reply *reply)
{
	switch (reply ? inside(reply)->type : REDIS_REPLY_NIL) {
	case REDIS_REPLY_ERROR:
		return REPLY_ERROR;
	case REDIS_REPLY_STATUS:
	case REDIS_REPLY_STRING:
		return REPLY_TEXT;
	case REDIS_REPLY_INTEGER:
		return REPLY_INTEGER;
	case REDIS_REPLY_ARRAY:
		return REPLY_ARRAY;
	default:
		return REPLY_NIL;
	}
}

const char *reply_text(const struct reply *reply)
{
	enum reply_type type = reply_type(reply);

	return type == REPLY_TEXT || type == REPLY_ERROR ? inside(reply)->str : "";
}

size_t reply_len(const struct reply *reply)
{
	enum reply_type type = reply_type(reply);

	return type == REPLY_TEXT || type == REPLY_ERROR ? (size_t)inside(reply)->len : 0;
}

int64_t reply_integer(const struct reply *reply)
{
	if (reply_type(reply) == REPLY_INTEGER)
		return inside(reply)->integer;
	return strtoll(reply_text(reply), NULL, 10);
}

size_t reply_count(const struct reply *reply)
{
	return reply_type(reply) == REPLY_ARRAY ? inside(reply)->elements : 0;
}

const struct reply *reply_at(const struct reply *reply, size_t index)
{
	if (index >= reply_count(reply))
		return NULL;
	return (const struct reply *)(const void *)inside(reply)->element[index];
}

int64_t reply_integer_at(const struct reply *reply, size_t index)
{
	return reply_integer(reply_at(reply, index));
}

bool reply_is(const struct reply *reply, size_t index, const char *text)
{
	return strcmp(reply_text(reply_at(reply, index)), text) == 0;
}
