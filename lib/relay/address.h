/* SPDX-License-Identifier: MIT */
/*
 * Parses and prints the address of a Redis server, in one of these notations:
 *
 *   - "redis://[user:password@]host[:port][/db]"
 *   - "unix:/path[?db=N]"
 *   - "sentinel://[user:password@]host[:port][+host[:port]...]/master[/db]", where the hosts are
 *     Sentinels that know the address of the master
 *   - "cluster://[user:password@]host[:port][+host[:port]...]", where the hosts are some nodes of a
 *     Redis cluster, which know the master of the queue's slot
 *
 * "rediss://", "sentinels://" and "clusters://" are the same by TLS. They may end with
 * "?cafile=PATH", "cert=PATH", "key=PATH" and "insecure=1", between ampersands.
 *
 * Commas separate the addresses of several servers. In user, password and paths of certificates, a
 * percent sign and two hexadecimal digits stand for a byte.
 */
#ifndef RELAY_ADDRESS_H
#define RELAY_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESS_TEXT_BYTES 256
#define ADDRESS_PORT_BYTES 6
#define ADDRESS_UNIX_BYTES 108 /* size of a unix socket's name in the kernel */
#define ADDRESS_NODES_BYTES 1024
#define ADDRESS_URL_BYTES (2 * ADDRESS_TEXT_BYTES + 32)

/* How to speak TLS with the server of an address, and with the Sentinels that know it. */
struct address_tls {
	bool on;
	bool insecure;                   /* the server's certificate is not checked */
	char cafile[ADDRESS_TEXT_BYTES]; /* trusted certificates; empty: those of the system */
	char cert[ADDRESS_TEXT_BYTES];   /* certificate of this program; empty: none */
	char key[ADDRESS_TEXT_BYTES];    /* key of that certificate; empty: it is in `cert` */
};

struct address {
	char host[ADDRESS_TEXT_BYTES]; /* name of the host; empty: `path` names a unix socket */
	char port[ADDRESS_PORT_BYTES];
	char path[ADDRESS_UNIX_BYTES]; /* path of a unix socket */
	/*
	 * The Sentinels that can be asked for the master's host and port; empty if the address
	 * names none.
	 */
	char sentinels[ADDRESS_TEXT_BYTES];
	/*
	 * How often address_rotate_sentinels() has moved the first Sentinel to the end of the list.
	 */
	unsigned rotations;
	char master[ADDRESS_TEXT_BYTES]; /* the Sentinels' name for the master */
	char user[ADDRESS_TEXT_BYTES];   /* name of the user; empty: no user */
	char password[ADDRESS_TEXT_BYTES];
	uint32_t database;
	struct address_tls tls;
	bool cluster; /* the server is a node of a cluster */
	/*
	 * The nodes in a user's "cluster://" address, as "host:port+host:port"; empty in all other
	 * addresses. Each node can tell which one is the master of the queue's keys.
	 */
	char nodes[ADDRESS_TEXT_BYTES];
	char learned[ADDRESS_NODES_BYTES]; /* nodes that the cluster has named, in the same form */
	uint16_t slot;                     /* the slot of the queue's keys */
	/*
	 * The cluster node that the last MOVED or ASK error named, which the next connect tries
	 * first. next_port is empty if there was no such error.
	 */
	char next_host[ADDRESS_TEXT_BYTES];
	char next_port[ADDRESS_PORT_BYTES];
	/*
	 * True if the node wants a command ASKING before each command on the queue's keys, because
	 * the queue's slot is just moving to it: `asking` for the server at `host`, `next_asking`
	 * for the one at `next_host`.
	 */
	bool next_asking, asking;
	/*
	 * The number of the Sentinel configuration that named host and port. If two Sentinels
	 * disagree, the higher number is newer.
	 */
	uint64_t epoch;
	/*
	 * How many attempts to connect have failed. If the host's name resolves to several
	 * addresses, each attempt begins with the next one.
	 */
	unsigned tries;
	const char *file; /* path of the file that has the address, or NULL (url_file.h) */
	uint32_t index;   /* index of the address in that file's list */
};

/*
 * Reads the first address of a list with commas, or redis://127.0.0.1 if *text is NULL. Moves *text
 * to the next address, or sets it to NULL. Returns 0 or -EINVAL.
 */
int address_read(struct address *ret_address, const char **text);

/*
 * Writes an address as a user would write it, with the port, but without user and password, so that
 * it can be shown.
 */
void address_write(char text[ADDRESS_URL_BYTES], const struct address *address);

/*
 * Reads the host and port of the first Sentinel in a list like "host:port+host:port". Moves *text
 * to the next one, or sets it to NULL. Returns 0 or -EINVAL.
 */
int address_read_sentinel(struct address *ret_address, const char **text);

/*
 * Stores the host and port of the first Sentinel of `address` in *ret_sentinel, with the TLS
 * options of `address`.
 */
int address_first_sentinel(struct address *ret_sentinel, const struct address *address);

/*
 * Reads the first node of a list like "host:port+host:port", and gives it the login and TLS options
 * of `address`. Moves *text to the next one, or sets it to NULL.
 */
int address_read_node(struct address *ret_node, const char **text, const struct address *address);

/*
 * If `text` is an error MOVED or ASK, stores its host and port in `address`. If the error names no
 * host, stores the host of `from`, the server that has sent the error.
 */
void address_redirect(struct address *address, const char *text, const struct address *from);

/*
 * Copies to `server` the host and port that address_redirect() has stored in `address`, and clears
 * them in `address`. Returns false if none are stored.
 */
bool address_take_redirect(struct address *address, struct address *server);

unsigned address_count_sentinels(const struct address *address);

/*
 * Moves the first Sentinel (a monitor that knows the master) to the end of the list, so that the
 * next one is asked.
 */
void address_rotate_sentinels(struct address *address);

/* Copies user and password from one address to another. */
void address_set_login(struct address *address, const struct address *from);

/*
 * Sets host and port to those that a Sentinel or a cluster has named. Returns -EINVAL if they are
 * not valid.
 */
int address_set_server(struct address *address, const char *host, const char *port);

#endif
