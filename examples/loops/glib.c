/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a GLib main loop, which GTK and GStreamer use too. It prints reminders, see
 * reminders.h. Usage: glib [FILE...]
 *
 * The timerhub loop is a source whose priority puts it after all sockets. It turns when it is
 * dispatched, so that a callback can run a nested main loop, and settles in its prepare function,
 * right before GLib blocks. If sockets never stop being ready, it turns after 16 iterations, each
 * of which serves all ready sockets of one priority, however many there are.
 */
#include <glib.h>

#include "reminders.h"

#define TURN_AT_LEAST 16

struct source {
	GSource source;
	struct timerhub_loop *timeouts;
	GMainLoop *loop;
	int waiting; /* iterations in which sockets were ready */
};

static void turn(struct source *source)
{
	source->waiting = 0;
	if (timerhub_loop_turn(source->timeouts) < 0 || !reminders_left())
		g_main_loop_quit(source->loop); /* also wakes the GLib loop */
}

static gboolean before_blocking(GSource *argument, gint *timeout)
{
	struct source *source = (struct source *)argument;

	if (++source->waiting >= TURN_AT_LEAST)
		turn(source);
	else if (timerhub_loop_settle(source->timeouts, NULL) < 0)
		g_main_loop_quit(source->loop);
	*timeout = -1;
	return FALSE;
}

/* GLib asks only if no source of a higher priority is ready, and looks at the fd itself. */
static gboolean no_socket_ready(GSource *source)
{
	((struct source *)source)->waiting = 0;
	return FALSE;
}

static gboolean readable(GSource *source, GSourceFunc callback, gpointer argument)
{
	(void)callback;
	(void)argument;
	turn((struct source *)source);
	return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
	static GSourceFuncs functions = { .prepare = before_blocking,
		                          .check = no_socket_ready,
		                          .dispatch = readable };
	struct source *source = (struct source *)g_source_new(&functions, sizeof(*source));

	source->timeouts = reminders_open(argc - 1, argv + 1);
	source->loop = g_main_loop_new(NULL, FALSE);
	g_source_add_unix_fd(&source->source, timerhub_loop_fd(source->timeouts), G_IO_IN);
	g_source_set_priority(&source->source, G_PRIORITY_DEFAULT + 1);
	g_source_attach(&source->source, NULL);
	g_main_loop_run(source->loop);
	g_main_loop_unref(source->loop);
	g_source_destroy(&source->source);
	g_source_unref(&source->source);
	return reminders_close();
}
