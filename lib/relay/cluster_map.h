/* SPDX-License-Identifier: MIT */
/*
 * Reads the replies to CLUSTER SLOTS: which node of a Redis cluster is the master of a slot, and
 * which nodes there are. `asked` is the node that sent the reply. Pure. Tested by
 * tests/relay/cluster_test.py and fuzz_replies.c.
 */
#ifndef RELAY_CLUSTER_MAP_H
#define RELAY_CLUSTER_MAP_H

#include "relay/wire.h"

void cluster_map_ask(struct wire *wire);

/* Stores the master of server->slot in `server`. Returns -EROFS if there is none, or -EPROTO. */
int cluster_map_find(const struct reply *reply, const struct address *asked,
                     struct address *server);

/* Stores all nodes of a reply as "host:port+host:port", as far as there is room. */
void cluster_map_list(const struct reply *reply, const struct address *asked,
                      char nodes[ADDRESS_NODES_BYTES]);

#endif
