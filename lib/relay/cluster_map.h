/* SPDX-License-Identifier: MIT */
/*
 * Reads the replies to CLUSTER SLOTS: which node of a Redis cluster is the master of a slot, and
 * which nodes there are. Pure. Tested by tests/relay/cluster_test.py and fuzz_replies.c.
 */
#ifndef RELAY_CLUSTER_MAP_H
#define RELAY_CLUSTER_MAP_H

#include "relay/wire.h"

void cluster_map_ask(struct wire *wire);

/*
 * Stores host and port of the master of `server->slot` in `server`. `asked` is the node that has
 * replied. Returns 0, -EROFS if there is no master, or -EPROTO.
 */
int cluster_map_find(const struct reply *reply, const struct address *asked,
                     struct address *server);

/*
 * Reads all masters and replicas from a reply to CLUSTER SLOTS, and stores them in `nodes` as a
 * list "host:port+host:port". Nodes for which there is no room are left out.
 */
void cluster_map_list(const struct reply *reply, const struct address *asked,
                      char nodes[ADDRESS_NODES_BYTES]);

#endif
