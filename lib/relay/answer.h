/* SPDX-License-Identifier: MIT */
/* What a server's error reply means: a negative errno, and what becomes of the connection. */
#ifndef RELAY_ANSWER_H
#define RELAY_ANSWER_H

#include <stdbool.h>

enum answer_kind {
	ANSWER_REFUSAL, /* the call is answered: nothing has changed, a repeat changes nothing */
	ANSWER_LATER,   /* this server takes no changes now: connect again, then repeat the call */
	ANSWER_FOREIGN, /* not a reply that we know: close the connection */
};

struct answer {
	int error; /* what the call returns, now or when its time is over */
	enum answer_kind kind;
};

struct answer answer_of(const char *text);

/* Is it nothing that another try would cure? */
bool answer_is_final(int error);

#endif
