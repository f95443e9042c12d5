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
	/*
	 * The negative errno that the call returns; with ERROR_REPLY_LATER only when repeating it
	 * has not helped until its timeout.
	 */
	int error;
	enum error_reply_kind kind;
};

struct error_reply error_reply_of(const char *text);

/*
 * Keeps for this thread what the errno of its last error does not say: which right is missing,
 * which certificate was refused, that no Sentinel knows the master, or to which node of a cluster
 * the queue has moved. error_reply_words() returns it, or "" if nothing was noted for `error`.
 */
void error_reply_note(int error, const char *words);
const char *error_reply_words(int error);

/* Returns whether `error` is final, so that a repeated call would get it again. */
bool error_reply_is_final(int error);

#endif
