/* SPDX-License-Identifier: MIT */
/*
 * Runs the heartbeat server under load, see clients.h. The exit status is 1 if the server closed an
 * active connection, or left a silent one open. Ctrl-C ends the run and prints the table so far.
 *
 * Usage: heartbeat_load [-n CONNECTIONS] [-d SECONDS] [-t IDLE_MS] [-s SEED] [-w TIMERHUB_TOP]
 *                       SERVER [ARGUMENT...]
 */
#include "clients.h"
#include "server_process.h"
#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define S (1000 * MS)

/* FROM_SERVER and FROM_SIGNAL are the data of epoll events, in the place of a client's index */
#define FROM_SERVER UINT64_MAX
#define FROM_SIGNAL (UINT64_MAX - 1)

enum {
	BATCH = 512,
	SPARE_FDS = 64, /* number of descriptors of a process in addition to its connections */
	FDS_MAX = 1 << 20,
	ARGUMENTS_MAX = 32,
	RAMP_S = 2,
	GRACE_S = 20, /* seconds from a client's deadline until an open client counts as missed */
	SETTLE_S = 1, /* time from the last silent client's deadline to the run's end */
};

static struct {
	uint32_t connections;
	uint64_t duration_ns;
	uint64_t idle_ms;
	uint64_t seed;
	const char *top; /* timerhub-top, for the hint to watch the server by it; or NULL */
	char **command;  /* command line that starts the server */
	int command_count;

	int epoll_fd;
	int signal_fd;
	bool interrupted;
	struct server_process server;
	struct crowd crowd;

	struct table_state shown; /* figures of the live line that was printed last */
} demo = { .connections = 10000,
	   .duration_ns = 20 * S,
	   .idle_ms = 3000,
	   .epoll_fd = -1,
	   .signal_fd = -1 };

static int failed(const char *what, int error)
{
	fprintf(stderr, "heartbeat_load: %s: %s\n", what, strerror(abs(error)));
	return -1;
}

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * S + (uint64_t)now.tv_nsec;
}

/* Each process has one end of each connection. The server inherits the limit. */
static int raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return failed("getrlimit", errno);
	const rlim_t before = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max < FDS_MAX ? limit.rlim_max : FDS_MAX;
	if (limit.rlim_cur > before && setrlimit(RLIMIT_NOFILE, &limit) < 0)
		limit.rlim_cur = before;
	printf("file limit: %" PRIu64 ", was %" PRIu64 "\n", (uint64_t)limit.rlim_cur,
	       (uint64_t)before);
	if (limit.rlim_cur <= SPARE_FDS)
		return failed("file limit", EMFILE);
	if (demo.connections > limit.rlim_cur - SPARE_FDS) {
		demo.connections = (uint32_t)(limit.rlim_cur - SPARE_FDS);
		printf("it allows %" PRIu32 " connections\n", demo.connections);
	}
	return 0;
}

static int start_server(void)
{
	char idle[24], port[] = "0", status[] = "500";
	char port_flag[] = "-p", idle_flag[] = "-t", status_flag[] = "-s";
	char *options[] = { port_flag, port, idle_flag, idle, status_flag, status, NULL };
	char *argv[ARGUMENTS_MAX + 7];

	snprintf(idle, sizeof(idle), "%" PRIu64, demo.idle_ms);
	memcpy(argv, demo.command, (size_t)demo.command_count * sizeof(*argv));
	memcpy(argv + demo.command_count, options, sizeof(options));
	const int r = server_start(&demo.server, argv);
	return r == 0 ? 0 : failed(argv[0], r);
}

static int watch(int fd, uint64_t data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = data };

	if (epoll_ctl(demo.epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	return failed("epoll_ctl", errno);
}

static int open_loop(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return failed("sigprocmask", errno);
	demo.signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	demo.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (demo.signal_fd < 0 || demo.epoll_fd < 0)
		return failed("epoll or signalfd", errno);
	if (watch(demo.signal_fd, FROM_SIGNAL) < 0)
		return -1;
	return watch(demo.server.pipe_fd, FROM_SERVER);
}

static int gather_crowd(void)
{
	const uint64_t now_ns = clock_now();
	const struct crowd_plan plan = {
		.clients = demo.connections,
		.port = demo.server.port,
		.seed = demo.seed,
		.idle_ns = demo.idle_ms * MS,
		.grace_ns = GRACE_S * S,
		.start_ns = now_ns,
		.ramp_ns = RAMP_S * S,
		.silent_by_ns = now_ns + demo.duration_ns - SETTLE_S * S - demo.idle_ms * MS,
	};
	const int r = crowd_open(&demo.crowd, &plan, demo.epoll_fd);

	printf("the server closes each of %" PRIu32 " connections after %" PRIu64
	       " ms of silence\n",
	       demo.connections, demo.idle_ms);
	printf("seed %" PRIu64 "\n", demo.seed);
	printf("the server is process %d\n", (int)demo.server.pid);
	if (demo.top)
		printf("to see its timeouts in another terminal: %s %d\n", demo.top,
		       (int)demo.server.pid);
	fflush(stdout);
	return r == 0 ? 0 : failed("crowd", r);
}

static struct table_state state_now(uint64_t now_ns)
{
	return (struct table_state){ .now_ns = now_ns,
		                     .tally = &demo.crowd.tally,
		                     .server = demo.server.last,
		                     .heartbeats = demo.crowd.tally.heartbeats };
}

static void show_progress(uint64_t now_ns)
{
	const uint64_t every_ns = isatty(STDOUT_FILENO) ? S / 2 : 2 * S;
	const struct table_state now = state_now(now_ns);

	if (now_ns - demo.shown.now_ns < every_ns)
		return;
	table_live(&demo.shown, &now, demo.crowd.plan.start_ns);
	demo.shown = now;
}

static bool over(uint64_t now_ns)
{
	if (demo.interrupted || demo.server.ended)
		return true;
	if (now_ns < demo.crowd.plan.start_ns + demo.duration_ns)
		return false;
	return crowd_waiting(&demo.crowd, now_ns) == 0;
}

static void handle(const struct epoll_event *event)
{
	if (event->data.u64 == FROM_SIGNAL)
		demo.interrupted = true;
	else if (event->data.u64 == FROM_SERVER)
		server_hear(&demo.server);
	else
		crowd_hear(&demo.crowd, event->data.u64);
}

/* Handle up to BATCH epoll events of the next timeout_ms. Returns their number, or -1. */
static int hear(int timeout_ms)
{
	struct epoll_event events[BATCH];
	const int count = epoll_wait(demo.epoll_fd, events, BATCH, timeout_ms);

	if (count < 0)
		return errno == EINTR ? 0 : failed("epoll_wait", errno);
	for (int i = 0; i < count; i++)
		handle(&events[i]);
	return count;
}

/* Run the clients to the end. Each wait lasts at most a millisecond, the calendar's resolution. */
static int run(void)
{
	uint64_t now_ns = clock_now();
	int heard = 0;

	demo.shown = state_now(demo.crowd.plan.start_ns);
	while (!over(now_ns) && heard >= 0) {
		heard = hear(1);
		now_ns = clock_now();
		crowd_advance(&demo.crowd, now_ns);
		show_progress(now_ns);
	}
	/* What the server closed in time before it ended does not count as missed. */
	do
		heard = heard < 0 ? heard : hear(0);
	while (heard == BATCH);
	crowd_finish(&demo.crowd, now_ns);
	return heard < 0 ? heard : 0;
}

/* Print the result of the run. Returns 0 if the server made no mistake and the run was complete. */
static int verdict(void)
{
	const struct crowd_tally *tally = &demo.crowd.tally;
	const bool complete = tally->connected == demo.connections;

	if (tally->closed_wrongly > 0 || tally->missed > 0) {
		puts("FAILED: connections were closed wrongly or missed");
		return 1;
	}
	if (!complete && !demo.interrupted) {
		puts("FAILED: not all connections could be made");
		return 1;
	}
	puts("all closed connections were silent, all silent connections were closed in time");
	return 0;
}

static int run_demo(void)
{
	if (raise_file_limit() < 0 || start_server() < 0 || open_loop() < 0 || gather_crowd() < 0 ||
	    run() < 0)
		return 1;
	const double ran_s = (double)(clock_now() - demo.crowd.plan.start_ns) / (double)S;
	const bool ended_early = demo.server.ended;
	const int r = server_stop(&demo.server);
	/* The newline at the beginning ends the line that a terminal shows. */
	printf("\n%s after %.1f s\n", demo.interrupted ? "interrupted" : "finished", ran_s);
	table_print(&demo.crowd.tally, &demo.crowd.plan, &demo.server.last);
	if (r == 0 && !ended_early)
		return verdict();
	puts("FAILED: the server ended by itself, or not as it should");
	return 1;
}

static uint64_t number(const char *text, uint64_t min, uint64_t max)
{
	char *end;

	errno = 0;
	const unsigned long long value = strtoull(text, &end, 10);
	if (errno == 0 && end != text && *end == '\0' && value >= min && value <= max)
		return value;
	fprintf(stderr, "heartbeat_load: not a number from %" PRIu64 " to %" PRIu64 ": %s\n", min,
	        max, text);
	exit(2);
}

static void parse(int argc, char **argv)
{
	int option;

	demo.seed = clock_now();
	while ((option = getopt(argc, argv, "+n:d:t:s:w:")) >= 0) {
		if (option == 'n')
			demo.connections = (uint32_t)number(optarg, 1, FDS_MAX);
		else if (option == 'd')
			demo.duration_ns = number(optarg, 1, 100000) * S;
		else if (option == 't')
			demo.idle_ms = number(optarg, 100, 60000);
		else if (option == 's')
			demo.seed = number(optarg, 0, UINT64_MAX);
		else if (option == 'w')
			demo.top = optarg;
		else
			exit(2);
	}
	demo.command = argv + optind;
	demo.command_count = argc - optind;
	const uint64_t shortest_ns = demo.idle_ms * MS + (RAMP_S + SETTLE_S + 1) * S;
	if (demo.command_count > 0 && demo.command_count <= ARGUMENTS_MAX &&
	    demo.duration_ns >= shortest_ns)
		return;
	fprintf(stderr,
	        "usage: heartbeat_load [-n CONNECTIONS] [-d SECONDS] [-t IDLE_MS] [-s SEED] "
	        "[-w TIMERHUB_TOP] SERVER\n"
	        "SECONDS must be at least %" PRIu64 ", so that each silent client can time out\n",
	        (shortest_ns + S - 1) / S);
	exit(2);
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	demo.server.pipe_fd = -1;
	const int status = run_demo();
	server_close(&demo.server);
	crowd_close(&demo.crowd);
	if (demo.epoll_fd >= 0)
		close(demo.epoll_fd);
	if (demo.signal_fd >= 0)
		close(demo.signal_fd);
	return status;
}
