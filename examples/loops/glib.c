/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a GLib main loop (and so in GTK, GStreamer, …): reminders, see reminders.h.
 * Usage: glib [FILE...]
 */
#include <glib-unix.h>
#include <glib.h>

#include "reminders.h"

struct source {
	struct timerhub_queue *queue;
	GMainLoop *loop;
};

static gboolean readable(gint fd, GIOCondition condition, gpointer argument)
{
	struct source *source = argument;

	(void)fd;
	(void)condition;
	if (timerhub_dispatch(source->queue, REMINDERS_BATCH) >= 0 && reminders_left())
		return G_SOURCE_CONTINUE;
	g_main_loop_quit(source->loop);
	return G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
	struct source source = { .queue = reminders_open(argc - 1, argv + 1) };

	source.loop = g_main_loop_new(NULL, FALSE);
	g_unix_fd_add(timerhub_queue_fd(source.queue), G_IO_IN, readable, &source);
	g_main_loop_run(source.loop);
	g_main_loop_unref(source.loop);
	return reminders_close();
}
