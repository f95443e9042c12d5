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
 *
 * Lists: a function that reads from a list moves *text behind what it has read, and sets *text to
 * NULL behind the last element. It returns 0 or -EINVAL.
 *
 * ASKING: while a cluster moves a slot to another node, that node refuses each command for the slot
 * that has no ASKING before it.
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
	 * The Sentinels to ask for the master, as "host:port+host:port"; empty if there are none.
	 */
	char sentinels[ADDRESS_TEXT_BYTES];
	/* How often address_rotate_sentinels() was called. */
	unsigned rotations;
	char master[ADDRESS_TEXT_BYTES]; /* the Sentinels' name for the master */
	char user[ADDRESS_TEXT_BYTES];   /* name of the user; empty: no user */
	char password[ADDRESS_TEXT_BYTES];
	uint32_t database;
	struct address_tls tls;
	bool cluster; /* the server is a node of a cluster */
	/*
	 * Cluster nodes of the user's address, as "host:port+host:port"; empty if it names no
	 * cluster.
	 */
	char nodes[ADDRESS_TEXT_BYTES];
	char learned[ADDRESS_NODES_BYTES]; /* nodes that the cluster has named; form of `nodes` */
	uint16_t slot;                     /* the slot of the queue's keys */
	/* The node that the last MOVED or ASK error named; next_port is empty without one. */
	char next_host[ADDRESS_TEXT_BYTES];
	char next_port[ADDRESS_PORT_BYTES];
	/* True if the next node, or this one, needs an ASKING before each command. */
	bool next_asking, asking;
	/*
	 * The number of the Sentinel configuration that named host and port. The highest is the
	 * newest.
	 */
	uint64_t epoch;
	/* How many connects have failed. Each attempt begins with the host's next IP address. */
	unsigned tries;
	const char *file; /* path of the file that has the address, or NULL (url_file.h) */
	uint32_t index;   /* index of the address in that file's list */
};

/* Reads the first address of a list with commas; redis://127.0.0.1 if *text is NULL. */
int address_read(struct address *ret_address, const char **text);

/* Writes an address as a user would write it, but without user and password. */
void address_write(char text[ADDRESS_URL_BYTES], const struct address *address);

/* Reads the first host and port of a list like "host:port+host:port". */
int address_read_sentinel(struct address *ret_address, const char **text);

/* Stores the first Sentinel's host and port, with the TLS options of `address`. */
int address_first_sentinel(struct address *ret_sentinel, const struct address *address);

/* Reads the first node of a list. Its login and TLS options come from `address`. */
int address_read_node(struct address *ret_node, const char **text, const struct address *address);

/* Stores the node that an error MOVED or ASK names. `from` has sent the error. */
void address_redirect(struct address *address, const char *text, const struct address *from);

/*
 * Stores in `server` the node that address_redirect() has found. Returns false if it has found
 * none.
 */
bool address_take_redirect(struct address *address, struct address *server);

unsigned address_count_sentinels(const struct address *address);

/* Moves the first Sentinel to the end of the list, so that another is asked next. */
void address_rotate_sentinels(struct address *address);

/* Copies user and password from one address to another. */
void address_set_login(struct address *address, const struct address *from);

/* Sets the host and port that a Sentinel or cluster has named, or returns -EINVAL. */
int address_set_server(struct address *address, const char *host, const char *port);

#endif
