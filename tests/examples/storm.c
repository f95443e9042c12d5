/* SPDX-License-Identifier: MIT */
/*
 * Puts a recipe of examples/loops into the storm of storm.h. -DRECIPE names the recipe, which is
 * included below, -DSTORM_name says which sockets it gets: when the recipe creates its event loop,
 * the sockets are in it too. The C recipes share this file; storm_asio.cc and storm_asyncio.py do
 * the same for the other two languages.
 *
 * Usage: storm_name [many | interrupted | ready | nested | break | break_in_turn]
 *
 * many         The process is stopped in its first wait; the timeouts fall due and the data comes
 *              in the meantime, to so many sockets that a recipe with a fixed limit leaves some
 *              out. io_uring's ring has IORING_SETUP_DEFER_TASKRUN.
 * interrupted  The same, with few sockets; the wait ends with EINTR.
 * ready        All sockets stay ready for ever. A timer of the queue must come, and then a timeout
 *              before each socket was served ROUNDS_MAX times more.
 * nested       The callback of a timeout runs the event loop until all sockets are served.
 * break        The first handler ends the event loop; in break_in_turn a timeout's callback does.
 */
#include <stdbool.h>

#include "../../examples/loops/reminders.h"
#include "storm.h"

#define ITERATIONS_MAX 1000 /* of a nested loop, which may be refused */
#define ROUNDS_MAX 40

/* More than the recipe would serve with a fixed limit. */
#if defined(STORM_io_uring)
#define MANY 6000
#elif defined(STORM_sdevent)
#define MANY 4200
#define SD_EVENT_BATCH 64
#else
#define MANY 1000
#endif

static const char *mode = "";
static struct timerhub *hub;
static struct timerhub_timeout due;
static int to_come; /* callbacks of `due` */
static int served_at_timer;

/* NULL if the recipe's library cannot do this */
static void (*run_nested)(void);
static void (*break_loop)(void);

static bool is_mode(const char *name)
{
	return strcmp(mode, name) == 0;
}

static void on_timer(const struct timerhub_event *event)
{
	(void)event;
	served_at_timer = served;
	storm_must("set", timerhub_timeout_set_at(storm_loop, &due, 1) == 0);
}

static void on_due(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop;
	(void)timeout;
	to_come--;
	if (is_mode("ready") && served - served_at_timer > ROUNDS_MAX * connection_count) {
		printf("ready sockets were served %d times before a timeout\n",
		       served - served_at_timer);
		exit(1);
	}
	if (to_come == 0)
		return;
	if (is_mode("break_in_turn")) {
		break_loop();
		return;
	}
	storm_send();
	for (int i = 0; i < ITERATIONS_MAX && served < connection_count; i++)
		run_nested();
	storm_must("a nested loop", served == connection_count);
}

static void handle(struct connection *one)
{
	if (!is_mode("ready")) {
		storm_serve(one);
		if (is_mode("break") && served == 1)
			break_loop();
		if (served == connection_count) /* a last turn */
			storm_must("set", timerhub_timeout_set_at(storm_loop, &due, 1) == 0);
	} else if (served++ == 0) {
		storm_must("call", timerhub_call(timerhub_loop_queue(storm_loop), 0, on_timer, NULL,
		                                 NULL) == 0);
	}
}

struct timerhub_loop *reminders_open(int file_count, char **files)
{
	struct timerhub_loop *loop;

	if (file_count > 0)
		mode = files[0];
	if (is_mode("many"))
		connection_count = MANY;
	if (is_mode("ready"))
		storm_must("hub", timerhub_open(&hub, NULL) == 0);
	storm_must("open", timerhub_loop_open(&loop, hub, NULL) == 0);
	storm_open(loop);
	storm_must("add", timerhub_timeout_add(loop, &due, on_due) == 0);
	const bool has_due = is_mode("nested") || is_mode("break_in_turn");
	to_come = has_due ? 2 : 1;
	if (has_due)
		storm_must("set", timerhub_timeout_set_at(loop, &due, 1) == 0);
	if (!is_mode("many") && !is_mode("interrupted") && !is_mode("nested"))
		storm_send();
	return loop;
}

bool reminders_left(void)
{
	return to_come > 0;
}

int reminders_close(void)
{
	const bool is_early = reminders_left();

	timerhub_loop_close(storm_loop);
	timerhub_close(hub);
	if (is_mode("break") || is_mode("break_in_turn"))
		return !is_early;
	if (is_early)
		puts("the event loop ended early");
	return is_early || (!is_mode("ready") && storm_verdict() != 0);
}

/*
 * Each wait of the recipe begins with this. At the first, all timeouts fall due and then data
 * comes, as in a process that was stopped. Returns true if the wait must fail with EINTR.
 */
static inline __attribute__((unused)) bool is_interrupted(void)
{
	static bool has_waited;

	if (has_waited || !(is_mode("many") || is_mode("interrupted")))
		return false;
	has_waited = true;
	storm_all_due(NULL);
	if (is_mode("many")) /* so that the loop's fd is the first that is ready */
		storm_must("settle", timerhub_loop_settle(storm_loop, NULL) == 0);
	storm_send();
	errno = EINTR;
	return is_mode("interrupted");
}

#if defined(STORM_epoll)

#include <sys/epoll.h>

static int descriptors; /* the recipe's */

static int storm_epoll_create(int flags)
{
	const int epoll_fd = epoll_create1(flags);

	for (int i = 0; i < connection_count; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &connections[i] };
		storm_must("epoll_ctl",
		           epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connections[i].fd, &event) == 0);
	}
	descriptors += connection_count;
	return epoll_fd;
}

/* The recipe has a comment where a server handles the batch: right after the wait. */
static int storm_epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout)
{
	const int count = is_interrupted() ? -1 : epoll_wait(epoll_fd, events, max, timeout);

	for (int i = 0; i < count; i++) {
		struct connection *one = events[i].data.ptr; /* or the recipe's fd */
		if (one >= connections && one < connections + CONNECTIONS_MAX)
			handle(one);
	}
	return count;
}

#define epoll_create1 storm_epoll_create
#define epoll_wait storm_epoll_wait

#elif defined(STORM_poll)

#include <poll.h>

/* Replaces the recipe's poll(). Adds the sockets, which a server would have in the same array. */
static int storm_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	static struct pollfd all[CONNECTIONS_MAX + 1];

	storm_must("one descriptor", count == 1);
	all[0] = fds[0];
	for (int i = 0; i < connection_count; i++)
		all[i + 1] = (struct pollfd){ .fd = connections[i].fd, .events = POLLIN };
	if (is_interrupted())
		return -1;
	const int ready = poll(all, (nfds_t)connection_count + 1, timeout);
	for (int i = 0; i < connection_count; i++)
		if (all[i + 1].revents != 0)
			handle(&connections[i]);
	return ready;
}

#define poll(fds, count, timeout) storm_poll(fds, count, timeout)

#elif defined(STORM_libuv)

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <uv.h>

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)events;
	storm_must("status", status == 0);
	handle(poll->data);
}

/*
 * Replaces libuv's wait. While its array of 1,024 events is full, libuv waits again, up to 48
 * times. In the mode many, each wait returns 8 sockets, and fills the array with events that libuv
 * skips. So more than 384 sockets reach libuv's limit.
 */
int epoll_pwait(int epoll_fd, struct epoll_event *events, int max, int timeout,
                const sigset_t *mask)
{
	const int few = is_mode("many") ? 8 : max;

	is_interrupted(); /* libuv itself waits again */
	const long count = syscall(SYS_epoll_pwait, epoll_fd, events, few, timeout, mask, 8);

	storm_must("libuv's array", max == 1024);
	if (count < 8 || !is_mode("many"))
		return (int)count;
	for (int i = few; i < max; i++)
		events[i] = (struct epoll_event){ .data.fd = -1 };
	return max;
}

/* The wait of a libuv before 1.45 */
int epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout)
{
	return epoll_pwait(epoll_fd, events, max, timeout, NULL);
}

static int storm_prepare_init(uv_loop_t *loop, uv_prepare_t *prepare)
{
	static uv_poll_t polls[CONNECTIONS_MAX];

	for (int i = 0; i < connection_count; i++) {
		polls[i].data = &connections[i];
		storm_must("uv_poll",
		           uv_poll_init(loop, &polls[i], connections[i].fd) == 0 &&
		                   uv_poll_start(&polls[i], UV_READABLE, on_readable) == 0);
		uv_unref((uv_handle_t *)&polls[i]); /* the recipe's own handles end the loop */
	}
	return uv_prepare_init(loop, prepare);
}

#define uv_prepare_init storm_prepare_init

#elif defined(STORM_libevent)

#include <event2/event.h>

static struct event_base *base_of_recipe;

static void break_base(void)
{
	event_base_loopbreak(base_of_recipe);
}

static void on_readable(evutil_socket_t fd, short what, void *argument)
{
	(void)fd;
	(void)what;
	handle(argument);
}

static struct event_base *storm_event_base(void)
{
	static struct event *events[CONNECTIONS_MAX];
	struct event_base *base = event_base_new();

	base_of_recipe = base;
	break_loop = break_base;
	for (int i = 0; i < connection_count; i++) {
		events[i] = event_new(base, connections[i].fd, EV_READ | EV_PERSIST, on_readable,
		                      &connections[i]);
		storm_must("event_add", events[i] != NULL && event_add(events[i], NULL) == 0);
	}
	return base;
}

#define event_base_new storm_event_base

#elif defined(STORM_libev)

#include <ev.h>

static struct ev_loop *ev_loop_of_recipe;

static void run_ev_once(void)
{
	ev_run(ev_loop_of_recipe, EVRUN_ONCE);
}

static void on_readable(struct ev_loop *loop, ev_io *watcher, int revents)
{
	(void)loop;
	(void)revents;
	handle(watcher->data);
}

static struct ev_loop *storm_ev_loop(unsigned flags)
{
	static ev_io watchers[CONNECTIONS_MAX];
	struct ev_loop *loop = ev_loop_new(flags);

	for (int i = 0; i < connection_count; i++) {
		ev_io_init(&watchers[i], on_readable, connections[i].fd, EV_READ);
		watchers[i].data = &connections[i];
		ev_io_start(loop, &watchers[i]);
	}
	ev_loop_of_recipe = loop;
	run_nested = run_ev_once;
	return loop;
}

#define ev_loop_new storm_ev_loop

#elif defined(STORM_glib)

#include <glib-unix.h>

static void iterate_context(void)
{
	g_main_context_iteration(NULL, TRUE);
}

static gint storm_g_poll(GPollFD *fds, guint count, gint timeout)
{
	return is_interrupted() ? -1 : g_poll(fds, count, timeout);
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer argument)
{
	(void)fd;
	(void)condition;
	handle(argument);
	return G_SOURCE_CONTINUE;
}

static GMainLoop *storm_main_loop(GMainContext *context, gboolean is_running)
{
	for (int i = 0; i < connection_count; i++)
		g_unix_fd_add(connections[i].fd, G_IO_IN, on_readable, &connections[i]);
	run_nested = iterate_context;
	g_main_context_set_poll_func(context, storm_g_poll);
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
	handle(argument);
	return 0;
}

static int sources; /* the recipe's */

static int storm_sd_event(sd_event **ret_event)
{
	int r = sd_event_new(ret_event);

	sources = connection_count;
	for (int i = 0; r >= 0 && i < connection_count; i++)
		r = sd_event_add_io(*ret_event, NULL, connections[i].fd, EPOLLIN, on_readable,
		                    &connections[i]);
	return r;
}

#define sd_event_new storm_sd_event

#elif defined(STORM_io_uring)

#include <liburing.h>
#include <poll.h>

static int requests; /* the recipe's */

static int storm_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	const bool is_deferred = is_mode("many");
	int r;

	if (is_deferred)
		flags |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
	r = io_uring_queue_init(entries + (unsigned)connection_count, ring, flags);
	if (r == -EINVAL && is_deferred) {
		puts("skipped: the kernel does not know IORING_SETUP_DEFER_TASKRUN");
		exit(77);
	}
	if (r == -EPERM || r == -ENOSYS || r == -ENOMEM) {
		puts("skipped: the kernel refuses io_uring");
		exit(77);
	}
	requests += connection_count;
	for (int i = 0; r == 0 && i < connection_count; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
		io_uring_prep_poll_multishot(sqe, connections[i].fd, POLLIN);
		io_uring_sqe_set_data(sqe, &connections[i]);
	}
	return r;
}

/* Handles a socket's completion where a server would: behind the wait, and before the turn. */
static void storm_seen(struct io_uring *ring, struct io_uring_cqe *cqe)
{
	if (io_uring_cqe_get_data(cqe) != NULL)
		handle(io_uring_cqe_get_data(cqe));
	io_uring_cqe_seen(ring, cqe);
}

static int storm_submit_and_wait(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned count,
                                 struct __kernel_timespec *timeout, sigset_t *mask)
{
	storm_must("submit", io_uring_submit(ring) >= 0);
	return is_interrupted() ? -EINTR
	                        : io_uring_submit_and_wait_timeout(ring, cqe, count, timeout, mask);
}

#define io_uring_submit_and_wait_timeout storm_submit_and_wait
#define io_uring_queue_init storm_queue_init
#define io_uring_cqe_seen storm_seen

#endif

#if defined(STORM_libevent) || defined(STORM_libev) || defined(STORM_sdevent)

#include <sys/epoll.h>

/* Replaces the library's wait. sd-event waits before each handler, so a few events suffice. */
int epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout)
{
#ifdef STORM_sdevent
	max = max < SD_EVENT_BATCH ? max : SD_EVENT_BATCH;
#endif
	return is_interrupted() ? -1 : epoll_pwait(epoll_fd, events, max, timeout, NULL);
}

#endif

#include RECIPE
