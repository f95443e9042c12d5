/* SPDX-License-Identifier: MIT */
/*
 * Takes the place of tls.c in a build without OpenSSL. Each attempt to open a connection with TLS
 * fails with -EOPNOTSUPP.
 */
#include <errno.h>

#include "relay/error_reply.h"
#include "relay/tls.h"

int tls_open(struct tls **ret_tls, const struct address *address)
{
	(void)ret_tls;
	(void)address;
	error_reply_note(-EOPNOTSUPP, "this build has no TLS");
	return -EOPNOTSUPP;
}

void tls_close(struct tls *tls)
{
	(void)tls;
}

int tls_put(struct tls *tls, const void *sealed, size_t len)
{
	(void)tls;
	(void)sealed;
	(void)len;
	return -EOPNOTSUPP;
}

int tls_get(struct tls *tls, void *plain, size_t len)
{
	(void)tls;
	(void)plain;
	(void)len;
	return -EOPNOTSUPP;
}

int tls_seal(struct tls *tls, struct bytes *plain, struct bytes *sealed)
{
	(void)tls;
	(void)plain;
	(void)sealed;
	return -EOPNOTSUPP;
}

bool tls_is_ready(const struct tls *tls)
{
	(void)tls;
	return false;
}

bool tls_has_output(const struct tls *tls)
{
	(void)tls;
	return false;
}
