/* SPDX-License-Identifier: MIT */
/* The output of the first demo: a live line during the run, and a table at the end. */
#ifndef DEMO_TABLE_H
#define DEMO_TABLE_H

#include "clients.h"
#include "server_process.h"

#include <stdbool.h>
#include <stdint.h>

/* The figures of the load generator at now_ns, and the last figures that the server sent. */
struct table_state {
	uint64_t now_ns;
	const struct crowd_tally *tally;
	struct server_figures server;
	uint64_t heartbeats; /* value of tally->heartbeats at now_ns */
};

/*
 * Print the live line, which overwrites the last live line on a terminal. The rates are averages
 * from `before` to `now`.
 */
void table_live(const struct table_state *before, const struct table_state *now, uint64_t start_ns);

/* Print the table at the end. The function sorts tally->lateness_ns. */
void table_print(struct crowd_tally *tally, const struct crowd_plan *plan,
                 const struct server_figures *server);

#endif
