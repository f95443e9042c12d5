/* SPDX-License-Identifier: MIT */
/*
 * Tests the public calls of the relay. with_server.py starts a Redis server for this test.
 * wire_test.py tests failures of the connection, servers_test.py those of the server.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <timerhub_relay.h>
#include <unistd.h>

#include <harness.h>
#include <process_usage.h>
#include <refuse_calls.h>

#include <relay/error_reply.h>
#include <relay/keys.h>
#include <relay/relay.h>
#include <relay/wire.h>

#define QUEUE_BYTES 32

static const char *redis;
static char queue[QUEUE_BYTES];
static struct timerhub_relay *relay;
static struct wire *wire; /* the test's own connection to the server */
static struct keys keys;

/* Send the encoded command. Returns the integer of the reply, or the first integer of an array. */
static int64_t say(void)
{
	struct reply *reply;
	int64_t number;

	expect_eq(wire_call(wire, &reply, ARRIVES), 0);
	if (reply_type(reply) == REPLY_ERROR) {
		(void)fprintf(stderr, "%s\n", reply_text(reply));
		expect(false);
	}
	number = reply_type(reply) == REPLY_ARRAY ? reply_integer_at(reply, 0)
	                                          : reply_integer(reply);
	reply_free(reply);
	return number;
}

static int64_t command(const char *a, const char *b, const char *c, const char *d)
{
	const char *const words[] = { a, b, c, d };
	unsigned count = 0;

	while (count < 4 && words[count])
		count++;
	bytes_command(wire_output(wire), count);
	for (unsigned i = 0; i < count; i++)
		bytes_text(wire_output(wire), words[i]);
	return say();
}

/*
 * Returns the number behind a word in the server's reply to the command, or -1 if the reply lacks
 * the word.
 */
static long told(const char *a, const char *b, const char *word)
{
	struct reply *reply;
	const char *found;
	long number;

	bytes_command(wire_output(wire), 2);
	bytes_text(wire_output(wire), a);
	bytes_text(wire_output(wire), b);
	expect_eq(wire_call(wire, &reply, ARRIVES), 0);
	found = strstr(reply_text(reply), word);
	number = found ? strtol(found + strlen(word), NULL, 10) : -1;
	reply_free(reply);
	return number;
}

/* Returns the number of clients that are blocked in XREADGROUP at the server. */
static unsigned clients_blocked(void)
{
	return (unsigned)told("INFO", "clients", "blocked_clients:");
}

static void set(const char *name, uint64_t value)
{
	keys_call(&keys, wire_output(wire), "create", "ready state", 2);
	bytes_text(wire_output(wire), name);
	bytes_number(wire_output(wire), value);
	expect_eq(say(), 0);
}

static const char *key(const char *part)
{
	static char name[KEYS_NAME_BYTES];

	keys_name(&keys, name, part);
	return name;
}

static struct timerhub_relay_config config_of(uint32_t flags)
{
	return (struct timerhub_relay_config){
		.size = sizeof(struct timerhub_relay_config),
		.flags = flags ? flags : TIMERHUB_RELAY_NO_SERVE,
		.redis = redis,
	};
}

static struct timerhub_relay *open_with(const struct timerhub_relay_config *config)
{
	struct timerhub_relay *opened;

	expect_eq(timerhub_relay_open(&opened, queue, config), 0);
	return opened;
}

static struct timerhub_relay *open_relay(uint32_t flags)
{
	struct timerhub_relay_config config = config_of(flags);

	return open_with(&config);
}

/* Opens a relay that does not serve, with this timeout, which may be too short for an open. */
static struct timerhub_relay *open_timeout(uint64_t timeout_ns)
{
	struct timerhub_relay_config config = config_of(0);
	struct timerhub_relay *opened;
	int result;

	config.timeout_ns = timeout_ns;
	do
		result = timerhub_relay_open(&opened, queue, &config);
	while (result == -ETIMEDOUT || result == -EHOSTUNREACH);
	expect_eq(result, 0);
	return opened;
}

static void begin(void)
{
	const char *text = redis = getenv("REDIS_URL");
	struct address address;

	expect(redis != NULL);
	expect_eq(address_read(&address, &text), 0);
	expect_eq(wire_open(&wire, &address), 0);
	(void)snprintf(queue, sizeof(queue), "test-%d", getpid());
	expect_eq(keys_init(&keys, queue), 0);
	relay = open_relay(TIMERHUB_RELAY_SERVE);
}

static void end(void)
{
	timerhub_relay_close(relay);
	wire_close(wire);
}

static void threads_end(const pthread_t *threads, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		thread_join(threads[i]);
}

/* A test of a queue of its own, which `relay` serves. */
#define RELAY_TEST_LOOP(test_name, limit, times)                                                   \
	static void test_name##_body(int _i);                                                      \
	TEST_LOOP(test_name, limit, times)                                                         \
	{                                                                                          \
		begin();                                                                           \
		test_name##_body(_i);                                                              \
		end();                                                                             \
	}                                                                                          \
	static void test_name##_body(int _i CK_ATTRIBUTE_UNUSED)
#define RELAY_TEST(test_name, limit) RELAY_TEST_LOOP(test_name, limit, 1)

static struct timerhub_relay_stats stats(void)
{
	struct timerhub_relay_stats now;

	expect_eq(timerhub_relay_stats(relay, &now), 0);
	return now;
}

static void put(const char *id, uint64_t delay_ns)
{
	expect_eq(timerhub_relay_put(relay, id, delay_ns, 0, id, strlen(id), NULL), 0);
}

/* Puts a task that is due, and waits until the relay's fd tells of it. */
static void put_ready(const char *id)
{
	int fd = timerhub_relay_fd(relay);

	put(id, 0);
	expect(fd_readable_within(fd, ARRIVES));
}

static struct timerhub_relay_task take_of(struct timerhub_relay *taker)
{
	struct timerhub_relay_task task;

	expect_eq(timerhub_relay_take(taker, &task, ARRIVES), 1);
	return task;
}

static struct timerhub_relay_task take(void)
{
	return take_of(relay);
}

/* Takes a task as an event loop does. A server that is slow for a moment stops no loop. */
static struct timerhub_relay_task take_shown(void)
{
	struct timerhub_relay_task task;
	int result;

	do {
		expect(fd_readable_within(timerhub_relay_fd(relay), ARRIVES));
		result = timerhub_relay_take(relay, &task, 0);
	} while (result != 1);
	return task;
}

/* Takes the task with this id, in its first delivery. */
static struct timerhub_relay_task take_first(const char *id)
{
	struct timerhub_relay_task task = take();

	expect(strcmp(task.id, id) == 0);
	expect_eq(task.attempts, 1);
	return task;
}

static void take_none(uint64_t timeout_ns)
{
	struct timerhub_relay_task task;

	expect_eq(timerhub_relay_take(relay, &task, timeout_ns), 0);
}

static void done(const struct timerhub_relay_task *task)
{
	expect_eq(timerhub_relay_done(relay, task), 0);
}

/* Redis stores microseconds: the relay rounds up, because no task may come early. */
RELAY_TEST(a_due_time_is_rounded_up, 60)
{
	uint64_t due_ns = (wall_ns() + 30 * MS) / 1000 * 1000;
	struct timerhub_relay_task task;

	expect_eq(timerhub_relay_put(relay, "id", due_ns + 1, TIMERHUB_ABSOLUTE, "id", 2, NULL), 0);
	task = take_first("id");
	expect(task.data_len == 2 && memcmp(task.data, "id", 2) == 0);
	expect_eq(task.due_ns, due_ns + 1000);
	expect_cmp(wall_ns(), >=, task.due_ns);
	done(&task);
	expect_eq(timerhub_relay_done(relay, &task), -ENOENT);
	expect_eq(stats().done, 1);
	expect_eq(stats().promoted, 1);
	expect_eq(stats().waiting + stats().ready, 0);
}

RELAY_TEST(an_id_is_one_task, 60)
{
	char id[TIMERHUB_RELAY_ID_BYTES], other[TIMERHUB_RELAY_ID_BYTES];
	struct timerhub_relay_task task;

	put("id", HOUR);
	expect_eq(timerhub_relay_put(relay, "id", 0, TIMERHUB_RELAY_REPLACE, "new", 3, id), 0);
	expect(strcmp(id, "id") == 0);
	task = take();
	expect(task.data_len == 3 && memcmp(task.data, "new", 3) == 0);
	expect_eq(timerhub_relay_retry(relay, &task, HOUR), 0);
	expect_eq(timerhub_relay_cancel(relay, "id"), 0);
	/* A put of an ended task's id is refused until `past_us` after the ended task's put. */
	expect_eq(timerhub_relay_put(relay, "id", 0, 0, NULL, 0, NULL), -EALREADY);
	expect_eq(timerhub_relay_put(relay, "id", HOUR, TIMERHUB_RELAY_REPLACE, NULL, 0, NULL), 0);
	expect_eq(timerhub_relay_put(relay, NULL, TIMERHUB_NEVER, 0, NULL, 0, id), 0);
	expect_eq(timerhub_relay_put(relay, NULL, TIMERHUB_NEVER, 0, NULL, 0, other), 0);
	expect(strcmp(id, other) != 0);
	expect_eq(timerhub_relay_cancel(relay, id), 0);
	expect_eq(timerhub_relay_cancel(relay, id), -ENOENT);
	expect_eq(timerhub_relay_move(relay, other, 0, 0), 0);
	task = take();
	expect(strcmp(task.id, other) == 0 && task.data_len == 0);
	expect_eq(stats().cancelled, 2);
	expect_eq(stats().retried, 1);
	expect_eq(stats().moved, 1);
}

RELAY_TEST(an_answer_names_its_delivery, 60)
{
	struct timerhub_relay *taker;
	struct timerhub_relay_task first, second;

	taker = open_relay(0);
	set("lease_us", 200000);
	put("moved", 0);
	first = take();
	while (stats().leases_over == 0)
		;
	expect_eq(timerhub_relay_move(relay, "moved", HOUR, 0), 0);
	expect_eq(timerhub_relay_done(relay, &first), -ESTALE);
	expect_eq(timerhub_relay_cancel(relay, "moved"), 0);
	expect_eq(timerhub_relay_done(relay, &first), -ENOENT);
	set("past_us", 0);
	put("again", 0);
	first = take();
	while (stats().leases_over == 1)
		;
	set("lease_us", HOUR / US); /* which outlasts the calls that must be in time */
	expect_eq(timerhub_relay_take(taker, &second, ARRIVES), 1);
	expect_eq(timerhub_relay_done(relay, &first), -ESTALE);
	expect_eq(timerhub_relay_touch(relay, &first), -ESTALE);
	/* there is nothing to release, because done frees the data also when it is refused */
	expect_eq(timerhub_relay_release(relay, &first), -ENOENT);
	expect(second.data_len == 5 && memcmp(second.data, "again", 5) == 0);
	expect_eq(timerhub_relay_touch(taker, &second), 0);
	set("lease_us", 200000);
	put("bell", 0); /* so that the relay looks now, and finds the shorter lease */
	while (stats().leases_over == 2)
		;
	set("lease_us", HOUR / US);
	expect_eq(timerhub_relay_cancel(relay, "bell"), 0);
	expect(memcmp(second.data, "again", 5) == 0);
	expect_eq(timerhub_relay_touch(taker, &second), -ESTALE);
	expect_eq(timerhub_relay_release(taker, &second), 0); /* a lost lease keeps the data */
	expect_eq(timerhub_relay_release(taker, &second), -ENOENT);
	second = take();
	expect_eq(timerhub_relay_done(relay, &second), 0);
	expect_eq(timerhub_relay_touch(relay, &second), -ESTALE);
	put("again", HOUR);
	expect_eq(timerhub_relay_done(relay, &first), -ESTALE);
	expect_eq(stats().waiting, 1);
	timerhub_relay_close(taker);
}

RELAY_TEST(fd_is_readable_just_while_a_task_is_due, 60)
{
	struct timerhub_relay_task task;
	struct timerhub_relay *clock;
	int fd;

	clock = relay;
	relay = open_relay(0); /* a relay that does not serve the queue */
	fd = timerhub_relay_fd(relay);
	expect(fd >= 0);
	put("far", HOUR);
	expect(!fd_readable_within(fd, 100 * MS));
	put_ready("first");
	put("second", 0);
	(void)take_first("first");
	/* The second may not be in the stream yet, and the fd is readable until a take says so. */
	do
		expect(fd_readable_within(fd, ARRIVES));
	while (timerhub_relay_take(relay, &task, 0) == 0);
	expect(strcmp(task.id, "second") == 0);
	take_none(0);
	expect(!fd_readable_within(fd, 100 * MS));
	/* a child that has the descriptor too is not woken by the close, nor by what is due */
	put_ready("third");
	fd = dup(fd);
	expect_le(0, fd);
	timerhub_relay_close(relay);
	expect(!fd_readable_within(fd, 100 * MS));
	relay = clock;
}

RELAY_TEST(limits_are_told_apart, 60)
{
	char data[2000] = "";

	set("data_max", 1000);
	set("tasks_max", 2);
	expect_eq(timerhub_relay_put(relay, "a", HOUR, 0, data, 1001, NULL), -EMSGSIZE);
	expect_eq(timerhub_relay_put(relay, "a", HOUR, 0, data, 1000, NULL), 0);
	put("b", HOUR);
	expect_eq(timerhub_relay_put(relay, "c", HOUR, 0, NULL, 0, NULL), -EAGAIN);
	expect_eq(timerhub_relay_put(relay, "c", UINT64_MAX - 1, 0, NULL, 0, NULL), -ERANGE);
	expect_eq(timerhub_relay_move(relay, "a", UINT64_MAX - 1, 0), -ERANGE);
}

static struct timerhub_relay_report report_now(void)
{
	struct timerhub_relay_report report;

	expect_eq(timerhub_relay_check(redis, queue, &report), 0);
	return report;
}

static void set_look_by(int64_t ahead_s)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64,
	               (int64_t)(wall_ns() / 1000) + ahead_s * 1000000);
	(void)command("HSET", key("state"), "look_by", text);
}

RELAY_TEST(check_tells_that_no_relay_serves, 60)
{
	struct timerhub_relay_report report;

	while (stats().relays == 0)
		;
	timerhub_relay_close(relay);
	relay = open_relay(0);
	put("id", 0);
	report = report_now();
	expect_eq(report.relays, 0);
	expect(report.fault && strstr(report.fault, "no relay"));
	/* As a killed relay leaves it: registered, and the promised time of its poll is past. */
	expect_eq(command("ZADD", key("seats"), "0", "killed"), 1);
	set_look_by(-10);
	report = report_now();
	expect_eq(report.relays, 0);
	set_look_by(60);
	report = report_now();
	expect_eq(report.relays, 1);
	expect(report.fault && strstr(report.fault, "bells")); /* it has subscribed to none */
	expect_cmp(report.overdue_ns, <, 5 * SEC);
	/*
	 * If a relay has set look_by but moves no due task, timerhub_relay_check() must report an
	 * overdue task.
	 */
	expect_eq(command("ZADD", key("due"), "1", "id"), 0);
	report = report_now();
	expect(report.fault && strstr(report.fault, "overdue"));
	expect(report.faults & TIMERHUB_RELAY_FAULT_UNHEARD);
	expect_cmp(report.overdue_ns, >, HOUR);
	expect_eq(timerhub_relay_pause(relay), 0); /* relays leave it where it is then */
	report = report_now();
	expect(!(report.faults & TIMERHUB_RELAY_FAULT_OVERDUE) && report.overdue_ns > HOUR);
}

RELAY_TEST(misuse_is_answered, 60)
{
	static const char *const names[] = { "", "a b", "a}b", "a:b", NULL };
	static const struct {
		uint32_t size, flags, batch;
		uint64_t timeout_ns;
		const char *redis;
		int wanted;
	} opens[] = {
		{ .size = 8, .wanted = -EINVAL },
		{ .flags = 1u << 5, .wanted = -EINVAL },
		{ .flags = TIMERHUB_RELAY_SERVE | TIMERHUB_RELAY_NO_SERVE, .wanted = -EINVAL },
		{ .batch = 1001, .wanted = -EINVAL },
		{ .timeout_ns = 61 * SEC, .wanted = -EINVAL }, /* longer than past_us */
		{ .redis = "rediss://localhost:1",
		  .wanted = WITH_TLS ? -ECONNREFUSED : -EOPNOTSUPP },
		{ .redis = "redis://127.0.0.1:1,redis://127.0.0.1:2", .wanted = -ECONNREFUSED },
		{ .redis = "redis://127.0.0.1:1,", .wanted = -EINVAL },
		{ .redis = "redis://127.0.0.1:1", .wanted = -ECONNREFUSED },
		{ .redis = "unix:/nowhere/redis.sock", .wanted = -ECONNREFUSED },
	};
	struct timerhub_relay_config config = config_of(0);
	struct timerhub_relay_task task = { .id = "id" };
	struct timerhub_relay *other = NULL;
	struct timerhub_relay_report report;
	char id[TIMERHUB_RELAY_ID_BYTES + 1];

	for (unsigned i = 0; names[i]; i++)
		expect_eq(timerhub_relay_open(&other, names[i], &config), -EINVAL);
	expect_eq(timerhub_relay_open(&other, NULL, &config), -EINVAL);
	expect_eq(timerhub_relay_open(NULL, queue, &config), -EINVAL);
	for (unsigned i = 0; i < COUNT_OF(opens); i++) {
		config = config_of(opens[i].flags);
		config.size = opens[i].size ? opens[i].size : sizeof(config);
		config.batch = opens[i].batch;
		config.timeout_ns = opens[i].timeout_ns ? opens[i].timeout_ns : 50 * MS;
		config.redis = opens[i].redis ? opens[i].redis : redis;
		expect_context("open", i, 0);
		expect_eq(timerhub_relay_open(&other, queue, &config), opens[i].wanted);
		expect(!other);
	}
	memset(id, 'x', sizeof(id));
	id[TIMERHUB_RELAY_ID_BYTES] = '\0';
	expect_eq(timerhub_relay_put(relay, id, 0, 0, NULL, 0, NULL), -EINVAL);
	expect_eq(timerhub_relay_put(relay, "", 0, 0, NULL, 0, NULL), -EINVAL);
	expect_eq(timerhub_relay_put(relay, "x", 0, 4, NULL, 0, NULL), -EINVAL);
	expect_eq(timerhub_relay_put(relay, "x", 0, 0, NULL, 1, NULL), -EINVAL);
	expect_eq(timerhub_relay_put(NULL, "x", 0, 0, NULL, 0, NULL), -EINVAL);
	expect_eq(timerhub_relay_cancel(relay, NULL), -EINVAL);
	expect_eq(timerhub_relay_move(relay, "x", 0, TIMERHUB_RELAY_REPLACE), -EINVAL);
	expect_eq(timerhub_relay_take(relay, NULL, 0), -EINVAL);
	expect_eq(timerhub_relay_done(relay, NULL), -EINVAL);
	expect_eq(timerhub_relay_done(relay, &task), -EINVAL);
	expect_eq(timerhub_relay_retry(relay, &task, 0), -EINVAL);
	memcpy(task.delivery, "1-1", 4);
	expect_eq(timerhub_relay_done(relay, &task), -ENOENT);
	expect_eq(timerhub_relay_retry(relay, &task, 0), -ENOENT);
	expect_eq(timerhub_relay_stats(relay, NULL), -EINVAL);
	expect_eq(timerhub_relay_check(redis, "none", &report), -ENOENT);
	expect_eq(timerhub_relay_check(redis, "no name", &report), -EINVAL);
	expect_eq(timerhub_relay_check(redis, queue, NULL), -EINVAL);
	expect_eq(timerhub_relay_check("redis://127.0.0.1:1", queue, &report), -ECONNREFUSED);
	expect_eq(timerhub_relay_fd(NULL), -EINVAL);
	timerhub_relay_close(NULL);
}

RELAY_TEST(open_without_descriptors_says_so, 60)
{
	struct timerhub_relay_config config;
	struct timerhub_relay *other = NULL;
	struct rlimit before, limit;
	unsigned refused = 0;
	int first, result;

	timerhub_relay_close(relay); /* a thread of an open relay would use up descriptors */
	config = config_of(0);
	first = dup(0); /* number of the lowest free descriptor */
	expect(first >= 0 && close(first) == 0);
	expect_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	for (limit.rlim_cur = (rlim_t)first;; limit.rlim_cur++) {
		expect_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		result = timerhub_relay_open(&other, queue, &config);
		if (result == 0)
			break;
		expect_eq(result, -EMFILE);
		expect(!other);
		refused++;
	}
	/*
	 * timerhub_relay_open() makes four descriptors: the fd of takers, the eventfd that wakes
	 * the relay's thread, the connection, and the thread's loop.
	 */
	expect_eq(refused, 4);
	expect_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	relay = other;
	put("task", 0);
}

/* If seccomp raises SIGSYS instead of an error, open must return the handler's error. */
RELAY_TEST(a_trapped_open_is_refused, 60)
{
	struct timerhub_relay_config config;
	struct timerhub_relay *other = NULL;

	config = config_of(0);
	trap_calls_if(SCMP_SYS(timerfd_create), ENOSYS, NULL);
	expect_eq(timerhub_relay_open(&other, queue, &config), -ENOSYS);
	expect(!other);
	expect_cmp(trap_count, >, 0);
}

/* If seccomp refuses send() by an error or SIGSYS, a put must end like one without a server. */
RELAY_TEST_LOOP(a_trapped_send_is_a_lost_connection, 60, 2)
{
	struct timerhub_relay *other;

	other = open_timeout(50 * MS);
	if (_i == 0)
		refuse_calls(SCMP_SYS(sendto), ENOSYS);
	else
		trap_calls_if(SCMP_SYS(sendto), ENOSYS, NULL);
	expect_eq(timerhub_relay_put(other, "task", 0, 0, "data", 4, NULL), -ETIMEDOUT);
	expect_eq(trap_count > 0, _i == 1);
	timerhub_relay_close(other);
}

RELAY_TEST(child_of_fork_is_told_and_harms_nothing, 60)
{
	struct timerhub_relay_task task = { .id = "task" };
	struct timerhub_relay_stats now;
	int status;
	pid_t child;

	put("task", 0);
	child = fork();
	expect(child >= 0);
	if (child == 0) {
		expect_eq(timerhub_relay_put(relay, "x", 0, 0, NULL, 0, NULL), -EOWNERDEAD);
		expect_eq(timerhub_relay_cancel(relay, "task"), -EOWNERDEAD);
		expect_eq(timerhub_relay_move(relay, "task", 0, 0), -EOWNERDEAD);
		expect_eq(timerhub_relay_take(relay, &task, 0), -EOWNERDEAD);
		expect_eq(timerhub_relay_done(relay, &task), -EOWNERDEAD);
		expect_eq(timerhub_relay_retry(relay, &task, 0), -EOWNERDEAD);
		expect_eq(timerhub_relay_stats(relay, &now), -EOWNERDEAD);
		expect_eq(timerhub_relay_fd(relay), -EOWNERDEAD);
		timerhub_relay_stop(relay); /* in the child a stop has no effect */
		/* as if the fork had come amid changes: close must not follow these pointers */
		wire_output(relay->shards[0].pipeline.link.wire)->data = (char *)16;
		relay->shared.deliveries.first = (struct delivery *)16;
		timerhub_relay_close(relay);
		_exit(0);
	}
	expect_eq(waitpid(child, &status, 0), child);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	task = take();
	done(&task);
}

#define THREADS 8u
#define EACH 150u

static unsigned ends[THREADS * EACH]; /* number of times that each task was done or cancelled */

static void finish(const struct timerhub_relay_task *task)
{
	unsigned number;

	memcpy(&number, task->data, sizeof(number));
	done(task);
	(void)__atomic_fetch_add(&ends[number], 1, __ATOMIC_RELAXED);
}

static void *live(void *arg)
{
	unsigned thread = (unsigned)(uintptr_t)arg, seed = thread;
	struct timerhub_relay_task task;

	for (unsigned i = 0; i < EACH; i++) {
		unsigned number = thread * EACH + i;
		char id[16];

		(void)snprintf(id, sizeof(id), "%u", number);
		expect_eq(timerhub_relay_put(relay, id, (unsigned)rand_r(&seed) % 50 * MS, 0,
		                             &number, sizeof(number), NULL),
		          0);
		if (rand_r(&seed) % 4 == 0 && timerhub_relay_cancel(relay, id) == 0)
			(void)__atomic_fetch_add(&ends[number], 1, __ATOMIC_RELAXED);
		if (timerhub_relay_take(relay, &task, 0) == 1)
			finish(&task);
	}
	while (timerhub_relay_take(relay, &task, 500 * MS) == 1)
		finish(&task);
	return NULL;
}

RELAY_TEST(every_task_ends_once_under_many_threads, 120)
{
	pthread_t threads[THREADS];
	struct timerhub_relay_task task;

	for (unsigned i = 0; i < THREADS; i++)
		thread_start(&threads[i], live, (void *)(uintptr_t)i);
	threads_end(threads, THREADS);
	/*
	 * A take may end by its timeout, because the machine may stall for half a second. Take
	 * until no task is left.
	 */
	while (stats().waiting + stats().ready > 0) {
		task = take();
		finish(&task);
	}
	for (unsigned i = 0; i < THREADS * EACH; i++)
		expect_eq(ends[i], 1);
	expect_eq(stats().put, THREADS * EACH);
}

#define PUTTERS 100u /* more puts than fit in one command */

static int put_results[PUTTERS];

/* Put a task. Two threads put the same id, and one thread puts too much data. */
static void *put_one(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;
	char id[16], data[200] = "";

	(void)snprintf(id, sizeof(id), "%u", number == 7 ? 6 : number);
	put_results[number] =
		timerhub_relay_put(relay, id, HOUR, 0, data, number == 9 ? 200 : number, NULL);
	return NULL;
}

/* Returns the number of puts that wait in the relay's mailbox until the put in flight has ended. */
static unsigned count_held(struct shard *shard)
{
	unsigned count = 0;

	lock_take(&relay->shared.lock);
	for (const struct request *one = shard->mailbox.queued.first; one && shard->mailbox.holds;
	     one = one->next)
		count++;
	lock_give(&relay->shared.lock);
	return count;
}

RELAY_TEST(puts_that_wait_for_a_reply_share_a_command, 60)
{
	pthread_t threads[PUTTERS];
	unsigned good = 0;
	long before;
	uint64_t due;

	set("data_max", 150);
	timerhub_relay_close(relay);
	relay = open_timeout(60 * SEC); /* it does not serve, and so does not poll */
	lock_take(&relay->shared.lock);
	relay->shared.hold_ns = HOUR;
	lock_give(&relay->shared.lock);
	due = stats().waiting;
	before = told("INFO", "commandstats", "cmdstat_fcall:calls=");
	expect_eq(command("CLIENT", "PAUSE", "1000000", "WRITE"), 0);
	for (unsigned i = 0; i < PUTTERS; i++) {
		thread_start(&threads[i], put_one, (void *)(uintptr_t)i);
		while (i == 0 && told("CLIENT", "LIST", "flags=b") < 0)
			; /* wait until the first put is blocked at the server */
	}
	while (count_held(relay->shards) < PUTTERS - 1)
		;
	expect_eq(command("CLIENT", "UNPAUSE", NULL, NULL), 0);
	threads_end(threads, PUTTERS);
	for (unsigned i = 0; i < PUTTERS; i++)
		good += put_results[i] == 0;
	expect_eq(good, PUTTERS - 2);
	expect_eq(put_results[9], -EMSGSIZE);
	expect_eq(put_results[6] + put_results[7], -EEXIST);
	expect_eq(told("INFO", "commandstats", "cmdstat_fcall:calls=") - before,
	          3); /* one command with the first put, one with 64 puts, one with 35 puts */
	expect_eq(stats().waiting - due, PUTTERS - 2);
	expect_eq(stats().put, PUTTERS - 2);
}

/* Put tasks by one command. Each gets the result `wanted`, as does a task that is put alone. */
static void expect_puts(int wanted)
{
	static const char *const ids[] = { "0", "1", "2" };
	struct mailbox *mailbox = &relay->shards[0].mailbox;
	struct request puts[COUNT_OF(ids)];

	expect_eq(timerhub_relay_put(relay, NULL, HOUR, 0, NULL, 0, NULL), wanted);
	lock_take(&relay->shared.lock);
	for (unsigned i = 0; i < COUNT_OF(puts); i++) {
		puts[i] = (struct request){ .kind = REQUEST_PUT,
			                    .id = ids[i],
			                    .when = "1",
			                    .flags = "",
			                    .data = "",
			                    .deadline_ns = sleeper_now_ns() + ARRIVES };
		requests_append(&mailbox->queued, &puts[i]);
	}
	mailbox_wake(mailbox);
	lock_give(&relay->shared.lock);
	for (unsigned i = 0; i < COUNT_OF(puts); i++) {
		while (eventcount_number(&puts[i].finished) == 0)
			eventcount_wait(&puts[i].finished, 0, UINT64_MAX);
		expect_eq(puts[i].result, wanted);
	}
}

/* Lets Redis refuse this relay's changes, as it refuses old ones after a lost connection. */
static void fence(void)
{
	keys_call(&keys, wire_output(wire), "fence", "state seen", 3);
	bytes_text(wire_output(wire), relay->shards[0].client.holder);
	bytes_number(wire_output(wire), 1000);
	bytes_number(wire_output(wire), (wall_ns() + HOUR) / 1000);
	expect_eq(say(), 0);
}

RELAY_TEST(a_refusal_is_the_same_for_each_call, 60)
{
	struct timerhub_relay_task task;

	put("there", HOUR);
	put("taken", 0);
	task = take();
	expect_eq(command("ACL", "SETUSER", "default", "-fcall"), 0);
	expect_puts(-EACCES);
	expect_eq(command("ACL", "SETUSER", "default", "+fcall"), 0);
	expect_eq(command("CONFIG", "SET", "maxmemory", "1"), 0);
	expect_puts(-ENOSPC);
	expect_eq(command("CONFIG", "SET", "maxmemory", "0"), 0);
	expect_eq(command("SET", key("past"), "another's", NULL), 0);
	expect_puts(-EBADMSG);
	expect_eq(command("DEL", key("past"), NULL, NULL), 1);
	fence();
	expect_puts(-ETIMEDOUT);
	expect_eq(timerhub_relay_cancel(relay, "there"), -ETIMEDOUT);
	expect_eq(timerhub_relay_move(relay, "there", 0, 0), -ETIMEDOUT);
	expect_eq(timerhub_relay_touch(relay, &task), -ETIMEDOUT);
	expect_eq(timerhub_relay_retry(relay, &task, 0), -ETIMEDOUT);
	expect_eq(timerhub_relay_park(relay, &task, 0), -ETIMEDOUT);
	expect_eq(timerhub_relay_done(relay, &task), -ETIMEDOUT);
	expect_eq(timerhub_relay_pause(relay), -ETIMEDOUT);
	expect_eq(timerhub_relay_resume(relay), -ETIMEDOUT);
	expect_eq(stats().waiting, 1);
	expect_eq(stats().paused, 0);
}

#define BLOCKED 4u

static void *block(void *arg)
{
	struct timerhub_relay_task task;

	atomic_store((atomic_int *)arg, gettid());
	expect_eq(timerhub_relay_take(relay, &task, UINT64_MAX), -ESHUTDOWN);
	return NULL;
}

/* Starts threads that wait for a task, and returns when all of them are inside their calls. */
static void takers_block(pthread_t *threads, unsigned count)
{
	static atomic_int tids[BLOCKED];

	for (unsigned i = 0; i < count; i++)
		thread_start(&threads[i], block, &tids[i]);
	for (unsigned i = 0; i < count; i++)
		thread_begins_and_blocks(&tids[i]);
	while (clients_blocked() == 0)
		;
}

RELAY_TEST(close_sends_blocked_takers_away_and_leaves_its_seat, 60)
{
	struct timerhub_relay_change change = { .op = TIMERHUB_RELAY_PUT, .when_ns = HOUR };
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(0), fd = timerhub_relay_completion_fd(relay);
	pthread_t threads[BLOCKED];
	pid_t child;

	expect_eq(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
	expect_eq(timerhub_relay_submit(relay, &change, 1, 0), 0);
	expect(fd_readable_within(fd, ARRIVES));
	takers_block(threads, BLOCKED);
	while (command("ZCARD", key("seats"), NULL, NULL) == 0)
		;
	/* The copy of the connection in a forked child must take no task. */
	child = fork();
	expect(child >= 0);
	if (child == 0)
		for (;;)
			(void)pause();
	timerhub_relay_close(relay);
	threads_end(threads, BLOCKED);
	expect_eq(epoll_wait(epoll_fd, &event, 1, 0), 0); /* the child still has the descriptor */
	expect_eq(command("ZCARD", key("seats"), NULL, NULL), 0);
	/*
	 * A prefetched task that nobody took comes to the next taker at once, and costs no attempt.
	 */
	set("attempts_max", 1);
	relay = open_relay(TIMERHUB_RELAY_SERVE);
	put_ready("ahead");
	timerhub_relay_close(relay);
	relay = open_relay(TIMERHUB_RELAY_SERVE);
	(void)take_first("ahead");
	expect_eq(kill(child, SIGKILL), 0);
	expect_eq(waitpid(child, NULL, 0), child);
}

static uint32_t prefetched(void)
{
	uint32_t count;

	lock_take(&relay->shared.lock);
	count = relay->shared.deliveries.prefetched;
	lock_give(&relay->shared.lock);
	return count;
}

/* What a relay has read in advance when it closes is for others as if it had not been read. */
TEST(what_a_close_gives_back_keeps_its_due_time_and_its_place, 60)
{
	struct timerhub_relay *clock;
	struct timerhub_relay_task task;
	uint64_t due_ns;
	char id[] = "0-0";

	for (unsigned behind = 0; behind < 3; behind++) {
		begin();
		id[0] = (char)('0' + behind);
		clock = relay;
		relay = open_relay(0);
		(void)timerhub_relay_fd(relay);
		take_none(0);
		due_ns = wall_ns() / 1000 * 1000;
		for (unsigned i = 0; i <= behind; i++) {
			id[2] = (char)('0' + i);
			expect_eq(timerhub_relay_put(clock, id, due_ns + i * 1000,
			                             TIMERHUB_ABSOLUTE, id, 3, NULL),
			          0);
			while (stats().ready <= i || prefetched() == 0)
				;
		}
		timerhub_relay_close(relay);
		relay = clock;
		for (unsigned i = 0; i <= behind; i++) {
			id[2] = (char)('0' + i);
			task = take_first(id);
			expect_eq(task.due_ns, due_ns + i * 1000);
			done(&task);
		}
		end();
	}
}

/* Sets the time from which a take asks Redis whether a prefetched delivery still counts. */
static void age_prefetched(uint64_t ask_ns)
{
	while (prefetched() == 0)
		;
	lock_take(&relay->shared.lock);
	for (struct delivery *one = relay->shared.deliveries.first; one; one = one->next)
		one->ask_ns = ask_ns;
	lock_give(&relay->shared.lock);
}

RELAY_TEST(a_task_that_cannot_be_confirmed_is_offered_again, 60)
{
	const char *const refused = "errorstat_NOPERM:count=";
	struct timerhub_relay *clock;
	struct timerhub_relay_task task;
	uint64_t begin_ns;
	long before;
	int result, fd;

	set("attempts_max", 1);
	clock = relay;
	relay = open_timeout(200 * MS);
	fd = timerhub_relay_fd(relay);
	for (unsigned waits = 0; waits < 2; waits++) {
		expect_eq(timerhub_relay_put(clock, waits ? "b" : "a", 0, 0, NULL, 0, NULL), 0);
		age_prefetched(0);
		begin_ns = wall_ns();
		expect_eq(command("CLIENT", "PAUSE", waits ? "500" : "1000000", "WRITE"), 0);
		if (waits) {
			task = take();
		} else {
			expect_eq(timerhub_relay_take(relay, &task, 0), -ETIMEDOUT);
			expect(fd_readable(fd));
			expect_eq(command("CLIENT", "UNPAUSE", NULL, NULL), 0);
			task = take_shown();
		}
		expect_cmp(wall_ns() - begin_ns, <, 20 * SEC); /* before its lease is over */
		expect(strcmp(task.id, waits ? "b" : "a") == 0);
		expect_eq(task.attempts, 1);
		do
			result = timerhub_relay_done(relay, &task);
		while (result == -ETIMEDOUT || result == -EHOSTUNREACH);
		take_none(0);
	}
	expect_eq(timerhub_relay_put(clock, "c", 0, 0, NULL, 0, NULL), 0);
	age_prefetched(0);
	before = told("INFO", "errorstats", refused);
	expect_eq(command("ACL", "SETUSER", "default", "-fcall"), 0);
	take_none(100 * MS);
	expect_eq(command("ACL", "SETUSER", "default", "+fcall"), 0);
	/* In 100 ms this relay asks ten times at most. The other relay's polls fail too. */
	expect_cmp(told("INFO", "errorstats", refused) - before, <=, 20);
	timerhub_relay_close(clock);
}

/* Redis blocks for a taker as long as the taker waits, so that it is not asked again and again. */
RELAY_TEST(a_taker_that_waits_asks_seldom, 60)
{
	const char *const reads = "cmdstat_xreadgroup:calls=";
	long before = told("INFO", "commandstats", reads);

	take_none(SEC / 2);
	expect_cmp(told("INFO", "commandstats", reads) - before, <=, 3);
}

/* The timeout is over before the shard's thread has run. */
RELAY_TEST(a_take_with_a_tiny_timeout_asks_all_the_same, 20)
{
	struct timerhub_relay_task task;
	int result;

	put("due", 0);
	do
		result = timerhub_relay_take(relay, &task, 1);
	while (result == 0);
	expect_eq(result, 1);
}

RELAY_TEST(a_busy_loop_leaves_tasks_to_others, 60)
{
	struct timerhub_relay *idle;
	int fd;

	idle = open_relay(0);
	fd = timerhub_relay_fd(relay);
	take_none(0);
	put_ready("busy");
	age_prefetched(UINT64_MAX);
	(void)take_shown();
	put("next", 0);
	expect(strcmp(take_of(idle).id, "next") == 0);
	expect(fd_readable(fd)); /* a loop that takes once for each poll goes on */
	take_none(0);
	expect(!fd_readable(fd));
	put_ready("last");
	age_prefetched(UINT64_MAX);
	(void)take_shown();
	timerhub_relay_close(idle);
}

RELAY_TEST(a_server_that_hangs_does_not_stop_a_loop, 60)
{
	struct timerhub_relay_task task;
	struct timerhub_relay *clock;
	int fd;

	clock = relay;
	relay = open_timeout(60 * SEC);
	fd = timerhub_relay_fd(relay);
	put_ready("first");
	age_prefetched(UINT64_MAX);
	(void)take_shown();
	put("second", 0);
	expect_eq(command("CLIENT", "PAUSE", "1000000", "WRITE"), 0);
	for (unsigned i = 0; i < 5; i++)
		take_none(0); /* by this test's limit, not after the pause */
	expect_eq(command("CLIENT", "UNPAUSE", NULL, NULL), 0);
	task = take_shown();
	expect(strcmp(task.id, "second") == 0);
	take_none(0);
	put_ready("third");
	age_prefetched(0);
	expect_eq(command("CLIENT", "PAUSE", "1000000", "WRITE"), 0);
	expect_eq(timerhub_relay_take(relay, &task, 0), -ETIMEDOUT);
	while (fd_readable(fd))
		take_none(0);
	expect_eq(command("CLIENT", "UNPAUSE", NULL, NULL), 0);
	task = take_shown(); /* after the late answer */
	expect(strcmp(task.id, "third") == 0 && task.attempts == 1);
	timerhub_relay_close(clock);
}

RELAY_TEST(stop_hands_out_what_was_read_and_ends_every_take, 60)
{
	struct timerhub_relay_task task;
	int fd;

	fd = timerhub_relay_fd(relay);
	put("ahead", 0);
	while (prefetched() == 0)
		;
	put("behind", 0);
	timerhub_relay_stop(relay);
	timerhub_relay_stop(relay);
	expect_eq(timerhub_relay_take(relay, &task, UINT64_MAX), 1);
	expect(strcmp(task.id, "ahead") == 0);
	for (unsigned i = 0; i < 3; i++) {
		expect_eq(timerhub_relay_take(relay, &task, UINT64_MAX), -ESHUTDOWN);
		expect_eq(timerhub_relay_take(relay, &task, 0), -ESHUTDOWN);
		expect_eq(timerhub_relay_take(relay, &task, MS), -ESHUTDOWN);
	}
	expect(fd_readable(fd)); /* for ever */
	/* After a stop, other calls must still work, and the relay must still move tasks. */
	done(&task);
	put("later", 10 * MS);
	while (stats().promoted < 3)
		;
	expect_eq(timerhub_relay_cancel(relay, "later"), 0);
	timerhub_relay_stop(NULL);
	timerhub_relay_close(relay);
	relay = open_relay(0);
	(void)take_first("behind"); /* because the stopped relay sent no XREADGROUP */
}

RELAY_TEST(workers_are_stopped_joined_and_then_the_relay_closed, 60)
{
	pthread_t threads[BLOCKED];
	struct timerhub_relay_task task;

	takers_block(threads, BLOCKED);
	timerhub_relay_stop(relay);
	threads_end(threads, BLOCKED);
	/*
	 * The XREADGROUP of the takers is still blocked at Redis. If Redis now sends a task, the
	 * relay must release the task.
	 */
	expect_eq(clients_blocked(), 1);
	put("late", 0);
	while (prefetched() == 0)
		;
	expect_eq(timerhub_relay_take(relay, &task, 0), -ESHUTDOWN);
	timerhub_relay_close(relay);
	relay = open_relay(TIMERHUB_RELAY_SERVE);
	(void)take_first("late"); /* at once, not at the end of a lease */
}

/*
 * Puts until the relay is connected again: until then a put ends with -ETIMEDOUT if it was sent, or
 * with -EHOSTUNREACH if there was no connection in time. Returns the first other result that is not
 * `besides`.
 */
static int put_when_connected(const char *id, int besides)
{
	int result;

	do
		result = timerhub_relay_put(relay, id, HOUR, 0, NULL, 0, NULL);
	while (result == -ETIMEDOUT || result == -EHOSTUNREACH || result == besides);
	return result;
}

/* If the number of servers changes, a put must not return -EEXIST: its task is not there. */
RELAY_TEST(a_refused_handshake_is_no_known_id, 60)
{
	timerhub_relay_close(relay);
	relay = open_timeout(100 * MS);
	expect_eq(command("HSET", key("state"), "shards", "2"), 0);
	(void)command("CLIENT", "KILL", "TYPE", "normal");
	expect_eq(put_when_connected("new", -ETIMEDOUT), -EROFS);
	expect_eq(command("HSET", key("state"), "shards", "1"), 0);
	expect_eq(put_when_connected("new", -EROFS), 0);
}

RELAY_TEST(an_open_relay_outlives_a_shorter_past, 60)
{
	set("past_us", 100000);
	(void)command("CLIENT", "KILL", "TYPE", "normal");
	expect_eq(put_when_connected(NULL, -ETIMEDOUT), 0);
}

static struct timerhub_relay_task released;

static void *take_once(void *unused)
{
	struct timerhub_relay_task task;

	(void)unused;
	expect_eq(timerhub_relay_take(relay, &task, UINT64_MAX), 1);
	expect(task.data_len == 2 && memcmp(task.data, "id", 2) == 0);
	done(&task);
	return NULL;
}

static bool is_being_confirmed(void)
{
	bool found = false;

	lock_take(&relay->shared.lock);
	for (unsigned i = 0; i < DELIVERY_BUCKETS; i++)
		found |= relay->shared.deliveries.buckets[i] != NULL;
	lock_give(&relay->shared.lock);
	return found;
}

/* The taker waits for Redis's word about a delivery that another thread once released. */
RELAY_TEST(a_late_release_does_not_free_what_is_confirmed, 60)
{
	struct timerhub_relay *clock;
	pthread_t taker;

	clock = relay;
	relay = open_timeout(60 * SEC);
	put("id", 0);
	released = take();
	timerhub_relay_close(clock);
	(void)timerhub_relay_fd(relay); /* a read for it waits, and is lost with its connection */
	while (clients_blocked() == 0)
		;
	expect_eq(timerhub_relay_release(relay, &released), 0);
	(void)command("CLIENT", "KILL", "TYPE", "normal");
	age_prefetched(0);
	expect_eq(command("CLIENT", "PAUSE", "1000000", "WRITE"), 0);
	thread_start(&taker, take_once, NULL);
	while (!is_being_confirmed())
		;
	expect_eq(timerhub_relay_release(relay, &released), -ENOENT);
	expect_eq(command("CLIENT", "UNPAUSE", NULL, NULL), 0);
	thread_join(taker);
}

static void *take_at_once(void *unused)
{
	struct timerhub_relay_task task;

	(void)unused;
	expect_eq(timerhub_relay_take(relay, &task, 0), 0);
	return NULL;
}

/* A lost command connection must end the blocked read too: it could bring a task that has ended. */
RELAY_TEST(a_recovery_closes_the_read_that_waits, 60)
{
	const char *const made = "total_connections_received:";
	pthread_t threads[2];
	long before;
	int fd;

	timerhub_relay_close(relay);
	relay = open_timeout(60 * SEC);
	fd = wire_fd(relay->shards[0].pipeline.link.wire);
	takers_block(&threads[0], 1);
	before = told("INFO", "stats", made);
	expect_eq(command("CLIENT", "PAUSE", "1000000", "WRITE"), 0);
	thread_start(&threads[1], take_at_once, NULL);
	while (clients_blocked() < 2)
		;
	expect_eq(shutdown(fd, SHUT_RDWR), 0);
	expect_eq(command("CLIENT", "UNPAUSE", NULL, NULL), 0);
	thread_join(threads[1]);
	while (told("INFO", "stats", made) < before + 2)
		; /* the connection for commands, and the one that reads */
	timerhub_relay_stop(relay);
	thread_join(threads[0]);
}

/* ---- many changes, and changes that nobody waits for ---- */

#define MANY 300u /* more than fit in one command */

RELAY_TEST(many_changes_are_each_a_call_of_its_own, 60)
{
	struct timerhub_relay_change changes[MANY];
	struct timerhub_relay_task tasks[MANY];
	char ids[MANY][8];

	memset(changes, 0, sizeof(changes));
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(ids[i], sizeof(ids[i]), "%u", i);
		changes[i].id = i % 3 == 0 ? NULL : ids[i];
		changes[i].data = ids[i];
		changes[i].data_len = strlen(ids[i]);
	}
	changes[1].op = TIMERHUB_RELAY_PUT;
	changes[4].op = TIMERHUB_RELAY_DONE;
	changes[5].id = "2";
	changes[7].flags = 4;
	changes[8].reserved[0] = 1;
	expect_eq(timerhub_relay_put_many(relay, changes, MANY), MANY - 4);
	expect_eq(changes[4].result, -EINVAL);
	expect_eq(changes[5].result, -EEXIST);
	expect_eq(changes[7].result, -EINVAL);
	expect_eq(changes[8].result, -EINVAL);
	expect(strcmp(changes[1].ret_id, "1") == 0 && strlen(changes[0].ret_id) > 16);
	expect_eq(stats().put, MANY - 4);
	for (unsigned i = 0; i < MANY - 4; i++)
		tasks[i] = take();
	memset(changes, 0, sizeof(changes));
	for (unsigned i = 0; i < MANY - 4; i++)
		changes[i].task = &tasks[i];
	expect_eq(timerhub_relay_done_many(relay, changes, MANY - 4), MANY - 4);
	expect_eq(timerhub_relay_done_many(relay, changes, MANY - 4), 0);
	expect_eq(changes[0].result, -ENOENT);
	expect_eq(timerhub_relay_done_many(relay, changes, 0), 0);
	expect_eq(timerhub_relay_done_many(relay, NULL, 1), -EINVAL);
	put("a", HOUR);
	put("b", HOUR);
	memset(changes, 0, sizeof(changes));
	changes[0].id = "a";
	changes[1].id = "none";
	changes[2].id = "b";
	expect_eq(timerhub_relay_cancel_many(relay, changes, 3), 2);
	expect_eq(changes[1].result, -ENOENT);
	changes[0].id = "";
	expect_eq(timerhub_relay_cancel_many(relay, changes, 1), -EINVAL);
	expect_eq(stats().waiting + stats().ready, 0);
}

static unsigned take_completions(struct timerhub_relay_completion *all, unsigned count)
{
	int fd = timerhub_relay_completion_fd(relay);
	unsigned got = 0;

	while (got < count) {
		int some;

		expect(fd_readable_within(fd, ARRIVES));
		some = timerhub_relay_completions(relay, all + got, count - got);
		expect_cmp(some, >=, 0);
		got += (unsigned)some;
	}
	expect(!fd_readable(fd));
	return got;
}

RELAY_TEST(each_submitted_change_has_one_completion, 60)
{
	static struct timerhub_relay_completion done[1024];
	static struct timerhub_relay_change changes[1025];
	static char id[] = "own";
	struct timerhub_relay_task task;
	bool seen[1024] = { false };

	for (unsigned i = 0; i < COUNT_OF(changes); i++)
		changes[i] = (struct timerhub_relay_change){
			.op = TIMERHUB_RELAY_PUT,
			.id = i == 7 ? id : NULL,
			.when_ns = HOUR,
			.data = i == 7 ? id : NULL,
			.data_len = i == 7 ? 3 : 0,
		};
	expect_eq(timerhub_relay_submit(relay, changes, 1025, 5), -E2BIG);
	expect_eq(timerhub_relay_submit(relay, changes, 1024, 5), 0);
	memcpy(id, "xxx", 3); /* the change was copied */
	expect_eq(timerhub_relay_submit(relay, changes, 1, 5), -EAGAIN);
	take_completions(done, 1024);
	for (unsigned i = 0; i < 1024; i++) {
		expect(done[i].tag == 5 && done[i].result == 0 && !seen[done[i].index]);
		expect(done[i].id[0] && (done[i].index != 7 || strcmp(done[i].id, "own") == 0));
		seen[done[i].index] = true;
	}
	expect_eq(stats().waiting, 1024);
	changes[0] = (struct timerhub_relay_change){ .op = TIMERHUB_RELAY_MOVE, .id = "own" };
	changes[1] = (struct timerhub_relay_change){ .op = TIMERHUB_RELAY_CANCEL, .id = "none" };
	expect_eq(timerhub_relay_submit(relay, changes, 2, 6), 0);
	take_completions(done, 2);
	expect_eq(done[0].result + done[1].result, -ENOENT);
	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t ops[] = { TIMERHUB_RELAY_RETRY, TIMERHUB_RELAY_RETRY,
			                        TIMERHUB_RELAY_DONE };

		task = take();
		expect(task.data_len == 3 && memcmp(task.data, "own", 3) == 0);
		expect_eq(task.attempts, i + 1);
		changes[0] = (struct timerhub_relay_change){ .op = ops[i], .task = &task };
		expect_eq(timerhub_relay_submit(relay, changes, 1, i), 0);
		take_completions(done, 1);
		expect(done[0].tag == i && done[0].result == 0 && strcmp(done[0].id, "own") == 0);
	}
	expect_eq(timerhub_relay_completions(relay, done, 1), 0);
	changes[0].op = 9;
	expect_eq(timerhub_relay_submit(relay, changes, 1, 0), -EINVAL);
	expect_eq(timerhub_relay_submit(relay, NULL, 1, 0), -EINVAL);
	expect_eq(timerhub_relay_completions(relay, NULL, 1), -EINVAL);
	changes[0] = (struct timerhub_relay_change){ .op = TIMERHUB_RELAY_PUT, .when_ns = HOUR };
	expect_eq(timerhub_relay_submit(relay, changes, 1, 0), 0); /* the close frees it */
}

/* ---- the queue ---- */

struct told {
	unsigned count;
	struct timerhub_relay_info last;
};

static int tell(const struct timerhub_relay_info *info, void *context)
{
	struct told *told = context;

	told->count++;
	told->last = *info;
	return strcmp(info->id, "stop") == 0 ? 17 : 0;
}

static struct told each(uint32_t which, int wanted)
{
	struct told told = { 0 };

	expect_eq(timerhub_relay_each(relay, which, tell, &told), wanted);
	return told;
}

RELAY_TEST(each_tells_who_has_what_and_park_keeps_it, 60)
{
	struct timerhub_relay_config config;
	struct timerhub_relay *taker;
	struct timerhub_relay_task task;
	struct told told;
	uint64_t begin_ns = wall_ns();

	config = config_of(0);
	config.consumer = "worker-7";
	taker = open_with(&config);
	put("stop", 2 * HOUR);
	told = each(TIMERHUB_RELAY_WAITING, 17);
	expect(told.count == 1 && told.last.data_len == 4 && told.last.which == 0);
	expect_cmp(told.last.due_ns, >, begin_ns + HOUR);
	expect_cmp(told.last.since_ns + SEC, >, begin_ns);
	put("task", 0);
	task = take_of(taker);
	told = each(TIMERHUB_RELAY_TAKEN, 0);
	expect(told.count == 1 && strcmp(told.last.id, "task") == 0);
	expect(strcmp(told.last.holder, "worker-7") == 0 && told.last.attempts == 1);
	expect_cmp(told.last.since_ns + SEC, >, begin_ns);
	expect_eq(timerhub_relay_park(taker, &task, 42), 0);
	expect_eq(timerhub_relay_park(taker, &task, 42), -ENOENT);
	expect_eq(each(TIMERHUB_RELAY_TAKEN, 0).count, 0);
	told = each(TIMERHUB_RELAY_PARKED, 0);
	expect(told.count == 1 && strcmp(told.last.id, "task") == 0 && told.last.reason == 42);
	expect_eq(stats().parked, 1);
	expect_eq(stats().parked_ever, 1);
	set("attempts_max", 1);
	put("poor", 0);
	task = take_of(taker);
	expect_eq(timerhub_relay_retry(taker, &task, 0), 0);
	told = each(TIMERHUB_RELAY_PARKED, 0);
	expect(told.count == 2 && told.last.reason == UINT32_MAX);
	for (unsigned i = 0; i < MANY; i++)
		expect_eq(timerhub_relay_put(relay, NULL, HOUR, 0, NULL, 0, NULL), 0);
	told = each(TIMERHUB_RELAY_WAITING, 17);
	expect_eq(told.count, MANY + 1); /* in the order of their times */
	expect_eq(timerhub_relay_each(relay, 3, tell, &told), -EINVAL);
	expect_eq(timerhub_relay_each(relay, 0, NULL, &told), -EINVAL);
	timerhub_relay_close(taker);
}

RELAY_TEST(a_periodic_task_comes_until_it_is_cancelled, 60)
{
	struct timerhub_relay_change change = {
		.id = "tick",
		.when_ns = 100 * MS,
		.interval_ns = 200 * MS,
		.data = "x",
		.data_len = 1,
	};
	struct timerhub_relay_task task;
	uint64_t first_ns, due_ns;

	expect_eq(timerhub_relay_put_many(relay, &change, 1), 1);
	task = take();
	expect(task.interval_ns == 200 * MS && task.data_len == 1);
	first_ns = due_ns = task.due_ns;
	for (unsigned i = 0; i < 3; i++) {
		expect_cmp(task.periods, >=, 1);
		expect_eq(task.attempts, 1);
		due_ns = task.due_ns + task.periods * task.interval_ns;
		done(&task);
		task = take();
		expect_eq(task.due_ns, due_ns);
	}
	/* A retry puts off this period only; the next ones stay where they were. */
	expect_eq(timerhub_relay_retry(relay, &task, 10 * MS), 0);
	task = take();
	expect_eq(task.attempts, 2);
	done(&task);
	task = take();
	expect_eq((task.due_ns - first_ns) % (200 * MS), 0);
	done(&task);
	expect_eq(timerhub_relay_cancel(relay, "tick"), 0);
	expect_eq(stats().waiting + stats().ready, 0);
}

RELAY_TEST(who_takes_serves_unless_told_not_to, 60)
{
	struct timerhub_relay_config config;

	timerhub_relay_close(relay);
	relay = open_relay(TIMERHUB_RELAY_NO_SERVE);
	put("task", 0);
	take_none(300 * MS);
	timerhub_relay_close(relay);
	config = config_of(0);
	config.flags = 0;
	relay = open_with(&config);
	(void)take_first("task");
	expect_eq(stats().relays, 1);
}

RELAY_TEST(a_worker_that_closes_leaves_no_name, 60)
{
	struct timerhub_relay *worker;
	struct timerhub_relay_task task;
	struct reply *reply;

	for (unsigned i = 0; i < 3; i++) {
		worker = open_relay(0);
		put(i == 0 ? "a" : i == 1 ? "b" : "c", 0);
		task = take_of(worker);
		if (i < 2)
			expect_eq(timerhub_relay_done(worker, &task), 0);
		timerhub_relay_close(worker);
	}
	bytes_command(wire_output(wire), 4);
	bytes_text(wire_output(wire), "XINFO");
	bytes_text(wire_output(wire), "CONSUMERS");
	bytes_text(wire_output(wire), key("ready"));
	bytes_text(wire_output(wire), "timerhub");
	expect_eq(wire_call(wire, &reply, ARRIVES), 0);
	expect_eq(reply_count(reply), 1); /* the one that still has a task */
	reply_free(reply);
}
