/* SPDX-License-Identifier: MIT */
/*
 * A wire is a nonblocking socket to a Redis server, which sends commands and reads parsed replies;
 * a link (link.h) says when to reconnect. Only wire_open() can block, to resolve a name, and
 * wire_call(). One thread at a time uses it.
 */
#ifndef RELAY_WIRE_H
#define RELAY_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "relay/address.h"
#include "relay/command_buffer.h"

struct wire;
struct reply; /* a reply of a server; reply_free() also frees its elements */

enum reply_type { REPLY_NIL, REPLY_ERROR, REPLY_TEXT, REPLY_INTEGER, REPLY_ARRAY };

/*
 * Begins to connect. Returns 0, -EHOSTUNREACH if the name is unknown, -ECONNREFUSED if there is no
 * such unix socket, or an error of the kernel.
 */
int wire_open(struct wire **ret_wire, const struct address *address);
void wire_close(struct wire *wire); /* the argument `wire` may be NULL */
void wire_leave(struct wire *wire); /* closes only the descriptor; `wire` may be NULL */

/*
 * Returns whether the host's name has more IP addresses. To try the next one, add 1 to `tries` of
 * the address and call wire_open() again.
 */
bool wire_has_more(const struct wire *wire);
int wire_fd(const struct wire *wire);
bool wire_has_output(const struct wire *wire);

/* Returns the buffer to which commands are added; the next wire_flush() sends it. */
struct bytes *wire_output(struct wire *wire);

/*
 * Sends as much of the buffer as the socket accepts. Returns 0, -ENOMEM if a command did not fit
 * into memory, -EHOSTUNREACH if the connection is lost, or the error of connecting.
 */
int wire_flush(struct wire *wire);

/*
 * Reads all bytes that have arrived. Returns 0, -EPROTO if they are no replies of Redis, or an
 * error of wire_flush().
 */
int wire_fill(struct wire *wire);

/*
 * Stores the next complete reply, which the caller must free. Returns 1 if there was a reply, 0 if
 * no complete reply has arrived, or -EPROTO or -ENOMEM.
 */
int wire_next(struct wire *wire, struct reply **ret_reply);

/*
 * Sends the buffer and waits for one reply, which may be an error of the server. Returns 0,
 * -ETIMEDOUT, or an error of wire_flush() or wire_next().
 */
int wire_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns);

void reply_free(struct reply *reply); /* the argument `reply` may be NULL */
enum reply_type reply_type(const struct reply *reply);
/* Returns the text of a text or error reply, NUL-terminated, or "" for any other reply. */
const char *reply_text(const struct reply *reply);
size_t reply_len(const struct reply *reply);
/* Returns the number in an integer or text reply, or 0 for any other reply. */
int64_t reply_integer(const struct reply *reply);
/* Returns the number of elements of an array reply, or 0 for any other reply. */
size_t reply_count(const struct reply *reply);
/* Returns an element of an array reply, or NULL if there is no such element. */
const struct reply *reply_at(const struct reply *reply, size_t index);
/* Returns the integer in an element of an array reply, or 0 if there is no such element. */
int64_t reply_integer_at(const struct reply *reply, size_t index);
/* Returns whether an element of an array reply is exactly `text`. */
bool reply_is(const struct reply *reply, size_t index, const char *text);

#endif
