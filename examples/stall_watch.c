/* SPDX-License-Identifier: MIT */
/*
 * Watches an event loop from another thread, and says why it does not come: a watchdog that any
 * program can have. timerhub-late(7) explains it.
 *
 * The watchdog is a kept timer on a queue of its own, which the loop moves on in each turn. Nothing
 * happens while the loop comes. If it does not come for LIMIT_NS, the timer expires, and the thread
 * that waits on that queue tells what the loop's thread does: the callback that runs, if one does;
 * whether the thread computes or waits; and the thread's stack, where the C library is glibc.
 *
 * This program's loop gets stuck three times: in a timeout's callback that computes, in a timer's
 * callback that blocks, and in a handler of its own. It exits with 0 if the watchdog has told each
 * of them rightly.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <timerhub_loop.h>

#ifdef __GLIBC__
#include <execinfo.h>
#endif

#define MS UINT64_C(1000000)
#define LIMIT_NS (100 * MS) /* the loop is stuck if it does not come for so long */
#define LOOK_NS (500 * MS)  /* how long the watchdog looks whether a thread uses a CPU */
#define STACK_SIGNAL (SIGRTMIN + 3)

/* ---- the watchdog ---- */

struct watch {
	struct timerhub *hub;
	struct timerhub_queue *queue;
	timerhub_timer timer;       /* expires when the loop has not come for LIMIT_NS */
	struct timerhub_loop *loop; /* the loop that is watched, and its thread */
	pthread_t loop_thread, watcher;
	void (*tell)(const char *callback, bool computes); /* what to do about a stall */
};

static void sleep_ns(uint64_t ns)
{
	struct timespec left = { .tv_nsec = (long)ns };

	while (nanosleep(&left, &left) < 0 && errno == EINTR) {
	}
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	return clock_gettime(clock, &now) < 0
	               ? 0
	               : (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

/*
 * Tells whether the loop's thread computes. A thread that is blocked uses no CPU time at all. Nor
 * does one that waits for a CPU, but that seldom takes as long as LOOK_NS.
 */
static bool watch_computes(const struct watch *watch)
{
	clockid_t clock;
	uint64_t used_ns;

	if (pthread_getcpuclockid(watch->loop_thread, &clock) != 0)
		return false;
	used_ns = clock_ns(clock);
	for (uint64_t looked_ns = 0; looked_ns < LOOK_NS; looked_ns += 10 * MS) {
		sleep_ns(10 * MS);
		if (clock_ns(clock) > used_ns + MS / 10)
			return true;
	}
	return false;
}

/* What the hub tells of a loop. */
struct loop_state {
	const struct timerhub_loop *loop;
	timerhub_any_fn *fn;
};

static int find_loop(const struct timerhub_running *running, void *context)
{
	struct loop_state *state = context;

	if (running->loop != state->loop)
		return 0;
	state->fn = running->fn;
	return 1;
}

/* Returns the name of a callback, or NULL if the loop is in none. */
static const char *name_of(timerhub_any_fn *fn)
{
	union {
		timerhub_any_fn *fn;
		void *address;
	} at = { .fn = fn };
	Dl_info info;

	if (!fn)
		return NULL;
	return dladdr(at.address, &info) != 0 && info.dli_sname ? info.dli_sname : "a function";
}

#ifdef __GLIBC__
/* Runs on the stuck thread, and writes the names of the functions that it is in. */
static void write_stack(int signal)
{
	void *frames[64];
	int saved = errno;

	(void)signal;
	backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
	errno = saved;
}
#endif

static void *watch_run(void *arg)
{
	struct watch *watch = arg;
	struct timerhub_event event;

	/* It ends when the queue is stopped. */
	while (timerhub_wait(watch->queue, &event, 1, UINT64_MAX) == 1) {
		struct loop_state state = { .loop = watch->loop };
		bool computes = watch_computes(watch);
		uint64_t left_ns = 0;

		/* If the timer has a deadline again, the loop has moved it: the stall is over. */
		if (timerhub_remaining(watch->hub, watch->timer, &left_ns) == 0 &&
		    left_ns != UINT64_MAX)
			continue;
		(void)timerhub_each_running(watch->hub, find_loop, &state);
#ifdef __GLIBC__
		(void)pthread_kill(watch->loop_thread, STACK_SIGNAL);
#endif
		watch->tell(name_of(state.fn), computes);
	}
	return NULL;
}

/* Begins to watch a loop of the calling thread. Returns 0 or a negative errno. */
static int watch_open(struct watch *watch)
{
	const struct timerhub_spec spec = { .size = sizeof(spec),
		                            .flags = TIMERHUB_KEEP,
		                            .expires_ns = LIMIT_NS };
	int result = timerhub_queue_open(watch->hub, &watch->queue, NULL);

#ifdef __GLIBC__
	struct sigaction action = { .sa_handler = write_stack, .sa_flags = SA_RESTART };
	void *frame;

	(void)backtrace(&frame, 1); /* its first call allocates, which a handler must not */
	if (result == 0 && sigaction(STACK_SIGNAL, &action, NULL) < 0)
		result = -errno;
#endif
	watch->loop_thread = pthread_self();
	if (result == 0)
		result = timerhub_arm(watch->queue, &spec, &watch->timer);
	if (result == 0)
		result = -pthread_create(&watch->watcher, NULL, watch_run, watch);
	return result;
}

/* The loop calls this in each turn, to show the watchdog that it is not stuck. */
static void watch_feed(const struct watch *watch)
{
	(void)timerhub_rearm(watch->hub, watch->timer, LIMIT_NS, 0);
}

static void watch_close(struct watch *watch)
{
	timerhub_queue_stop(watch->queue);
	(void)pthread_join(watch->watcher, NULL);
	timerhub_queue_close(watch->queue);
}

/* ---- three faults: each lasts until the watchdog has told it ---- */

static atomic_uint told; /* how many stalls were told */
static unsigned wrong;   /* how many of them wrongly */
/* What the watchdog must tell of the latest fault. `planted` is the number of faults so far. */
static _Atomic(const char *) expected_callback;
static atomic_bool expected_computes;
static atomic_uint planted;

static void tell(const char *callback, bool computes)
{
	const char *expected;

	printf("the loop has not come for 100 ms: it %s, %s%s\n",
	       computes ? "computes" : "is blocked or waits for a CPU",
	       callback ? "in " : "outside any callback", callback ? callback : "");
	if (atomic_load(&planted) == atomic_load(&told))
		return; /* a stall that nobody planted: the machine is busy */
	expected = atomic_load(&expected_callback);
	wrong += computes != atomic_load(&expected_computes) ||
	         (callback && expected ? strcmp(callback, expected) != 0 : callback != expected);
	atomic_fetch_add(&told, 1);
}

static void plant(const char *callback, bool computes)
{
	atomic_store(&expected_callback, callback);
	atomic_store(&expected_computes, computes);
	atomic_fetch_add(&planted, 1);
}

/* They are not static, so that dladdr(3) finds their names in a program linked with -rdynamic. */
void compute_report(struct timerhub_loop *loop, struct timerhub_timeout *timeout);
void ask_slow_server(const struct timerhub_event *event);

void compute_report(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop;
	(void)timeout;
	plant("compute_report", true);
	while (atomic_load(&told) < 1) {
	}
}

void ask_slow_server(const struct timerhub_event *event)
{
	(void)event;
	plant("ask_slow_server", false);
	while (atomic_load(&told) < 2)
		sleep_ns(900 * MS);
}

/* A handler of the loop's own, of which the library knows nothing. */
static void handle_socket(void)
{
	plant(NULL, false);
	while (atomic_load(&told) < 3)
		sleep_ns(900 * MS);
}

/* ---- an event loop ---- */

static int run_loop(struct watch *watch)
{
	struct epoll_event ready = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int result = 0;

	if (epoll_fd < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timerhub_loop_fd(watch->loop), &ready) < 0)
		return -errno;
	while (result >= 0 && atomic_load(&told) < 3) {
		watch_feed(watch);
		if (atomic_load(&told) == 2)
			handle_socket();
		result = timerhub_loop_turn(watch->loop);
		/* The loop comes at least twice in LIMIT_NS, although nothing may be due. */
		(void)epoll_wait(epoll_fd, &ready, 1, LIMIT_NS / MS / 2);
	}
	(void)close(epoll_fd);
	return result;
}

static int open_all(struct watch *watch, struct timerhub_timeout *timeout)
{
	const struct timerhub_config config = { .size = sizeof(config),
		                                .flags = TIMERHUB_OBSERVABLE };
	const struct timerhub_loop_config loop_config = { .size = sizeof(loop_config),
		                                          .flags = TIMERHUB_LOOP_OBSERVABLE };
	int result = timerhub_open(&watch->hub, &config);

	if (result == 0)
		result = timerhub_loop_open(&watch->loop, watch->hub, &loop_config);
	if (result == 0)
		result = timerhub_timeout_add(watch->loop, timeout, compute_report);
	if (result == 0)
		result = timerhub_timeout_set(watch->loop, timeout, MS);
	if (result == 0)
		result = timerhub_call(timerhub_loop_queue(watch->loop), 400 * MS, ask_slow_server,
		                       NULL, NULL);
	return result == 0 ? watch_open(watch) : result;
}

int main(void)
{
	static struct timerhub_timeout timeout;
	struct watch watch = { .tell = tell };
	int result = open_all(&watch, &timeout);

	if (result == 0) {
		result = run_loop(&watch);
		watch_close(&watch);
	}
	timerhub_loop_close(watch.loop);
	timerhub_close(watch.hub);
	if (result < 0)
		fprintf(stderr, "stall_watch: %s\n", strerror(-result));
	return result < 0 || wrong > 0;
}
