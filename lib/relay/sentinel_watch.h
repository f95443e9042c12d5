/* SPDX-License-Identifier: MIT */
/*
 * Asks a Sentinel for the master's address again and again, because a master that Sentinel has
 * replaced goes on to answer: a connection to it does not break for up to 10 s, and what it
 * acknowledges meanwhile is lost. Only the shard's thread calls these functions.
 */
#ifndef RELAY_SENTINEL_WATCH_H
#define RELAY_SENTINEL_WATCH_H

#include "relay/link.h"

struct sentinel_watch {
	/* The address in the pipeline, whose first Sentinel is the one to ask. */
	struct address *address;
	uint64_t timeout_ns;
	struct link link;
	uint64_t asked_ns;
	uint64_t turned_ns; /* when the Sentinel that is asked became the first; 0: ask the next */
	/* The Sentinel's first reply: 0, or -EROFS if it names another master. */
	int named;
	bool is_half; /* the second reply has not come yet */
	/*
	 * How many Sentinels in a row had a configuration number (epoch) below the highest known.
	 */
	unsigned outdated;
	unsigned rotations; /* the address's `rotations` when the first of these answered */
	bool answered;      /* the Sentinel has answered on this connection */
};

void sentinel_watch_init(struct sentinel_watch *watch, struct address *address, uint64_t timeout_ns,
                         uint64_t seed);

/*
 * Asks for the master when it is time. The last command was sent at used_ns. Returns when to call
 * again.
 */
uint64_t sentinel_watch_pass(struct sentinel_watch *watch, uint64_t used_ns, uint64_t now_ns);

/*
 * Reads an answer. Returns -EROFS if it names another master. Any error has closed the connection.
 */
int sentinel_watch_read(struct sentinel_watch *watch, const struct address *server,
                        uint64_t now_ns);

/* Closes the connection to the Sentinel. If it has not answered, the next one is asked. */
void sentinel_watch_lose(struct sentinel_watch *watch, int why, uint64_t now_ns);

#endif
