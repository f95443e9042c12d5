/* SPDX-License-Identifier: MIT */
/* Converts a server's error reply to a negative errno, and decides the fate of the connection. */
#ifndef RELAY_ANSWER_H
#define RELAY_ANSWER_H

#include <stdbool.h>

enum answer_kind {
	ANSWER_REFUSAL, /* the call is answered: nothing has changed, a repeat changes nothing */
	ANSWER_LATER,   /* this server takes no changes now: connect again, then repeat the call */
	ANSWER_FOREIGN, /* an unknown reply; close the connection */
};

struct answer {
	int error; /* the call returns it, at once or when its timeout ends */
	enum answer_kind kind;
};

struct answer answer_of(const char *text);

/* Returns whether another try would give the same error. */
bool answer_is_final(int error);

#endif
