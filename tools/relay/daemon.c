/* SPDX-License-Identifier: MIT */
/* The command `run`: opens each queue with TIMERHUB_RELAY_SERVE, and waits for a signal. */
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <timerhub_relay.h>
#include <unistd.h>

#include <relay/check.h>
#include <relay/error_reply.h>
#include <relay/relay.h>

#include "tool.h"

#define TRY_NS (UINT64_C(1000) * NS_PER_MS)
#define US_PER_S UINT64_C(1000000)
#define HOUR_US (UINT64_C(3600) * US_PER_S)
/* How often the daemon tries again to serve a queue that a server has refused. */
#define AGAIN_US (5 * US_PER_S)
/* How often it asks whether a server evicts keys, which may be set while it runs. */
#define ASK_POLICY_US (60 * US_PER_S)

/* sd_notify(3) without libsystemd, and without blocking on a manager that does not read */
static void notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len == 0 || len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* '@' marks a name in the abstract name space of sockets */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
	             (const struct sockaddr *)&to,
	             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	(void)close(fd);
}

static uint64_t watchdog_us(void)
{
	const char *text = getenv("WATCHDOG_USEC");
	uint64_t us = text ? strtoull(text, NULL, 10) / 2 : 0;

	return us > 0 && us < HOUR_US ? us : HOUR_US;
}

/* Returns whether a signal came within `us`. */
static bool wait_for_signal(const sigset_t *signals, uint64_t us)
{
	const struct timespec timeout = timespec_of(us * NS_PER_US);

	return sigtimedwait(signals, NULL, &timeout) > 0;
}

/* ---- what goes wrong ---- */

struct served {
	const char *name;
	struct call call;              /* for the addresses */
	int troubles[KEYS_SHARDS_MAX]; /* last printed error of each server, or 0 */
	struct timerhub_relay *relay;  /* NULL: a server refuses the queue */
	bool told_of_eviction;
};

/*
 * Returns whether to print an error after `trouble`, the last one printed. A server that is lost,
 * then refuses calls and then loads its data makes one line, as all this ends by itself.
 */
static bool is_news(int trouble, int error)
{
	if (trouble == 0 || error == 0)
		return trouble != error;
	return error_reply_is_final(error) ? trouble != error : error_reply_is_final(trouble);
}

static void tell(void *arg, uint32_t shard, int error)
{
	struct served *served = arg;
	char url[ADDRESS_URL_BYTES];

	if (!is_news(served->troubles[shard], error))
		return;
	served->troubles[shard] = error;
	address_write(url, &served->call.addresses[shard]);
	(void)fprintf(stderr, "timerhub-relay: %s: %s: %s%s\n", served->name, url,
	              error < 0 ? failure_words(error) : "serves again",
	              error < 0 && !error_reply_is_final(error) ? "; tries again" : "");
}

/* Whether tell() has printed `error`, or with 0 any error. */
static bool was_told(const struct served *served, int error)
{
	for (uint32_t i = 0; i < served->call.shards; i++)
		if (served->troubles[i] < 0 && (error == 0 || served->troubles[i] == error))
			return true;
	return false;
}

/* ---- queues ---- */

static void tell_open(const struct served *served, const char *words, const char *more)
{
	(void)fprintf(stderr, "timerhub-relay: %s: %s%s\n", served->name, words, more);
}

/*
 * Tries until the servers answer. 1: a signal came first. Prints the first error that is no
 * server's, such as a lack of descriptors, and a final error, which it returns.
 */
static int open_queue(struct served *served, const struct timerhub_relay_config *config,
                      const sigset_t *signals)
{
	const struct watcher watcher = { .tell = tell, .arg = served };
	bool told = false;

	for (;;) {
		int result = relay_open(&served->relay, served->name, config, &watcher);

		if (result == 0 && told)
			tell_open(served, "serves again", "");
		if (result == 0)
			return 0;
		if (error_reply_is_final(result)) {
			if (!was_told(served, result))
				tell_open(served, failure_words(result), "");
			return result;
		}
		if (!told && !was_told(served, 0)) {
			tell_open(served, failure_words(result), "; tries again");
			told = true;
		}
		if (wait_for_signal(signals, US_PER_S / 10))
			return 1;
	}
}

/*
 * Waits for an answer of each relay's threads, which answer also while their server does not, and
 * tries once more to serve what was refused. Returns whether a queue is still refused.
 */
static bool look_after(struct served *queues, int count, const struct timerhub_relay_config *config)
{
	struct timerhub_relay_stats stats;
	bool is_refused = false;

	for (int i = 0; i < count; i++) {
		const struct watcher watcher = { .tell = tell, .arg = &queues[i] };

		if (queues[i].relay)
			(void)timerhub_relay_stats(queues[i].relay, &stats);
		else if (relay_open(&queues[i].relay, queues[i].name, config, &watcher) == 0)
			tell_open(&queues[i], "serves again", "");
		else
			is_refused = true;
	}
	return is_refused;
}

/* A server that evicts keys when its memory is full loses tasks, and nobody else would say so. */
static void tell_of_eviction(struct served *served)
{
	struct timerhub_relay_report report;

	if (served->told_of_eviction ||
	    timerhub_relay_check(options.given, served->name, &report) < 0 || !report.evicts)
		return;
	served->told_of_eviction = true;
	tell_open(served, check_fault_text(TIMERHUB_RELAY_FAULT_EVICTS, 0), "");
}

static void serve(struct served *queues, int count, const struct timerhub_relay_config *config,
                  const sigset_t *signals)
{
	uint64_t since_asked_us = ASK_POLICY_US, wait_us;
	bool is_refused = true;

	notify("READY=1");
	do {
		if (since_asked_us >= ASK_POLICY_US) {
			since_asked_us = 0;
			for (int i = 0; i < count; i++)
				tell_of_eviction(&queues[i]);
		}
		wait_us = is_refused ? AGAIN_US : ASK_POLICY_US;
		wait_us = watchdog_us() < wait_us ? watchdog_us() : wait_us;
		since_asked_us += wait_us;
		if (wait_for_signal(signals, wait_us))
			return;
		is_refused = look_after(queues, count, config);
		notify("WATCHDOG=1");
	} while (true);
}

static enum status open_and_serve(struct served *queues, int count)
{
	struct timerhub_relay_config config = {
		.size = sizeof(config),
		.flags = TIMERHUB_RELAY_SERVE,
		.redis = options.given, /* the library reads a file again for a new password */
		.horizon_ns = options.horizon_ms * NS_PER_MS,
		.grace_ns = options.grace_ms * NS_PER_MS,
		.batch = (uint32_t)options.batch,
		/* short, or a lost server would delay WATCHDOG=1 */
		.timeout_ns = TRY_NS,
	};
	uint64_t most_ns = watchdog_us() * NS_PER_US / 2 / (uint64_t)count;
	int opened = 0, result = 0, failure = 0;
	sigset_t signals;

	if (config.timeout_ns > most_ns)
		config.timeout_ns = most_ns;
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	/* A queue that a server refuses harms no other. */
	for (int i = 0; i < count && result != 1; i++) {
		result = open_queue(&queues[i], &config, &signals);
		opened += result == 0;
		failure = result < 0 ? result : failure;
	}
	if (result != 1 && opened > 0)
		serve(queues, count, &config, &signals);
	notify("STOPPING=1");
	for (int i = 0; i < count; i++)
		timerhub_relay_close(queues[i].relay);
	return opened == 0 && failure < 0 ? FAILED : GOOD;
}

enum status daemon_run(char **queues, int count)
{
	struct served *all = calloc((size_t)count, sizeof(*all));
	enum status status = GOOD;

	if (!all)
		return out_of_memory();
	for (int i = 0; i < count && status == GOOD; i++) {
		all[i].name = queues[i];
		status = open_call(&all[i].call, queues[i]);
	}
	if (status == GOOD)
		status = open_and_serve(all, count);
	free(all);
	return status;
}
