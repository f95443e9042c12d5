/* SPDX-License-Identifier: MIT */
/* The demo's output: the live line and the table at the end. */
#ifndef DEMO_TABLE_H
#define DEMO_TABLE_H

#include "clients.h"
#include "server_under_load.h"

#include <stdbool.h>
#include <stdint.h>

/* The figures of the load generator and of the server at one time. */
struct table_state {
	uint64_t now_ns;
	const struct crowd_tally *tally;
	struct server_figures server;
	uint64_t heartbeats; /* tally->heartbeats at now_ns */
};

/* Prints a line, which a terminal rewrites in place. The rates count from `before`. */
void table_live(const struct table_state *before, const struct table_state *now, uint64_t start_ns);

/* Sorts tally->lateness_ns. */
void table_print(struct crowd_tally *tally, const struct crowd_plan *plan,
                 const struct server_figures *server);

#endif
