/* SPDX-License-Identifier: MIT */
/*
 * Sends the first commands on a new connection: it finds the right server, logs in, and prepares
 * the queue (handshake.h). Tested by tests/relay/servers_test.py.
 *
 * handshake_load() loads the plain names (timerhub_put) first, and then the names with the version
 * (timerhub4_put). A client that finds the names with the version normally loads nothing. So if
 * they were loaded first, and this client died then, no other client would load the plain names.
 */
#include "relay/handshake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/cluster_map.h"
#include "relay/error_reply.h"
#include "relay/functions.h"
#include "relay/url_file.h"

#define VERSION_MIN 7        /* first major version of Redis that has functions */
#define VERSION_COMPATIBLE 4 /* first version of our functions that later ones may replace */

int handshake_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns)
{
	struct reply *reply;
	int result = wire_call(wire, &reply, timeout_ns);

	/*
	 * -ETIMEDOUT would mean that a change of a task is in doubt, but a handshake changes no
	 * task.
	 */
	if (result == -ETIMEDOUT)
		return -EHOSTUNREACH;
	if (result < 0)
		return result;
	if (reply_type(reply) == REPLY_ERROR) {
		result = error_reply_of(reply_text(reply)).error;
		reply_free(reply);
		return result;
	}
	*ret_reply = reply;
	return 0;
}

static int call(struct wire *wire, uint64_t timeout_ns)
{
	struct reply *reply = NULL;
	int result = handshake_call(wire, &reply, timeout_ns);

	reply_free(reply);
	return result;
}

static int log_in(struct wire *wire, const struct address *address, uint64_t timeout_ns)
{
	struct bytes *output = wire_output(wire);
	int result = 0;

	if (address->user[0] || address->password[0]) {
		bytes_command(output, address->user[0] ? 3 : 2);
		bytes_text(output, "AUTH");
		if (address->user[0])
			bytes_text(output, address->user);
		bytes_text(output, address->password);
		result = call(wire, timeout_ns);
	}
	if (result == 0 && address->database > 0) {
		bytes_command(output, 2);
		bytes_text(output, "SELECT");
		bytes_number(output, address->database);
		result = call(wire, timeout_ns);
	}
	return result;
}

/*
 * Returns the value of the field `name` in a reply of alternating names and values, or "" if it has
 * no such field.
 */
static const char *field(const struct reply *reply, const char *name)
{
	for (size_t i = 0; i + 1 < reply_count(reply); i += 2)
		if (reply_is(reply, i, name))
			return reply_text(reply_at(reply, i + 1));
	return "";
}

/*
 * The HELLO reply must name the mode "cluster" if the address begins with cluster://, and otherwise
 * the mode "standalone". Returns 0 if it does, else -EOPNOTSUPP.
 */
static int check_mode(const struct reply *reply, bool cluster)
{
	const char *mode = field(reply, "mode");

	if (strcmp(mode, cluster ? "cluster" : "standalone") == 0)
		return 0;
	if (strcmp(mode, "cluster") == 0)
		error_reply_note(-EOPNOTSUPP, "the server is a node of a cluster: its address "
		                              "must begin with cluster://");
	return -EOPNOTSUPP;
}

/*
 * Asks the server by HELLO for its version, role and mode. Returns -EROFS for a replica, and
 * -EOPNOTSUPP for a wrong version or mode. If the user has no right to HELLO, returns 0.
 */
static int ask_kind(struct wire *wire, bool cluster, uint64_t timeout_ns)
{
	struct reply *reply = NULL;
	int result;

	bytes_command(wire_output(wire), 1);
	bytes_text(wire_output(wire), "HELLO");
	result = wire_call(wire, &reply, timeout_ns);
	if (result < 0)
		return result == -ETIMEDOUT ? -EHOSTUNREACH : result;
	if (reply_type(reply) == REPLY_ERROR) {
		if (strncmp(reply_text(reply), "NOPERM", 6) != 0)
			result = error_reply_of(reply_text(reply)).error;
	} else if (atoi(field(reply, "version")) < VERSION_MIN || check_mode(reply, cluster) < 0) {
		result = -EOPNOTSUPP;
	} else if (strcmp(field(reply, "role"), "master") != 0) {
		result = -EROFS;
	}
	reply_free(reply);
	return result;
}

/*
 * After a failed connect, selects the host's next IP address. Returns whether to try it at once,
 * which pays only after a quick refusal: a silent address costs a timeout.
 */
static bool try_next(struct address *address, const struct wire *wire, int result)
{
	if (result != -ECONNREFUSED && result != -EHOSTUNREACH)
		return false;
	address->tries++;
	return result == -ECONNREFUSED && wire_has_more(wire);
}

static int connect_to(struct wire **ret_wire, struct address *server, uint64_t timeout_ns)
{
	struct wire *wire;
	int result = wire_open(&wire, server);
	bool again;

	if (result < 0) {
		server->tries++;
		return result;
	}
	result = log_in(wire, server, timeout_ns);
	if (result == 0)
		result = ask_kind(wire, server->cluster, timeout_ns);
	if (result == 0) {
		*ret_wire = wire;
		return 0;
	}
	again = try_next(server, wire, result) || (result == -EACCES && url_file_renew(server));
	wire_close(wire);
	return again ? connect_to(ret_wire, server, timeout_ns) : result;
}

static bool goes_on(const struct handshake_pause *pause)
{
	return !pause || pause->goes_on(pause->arg);
}

/* ---- Sentinels ---- */

void handshake_ask_master(struct wire *wire, const struct address *address)
{
	bytes_command(wire_output(wire), 3);
	bytes_text(wire_output(wire), "SENTINEL");
	bytes_text(wire_output(wire), "get-master-addr-by-name");
	bytes_text(wire_output(wire), address->master);
	bytes_command(wire_output(wire), 3);
	bytes_text(wire_output(wire), "SENTINEL");
	bytes_text(wire_output(wire), "master");
	bytes_text(wire_output(wire), address->master);
}

int handshake_read_master(const struct reply *reply, struct address *server)
{
	if (reply_type(reply) != REPLY_ARRAY || reply_count(reply) != 2)
		return -EROFS; /* the Sentinel knows no master of this name */
	return address_set_server(server, reply_text(reply_at(reply, 0)),
	                          reply_text(reply_at(reply, 1))) < 0
	               ? -EPROTO
	               : 0;
}

uint64_t handshake_read_epoch(const struct reply *reply)
{
	return reply_type(reply) == REPLY_ARRAY ? strtoull(field(reply, "config-epoch"), NULL, 10)
	                                        : 0;
}

static uint64_t ask_epoch(struct wire *wire, uint64_t timeout_ns)
{
	struct reply *reply = NULL;
	uint64_t epoch = 0;

	if (handshake_call(wire, &reply, timeout_ns) == 0)
		epoch = handshake_read_epoch(reply);
	reply_free(reply);
	return epoch;
}

static int ask_sentinel(struct address *sentinel, struct address *server, uint64_t timeout_ns)
{
	struct reply *reply = NULL;
	struct wire *wire;
	int result = wire_open(&wire, sentinel);
	bool again;

	if (result < 0)
		return result;
	handshake_ask_master(wire, server);
	result = handshake_call(wire, &reply, timeout_ns);
	server->epoch = result == 0 ? ask_epoch(wire, timeout_ns) : 0;
	again = try_next(sentinel, wire, result);
	wire_close(wire);
	if (result < 0)
		return again ? ask_sentinel(sentinel, server, timeout_ns) : result;
	result = handshake_read_master(reply, server);
	if (result == -EROFS)
		error_reply_note(result, "no Sentinel that answers knows a master of this name");
	reply_free(reply);
	return result;
}

/*
 * Connects to the master that a Sentinel names, and asks the next Sentinel if that fails. Returns
 * the error of the last attempt.
 */
static int connect_by_sentinels(struct wire **ret_wire, struct address *address,
                                struct address *ret_server, const struct handshake_pause *pause,
                                uint64_t timeout_ns)
{
	unsigned count = address_count_sentinels(address), outdated = 0;
	bool is_known = false;
	int result = -EHOSTUNREACH;

	for (unsigned i = 0; i == 0 || (i < count && goes_on(pause)); i++) {
		struct address sentinel, server = *address;
		bool named;

		result = address_first_sentinel(&sentinel, address);
		if (result < 0)
			return result;
		result = ask_sentinel(&sentinel, &server, timeout_ns);
		/*
		 * Do not believe a Sentinel with an older epoch: it may be cut off, and name an old
		 * master.
		 */
		named = result == 0 && server.epoch >= address->epoch;
		is_known |= named;
		outdated += result == 0 && !named;
		if (named) {
			result = connect_to(ret_wire, &server, timeout_ns);
			address_set_login(address, &server); /* a file may have had a new one */
		}
		if (result == 0 && !named)
			result = -EROFS;
		if (result == 0)
			address->epoch = server.epoch;
		if (result == 0 && ret_server)
			*ret_server = server;
		/*
		 * If the master refuses this program, ask no other Sentinel, because they would
		 * name the same master.
		 */
		if (result == 0 || (named && (result == -EACCES || result == -EOPNOTSUPP)))
			return result;
		address_rotate_sentinels(address);
	}
	address->tries++;
	/*
	 * Sentinels count failovers by a number, the epoch. If most of them have a lower one than
	 * before, somebody has set them up anew, so forget the old number.
	 */
	if (!is_known && outdated > count / 2)
		address->epoch = 0;
	return result;
}

/* ---- clusters ---- */

/*
 * Asks a node which one is the master of the slot, and stores that in `server`. Keeps the list of
 * all nodes that the reply names.
 */
static int ask_node(struct address *node, struct address *address, struct address *server,
                    uint64_t timeout_ns)
{
	struct reply *reply = NULL;
	struct wire *wire;
	int result = wire_open(&wire, node);
	bool again;

	if (result < 0)
		return result;
	result = log_in(wire, node, timeout_ns);
	cluster_map_ask(wire);
	if (result == 0)
		result = handshake_call(wire, &reply, timeout_ns);
	again = try_next(node, wire, result) || (result == -EACCES && url_file_renew(address));
	wire_close(wire);
	if (result == 0)
		result = cluster_map_find(reply, node, server);
	if (result == 0)
		cluster_map_list(reply, node, address->learned);
	reply_free(reply);
	if (!again)
		return result;
	address_set_login(node, address);
	return ask_node(node, address, server, timeout_ns);
}

static bool is_same_server(const struct address *a, const struct address *b)
{
	return strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

/*
 * Connects to the master that a cluster node names, and asks the next node if that fails. If all
 * fail, returns the error of the last attempt.
 */
static int connect_by_nodes(struct wire **ret_wire, struct address *address, const char *nodes,
                            struct address *server, const struct handshake_pause *pause,
                            uint64_t timeout_ns)
{
	struct address failed = { .host = "" };
	char list[ADDRESS_NODES_BYTES];
	const char *text = list;
	int result = -EHOSTUNREACH, why = 0;

	/* Copy `nodes`: it may point to address->learned, which ask_node() overwrites. */
	(void)snprintf(list, sizeof(list), "%s", nodes);
	do {
		struct address node;

		result = address_read_node(&node, &text, address);
		if (result < 0)
			return result;
		result = ask_node(&node, address, server, timeout_ns);
		if (result < 0)
			continue;
		address_set_login(server, address); /* a file may have had a new one */
		result = why;
		/* Do not try the master again that has just failed. */
		if (!is_same_server(server, &failed))
			result = why = connect_to(ret_wire, server, timeout_ns);
		/*
		 * Return if the connection is ready, or if the master has refused this client:
		 * other nodes would only name the same master.
		 */
		if (result == 0 || result == -EACCES || result == -EOPNOTSUPP)
			return result;
		failed = *server;
	} while (text && goes_on(pause));
	return why < 0 ? why : result;
}

static int connect_by_cluster(struct wire **ret_wire, struct address *address,
                              struct address *ret_server, const struct handshake_pause *pause,
                              uint64_t timeout_ns)
{
	struct address server = *address;
	int result = -EHOSTUNREACH;

	if (address_take_redirect(address, &server))
		result = connect_to(ret_wire, &server, timeout_ns);
	if (result < 0)
		result = connect_by_nodes(ret_wire, address, address->nodes, &server, pause,
		                          timeout_ns);
	if (result < 0 && address->learned[0] && result != -EACCES && result != -EOPNOTSUPP)
		result = connect_by_nodes(ret_wire, address, address->learned, &server, pause,
		                          timeout_ns);
	if (result < 0) {
		address->tries++;
		return result;
	}
	address_set_login(address, &server); /* a file may have had a new one */
	if (ret_server)
		*ret_server = server;
	return 0;
}

int handshake_open(struct wire **ret_wire, struct address *address, struct address *ret_server,
                   const struct handshake_pause *pause, uint64_t timeout_ns)
{
	int result;

	error_reply_note(0, "");
	if (address->sentinels[0])
		return connect_by_sentinels(ret_wire, address, ret_server, pause, timeout_ns);
	if (address->nodes[0])
		return connect_by_cluster(ret_wire, address, ret_server, pause, timeout_ns);
	result = connect_to(ret_wire, address, timeout_ns);
	if (result == 0 && ret_server)
		*ret_server = *address;
	return result;
}

/* ---- functions and queue ---- */

/*
 * Finds out the version of the functions whose names begin with "timerhub" and `own`. Stores the
 * version in *ret_version, or 0 if there are no such functions.
 */
static int ask_version(struct wire *wire, const char *own, uint64_t *ret_version,
                       uint64_t timeout_ns)
{
	struct reply *reply;
	char name[64];
	int result;

	(void)snprintf(name, sizeof(name), "timerhub%s_version", own);
	bytes_command(wire_output(wire), 3);
	bytes_text(wire_output(wire), "FCALL_RO");
	bytes_text(wire_output(wire), name);
	bytes_text(wire_output(wire), "0");
	result = wire_call(wire, &reply, timeout_ns);
	if (result < 0)
		return result == -ETIMEDOUT ? -EHOSTUNREACH : result;
	*ret_version = (uint64_t)reply_integer_at(reply, 1);
	if (reply_type(reply) == REPLY_ERROR &&
	    strncmp(reply_text(reply), "ERR Function not found", 22) != 0)
		result = error_reply_of(reply_text(reply)).error;
	reply_free(reply);
	return result;
}

int handshake_version(struct wire *wire, uint64_t *ret_version, uint64_t timeout_ns)
{
	return ask_version(wire, FUNCTIONS_OWN, ret_version, timeout_ns);
}

/*
 * Loads the functions of timerhub.lua into the server. `own` becomes a part of their names: "4"
 * makes timerhub4_put, and "" makes timerhub_put.
 */
static int load(struct wire *wire, const char *own, uint64_t timeout_ns)
{
	struct bytes *output = wire_output(wire);
	const char *const *part = functions_parts;
	size_t size = strlen(part[0]) + strlen(part[1]) + strlen(part[2]) + 2 * strlen(own) + 1;
	char *text = malloc(size);

	if (!text)
		return -ENOMEM;
	(void)snprintf(text, size, "%s%s%s%s%s", part[0], own, part[1], own, part[2]);
	bytes_command(output, 4);
	bytes_text(output, "FUNCTION");
	bytes_text(output, "LOAD");
	bytes_text(output, "REPLACE");
	bytes_text(output, text);
	free(text);
	return call(wire, timeout_ns);
}

int handshake_load(struct wire *wire, bool replaces, uint64_t timeout_ns)
{
	uint64_t version = 0, plain = 0;
	int result = handshake_version(wire, &version, timeout_ns);

	if (result < 0 || (version > 0 && !replaces))
		return result;
	result = ask_version(wire, "", &plain, timeout_ns);
	if (result == 0 && (plain == 0 || (plain < FUNCTIONS_VERSION &&
	                                   (replaces || plain >= VERSION_COMPATIBLE))))
		result = load(wire, "", timeout_ns);
	if (result == 0 && version == 0)
		result = load(wire, FUNCTIONS_OWN, timeout_ns);
	return result;
}

int handshake_fence(struct wire *wire, const struct keys *keys, const char *holder, uint64_t epoch,
                    uint64_t until_us, uint64_t timeout_ns)
{
	struct bytes *output = wire_output(wire);
	struct reply *reply = NULL;
	int result;

	keys_call(keys, output, "fence", "state seen", 3);
	bytes_text(output, holder);
	bytes_number(output, epoch);
	bytes_number(output, until_us);
	result = handshake_call(wire, &reply, timeout_ns);
	if (result == 0 && reply_integer_at(reply, 0) != 0)
		result = -EPROTO;
	reply_free(reply);
	return result;
}

int handshake_wait(struct wire *wire, uint64_t timeout_ns)
{
	bytes_command(wire_output(wire), 3);
	bytes_text(wire_output(wire), "WAIT");
	bytes_text(wire_output(wire), "0");
	bytes_text(wire_output(wire), "1");
	return call(wire, timeout_ns);
}

static uint64_t setting(const struct reply *reply, const char *name)
{
	for (size_t i = 3; i + 1 < reply_count(reply); i += 2)
		if (reply_is(reply, i, name))
			return (uint64_t)reply_integer_at(reply, i + 1);
	return 0;
}

int handshake_create(struct wire *wire, const struct keys *keys, uint32_t shards, uint32_t shard,
                     struct handshake *ret_handshake, uint64_t timeout_ns)
{
	struct bytes *output = wire_output(wire);
	struct reply *reply = NULL;
	int result;

	keys_call(keys, output, "create", "ready state", 4);
	bytes_text(output, "shards");
	bytes_number(output, shards);
	bytes_text(output, "shard");
	bytes_number(output, shard);
	result = handshake_call(wire, &reply, timeout_ns);
	if (result < 0)
		return result;
	result = (int)reply_integer_at(reply, 0);
	if (result == 0)
		*ret_handshake = (struct handshake){
			.now_us = (uint64_t)reply_integer_at(reply, 2),
			.lease_us = setting(reply, "lease_us"),
			.past_us = setting(reply, "past_us"),
		};
	if (result == -EOPNOTSUPP)
		error_reply_note(result, "a later version of timerhub has written the queue");
	reply_free(reply);
	return result > 0 ? -EPROTO : result;
}
