/* SPDX-License-Identifier: MIT */
/*
 * Shows a delay queue with several processes: an order that is not paid in time must be dropped.
 * The demo kills a relay, a worker and Redis.
 *
 * Three relays, four workers and a shop stand for machines, beside a Redis that loses nothing
 * (appendfsync always). They record each result of a call in shared memory. In the end no order may
 * be lost, dropped early, or dropped although it was paid: else the exit status is 1, or 77 if
 * Redis is not installed.
 *
 * Usage: relay_orders TIMERHUB-RELAY [ORDERS]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <timerhub_relay.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define PUT_EVERY_NS (2 * MS)
#define PAY_WITHIN_MIN_NS (100 * MS)
#define PAY_WITHIN_MAX_NS (1500 * MS)
#define REDIS_DIES_NS (700 * MS) /* time from the kill of the relay to the kill of Redis */
#define LEASE "lease_us=2000000"
#define ARRIVES_NS (120 * SEC) /* time within which a due order must be delivered */

enum {
	RELAYS = 3,
	WORKERS = 4,
	ORDERS_DEFAULT = 1000,
	ORDERS_MAX = 100000,
	RELAY_DIES_AT = 50,
	WORKER_DIES_AT = 20
};

/* The results of the calls that all processes made for one order. */
struct order {
	_Atomic uint8_t put, paid, doubtful, dropped; /* doubtful: the reply of a call was lost */
	_Atomic uint32_t deliveries;
	_Atomic uint64_t late_ns; /* 1 + lateness of the first delivery, or 0 if undelivered */
};

struct relay_page {
	_Atomic uint64_t promoted, looks, bells;
};

struct book {
	_Atomic uint32_t put_count, stopping, early, wrong;
	struct relay_page relays[RELAYS];
	struct order orders[];
};

static struct book *book;
static unsigned order_count = ORDERS_DEFAULT;
static char folder[] = "/tmp/timerhub-demo-XXXXXX";
static char address[64];
static pid_t redis, relays[RELAYS], workers[WORKERS], shop;

/* ---- processes ---- */

static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)fputs("FAILED: ", stdout);
	(void)vprintf(format, arguments);
	(void)putchar('\n');
	va_end(arguments);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SEC + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec rest = { .tv_sec = (time_t)(ns / SEC), .tv_nsec = (long)(ns % SEC) };

	while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
		;
}

/* Fork a child that the kernel kills if this process ends. Returns 0 in the child. */
static pid_t start(void)
{
	pid_t parent = getpid(), child;

	(void)fflush(stdout);
	child = fork();
	if (child < 0) {
		perror("fork");
		exit(1);
	}
	if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(1);
	return child;
}

/*
 * Send the signal to the child and wait for the child's end. Returns the child's exit status, or
 * 128 plus the signal that ended the child.
 */
static int end(pid_t *child, int signal_number)
{
	int status = 0;

	if (*child <= 0)
		return 0;
	if (signal_number > 0)
		(void)kill(*child, signal_number);
	while (waitpid(*child, &status, 0) < 0 && errno == EINTR)
		;
	*child = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/*
 * Start the Redis server. Debian's package redis-tools contains the server under the name
 * redis-check-rdb.
 */
static void start_redis(void)
{
	static const char *const names[] = { "redis-server", "redis-check-rdb" };
	char *words[] = { "redis-server",
		          "--port",
		          "0",
		          "--unixsocket",
		          address + strlen("unix:"),
		          "--dir",
		          folder,
		          "--save",
		          "",
		          "--appendonly",
		          "yes",
		          "--appendfsync",
		          "always",
		          "--loglevel",
		          "warning",
		          "--logfile",
		          "redis.log",
		          NULL };

	redis = start();
	if (redis > 0)
		return;
	for (unsigned i = 0; i < 2; i++)
		(void)execvp(names[i], words);
	_exit(77);
}

static struct timerhub_relay *open_queue(uint32_t flags)
{
	struct timerhub_relay_config config = {
		.size = sizeof(config),
		.flags = flags,
		.redis = address,
		.timeout_ns = 30 * SEC,
	};
	struct timerhub_relay *relay;
	int result = timerhub_relay_open(&relay, "orders", &config);

	if (result == 0)
		return relay;
	complain("a queue cannot be opened: %s", strerror(-result));
	_exit(1);
}

/* ---- the processes ---- */

static void be_relay(struct relay_page *page)
{
	struct timerhub_relay *relay = open_queue(TIMERHUB_RELAY_SERVE);

	while (!atomic_load(&book->stopping)) {
		struct timerhub_relay_stats stats;
		uint64_t promoted = 0;

		if (timerhub_relay_stats(relay, &stats) == 0) {
			for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
				promoted += stats.lateness[i];
			atomic_store(&page->promoted, promoted);
			atomic_store(&page->looks, stats.looks);
			atomic_store(&page->bells, stats.bells);
		}
		sleep_ns(20 * MS);
	}
	timerhub_relay_close(relay);
}

/* Record the delivery of an order, which is dropped because it was not paid in time. */
static void note_delivery(const struct timerhub_relay_task *task, struct order *order)
{
	uint64_t now = now_ns(CLOCK_REALTIME), none = 0;

	if (now < task->due_ns) {
		atomic_fetch_add(&book->early, 1);
		now = task->due_ns;
	}
	if (atomic_load(&order->paid))
		atomic_fetch_add(&book->wrong, 1);
	atomic_fetch_add(&order->deliveries, 1);
	(void)atomic_compare_exchange_strong(&order->late_ns, &none, now - task->due_ns + 1);
}

static void be_worker(unsigned number)
{
	/* which of the three relays moves the tasks shall be seen, so a worker does not */
	struct timerhub_relay *relay = open_queue(TIMERHUB_RELAY_NO_SERVE);
	unsigned taken = 0;

	while (!atomic_load(&book->stopping)) {
		struct timerhub_relay_task task;
		struct order *order;
		bool is_unanswered = false;
		int result = timerhub_relay_take(relay, &task, 100 * MS);

		if (result != 1)
			continue;
		order = &book->orders[strtoul(task.id, NULL, 10) % order_count];
		note_delivery(&task, order);
		if (number == 0 && ++taken == WORKER_DIES_AT)
			(void)raise(SIGKILL); /* kill the worker before it acknowledges the order */
		while ((result = timerhub_relay_done(relay, &task)) == -ETIMEDOUT)
			is_unanswered = true;
		/* Nobody can pay a delivered order: the done without an answer has ended it. */
		if (result == 0 || (result == -ENOENT && is_unanswered))
			atomic_store(&order->dropped, 1);
		else if (result != -ENOENT && result != -ESTALE) /* another worker's by now */
			atomic_fetch_add(&book->wrong, 1);
	}
	timerhub_relay_close(relay);
}

/*
 * Pay the order in the shop. Customers pay a quarter of the orders. Some of the payments are too
 * late.
 */
static void pay(struct timerhub_relay *relay, unsigned number)
{
	struct order *order = &book->orders[number];
	char id[16];
	int result;

	(void)snprintf(id, sizeof(id), "%u", number);
	result = timerhub_relay_cancel(relay, id);
	if (result == 0)
		atomic_store(&order->paid, 1);
	else if (result == -ETIMEDOUT)
		atomic_store(&order->doubtful, 1);
	else if (result != -ENOENT && result != -EBUSY)
		atomic_fetch_add(&book->wrong, 1);
}

static void be_shop(void)
{
	struct timerhub_relay *relay = open_queue(0);
	unsigned seed = 1;

	for (unsigned i = 0; i < order_count; i++) {
		uint64_t within_ns = PAY_WITHIN_MIN_NS +
		                     (uint64_t)rand_r(&seed) % 1000 * (PAY_WITHIN_MAX_NS / 1000);
		char id[16];
		int result;

		(void)snprintf(id, sizeof(id), "%u", i);
		do
			result = timerhub_relay_put(relay, id, within_ns, 0, "unpaid", 6, NULL);
		while (result == -ETIMEDOUT);
		if (result < 0 && result != -EEXIST && result != -EALREADY)
			atomic_fetch_add(&book->wrong, 1);
		atomic_store(&book->orders[i].put, 1);
		atomic_fetch_add(&book->put_count, 1);
		if (i >= 100 && rand_r(&seed) % 4 == 0)
			pay(relay, i - (unsigned)rand_r(&seed) % 100);
		sleep_ns(PUT_EVERY_NS);
	}
	timerhub_relay_close(relay);
}

/* ---- the kills ---- */

/* Wait until a relay moves tasks to the stream. Returns the relay's number. */
static unsigned find_promoter(void)
{
	uint64_t begin_ns = now_ns(CLOCK_MONOTONIC);

	while (now_ns(CLOCK_MONOTONIC) - begin_ns < ARRIVES_NS) {
		for (unsigned i = 0; i < RELAYS; i++)
			if (atomic_load(&book->relays[i].promoted) >= RELAY_DIES_AT)
				return i;
		sleep_ns(MS);
	}
	complain("no relay has moved %d orders, so the killed relay was just the first",
	         RELAY_DIES_AT);
	return 0;
}

static bool is_ended(const struct order *order)
{
	return order->paid || order->dropped || (order->doubtful && order->deliveries == 0);
}

static unsigned count_ended(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < order_count; i++)
		count += is_ended(&book->orders[i]);
	return count;
}

/*
 * Start all processes, kill some of them, and wait for all orders. Returns the number of the killed
 * relay.
 */
static unsigned run(void)
{
	uint64_t begin_ns = now_ns(CLOCK_MONOTONIC), relay_ns, down_ns;
	unsigned killed;

	for (unsigned i = 0; i < RELAYS; i++)
		if ((relays[i] = start()) == 0) {
			be_relay(&book->relays[i]);
			_exit(0);
		}
	for (unsigned i = 0; i < WORKERS; i++)
		if ((workers[i] = start()) == 0) {
			be_worker(i);
			_exit(0);
		}
	shop = start();
	if (shop == 0) {
		be_shop();
		_exit(0);
	}
	killed = find_promoter();
	relay_ns = now_ns(CLOCK_MONOTONIC);
	(void)end(&relays[killed], SIGKILL);
	sleep_ns(REDIS_DIES_NS);
	down_ns = now_ns(CLOCK_MONOTONIC);
	(void)end(&redis, SIGKILL);
	start_redis();
	(void)end(&shop, 0);
	while (count_ended() < order_count && now_ns(CLOCK_MONOTONIC) - begin_ns < ARRIVES_NS)
		sleep_ns(20 * MS);
	(void)printf("the run took %.1f s\n"
	             "relay %u was killed after %.1f s, and Redis was killed after %.1f s\n",
	             (double)(now_ns(CLOCK_MONOTONIC) - begin_ns) / 1e9, killed,
	             (double)(relay_ns - begin_ns) / 1e9, (double)(down_ns - begin_ns) / 1e9);
	return killed;
}

/* ---- the table ---- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print_lateness(void)
{
	uint64_t *late_ns = calloc(order_count, sizeof(*late_ns));
	unsigned count = 0;

	if (!late_ns)
		return;
	for (unsigned i = 0; i < order_count; i++)
		if (book->orders[i].late_ns > 0)
			late_ns[count++] = book->orders[i].late_ns - 1;
	qsort(late_ns, count, sizeof(*late_ns), compare);
	if (count > 0)
		(void)printf("late at the worker: p50 %.2f ms, p99 %.2f ms, most %.2f ms\n",
		             (double)late_ns[count / 2] / 1e6,
		             (double)late_ns[(uint64_t)count * 99 / 100] / 1e6,
		             (double)late_ns[count - 1] / 1e6);
	free(late_ns);
}

static void print_table(unsigned killed)
{
	unsigned paid = 0, dropped = 0, repeats = 0;

	for (unsigned i = 0; i < order_count; i++) {
		const struct order *order = &book->orders[i];

		dropped += order->dropped;
		paid += is_ended(order) && !order->dropped;
		repeats += order->deliveries > 1 ? order->deliveries - 1 : 0;
	}
	(void)printf("%u orders: %u paid, %u dropped, %u delivered once more, %u early\n",
	             order_count, paid, dropped, repeats, book->early);
	print_lateness();
	(void)printf("relay  promoted  looks  bells\n");
	for (unsigned i = 0; i < RELAYS; i++)
		(void)printf("%5u  %8" PRIu64 "  %5" PRIu64 "  %5" PRIu64 "%s\n", i,
		             book->relays[i].promoted, book->relays[i].looks, book->relays[i].bells,
		             i == killed ? "  killed" : "");
}

/* Print the table and check all orders. Returns the exit status of the program. */
static int check(void)
{
	unsigned repeats = 0, promoters = 0, both = 0;

	for (unsigned i = 0; i < order_count; i++) {
		repeats += book->orders[i].deliveries > 1;
		both += book->orders[i].paid && book->orders[i].dropped;
	}
	for (unsigned i = 0; i < RELAYS; i++)
		promoters += book->relays[i].promoted > 0;
	if (count_ended() < order_count)
		complain("%u orders are neither paid nor dropped", order_count - count_ended());
	else if (both > 0 || book->wrong > 0)
		complain("%u orders are paid and dropped, %u calls returned a wrong result", both,
		         book->wrong);
	else if (book->early > 0)
		complain("%u orders early", book->early);
	else if (repeats == 0)
		complain("the order of the killed worker was not delivered again");
	else if (promoters < 2)
		complain("no relay has replaced the killed relay");
	else
		return 0;
	return 1;
}

/* ---- beginning and end ---- */

/*
 * Create the queue with timerhub-relay, as soon as Redis answers. Returns the exit status of
 * timerhub-relay.
 */
static int create_queue(const char *tool)
{
	int status = 3;

	for (uint64_t begin_ns = now_ns(CLOCK_MONOTONIC);
	     status == 3 && now_ns(CLOCK_MONOTONIC) - begin_ns < ARRIVES_NS;) {
		pid_t child;
		int redis_status;

		if (waitpid(redis, &redis_status, WNOHANG) == redis) {
			redis = 0;
			return WIFEXITED(redis_status) ? WEXITSTATUS(redis_status) : 1;
		}
		child = start();
		if (child == 0) {
			if (!freopen("/dev/null", "w", stdout) ||
			    !freopen("/dev/null", "w", stderr))
				_exit(1);
			(void)execl(tool, tool, "--redis", address, "create", "orders", LEASE,
			            NULL);
			_exit(127);
		}
		status = end(&child, 0);
	}
	return status;
}

static void remove_folder(void)
{
	pid_t child = start();

	if (child == 0) {
		(void)execlp("rm", "rm", "-rf", folder, NULL);
		_exit(127);
	}
	(void)end(&child, 0);
}

static int finish(int status)
{
	atomic_store(&book->stopping, 1);
	for (unsigned i = 0; i < RELAYS; i++)
		status |= end(&relays[i], 0);
	for (unsigned i = 0; i < WORKERS; i++)
		if (end(&workers[i], 0) != (i == 0 ? 128 + SIGKILL : 0))
			status = 1;
	(void)end(&redis, SIGKILL);
	remove_folder();
	return status;
}

int main(int argc, char **argv)
{
	unsigned killed;
	int status;

	if (argc > 2)
		order_count = (unsigned)strtoul(argv[2], NULL, 10);
	if (argc < 2 || argc > 3 || order_count < 1000 || order_count > ORDERS_MAX) {
		(void)fprintf(stderr, "usage: relay_orders TIMERHUB-RELAY [ORDERS]\n"
		                      "ORDERS is 1000 to 100000.\n");
		return 2;
	}
	book = mmap(NULL, sizeof(*book) + order_count * sizeof(book->orders[0]),
	            PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (book == MAP_FAILED || !mkdtemp(folder)) {
		perror("relay_orders");
		return 1;
	}
	(void)snprintf(address, sizeof(address), "unix:%s/redis", folder);
	start_redis();
	status = create_queue(argv[1]);
	if (status != 0) {
		(void)printf(status == 77 ? "skipped: no redis-server and no redis-check-rdb here\n"
		                          : "FAILED: Redis does not work\n");
		(void)end(&redis, SIGKILL);
		remove_folder();
		return status == 77 ? 77 : 1;
	}
	killed = run();
	print_table(killed);
	return finish(check());
}
