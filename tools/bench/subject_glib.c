/* SPDX-License-Identifier: MIT */
/*
 * GLib: one GSource each, whose only trigger is its ready time, as the manual of
 * g_source_set_ready_time advises; that call may be made from any thread and wakes the context.
 * Each turn of a GMainContext looks at every source, so large numbers are out of the question.
 */
#include <glib.h>

#include "clocks.h"
#include "subject_list.h"

#define NEVER (-1)

struct timer_source {
	GSource source;
	uint32_t timer;
};

static GMainContext *context;
static struct timer_source **sources;
static _Thread_local gint64 cached_us;

static gboolean glib_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
	(void)callback;
	(void)data;
	g_source_set_ready_time(source, NEVER);
	subject_expired(((struct timer_source *)(void *)source)->timer);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs functions = { .dispatch = glib_dispatch };

static void glib_open(const struct subject_setup *setup)
{
	context = g_main_context_new();
	sources = subject_allocate((uint64_t)setup->timers + 1, sizeof(struct timer_source *));
	for (uint32_t i = 0; i <= setup->timers; i++) {
		GSource *source = g_source_new(&functions, sizeof(struct timer_source));

		sources[i] = (struct timer_source *)(void *)source;
		sources[i]->timer = i;
		g_source_set_ready_time(source, NEVER);
		(void)g_source_attach(source, context);
	}
}

static void glib_tick(void)
{
	cached_us = g_get_monotonic_time();
}

static int glib_arm(uint32_t timer, uint64_t delay_ns)
{
	g_source_set_ready_time(&sources[timer]->source,
	                        cached_us + (gint64)((delay_ns + NS_PER_US - 1) / NS_PER_US));
	return 0;
}

static void glib_cancel(uint32_t timer)
{
	g_source_set_ready_time(&sources[timer]->source, NEVER);
}

static void glib_run(bool (*done)(void))
{
	while (!done())
		(void)g_main_context_iteration(context, TRUE);
}

const struct subject subject_glib = {
	.name = "glib",
	.how = "a GSource each, moved by g_source_set_ready_time, which is thread-safe",
	.can = CAN_REARM | CAN_CANCEL | CAN_EXPIRE | CAN_CROSS | CAN_ANY_THREAD | CAN_BE_LATE,
	.timers_max = 10000,
	.open = glib_open,
	.tick = glib_tick,
	.arm = glib_arm,
	.rearm = glib_arm,
	.cancel = glib_cancel,
	.run = glib_run,
};
