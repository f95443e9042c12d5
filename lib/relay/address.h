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
	/* List of the Sentinels that know host and port; empty: no Sentinels. */
	char sentinels[ADDRESS_TEXT_BYTES];
	/*
	 * how often the list was rotated; this modulo its length is the index of the Sentinel that
	 * is first now
	 */
	unsigned rotations;
	char master[ADDRESS_TEXT_BYTES]; /* the Sentinels' name for the master */
	char user[ADDRESS_TEXT_BYTES];   /* name of the user; empty: no user */
	char password[ADDRESS_TEXT_BYTES];
	uint32_t database;
	struct address_tls tls;
	bool cluster; /* the server is a node of a cluster */
	/*
	 * The nodes that the user gave, which know the others. Empty if host and port are known
	 * already.
	 */
	char nodes[ADDRESS_TEXT_BYTES];
	char learned[ADDRESS_NODES_BYTES]; /* nodes that the cluster has named, in the same form */
	uint16_t slot;                     /* the slot of the queue's keys */
	/*
	 * Where the last MOVED or ASK pointed, for the next connect only; nowhere if the port is
	 * empty. If `asking` is true, each command must follow an ASKING, because a node refuses a
	 * slot that is still on its way to it otherwise.
	 */
	char next_host[ADDRESS_TEXT_BYTES];
	char next_port[ADDRESS_PORT_BYTES];
	bool next_asking, asking;
	/* number of the Sentinels' configuration that named host and port; a higher one is newer */
	uint64_t epoch;
	/*
	 * how many tries to connect have failed; each begins at the next address that the host's
	 * name resolves to
	 */
	unsigned tries;
	const char *file; /* path of the file that has the address, or NULL (url_file.h) */
	uint32_t index;   /* index of the address in that file's list */
};

/*
 * Reads the address at the beginning of `*text`, which moves behind it and its comma, and is NULL
 * after the last. NULL is redis://127.0.0.1. Returns 0 or -EINVAL.
 */
int address_read(struct address *ret_address, const char **text);

/*
 * Writes an address in the notation that a user would give, with the port, and without user and
 * password.
 */
void address_write(char text[ADDRESS_URL_BYTES], const struct address *address);

/*
 * Reads the Sentinel at the beginning of `*text`, which moves behind it and its plus sign, and is
 * NULL after the last. The first text is an address's `sentinels`. User, password and TLS of that
 * address are not read. Returns 0 or -EINVAL.
 */
int address_read_sentinel(struct address *ret_address, const char **text);

/*
 * Reads the first Sentinel of an address's list, which is to be asked next. It gets the address's
 * options of TLS.
 */
int address_first_sentinel(struct address *ret_sentinel, const struct address *address);

/*
 * Reads the node of a cluster at the beginning of `*text`, as address_read_sentinel() does, with
 * user, password and TLS of the address whose list it is.
 */
int address_read_node(struct address *ret_node, const char **text, const struct address *address);

/*
 * Takes note of a server's error if it begins with MOVED or ASK. `from` is the server that sent it,
 * whose host counts if the error names none.
 */
void address_redirect(struct address *address, const char *text, const struct address *from);

/*
 * Moves the host and port where a MOVED or ASK pointed to `server`. Returns false if there is none.
 */
bool address_take_redirect(struct address *address, struct address *server);

unsigned address_count_sentinels(const struct address *address);

/* Moves the first Sentinel of an address to the end of the list. */
void address_rotate_sentinels(struct address *address);

/* Gives an address the user and the password of another one. */
void address_set_login(struct address *address, const struct address *from);

/* Sets host and port as a Sentinel has named them. Returns -EINVAL if they are not valid. */
int address_set_server(struct address *address, const char *host, const char *port);

#endif
