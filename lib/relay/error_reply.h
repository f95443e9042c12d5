/* SPDX-License-Identifier: MIT */
/*
 * Converts a server's error reply to a negative errno, and decides whether the connection can be
 * used after the error.
 */
#ifndef RELAY_ERROR_REPLY_H
#define RELAY_ERROR_REPLY_H

#include <stdbool.h>

enum error_reply_kind {
	/* The call has failed and changed nothing; a repeated call would fail too. */
	ERROR_REPLY_REFUSAL,
	/* The server refuses changes for now: connect again, then repeat the call. */
	ERROR_REPLY_LATER,
	ERROR_REPLY_FOREIGN, /* the error is unknown: close the connection */
};

struct error_reply {
	/* Negative errno of the call. With ERROR_REPLY_LATER the client first repeats the call. */
	int error;
	enum error_reply_kind kind;
};

struct error_reply error_reply_of(const char *text);

/*
 * What the errno can't tell of this thread's last error: which right, which certificate, that no
 * Sentinel knows the master, or to which node of a cluster the queue has moved. "": nothing was
 * noted for `error`.
 */
void error_reply_note(int error, const char *words);
const char *error_reply_words(int error);

/*
 * Returns whether `error` is final. If an error is final, a repeated call would get the same error
 * again.
 */
bool error_reply_is_final(int error);

#endif
