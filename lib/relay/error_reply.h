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
	 * The negative errno for the program. If `kind` is ERROR_REPLY_LATER, the library first
	 * tries again, and the program gets the errno only if no try succeeds before its timeout.
	 */
	int error;
	enum error_reply_kind kind;
};

struct error_reply error_reply_of(const char *text);

/*
 * Stores an explanation of this thread's last error, such as which right the Redis user lacks.
 * error_reply_words() returns the explanation, or "" if none is stored for `error`.
 */
void error_reply_note(int error, const char *words);
const char *error_reply_words(int error);

/*
 * Returns whether a call that has failed with `error` would fail again, so that there is no use in
 * repeating it.
 */
bool error_reply_is_final(int error);

#endif
