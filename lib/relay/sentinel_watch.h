/* SPDX-License-Identifier: MIT */
/*
 * Asks a Sentinel for the master's address, again and again, because a master that Sentinel has
 * replaced goes on answering: a connection to it does not break for up to 10 s, and what it
 * acknowledges meanwhile is lost. Only the shard's thread calls these functions.
 */
#ifndef RELAY_SENTINEL_WATCH_H
#define RELAY_SENTINEL_WATCH_H

#include "relay/link.h"

struct sentinel_watch {
	struct address *address; /* the pipeline's; its first Sentinel is the one to ask */
	uint64_t timeout_ns;
	struct link link;
	uint64_t asked_ns;
	uint64_t turned_ns; /* when the Sentinel that is asked became the first; 0: ask the next */
	int named;          /* the first of an answer's two replies: 0 or -EROFS */
	bool is_half;       /* the second is to come */
	unsigned outdated; /* Sentinels that one after the other told a lower epoch than is known */
	unsigned rotations; /* the address's, at the first of these */
	bool answered;      /* the Sentinel has answered on this connection */
};

void sentinel_watch_init(struct sentinel_watch *watch, struct address *address, uint64_t timeout_ns,
                         uint64_t seed);

/*
 * Ask if it is time. The last call to the server was sent or answered at used_ns. Returns when to
 * call again.
 */
uint64_t sentinel_watch_pass(struct sentinel_watch *watch, uint64_t used_ns, uint64_t now_ns);

/* Returns -EROFS if the Sentinel names another master than `server`; any error closes the wire. */
int sentinel_watch_read(struct sentinel_watch *watch, const struct address *server,
                        uint64_t now_ns);

/* Close the connection. A Sentinel that did not answer goes to the end of the list. */
void sentinel_watch_lose(struct sentinel_watch *watch, int why, uint64_t now_ns);

#endif
