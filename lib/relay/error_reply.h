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
	/* The server refuses changes for now. Connect again, and then repeat the call. */
	ERROR_REPLY_LATER,
	ERROR_REPLY_FOREIGN, /* the error is unknown: close the connection */
};

struct error_reply {
	/*
	 * The negative errno for the caller. He gets it for ERROR_REPLY_LATER only after his
	 * timeout.
	 */
	int error;
	enum error_reply_kind kind;
};

struct error_reply error_reply_of(const char *text);

/* Stores words that error_reply_words() returns for this error in this thread. */
void error_reply_note(int error, const char *words);
const char *error_reply_words(int error);

/* Returns whether it is useless to repeat a call that has failed with `error`. */
bool error_reply_is_final(int error);

#endif
