/* SPDX-License-Identifier: MIT */
/*
 * Implements the clients of the heartbeat server. See clients.h. The crowd of clients has one
 * thread and non-blocking sockets.
 */
#include "clients.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

enum {
	SILENT_ONE_IN = 10,
	PORTS_PER_ADDRESS = 20000, /* clients of one source address, which has 28,232 ports */
	BEAT_BYTES = 8,
};

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

/* Returns a uniform random number in [low, high), by splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t pick(struct crowd *crowd, uint64_t low, uint64_t high)
{
	uint64_t z = crowd->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return high > low ? low + z % (high - low) : low;
}

int crowd_open(struct crowd *crowd, const struct crowd_plan *plan, int epoll_fd)
{
	*crowd = (struct crowd){ .plan = *plan, .epoll_fd = epoll_fd, .random = plan->seed };
	crowd->clients = calloc(plan->clients, sizeof(*crowd->clients));
	crowd->tally.lateness_ns = calloc(plan->clients, sizeof(*crowd->tally.lateness_ns));
	if (crowd->clients == NULL || crowd->tally.lateness_ns == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->clients; i++)
		crowd->clients[i].fd = -1;
	return calendar_init(&crowd->calendar, plan->clients, plan->idle_ns, plan->start_ns);
}

void crowd_close(struct crowd *crowd)
{
	for (uint32_t i = 0; crowd->clients != NULL && i < crowd->plan.clients; i++)
		if (crowd->clients[i].fd >= 0)
			close(crowd->clients[i].fd);
	calendar_fini(&crowd->calendar);
	free(crowd->clients);
	free(crowd->tally.lateness_ns);
}

/*
 * Plan the client's next heartbeat. The longest interval is half the timeout. Therefore only a
 * heartbeat with a large delay comes too late.
 */
static void plan_beat(struct crowd *crowd, uint32_t index, uint64_t now_ns)
{
	const uint64_t idle_ns = crowd->plan.idle_ns;

	calendar_insert(&crowd->calendar, index, now_ns + pick(crowd, idle_ns / 15, idle_ns / 2));
}

/*
 * Returns a socket that connects to the server, or a negative errno. Each group of 20,000 clients
 * has a source address of its own.
 */
static int connect_from(uint32_t index, uint16_t port, int epoll_fd)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
		                        .sin_port = htons(port),
		                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const uint32_t source = INADDR_LOOPBACK + index / PORTS_PER_ADDRESS;
	const struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(source) };
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = index };
	const int yes = 1;
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/*
	 * Without this option bind() would reserve a port before connect(), and the ports would not
	 * suffice for all clients.
	 */
	if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes)) == 0 &&
	    bind(fd, (const struct sockaddr *)&from, sizeof(from)) == 0 &&
	    (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS) &&
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return fd;
	const int error = errno;
	close(fd);
	return -error;
}

static void client_connect(struct crowd *crowd, uint32_t index)
{
	struct client *client = &crowd->clients[index];
	const uint64_t now_ns = clock_now();
	const int fd = connect_from(index, crowd->plan.port, crowd->epoll_fd);

	if (fd < 0) {
		crowd->tally.refused++;
		crowd->tally.refused_error = -fd;
		return;
	}
	client->fd = fd;
	client->last_sent_ns = client->previous_sent_ns = client->last_gone_ns = now_ns;
	if (index % SILENT_ONE_IN == 0)
		client->silent_from_ns = pick(crowd, now_ns + 1, crowd->plan.silent_by_ns);
	crowd->tally.connected++;
	crowd->tally.open++;
	plan_beat(crowd, index, now_ns);
}

static void fall_silent(struct crowd *crowd, struct client *client)
{
	client->silent = true;
	crowd->tally.silent++;
}

static bool wants_silence(const struct client *client, uint64_t now_ns)
{
	return !client->silent && client->silent_from_ns > 0 && client->silent_from_ns <= now_ns;
}

/*
 * Send a heartbeat of the client. A heartbeat that cannot be sent does not count. If the server has
 * closed the connection, crowd_hear() notices the close.
 */
static void client_beat(struct crowd *crowd, uint32_t index)
{
	static const char beat[BEAT_BYTES + 1] = "beat...\n";
	struct client *client = &crowd->clients[index];
	const uint64_t now_ns = clock_now();

	if (client->fd < 0)
		return;
	if (wants_silence(client, now_ns)) {
		fall_silent(crowd, client);
		return;
	}
	if (send(client->fd, beat, BEAT_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL) == BEAT_BYTES) {
		client->previous_sent_ns = client->last_sent_ns;
		client->last_sent_ns = now_ns;
		client->last_gone_ns = clock_now();
		crowd->tally.heartbeats++;
	}
	plan_beat(crowd, index, now_ns);
}

/*
 * Returns the number of clients that should have connected at now_ns. Clients connect at a constant
 * rate, which is slow enough for the server's backlog.
 */
static uint32_t begun_by(const struct crowd_plan *plan, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - plan->start_ns;

	if (passed_ns >= plan->ramp_ns)
		return plan->clients;
	return (uint32_t)(plan->clients * passed_ns / plan->ramp_ns);
}

void crowd_advance(struct crowd *crowd, uint64_t now_ns)
{
	uint32_t index;

	while (crowd->begun < begun_by(&crowd->plan, now_ns))
		client_connect(crowd, crowd->begun++);
	while ((index = calendar_take(&crowd->calendar, now_ns)) != CALENDAR_NONE)
		client_beat(crowd, index);
}

/*
 * Returns whether the server closed the client correctly. The server must have closed the client
 * after the deadline. The time between the client's last heartbeat and the deadline must be at
 * least the timeout. The load generator can stall just before it sends a heartbeat. Therefore, if
 * send() did not return before the deadline, the previous heartbeat counts as the last heartbeat.
 */
static bool closed_rightly(const struct client *client, uint64_t idle_ns)
{
	const uint64_t counts_ns = client->last_gone_ns < client->deadline_ns
	                                   ? client->last_sent_ns
	                                   : client->previous_sent_ns;

	return client->closed_ns >= client->deadline_ns &&
	       client->deadline_ns >= counts_ns + idle_ns;
}

static void judge(struct crowd *crowd, struct client *client)
{
	struct crowd_tally *tally = &crowd->tally;
	const struct crowd_plan *plan = &crowd->plan;

	if (wants_silence(client, clock_now()))
		fall_silent(crowd, client);
	if (!closed_rightly(client, plan->idle_ns)) {
		tally->closed_wrongly++;
		return;
	}
	tally->lateness_ns[tally->lateness_count++] = client->closed_ns - client->deadline_ns;
	if (!client->silent)
		tally->closed_our_pause++;
	else if (client->closed_ns > client->last_sent_ns + plan->idle_ns + plan->grace_ns)
		tally->missed++;
	else
		tally->closed_silent++;
}

void crowd_hear(struct crowd *crowd, uint64_t index)
{
	struct client *client = &crowd->clients[index];
	char text[128];
	const ssize_t n = recv(client->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		text[n] = '\0';
		/*
		 * Over loopback the server's last message comes in one piece. sscanf() needs the
		 * complete message.
		 */
		sscanf(text, "idle %" SCNu64 " %" SCNu64, &client->deadline_ns, &client->closed_ns);
		return;
	}
	judge(crowd, client);
	close(client->fd);
	client->fd = -1;
	crowd->tally.open--;
}

static bool overdue(const struct crowd *crowd, const struct client *client, uint64_t now_ns)
{
	return now_ns > client->last_sent_ns + crowd->plan.idle_ns + crowd->plan.grace_ns;
}

uint32_t crowd_waiting(const struct crowd *crowd, uint64_t now_ns)
{
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < crowd->begun; i++) {
		const struct client *client = &crowd->clients[i];
		if (client->fd >= 0 && client->silent_from_ns > 0)
			waiting += !client->silent || !overdue(crowd, client, now_ns);
	}
	return waiting;
}

void crowd_finish(struct crowd *crowd, uint64_t now_ns)
{
	for (uint32_t i = 0; i < crowd->begun; i++) {
		const struct client *client = &crowd->clients[i];
		if (client->fd >= 0 && client->silent && overdue(crowd, client, now_ns))
			crowd->tally.missed++;
	}
}
