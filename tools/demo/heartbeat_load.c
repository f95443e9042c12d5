/* SPDX-License-Identifier: MIT */
/*
 * Puts the heartbeat server of examples/ under load, and judges it.
 *
 * The clients connect during two seconds and send heartbeats at random intervals of at most half
 * the timeout; a tenth of them falls silent at random times. With its last message the server tells
 * a client its deadline and when it was closed, both on CLOCK_MONOTONIC, so the judgement needs no
 * assumption of how long anything takes. This program does not use timerhub, which it tests: it
 * looks at the times of all heartbeats every millisecond.
 *
 * Usage: heartbeat_load [-n CONNECTIONS] [-d SECONDS] [-t IDLE_MS] [-w TIMERHUB_TOP]
 *                       SERVER [ARGUMENT...]
 *
 * Exit status 1 if the server closed an active connection or left a silent one open. Ctrl-C ends
 * the run and prints the table so far.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define FROM_SERVER UINT32_MAX /* data of an epoll event, in place of a client's number */

enum {
	BATCH = 512,
	SPARE_FDS = 64,
	CLIENTS_MAX = 20000, /* an address has 28,232 ports for its clients */
	ARGUMENTS_MAX = 32,
	RAMP_S = 2,   /* until all clients have begun to connect */
	GRACE_S = 20, /* from a client's deadline until it counts as missed */
	SETTLE_S = 1, /* from the last silent client's deadline to the run's end */
	SILENT_ONE_IN = 10,
};

struct client {
	int fd; /* -1: not connected, or closed */
	bool silent;
	uint64_t silent_from_ns;   /* 0: never */
	uint64_t previous_sent_ns; /* the heartbeat before the last */
	uint64_t last_sent_ns;     /* just before the last send(), or connect() */
	uint64_t last_gone_ns;     /* just after it, when the server had the data */
	uint64_t deadline_ns;      /* as the server's last message says; 0: there was none */
	uint64_t closed_ns;        /* the same */
};

static uint32_t connections = 10000;
static uint64_t duration_ns = 20 * S, idle_ns = 3 * S, start_ns;
static const char *top; /* timerhub-top, for the hint to watch the server; or NULL */

static struct client *clients;
static uint32_t begun;                 /* how many have tried to connect */
static uint64_t beats_ns[CLIENTS_MAX]; /* when each client sends its next heartbeat */
static int epoll_fd;
static volatile sig_atomic_t interrupted;

static pid_t server;
static FILE *server_out; /* without a buffer, so that epoll knows of each line */
static bool server_ended;
static unsigned server_port;
static char figures[1024]; /* the last line with its figures */

static uint64_t heartbeats, *lateness_ns;
static uint32_t connected, refused, fell_silent, closed, closed_silent, closed_wrongly, missed;
static uint32_t closed_our_pause; /* of clients that this process kept from sending in time */

_Noreturn static void fail(const char *what)
{
	perror(what);
	if (server > 0)
		kill(server, SIGKILL);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * S + (uint64_t)time.tv_nsec;
}

/* Returns a random number in [low, high). */
static uint64_t pick(uint64_t low, uint64_t high)
{
	return high > low ? low + (uint64_t)(drand48() * (double)(high - low)) : low;
}

static void watch(int fd, uint32_t number)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = number };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		fail("epoll_ctl");
}

/* ---- the server ---- */

/* In a process group of its own, so that Ctrl-C reaches only this program, which then ends it. */
_Noreturn static void become_server(char **argv, int out, pid_t parent)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0)
		execvp(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

static uint64_t server_figure(const char *key)
{
	const char *found = strstr(figures, key);

	return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static void server_hear(void)
{
	char line[sizeof(figures)];
	const char *port;

	if (!fgets(line, sizeof(line), server_out)) {
		server_ended = true;
		return;
	}
	port = strstr(line, "127.0.0.1:");
	if (server_port == 0 && port)
		server_port = (unsigned)strtoul(port + strlen("127.0.0.1:"), NULL, 10);
	else
		snprintf(figures, sizeof(figures), "%s", line);
}

static void server_start(char **command, int words)
{
	char idle[24], port_option[] = "-p", port[] = "0", idle_option[] = "-t";
	char every_option[] = "-s", every[] = "500", *argv[ARGUMENTS_MAX + 7];
	char *const options[] = { port_option, port, idle_option, idle, every_option, every, NULL };
	const pid_t self = getpid();
	int fds[2];

	snprintf(idle, sizeof(idle), "%" PRIu64, idle_ns / MS);
	memcpy(argv, command, (size_t)words * sizeof(*argv));
	memcpy(argv + words, options, sizeof(options));
	if (pipe2(fds, O_CLOEXEC) < 0 || (server = fork()) < 0)
		fail("fork");
	if (server == 0)
		become_server(argv, fds[1], self);
	close(fds[1]);
	server_out = fdopen(fds[0], "r");
	if (!server_out)
		fail("fdopen");
	setbuf(server_out, NULL);
	while (server_port == 0 && !server_ended)
		server_hear();
	if (server_port == 0) {
		errno = EPROTO;
		fail(argv[0]);
	}
}

/* Ends the server after it has printed its last figures. Returns whether it ended as it should. */
static bool server_stop(void)
{
	int status = -1;

	kill(server, SIGTERM);
	while (!server_ended)
		server_hear();
	while (waitpid(server, &status, 0) < 0 && errno == EINTR) {
	}
	return status == 0;
}

/* ---- the clients ---- */

/* Of the longest interval half the timeout is left, so only a stalled heartbeat comes too late. */
static void plan_beat(uint32_t number, uint64_t now_ns)
{
	beats_ns[number] = now_ns + pick(idle_ns / 15, idle_ns / 2);
}

/* Returns a socket that connects to the server, or -1. */
static int connect_socket(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)server_port) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 &&
	    (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS))
		return fd;
	if (refused++ == 0)
		perror("a client cannot connect");
	if (fd >= 0)
		close(fd);
	return -1;
}

static void client_connect(uint32_t number)
{
	struct client *client = &clients[number];
	const uint64_t now_ns = now();

	client->fd = connect_socket();
	beats_ns[number] = UINT64_MAX;
	if (client->fd < 0)
		return;
	watch(client->fd, number);
	client->last_sent_ns = client->previous_sent_ns = client->last_gone_ns = now_ns;
	if (number % SILENT_ONE_IN == 0)
		client->silent_from_ns =
			pick(now_ns + 1, start_ns + duration_ns - SETTLE_S * S - idle_ns);
	connected++;
	plan_beat(number, now_ns);
}

static bool falls_silent(struct client *client, uint64_t now_ns)
{
	if (client->silent || client->silent_from_ns == 0 || client->silent_from_ns > now_ns)
		return false;
	client->silent = true;
	fell_silent++;
	return true;
}

static void client_beat(uint32_t number)
{
	struct client *client = &clients[number];
	const uint64_t now_ns = now();

	beats_ns[number] = UINT64_MAX;
	if (client->fd < 0 || falls_silent(client, now_ns))
		return;
	/* One that cannot be sent does not count; client_hear() learns of a close. */
	if (send(client->fd, "beat...\n", 8, MSG_DONTWAIT | MSG_NOSIGNAL) == 8) {
		client->previous_sent_ns = client->last_sent_ns;
		client->last_sent_ns = now_ns;
		client->last_gone_ns = now();
		heartbeats++;
	}
	plan_beat(number, now_ns);
}

static bool overdue(const struct client *client, uint64_t now_ns)
{
	return now_ns > client->last_sent_ns + idle_ns + GRACE_S * S;
}

/*
 * The server must close a client after the deadline that it names, which must be a whole timeout
 * after the last heartbeat. This process can stall just before a send(): a heartbeat that had not
 * gone before the deadline does not count, and the one before does.
 */
static void judge(struct client *client)
{
	const uint64_t counts_ns = client->last_gone_ns < client->deadline_ns
	                                   ? client->last_sent_ns
	                                   : client->previous_sent_ns;

	(void)falls_silent(client, now());
	if (client->closed_ns < client->deadline_ns || client->deadline_ns < counts_ns + idle_ns) {
		closed_wrongly++;
		return;
	}
	lateness_ns[closed++] = client->closed_ns - client->deadline_ns;
	if (!client->silent)
		closed_our_pause++;
	else if (overdue(client, client->closed_ns))
		missed++;
	else
		closed_silent++;
}

static void client_hear(struct client *client)
{
	char text[128];
	const ssize_t got = recv(client->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0) { /* over loopback the last message comes in one piece */
		text[got] = '\0';
		sscanf(text, "idle %" SCNu64 " %" SCNu64, &client->deadline_ns, &client->closed_ns);
		return;
	}
	judge(client);
	close(client->fd);
	client->fd = -1;
}

/* ---- the run ---- */

/* Begins the connections and sends the heartbeats that are due. */
static void advance(uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - start_ns;
	const uint32_t wanted = passed_ns >= RAMP_S * S
	                                ? connections
	                                : (uint32_t)(connections * passed_ns / (RAMP_S * S));

	while (begun < wanted)
		client_connect(begun++);
	for (uint32_t i = 0; i < begun; i++)
		if (beats_ns[i] <= now_ns)
			client_beat(i);
}

/* Handles the events of the next timeout_ms, and returns how many. */
static int hear(int timeout_ms)
{
	struct epoll_event events[BATCH];
	const int count = epoll_wait(epoll_fd, events, BATCH, timeout_ms);

	if (count < 0 && errno != EINTR)
		fail("epoll_wait");
	for (int i = 0; i < count; i++)
		if (events[i].data.u32 == FROM_SERVER)
			server_hear();
		else
			client_hear(&clients[events[i].data.u32]);
	return count;
}

/* Tells whether a client is silent, or will be, and may still be closed in time. */
static bool anybody_waits(uint64_t now_ns)
{
	for (uint32_t i = 0; i < begun; i++)
		if (clients[i].fd >= 0 && clients[i].silent_from_ns > 0 &&
		    (!clients[i].silent || !overdue(&clients[i], now_ns)))
			return true;
	return false;
}

static void run(void)
{
	uint64_t now_ns = start_ns, shown_ns = start_ns, shown = 0;

	while (!interrupted && !server_ended &&
	       (now_ns < start_ns + duration_ns || anybody_waits(now_ns))) {
		(void)hear(1);
		now_ns = now();
		advance(now_ns);
		if (now_ns - shown_ns < 2 * S)
			continue;
		printf("%5.1f s  %7" PRIu32 " connections  %7" PRIu64 " heartbeats/s  %6" PRIu32
		       " closed\n",
		       (double)(now_ns - start_ns) / (double)S, connected - closed - closed_wrongly,
		       (heartbeats - shown) * S / (now_ns - shown_ns), closed + closed_wrongly);
		fflush(stdout);
		shown_ns = now_ns;
		shown = heartbeats;
	}
	/* What the server closed in time before it ended does not count as missed. */
	while (hear(0) == BATCH) {
	}
	for (uint32_t i = 0; i < begun; i++)
		missed += clients[i].fd >= 0 && clients[i].silent && overdue(&clients[i], now_ns);
}

static int compare(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void row(const char *label, double value, const char *remark)
{
	printf("  %-39s %12.*f  %s\n", label, value == (double)(uint64_t)value ? 0 : 1, value,
	       remark);
}

static void print_table(void)
{
	const uint64_t messages = server_figure(" messages=");

	row("connections", connected, "");
	if (refused > 0)
		row("not connected", refused, "");
	row("heartbeats", (double)heartbeats, "sent");
	row("clients that fell silent", fell_silent, "");
	row("closed for silence", closed_silent, "");
	row("wrongly closed", closed_wrongly, "not silent for the whole timeout");
	row("missed", missed, "silent, and not closed 20 s after the timeout");
	if (closed_our_pause > 0)
		row("closed while this program stalled", closed_our_pause, "for a whole timeout");
	qsort(lateness_ns, closed, sizeof(*lateness_ns), compare);
	for (unsigned i = 0; closed > 0 && i < 3; i++) {
		static const char *const labels[] = { "lateness p50, us", "lateness p99, us",
			                              "lateness max, us" };
		const uint32_t at[] = { closed / 2, (uint32_t)(closed * UINT64_C(99) / 100),
			                closed - 1 };

		row(labels[i], (double)(lateness_ns[at[i]] / 1000),
		    "of the server's close() after the deadline");
	}
	row("messages", (double)messages, "the server moves a timeout for each");
	row("loop's time per message, ns",
	    messages > 0 ? (double)server_figure(" loop_ns=") / (double)messages : 0,
	    "timerhub_loop_turn() without its callbacks");
	row("wake-ups by timeouts", (double)server_figure(" wakes="),
	    "times that the loop's fd was readable");
}

/* Returns the exit status. */
static int judge_all(bool server_is_well)
{
	const char *wrong = NULL;

	if (!server_is_well)
		wrong = "the server ended by itself, or not as it should";
	else if (closed_wrongly > 0 || missed > 0)
		wrong = "connections were closed wrongly or missed";
	else if (connected != connections && !interrupted)
		wrong = "not all connections could be made";
	if (wrong)
		printf("FAILED: %s\n", wrong);
	else
		puts("all closed connections were silent, all silent connections were closed in "
		     "time");
	return wrong ? 1 : 0;
}

/* ---- options ---- */

static void on_signal(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* Each process has one end of each connection, and the server inherits the limit. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		fail("getrlimit");
	limit.rlim_cur = limit.rlim_max < CLIENTS_MAX ? limit.rlim_max : CLIENTS_MAX;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= SPARE_FDS)
		fail("setrlimit");
	if (connections > limit.rlim_cur - SPARE_FDS) {
		connections = (uint32_t)(limit.rlim_cur - SPARE_FDS);
		printf("the limit of files allows %" PRIu32 " connections\n", connections);
	}
}

static uint64_t number(const char *text, uint64_t min, uint64_t max)
{
	char *end;
	const uint64_t value = strtoull(text, &end, 10);

	if (end != text && *end == '\0' && value >= min && value <= max)
		return value;
	fprintf(stderr, "heartbeat_load: not a number from %" PRIu64 " to %" PRIu64 ": %s\n", min,
	        max, text);
	exit(2);
}

static void parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "+n:d:t:w:")) >= 0) {
		if (option == 'n')
			connections = (uint32_t)number(optarg, 1, CLIENTS_MAX);
		else if (option == 'd')
			duration_ns = number(optarg, 1, 100000) * S;
		else if (option == 't')
			idle_ns = number(optarg, 100, 60000) * MS;
		else if (option == 'w')
			top = optarg;
		else
			exit(2);
	}
	if (optind < argc && argc - optind <= ARGUMENTS_MAX &&
	    duration_ns >= idle_ns + (RAMP_S + SETTLE_S + 1) * S)
		return;
	fprintf(stderr, "usage: heartbeat_load [-n CONNECTIONS] [-d SECONDS] [-t IDLE_MS] "
	                "[-w TIMERHUB_TOP] SERVER\n"
	                "SECONDS must be longer than the timeout by 4, so that each silent client "
	                "can time out\n");
	exit(2);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	bool ended_early;

	parse(argc, argv);
	srand48((long)now());
	raise_file_limit();
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	clients = calloc(connections, sizeof(*clients));
	lateness_ns = calloc(connections, sizeof(*lateness_ns));
	if (epoll_fd < 0 || !clients || !lateness_ns)
		fail("memory or epoll");
	for (uint32_t i = 0; i < connections; i++)
		clients[i].fd = -1;
	server_start(argv + optind, argc - optind);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	watch(fileno(server_out), FROM_SERVER);
	printf("the server closes each of %" PRIu32 " connections after %" PRIu64
	       " ms of silence\nthe server is process %d\n",
	       connections, idle_ns / MS, (int)server);
	if (top)
		printf("to see its timeouts in another terminal: %s %d\n", top, (int)server);
	fflush(stdout);
	start_ns = now();
	run();
	ended_early = server_ended;
	const bool well = server_stop() && !ended_early;
	printf("%s after %.1f s\n", interrupted ? "interrupted" : "finished",
	       (double)(now() - start_ns) / (double)S);
	print_table();
	return judge_all(well);
}
