/* SPDX-License-Identifier: MIT */
/* Converts a server's error reply to a negative errno, and decides the fate of the connection. */
#ifndef RELAY_ERROR_REPLY_H
#define RELAY_ERROR_REPLY_H

#include <stdbool.h>

enum error_reply_kind {
	ERROR_REPLY_REFUSAL, /* the call has failed and changed nothing; a repeat would fail too */
	ERROR_REPLY_LATER, /* the server refuses changes now: connect again, then repeat the call */
	ERROR_REPLY_FOREIGN, /* an unknown reply; close the connection */
};

struct error_reply {
	int error; /* the result of the call, at once or when its timeout ends */
	enum error_reply_kind kind;
};

struct error_reply error_reply_of(const char *text);

/* Returns whether the server would refuse a repeated call with the same error. */
bool error_reply_is_final(int error);

#endif
