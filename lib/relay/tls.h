/* SPDX-License-Identifier: MIT */
/*
 * TLS between a wire's buffers, without a socket: what the server sent goes in by tls_put() and
 * comes out decrypted by tls_get(), and tls_seal() encrypts what is to be sent. The wire sends and
 * receives by itself, because OpenSSL's own sockets raise SIGPIPE. In a build without OpenSSL,
 * tls_none.c answers each tls_open() with -EOPNOTSUPP.
 *
 * -EACCES stands for every refused certificate, of either side, and for one that can't be read;
 * error_reply_words() says which. -EPROTO: the server does not speak TLS.
 */
#ifndef RELAY_TLS_H
#define RELAY_TLS_H

#include "relay/address.h"
#include "relay/command_buffer.h"

struct tls;

/* Prepares a handshake with the address's server, whose name or IP address will be checked. */
int tls_open(struct tls **ret_tls, const struct address *address);
void tls_close(struct tls *tls); /* the argument `tls` may be NULL */

/* Takes encrypted bytes that the server has sent. Returns 0 or -ENOMEM. */
int tls_put(struct tls *tls, const void *sealed, size_t len);

/*
 * Continues the TLS handshake or, after that, decrypts. Returns the number of bytes in `plain`, 0
 * if the server must send more, -EHOSTUNREACH at the connection's end, or the handshake's error.
 */
int tls_get(struct tls *tls, void *plain, size_t len);

/*
 * Appends to `sealed` what must be sent next: a part of the handshake, or later up to 64 KiB of
 * `plain`, which are encrypted and removed from `plain`. Returns 0 or an error.
 */
int tls_seal(struct tls *tls, struct bytes *plain, struct bytes *sealed);

/* Returns whether the handshake has succeeded. From then on tls_seal() encrypts. */
bool tls_is_ready(const struct tls *tls);

/* Returns whether TLS itself has something to send, even if there is nothing to encrypt. */
bool tls_has_output(const struct tls *tls);

#endif
