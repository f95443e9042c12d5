/* SPDX-License-Identifier: MIT */
/*
 * A connection to a server: bytes out, replies in. Never blocks, except for the name's resolution
 * in wire_open(), and in wire_call(). One thread at a time. wire.c has the socket, and is the only
 * home of hiredis, whose reader takes replies apart.
 */
#ifndef RELAY_WIRE_H
#define RELAY_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/address.h"
#include "relay/bytes.h"

struct wire;
struct reply; /* a reply of a server; freeing it frees its elements */

enum reply_type { REPLY_NIL, REPLY_ERROR, REPLY_TEXT, REPLY_INTEGER, REPLY_ARRAY };

/*
 * Begin to connect. -EHOSTUNREACH: the name is not known, or nothing answers; -ECONNREFUSED,
 * -EMFILE …: from the kernel; no socket there: -ECONNREFUSED too.
 */
int wire_open(struct wire **ret_wire, const struct address *address);
void wire_close(struct wire *wire); /* NULL is fine */

int wire_fd(const struct wire *wire);
bool wire_is_open(const struct wire *wire); /* connected, so written commands may have arrived */
bool wire_has_output(const struct wire *wire);

/* Commands are encoded into this, and leave with the next flush. */
struct bytes *wire_output(struct wire *wire);

/* 0; -ENOMEM: the output was incomplete; -ECONNREFUSED …: connect failed; -EHOSTUNREACH: closed. */
int wire_flush(struct wire *wire);

/*
 * Read the received bytes. Returns 0, -EPROTO if they are not Redis's protocol, or an error as
 * wire_flush().
 */
int wire_fill(struct wire *wire);

/* 1: the next reply, to be freed; 0: none yet; -EPROTO, -ENOMEM. */
int wire_next(struct wire *wire, struct reply **ret_reply);

/*
 * Flush, and wait for one reply, which may be an error reply. Returns 0, -ETIMEDOUT, or an error as
 * wire_flush() and wire_next().
 */
int wire_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns);

/* CLOCK_MONOTONIC: how long a call takes. */
uint64_t wire_now_ns(void);

void reply_free(struct reply *reply); /* NULL is fine */
enum reply_type reply_type(const struct reply *reply);
/* The text of an error or a text, NUL-terminated; of anything else "". */
const char *reply_text(const struct reply *reply);
size_t reply_len(const struct reply *reply);
/* An integer, or a text that is one; 0 else. */
int64_t reply_integer(const struct reply *reply);
size_t reply_count(const struct reply *reply);                         /* of an array, else 0 */
const struct reply *reply_at(const struct reply *reply, size_t index); /* NULL beyond its end */
int64_t reply_integer_at(const struct reply *reply, size_t index);     /* 0 beyond its end */
bool reply_is(const struct reply *reply, size_t index,
              const char *text); /* is the element that text? */

#endif
