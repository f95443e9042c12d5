/* SPDX-License-Identifier: MIT */
/*
 * Encrypts and decrypts by OpenSSL, between two buffers in memory (BIOs) and without a socket
 * (tls.h). Each connection has a context of its own, so that a renewed certificate is used from the
 * next connection on. Tested by tests/relay/tls_test.py.
 */
#include "relay/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

#include "relay/error_reply.h"

#define SEAL_BYTES 65536u
#define WORDS_BYTES 200

struct tls {
	SSL_CTX *context;
	SSL *ssl;
	BIO *in, *out; /* the SSL object owns both */
};

/* ---- errors ---- */

static int refuse_certificate(const char *what, const char *why)
{
	char words[WORDS_BYTES];

	(void)snprintf(words, sizeof(words), "%s: %.120s", what, why);
	error_reply_note(-EACCES, words);
	return -EACCES;
}

static bool is_about_certificates(int alert)
{
	return (alert >= SSL_AD_HANDSHAKE_FAILURE && alert <= SSL_AD_ACCESS_DENIED) ||
	       alert == SSL_AD_CERTIFICATE_REQUIRED;
}

/* Returns the errno for OpenSSL's last error, and notes what the errno does not say. */
static int failure_of(const struct tls *tls)
{
	unsigned long error = ERR_peek_last_error();
	int reason = ERR_GET_REASON(error);
	long verified = SSL_get_verify_result(tls->ssl);

	if (SSL_get_verify_mode(tls->ssl) != SSL_VERIFY_NONE && verified != X509_V_OK)
		return refuse_certificate("the server's certificate is refused",
		                          X509_verify_cert_error_string(verified));
	if (is_about_certificates(reason - SSL_AD_REASON_OFFSET))
		return refuse_certificate(
			"the server refuses this program's certificate, or wants one",
			ERR_reason_error_string(error));
	if (reason == ERR_R_MALLOC_FAILURE)
		return -ENOMEM;
	error_reply_note(-EPROTO, "the server does not speak TLS as this program does");
	return -EPROTO;
}

/* ---- open ---- */

/* Answers that there is no password for a key, because OpenSSL would ask for it on the terminal. */
static int give_no_password(char *buffer, int size, int writes, void *arg)
{
	(void)buffer;
	(void)size;
	(void)writes;
	(void)arg;
	return -1;
}

static int load_certificates(SSL_CTX *context, const struct address_tls *how)
{
	const char *key = how->key[0] ? how->key : how->cert;

	SSL_CTX_set_default_passwd_cb(context, give_no_password);
	if (how->cafile[0] && SSL_CTX_load_verify_locations(context, how->cafile, NULL) != 1)
		return refuse_certificate("no certificates can be read from cafile", how->cafile);
	if (!how->cafile[0] && SSL_CTX_set_default_verify_paths(context) != 1)
		return -ENOMEM;
	if (!how->cert[0])
		return 0;
	if (SSL_CTX_use_certificate_chain_file(context, how->cert) != 1)
		return refuse_certificate("no certificate can be read from cert", how->cert);
	if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		return refuse_certificate("no key of the certificate can be read from", key);
	return 0;
}

/* Sets the host name or IP address that the server's certificate must contain. */
static int set_name(SSL *ssl, const char *host)
{
	unsigned char ip[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1 ? 0 : -ENOMEM;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1 ? 0
	                                                                                 : -ENOMEM;
}

static int prepare(struct tls *tls, const struct address *address)
{
	int result;

	tls->context = SSL_CTX_new(TLS_client_method());
	if (!tls->context || SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1)
		return -ENOMEM;
	result = load_certificates(tls->context, &address->tls);
	if (result < 0)
		return result;
	SSL_CTX_set_verify(tls->context, address->tls.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
	                   NULL);
	tls->ssl = SSL_new(tls->context);
	tls->in = BIO_new(BIO_s_mem());
	tls->out = BIO_new(BIO_s_mem());
	if (!tls->ssl || !tls->in || !tls->out) {
		BIO_free(tls->in);
		BIO_free(tls->out);
		return -ENOMEM;
	}
	SSL_set_bio(tls->ssl, tls->in, tls->out);
	SSL_set_connect_state(tls->ssl);
	return set_name(tls->ssl, address->host);
}

int tls_open(struct tls **ret_tls, const struct address *address)
{
	struct tls *tls = calloc(1, sizeof(*tls));
	int result;

	if (!tls)
		return -ENOMEM;
	/*
	 * Keep OpenSSL from freeing its data at exit, because a relay that is still open goes on to
	 * use it.
	 */
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
	ERR_clear_error();
	result = prepare(tls, address);
	if (result < 0) {
		tls_close(tls);
		return result;
	}
	*ret_tls = tls;
	return 0;
}

void tls_close(struct tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl);
	SSL_CTX_free(tls->context);
	free(tls);
}

/* ---- bytes ---- */

int tls_put(struct tls *tls, const void *sealed, size_t len)
{
	return BIO_write(tls->in, sealed, (int)len) == (int)len ? 0 : -ENOMEM;
}

/*
 * Returns what a call of OpenSSL that has stored no bytes means: 0 if it waits for more from the
 * server, or an error.
 */
static int waits(const struct tls *tls, int count)
{
	switch (SSL_get_error(tls->ssl, count)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		return -EHOSTUNREACH;
	default:
		return failure_of(tls);
	}
}

int tls_get(struct tls *tls, void *plain, size_t len)
{
	int count;

	ERR_clear_error();
	count = SSL_read(tls->ssl, plain, len < INT_MAX ? (int)len : INT_MAX);
	return count > 0 ? count : waits(tls, count);
}

static void move_out(struct tls *tls, struct bytes *sealed)
{
	char *data;
	long len = BIO_get_mem_data(tls->out, &data);

	bytes_add(sealed, data, (size_t)len);
	(void)BIO_reset(tls->out);
}

int tls_seal(struct tls *tls, struct bytes *plain, struct bytes *sealed)
{
	size_t len = plain->len < SEAL_BYTES ? plain->len : SEAL_BYTES;
	int count, result = 0;

	ERR_clear_error();
	if (!tls_is_ready(tls)) {
		count = SSL_do_handshake(tls->ssl);
		result = count == 1 ? 0 : waits(tls, count);
	} else if (len > 0) {
		count = SSL_write(tls->ssl, plain->data, (int)len);
		if (count > 0)
			bytes_consume(plain, (size_t)count);
		else
			result = waits(tls, count);
	}
	move_out(tls, sealed);
	return result;
}

bool tls_is_ready(const struct tls *tls)
{
	return SSL_is_init_finished(tls->ssl) == 1;
}

bool tls_has_output(const struct tls *tls)
{
	return BIO_ctrl_pending(tls->out) > 0;
}
