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
 * Stores host and port of the master of the slot `server->slot` in `server`. A node that does not
 * know its own address leaves out the host, which is then that of `asked`, the node that has
 * replied. Returns 0, -EROFS if no node serves the slot, or -EPROTO.
 */
int cluster_map_find(const struct reply *reply, const struct address *asked,
                     struct address *server);

/*
 * Writes all masters and replicas in the reply to CLUSTER SLOTS as a list "host:port+host:port", as
 * far as there is room.
 */
void cluster_map_list(const struct reply *reply, const struct address *asked,
                      char nodes[ADDRESS_NODES_BYTES]);

#endif
