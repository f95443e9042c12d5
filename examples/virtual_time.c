/* SPDX-License-Identifier: MIT */
/*
 * How to test code with timers without waiting for them: the test sets the clock of a manual hub.
 * A client tries to connect, and doubles its delay after each failure. run_until() advances the
 * clock from timer to timer, because a delay that a callback arms counts from the time to which the
 * clock was set: after one advance to the end, the client would have tried only once.
 *
 * If a try came at a wrong time, the exit status is 1.
 *
 * Usage: virtual_time
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <timerhub.h>

#define SECOND UINT64_C(1000000000)

enum { TRIES_MAX = 5 };

/*
 * The client, which is what the test is about. It knows a queue, and no clock of the system.
 */
struct client {
	struct timerhub_queue *queue;
	uint64_t delay_ns;            /* delay before the client's next try */
	unsigned tries;               /* number of tries so far */
	uint64_t tried_ns[TRIES_MAX]; /* time of each try, on the hub's clock */
	bool failed;                  /* true: a timer could not be armed */
};

static void client_try(const struct timerhub_event *event);

static void client_try_later(struct client *client)
{
	if (timerhub_call(client->queue, client->delay_ns, client_try, client, NULL) < 0)
		client->failed = true;
	client->delay_ns *= 2;
}

static void client_try(const struct timerhub_event *event)
{
	struct client *client = event->ptr;

	client->tried_ns[client->tries++] = timerhub_now(timerhub_queue_hub(client->queue));
	if (client->tries < TRIES_MAX)
		client_try_later(client);
}

/* Advances the clock to `until_ns` in steps, so that each timer expires at its own time. */
static int run_until(struct timerhub_queue *queue, uint64_t until_ns)
{
	struct timerhub *hub = timerhub_queue_hub(queue);
	uint64_t next_ns = timerhub_now(hub);

	do {
		int r = timerhub_advance(hub, next_ns, &next_ns);
		if (r == 0)
			r = timerhub_dispatch(queue, 64);
		if (r < 0)
			return r;
		if (r > 0)
			next_ns = timerhub_now(hub); /* the callbacks may have armed timers */
	} while (next_ns <= until_ns);
	return timerhub_advance(hub, until_ns, NULL);
}

static int check_tries(const struct client *client, unsigned expected)
{
	int wrong = client->failed || client->tries != expected;

	for (unsigned i = 0; i < client->tries; i++) {
		/* the client's tries are due after 1 s, 1 + 2 s, 1 + 2 + 4 s ... */
		const uint64_t due_ns = ((UINT64_C(1) << (i + 1)) - 1) * SECOND;
		printf("try %u after %" PRIu64 " s\n", i + 1, client->tried_ns[i] / SECOND);
		wrong |= client->tried_ns[i] != due_ns;
	}
	return wrong;
}

int main(void)
{
	const struct timerhub_config config = { .size = sizeof(config), .flags = TIMERHUB_MANUAL };
	struct client client = { .delay_ns = SECOND };
	struct timerhub *hub = NULL;
	int wrong = 0;

	int r = timerhub_open(&hub, &config);
	if (r == 0)
		r = timerhub_queue_open(hub, &client.queue, NULL);
	if (r == 0) {
		client_try_later(&client);
		r = run_until(client.queue, 10 * SECOND);
		wrong |= check_tries(&client, 3);
	}
	if (r == 0) {
		r = run_until(client.queue, 100 * SECOND);
		wrong |= check_tries(&client, TRIES_MAX) || timerhub_now(hub) != 100 * SECOND;
	}
	if (r < 0)
		fprintf(stderr, "virtual_time: %s\n", strerror(-r));
	timerhub_close(hub);
	return r < 0 || wrong;
}
