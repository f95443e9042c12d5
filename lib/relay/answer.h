/* SPDX-License-Identifier: MIT */
/* Converts a server's error reply to a negative errno, and decides the fate of the connection. */
#ifndef RELAY_ANSWER_H
#define RELAY_ANSWER_H

#include <stdbool.h>

enum answer_kind {
	ANSWER_REFUSAL, /* the call has failed and changed nothing; a repeat would fail too */
	ANSWER_LATER,   /* the server refuses changes now: connect again, then repeat the call */
	ANSWER_FOREIGN, /* an unknown reply; close the connection */
};

struct answer {
	int error; /* the result of the call, at once or when its timeout ends */
	enum answer_kind kind;
};

struct answer answer_of(const char *text);

/* Returns whether the server would refuse a repeated call with the same error. */
bool answer_is_final(int error);

#endif
