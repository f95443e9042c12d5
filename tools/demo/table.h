/* SPDX-License-Identifier: MIT */
/* What the demo prints: the live line and the table at the end. */
#ifndef DEMO_TABLE_H
#define DEMO_TABLE_H

#include "crowd.h"
#include "server_process.h"

#include <stdbool.h>
#include <stdint.h>

/* What has happened up to an instant, on both sides. */
struct table_state {
	uint64_t now_ns;
	const struct crowd_tally *tally;
	struct server_figures server;
	uint64_t heartbeats; /* tally->heartbeats at now_ns */
};

/* One line, rewritten in place on a terminal; rates are those since `before`. */
void table_live(const struct table_state *before, const struct table_state *now, uint64_t start_ns);

/* Sorts tally->lateness_ns. */
void table_print(struct crowd_tally *tally, const struct crowd_plan *plan,
                 const struct server_figures *server);

#endif
