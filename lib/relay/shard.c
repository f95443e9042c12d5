/* SPDX-License-Identifier: MIT */
/*
 * A shard is one server of a queue, together with the connections that this process has to it
 * (shard.h). The table `links` says what becomes of each connection, so that the functions that
 * flush, sleep and read need not know which connection it is. Tested in tests/relay by
 * wire_test.py, which injects a fault at each command, and by network_test.py.
 *
 * read_watch() must close the connections to a replaced master, because it may still acknowledge
 * changes. They are lost when it becomes a replica of the new master.
 */
#include "relay/shard.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>

/*
 * Wake-up messages are of no use without the connection for commands, so theirs is closed too. The
 * one that reads tasks stays open, because it may still bring some.
 */
void shard_lose_commands(struct shard *shard, int why, uint64_t now_ns)
{
	pipeline_lose(&shard->pipeline, why, now_ns);
	scheduler_lost(&shard->scheduler, why, now_ns);
}

void shard_lose_takers(struct shard *shard, int why, uint64_t now_ns)
{
	shard->pipeline.must_recover |= takers_lose(&shard->takers, why, now_ns);
}

static void lose_bells(struct shard *shard, int why, uint64_t now_ns)
{
	scheduler_lose_bells(&shard->scheduler, why, now_ns);
}

static void lose_watch(struct shard *shard, int why, uint64_t now_ns)
{
	sentinel_watch_lose(&shard->watch, why, now_ns);
}

static int read_commands(struct shard *shard, uint64_t now_ns)
{
	return pipeline_read(&shard->pipeline, now_ns);
}

static int read_takers(struct shard *shard, uint64_t now_ns)
{
	int result = takers_read(&shard->takers, now_ns);

	/*
	 * -EROFS means that the queue was deleted or the server is a replica now. Close the command
	 * connection too: its next handshake creates the queue or finds the new master.
	 */
	if (result == -EROFS && shard->pipeline.link.wire)
		shard_lose_commands(shard, result, now_ns);
	return result;
}

static int read_bells(struct shard *shard, uint64_t now_ns)
{
	return scheduler_read(&shard->scheduler, now_ns);
}

/* Reads a Sentinel's answer. If it names another master, closes the connections to the old one. */
static int read_watch(struct shard *shard, uint64_t now_ns)
{
	int result = sentinel_watch_read(&shard->watch, &shard->pipeline.server, now_ns);

	if (result == -EROFS && shard->pipeline.link.wire) {
		shard_lose_commands(shard, result, now_ns);
		shard_lose_takers(shard, result, now_ns);
	}
	return 0;
}

enum { COMMANDS, TAKERS, BELLS, WATCH, LINKS };

/*
 * The connections of a shard: where each is in struct shard, and the functions that read and close
 * it.
 */
static const struct {
	size_t at;                                         /* where its struct link is */
	int (*read)(struct shard *shard, uint64_t now_ns); /* a negative errno: close it */
	void (*lose)(struct shard *shard, int why, uint64_t now_ns); /* closes it */
} links[LINKS] = {
	[COMMANDS] = { offsetof(struct shard, pipeline.link), read_commands, shard_lose_commands },
	[TAKERS] = { offsetof(struct shard, takers.link), read_takers, shard_lose_takers },
	[BELLS] = { offsetof(struct shard, scheduler.bells), read_bells, lose_bells },
	[WATCH] = { offsetof(struct shard, watch.link), read_watch, lose_watch },
};

static const struct link *link_of(const struct shard *shard, unsigned which)
{
	return (const struct link *)(const void *)((const char *)shard + links[which].at);
}

static struct wire *wire_of(const struct shard *shard, unsigned which)
{
	return link_of(shard, which)->wire;
}

void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed)
{
	shard->shared = shard->client.shared = shard->mailbox.shared = shared;
	shard->told = SHARD_UNTRIED;
	eventcount_set(&shard->brief_touch.request.finished, 1);
	pipeline_init(&shard->pipeline, &shard->client, &shard->mailbox, address, seed);
	takers_init(&shard->takers, &shard->client, seed + 1);
	scheduler_init(&shard->scheduler, &shard->pipeline, &shard->client, seed + 2);
	sentinel_watch_init(&shard->watch, &shard->pipeline.address, shared->timeout_ns, seed + 3);
}

void shard_fini(struct shard *shard)
{
	for (unsigned i = 0; i < LINKS; i++)
		wire_close(wire_of(shard, i));
	sleeper_close(shard->sleeper);
}

void shard_leave(struct shard *shard)
{
	for (unsigned i = 0; i < LINKS; i++)
		wire_leave(wire_of(shard, i));
	sleeper_close(shard->sleeper);
}

void shard_lose_overdue(struct shard *shard, uint64_t now_ns)
{
	for (unsigned i = TAKERS; i <= BELLS; i++)
		if (wire_of(shard, i) && link_of(shard, i)->answer_by_ns <= now_ns)
			links[i].lose(shard, -EHOSTUNREACH, now_ns);
}

bool shard_flush(struct shard *shard)
{
	bool good = true;

	for (unsigned i = 0; i < LINKS; i++) {
		struct wire *wire = wire_of(shard, i);
		int result = wire ? wire_flush(wire) : 0;

		if (result < 0)
			links[i].lose(shard, result, sleeper_now_ns());
		good &= result == 0;
	}
	return good;
}

void shard_wait_and_read(struct shard *shard, uint64_t until_ns)
{
	struct pollfd fds[LINKS + 2];
	const struct wire *polled[LINKS];
	uint64_t now_ns;

	for (unsigned i = 0; i < LINKS; i++) {
		const struct wire *wire = polled[i] = wire_of(shard, i);

		fds[i] = (struct pollfd){ .fd = wire ? wire_fd(wire) : -1, .events = POLLIN };
		if (wire && wire_has_output(wire))
			fds[i].events |= POLLOUT;
	}
	sleeper_sleep(shard->sleeper, fds, LINKS, until_ns);
	now_ns = sleeper_now_ns();
	for (unsigned i = 0; i < LINKS; i++)
		/*
		 * Handling an earlier connection may have closed this one, so read only if it is
		 * still the one that was polled.
		 */
		if ((fds[i].revents & ~POLLOUT) && wire_of(shard, i) == polled[i]) {
			int result = links[i].read(shard, now_ns);

			if (result < 0)
				links[i].lose(shard, result, now_ns);
		}
}
