/* SPDX-License-Identifier: MIT */
/*
 * Prints the output of the first demo. See table.h. All output goes to standard output. Only a
 * terminal gets the live line.
 */
#include "table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define S UINT64_C(1000000000)

enum { GROUPED_BYTES = 32, GROUPED_AT_ONCE = 8 };

/* Format 1234567 as 1,234,567. Each call overwrites the result of the eighth call before it. */
static const char *grouped(uint64_t value)
{
	static char texts[GROUPED_AT_ONCE][GROUPED_BYTES];
	static unsigned next;
	char *text = texts[next++ % GROUPED_AT_ONCE] + GROUPED_BYTES;

	*--text = '\0';
	for (unsigned digits = 0; digits == 0 || value > 0; digits++) {
		if (digits > 0 && digits % 3 == 0)
			*--text = ',';
		*--text = (char)('0' + value % 10);
		value /= 10;
	}
	return text;
}

static void row(const char *label, const char *value, const char *remark, ...)
	__attribute__((format(printf, 3, 4)));

static void row(const char *label, const char *value, const char *remark, ...)
{
	va_list arguments;

	printf("  %-39s %12s  ", label, value);
	va_start(arguments, remark);
	vprintf(remark, arguments);
	va_end(arguments);
	putchar('\n');
}

static uint64_t per_s(uint64_t before, uint64_t now, uint64_t passed_ns)
{
	return passed_ns > 0 ? (now - before) * S / passed_ns : 0;
}

void table_live(const struct table_state *before, const struct table_state *now, uint64_t start_ns)
{
	const int terminal = isatty(STDOUT_FILENO);
	const struct crowd_tally *tally = now->tally;
	/* The server's rates use its own time, since it reads its figures a little earlier. */
	const uint64_t said_ns = before->server.now_ns > 0
	                                 ? now->server.now_ns - before->server.now_ns
	                                 : now->server.now_ns - start_ns;

	printf("%s%5.1f s  %7s connections", terminal ? "\r" : "",
	       (double)(now->now_ns - start_ns) / (double)S, grouped(tally->open));
	printf("  %7s heartbeats/s  %7s timeouts moved/s  %6s closed%s",
	       grouped(per_s(before->heartbeats, now->heartbeats, now->now_ns - before->now_ns)),
	       grouped(per_s(before->server.messages, now->server.messages, said_ns)),
	       grouped(tally->connected - tally->open), terminal ? "\033[K" : "\n");
	fflush(stdout);
}

static int compare(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Returns the nearest-rank percentile of the sorted latenesses, of which there are some, in us. */
static const char *percentile_us(const struct crowd_tally *tally, uint32_t percent)
{
	const uint64_t rank = ((uint64_t)tally->lateness_count * percent + 99) / 100;

	return grouped(tally->lateness_ns[rank - 1] / 1000);
}

static void print_lateness(struct crowd_tally *tally)
{
	if (tally->lateness_count == 0)
		return;
	qsort(tally->lateness_ns, tally->lateness_count, sizeof(*tally->lateness_ns), compare);
	row("lateness p50, us", percentile_us(tally, 50), "of the server's close() after the");
	row("lateness p99, us", percentile_us(tally, 99), "client's deadline: last message");
	row("lateness max, us", percentile_us(tally, 100), "received + timeout");
}

/* The few stores by which the server sets a timeout cannot be measured separately. */
static void print_loop(const struct server_figures *server)
{
	const double messages = server->messages > 0 ? (double)server->messages : 1;
	char each[32];

	snprintf(each, sizeof(each), "%.1f", (double)server->loop_ns / messages);
	row("messages", grouped(server->messages), "the server moves a timeout for each message");
	row("loop's time per message, ns", each, "timerhub_loop_turn() without its callbacks");
	row("wake-ups by timeouts", grouped(server->wakes),
	    "times that the loop's fd was readable");
}

static void print_closed(const struct crowd_tally *tally, const struct crowd_plan *plan,
                         const struct server_figures *server)
{
	row("closed for silence", grouped(tally->closed_silent),
	    "%s fell silent; the server closed %s", grouped(tally->silent),
	    grouped(server->closed_idle));
	row("wrongly closed", grouped(tally->closed_wrongly),
	    "clients that were not silent for the whole timeout");
	row("missed", grouped(tally->missed), "silent, not closed %.1f s after the timeout",
	    (double)plan->grace_ns / (double)S);
	if (tally->closed_our_pause > 0)
		row("closed while the load generator stalled", grouped(tally->closed_our_pause),
		    "the stall lasted a whole timeout, so the server was right");
	if (tally->refused > 0)
		row("not connected", grouped(tally->refused), "%s", strerror(tally->refused_error));
}

void table_print(struct crowd_tally *tally, const struct crowd_plan *plan,
                 const struct server_figures *server)
{
	row("connections", grouped(tally->connected), "%s were planned, and the server accepted %s",
	    grouped(plan->clients), grouped(server->accepted));
	row("heartbeats", grouped(tally->heartbeats), "sent");
	print_closed(tally, plan, server);
	print_lateness(tally);
	print_loop(server);
	fflush(stdout);
}
