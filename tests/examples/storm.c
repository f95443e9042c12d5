/* SPDX-License-Identifier: MIT */
/*
 * Puts a recipe of examples/loops into the storm of storm.h. -DRECIPE names the recipe, which is
 * included below, -DSTORM_name says which sockets it gets: when the recipe creates its event loop,
 * the sockets are in it too. The C recipes share this file; storm_asio.cc and storm_asyncio.py do
 * the same for the other two languages.
 */
#include <stdbool.h>

#include "../../examples/loops/reminders.h"
#include "storm.h"

struct timerhub_loop *reminders_open(int file_count, char **files)
{
	struct timerhub_loop *loop;

	(void)file_count;
	(void)files;
	storm_must("open", timerhub_loop_open(&loop, NULL, NULL) == 0);
	storm_open(loop);
	return loop;
}

bool reminders_left(void)
{
	return storm_left();
}

int reminders_close(void)
{
	timerhub_loop_close(storm_loop);
	return storm_verdict();
}

#if defined(STORM_epoll)

#include <sys/epoll.h>

static int storm_epoll_create(int flags)
{
	const int epoll_fd = epoll_create1(flags);

	for (int i = 0; i < CONNECTIONS; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.fd = connections[i].fds[0] };
		storm_must("epoll_ctl",
		           epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event.data.fd, &event) == 0);
	}
	return epoll_fd;
}

/* The recipe has a comment where a server handles the batch: right after the wait. */
static int storm_epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout)
{
	const int count = epoll_wait(epoll_fd, events, max, timeout);

	for (int event = 0; event < count; event++)
		for (int i = 0; i < CONNECTIONS; i++)
			if (events[event].data.fd == connections[i].fds[0])
				storm_serve(&connections[i]);
	return count;
}

#define epoll_create1 storm_epoll_create
#define epoll_wait storm_epoll_wait

#elif defined(STORM_poll)

#include <poll.h>

/* The recipe polls one descriptor, and a server has its sockets in the same array. */
static int storm_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct pollfd all[CONNECTIONS + 1] = { fds[0] };

	storm_must("one descriptor", count == 1);
	for (int i = 0; i < CONNECTIONS; i++)
		all[i + 1] = (struct pollfd){ .fd = connections[i].fds[0], .events = POLLIN };
	const int ready = poll(all, CONNECTIONS + 1, timeout);
	for (int i = 0; i < CONNECTIONS; i++)
		if (all[i + 1].revents != 0)
			storm_serve(&connections[i]);
	return ready;
}

#define poll(fds, count, timeout) storm_poll(fds, count, timeout)

#elif defined(STORM_libuv)

#include <uv.h>

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)events;
	storm_must("status", status == 0);
	storm_serve(poll->data);
}

static int storm_prepare_init(uv_loop_t *loop, uv_prepare_t *prepare)
{
	static uv_poll_t polls[CONNECTIONS];

	for (int i = 0; i < CONNECTIONS; i++) {
		polls[i].data = &connections[i];
		storm_must("uv_poll",
		           uv_poll_init(loop, &polls[i], connections[i].fds[0]) == 0 &&
		                   uv_poll_start(&polls[i], UV_READABLE, on_readable) == 0);
		uv_unref((uv_handle_t *)&polls[i]); /* the recipe's own handles end the loop */
	}
	return uv_prepare_init(loop, prepare);
}

#define uv_prepare_init storm_prepare_init

#elif defined(STORM_libevent)

#include <event2/event.h>

static void on_readable(evutil_socket_t fd, short what, void *argument)
{
	(void)fd;
	(void)what;
	storm_serve(argument);
}

static struct event_base *storm_event_base(void)
{
	struct event_base *base = event_base_new();

	for (int i = 0; i < CONNECTIONS; i++)
		storm_must("event_base_once",
		           event_base_once(base, connections[i].fds[0], EV_READ, on_readable,
		                           &connections[i], NULL) == 0);
	return base;
}

#define event_base_new storm_event_base

#elif defined(STORM_libev)

#include <ev.h>

static void on_readable(struct ev_loop *loop, ev_io *watcher, int revents)
{
	(void)loop;
	(void)revents;
	storm_serve(watcher->data);
}

static struct ev_loop *storm_ev_loop(unsigned flags)
{
	static ev_io watchers[CONNECTIONS];
	struct ev_loop *loop = ev_loop_new(flags);

	for (int i = 0; i < CONNECTIONS; i++) {
		ev_io_init(&watchers[i], on_readable, connections[i].fds[0], EV_READ);
		watchers[i].data = &connections[i];
		ev_io_start(loop, &watchers[i]);
	}
	return loop;
}

#define ev_loop_new storm_ev_loop

#elif defined(STORM_glib)

#include <glib-unix.h>

static gboolean on_readable(gint fd, GIOCondition condition, gpointer argument)
{
	(void)fd;
	(void)condition;
	storm_serve(argument);
	return G_SOURCE_REMOVE;
}

static GMainLoop *storm_main_loop(GMainContext *context, gboolean is_running)
{
	for (int i = 0; i < CONNECTIONS; i++)
		g_unix_fd_add(connections[i].fds[0], G_IO_IN, on_readable, &connections[i]);
	return g_main_loop_new(context, is_running);
}

#define g_main_loop_new storm_main_loop

#elif defined(STORM_sdevent)

#include <sys/epoll.h>
#include <systemd/sd-event.h>

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *argument)
{
	(void)source;
	(void)fd;
	(void)revents;
	storm_serve(argument);
	return 0;
}

static int storm_sd_event(sd_event **ret_event)
{
	int r = sd_event_new(ret_event);

	for (int i = 0; r >= 0 && i < CONNECTIONS; i++)
		r = sd_event_add_io(*ret_event, NULL, connections[i].fds[0], EPOLLIN, on_readable,
		                    &connections[i]);
	return r;
}

#define sd_event_new storm_sd_event

#elif defined(STORM_io_uring)

#include <liburing.h>
#include <poll.h>

static int storm_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	int r = io_uring_queue_init(entries + CONNECTIONS, ring, flags);

	if (r == -EPERM || r == -ENOSYS || r == -ENOMEM) {
		puts("skipped: the kernel refuses io_uring");
		exit(77);
	}
	for (int i = 0; r == 0 && i < CONNECTIONS; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
		io_uring_prep_poll_multishot(sqe, connections[i].fds[0], POLLIN);
		io_uring_sqe_set_data(sqe, &connections[i]);
	}
	return r;
}

/* The recipe handles its completions, before the turn; a server would its own there. */
static void storm_seen(struct io_uring *ring, struct io_uring_cqe *cqe)
{
	if (io_uring_cqe_get_data(cqe) != NULL)
		storm_serve(io_uring_cqe_get_data(cqe));
	io_uring_cqe_seen(ring, cqe);
}

#define io_uring_queue_init storm_queue_init
#define io_uring_cqe_seen storm_seen

#endif

#include RECIPE
