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
	/*
	 * The thread asks a Sentinel two questions at a time. This is what the first reply says: 0,
	 * or -EROFS if the master is another server than the one in use.
	 */
	int named;
	bool is_half; /* the second reply has not come yet */
	/*
	 * How many Sentinels, one after the other, have answered with an outdated epoch, which is
	 * lower than the highest one known. 0 if the latest answer was up to date.
	 */
	unsigned outdated;
	unsigned rotations; /* the address's `rotations` when the first of these answered */
	bool answered;      /* the Sentinel has answered on this connection */
};

void sentinel_watch_init(struct sentinel_watch *watch, struct address *address, uint64_t timeout_ns,
                         uint64_t seed);

/*
 * Asks a Sentinel for the master every 250 ms while the server is used, else every second.
 * `used_ns` is when a call was last sent or answered. Returns when to call again.
 */
uint64_t sentinel_watch_pass(struct sentinel_watch *watch, uint64_t used_ns, uint64_t now_ns);

/*
 * Reads a Sentinel's answer. Returns -EROFS if it names another master than `server`, or another
 * error if the connection has failed. After any error the connection is closed already.
 */
int sentinel_watch_read(struct sentinel_watch *watch, const struct address *server,
                        uint64_t now_ns);

/*
 * Closes the connection to the Sentinel. If the Sentinel has not answered, the next one is asked.
 */
void sentinel_watch_lose(struct sentinel_watch *watch, int why, uint64_t now_ns);

#endif
