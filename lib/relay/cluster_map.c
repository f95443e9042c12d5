/* SPDX-License-Identifier: MIT */
/*
 * Reads the reply to CLUSTER SLOTS, which says which node of a Redis cluster has which slots
 * (cluster_map.h). The reply has an array for each range of slots. In it are the first and the last
 * slot, and then the master and the replicas, each as an array that begins with host and port.
 */
#include "relay/cluster_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RANGE_FIRST, RANGE_LAST, RANGE_MASTER };
enum { NODE_HOST, NODE_PORT };

void cluster_map_ask(struct wire *wire)
{
	bytes_command(wire_output(wire), 2);
	bytes_text(wire_output(wire), "CLUSTER");
	bytes_text(wire_output(wire), "SLOTS");
}

/*
 * Returns the host of a node. If the reply has none, or a "?" because the node's name is not known,
 * that is the host of the node that was asked.
 */
static const char *host_of(const struct reply *node, const struct address *asked)
{
	const char *host = reply_text(reply_at(node, NODE_HOST));

	return host[0] && strcmp(host, "?") != 0 ? host : asked->host;
}

int cluster_map_find(const struct reply *reply, const struct address *asked, struct address *server)
{
	if (reply_type(reply) != REPLY_ARRAY)
		return -EPROTO;
	for (size_t i = 0; i < reply_count(reply); i++) {
		const struct reply *range = reply_at(reply, i);
		const struct reply *master = reply_at(range, RANGE_MASTER);
		char port[ADDRESS_PORT_BYTES];

		if (reply_integer_at(range, RANGE_FIRST) > server->slot ||
		    reply_integer_at(range, RANGE_LAST) < server->slot)
			continue;
		(void)snprintf(port, sizeof(port), "%" PRIu16,
		               (uint16_t)reply_integer_at(master, NODE_PORT));
		return address_set_server(server, host_of(master, asked), port) < 0 ? -EPROTO : 0;
	}
	return -EROFS;
}

static bool is_listed(const char *nodes, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = nodes; (at = strstr(at, name)); at += len)
		if ((at == nodes || at[-1] == '+') && (at[len] == '+' || at[len] == '\0'))
			return true;
	return false;
}

/*
 * Appends a node to `nodes` as "host:port". Leaves out a node whose port is 0: the cluster gives
 * the port for TLS or the one without, as the relay has asked, and 0 if the node has no such port.
 */
static void list_node(const struct reply *node, const struct address *asked,
                      char nodes[ADDRESS_NODES_BYTES])
{
	const char *host = host_of(node, asked), *open = strchr(host, ':') ? "[" : "";
	uint16_t port = (uint16_t)reply_integer_at(node, NODE_PORT);
	char name[ADDRESS_TEXT_BYTES + 16];
	size_t used = strlen(nodes);

	if (port == 0 || !host[0] || strlen(host) >= ADDRESS_TEXT_BYTES || strpbrk(host, "+[]"))
		return;
	(void)snprintf(name, sizeof(name), "%s%s%s:%" PRIu16, open, host, *open ? "]" : "", port);
	if (!is_listed(nodes, name) && used + strlen(name) + 2 <= ADDRESS_NODES_BYTES)
		(void)snprintf(nodes + used, ADDRESS_NODES_BYTES - used, "%s%s",
		               used > 0 ? "+" : "", name);
}

void cluster_map_list(const struct reply *reply, const struct address *asked,
                      char nodes[ADDRESS_NODES_BYTES])
{
	nodes[0] = '\0';
	for (size_t i = 0; i < reply_count(reply); i++) {
		const struct reply *range = reply_at(reply, i);

		for (size_t j = RANGE_MASTER; j < reply_count(range); j++)
			list_node(reply_at(range, j), asked, nodes);
	}
}
