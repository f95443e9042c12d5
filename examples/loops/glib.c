/* SPDX-License-Identifier: MIT */
/*
 * Shows timerhub in a GLib main loop, which GTK and GStreamer use too. Prints reminders, see
 * reminders.h. Usage: glib [FILE...]
 *
 * The prepare function of a GSource calls timerhub_loop_turn(), immediately before GLib blocks. The
 * timerhub loop's fd wakes GLib.
 */
#include <glib.h>

#include "reminders.h"

struct source {
	GSource source;
	struct timerhub_loop *timeouts;
	GMainLoop *loop;
};

static gboolean before_blocking(GSource *argument, gint *timeout)
{
	struct source *source = (struct source *)argument;

	if (timerhub_loop_turn(source->timeouts) < 0 || !reminders_left())
		g_main_loop_quit(source->loop); /* also wakes the GLib loop */
	*timeout = -1;
	return FALSE;
}

static gboolean readable(GSource *source, GSourceFunc callback, gpointer argument)
{
	(void)source; /* the event only wakes GLib; timerhub_loop_turn() does the work */
	(void)callback;
	(void)argument;
	return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
	static GSourceFuncs functions = { .prepare = before_blocking, .dispatch = readable };
	struct source *source = (struct source *)g_source_new(&functions, sizeof(*source));

	source->timeouts = reminders_open(argc - 1, argv + 1);
	source->loop = g_main_loop_new(NULL, FALSE);
	g_source_add_unix_fd(&source->source, timerhub_loop_fd(source->timeouts), G_IO_IN);
	g_source_attach(&source->source, NULL);
	g_main_loop_run(source->loop);
	g_main_loop_unref(source->loop);
	g_source_destroy(&source->source);
	g_source_unref(&source->source);
	return reminders_close();
}
