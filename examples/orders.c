/* SPDX-License-Identifier: MIT */
/*
 * Shows a delay queue that survives crashes. An order that is not paid in time is dropped, even if
 * the process dies before that time.
 *
 * Shops put orders, with a time by which they must be paid. Customers pay some of the orders by
 * number, including orders of an earlier run. Workers get the overdue orders and drop them. With
 * --crash the process kills itself after a random time. The next run finds every order again and
 * finishes the work.
 *
 * Beside the journal the program writes a file, the book. The program writes an entry into the book
 * before each operation, and an entry for the operation's result. Every run that is not killed
 * checks the entries of all runs so far. No order may be lost, dropped early, or dropped although
 * it was paid. An order may be dropped twice only if the process died before the order was
 * acknowledged. If the check fails, the exit status is 1.
 *
 * Usage: orders [--crash] DIR [ORDERS]
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <timerhub_journal.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define PAY_WITHIN_MIN_NS (20 * MS)
#define PAY_WITHIN_MAX_NS (600 * MS)
#define CRASH_MIN_NS (20 * MS)
#define CRASH_MAX_NS (500 * MS)

enum {
	SHOPS = 4,
	WORKERS = 2,
	ORDERS_DEFAULT = 500,
	ORDERS_MAX = 1000000,
	RECENT = 32,
	KEY_BYTES = 24
};

enum event { OPENED, PUTTING, PUT, PAYING, PAID, TOO_LATE, DROPPED, ACKNOWLEDGED };

/*
 * An entry of the book. A page of the file holds a whole number of entries, so no entry lies in two
 * pages. A kill therefore cannot leave half an entry in the file.
 */
struct entry {
	uint32_t event;
	uint32_t order;
	/* with PUTTING: time by which the order must be paid; with DROPPED: time of the drop */
	uint64_t time_ns;
	uint64_t unused[2];
};

#define ENTRY_BYTES ((off_t)sizeof(struct entry))

/* The data of a task in the journal. */
struct order {
	uint32_t number;
	uint32_t cents;
};

static struct {
	struct timerhub_journal *journal;
	int book;           /* descriptor of the book */
	atomic_uint next;   /* number of the next order to put */
	unsigned end;       /* number of the last order of this run, plus 1 */
	atomic_bool closed; /* true: all shops have put their orders */
} market;

/*
 * Ends the program if `r` is an error. After an error of the program itself, the checks of the
 * orders would be wrong.
 */
static void must(const char *what, int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "orders: %s: %s\n", what, strerror(-r));
	exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

/*
 * Returns a random number, uniform in [low, high). The random generator is a xorshift. Each shop
 * has a seed, and therefore its own sequence of numbers.
 */
static uint64_t pick(uint64_t *seed, uint64_t low, uint64_t high)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return low + *seed % (high - low);
}

static void note(enum event event, uint32_t order, uint64_t time_ns)
{
	const struct entry entry = { .event = event, .order = order, .time_ns = time_ns };

	if (write(market.book, &entry, sizeof(entry)) != sizeof(entry))
		must("write to the book", -errno);
}

/* ---- the market ---- */

/*
 * Writes the key of an order, which is the order's number as text. A later run finds the order by
 * its key.
 */
static size_t key_of(uint32_t number, char key[KEY_BYTES])
{
	return (size_t)snprintf(key, KEY_BYTES, "order %" PRIu32, number);
}

static void put_order(uint32_t number, uint64_t *seed)
{
	const struct order order = { .number = number, .cents = (uint32_t)pick(seed, 100, 10000) };
	const uint64_t pay_by_ns =
		clock_ns(CLOCK_REALTIME) + pick(seed, PAY_WITHIN_MIN_NS, PAY_WITHIN_MAX_NS);
	char key[KEY_BYTES];

	note(PUTTING, number, pay_by_ns);
	must("put", timerhub_journal_put_key(market.journal, key, key_of(number, key), pay_by_ns,
	                                     TIMERHUB_ABSOLUTE, &order, sizeof(order), NULL));
	note(PUT, number, 0);
}

/*
 * Cancels the task of a paid order. If the cancel returns 0, no worker gets the order, in this run
 * or in a later run.
 */
static void pay(uint32_t number)
{
	char key[KEY_BYTES];

	note(PAYING, number, 0);
	const int r = timerhub_journal_cancel_key(market.journal, key, key_of(number, key));
	if (r != -ENOENT && r != -EBUSY)
		must("cancel", r);
	note(r == 0 ? PAID : TOO_LATE, number, 0);
}

/*
 * Puts orders, and pays some of the latest orders. The first payments of a run are for orders of
 * the previous run.
 */
static void *shop(void *argument)
{
	uint64_t seed = clock_ns(CLOCK_MONOTONIC) ^ ((uint64_t)(uintptr_t)argument << 56);

	for (;;) {
		const uint32_t number = atomic_fetch_add(&market.next, 1);
		if (number >= market.end)
			return NULL;
		put_order(number, &seed);
		const uint32_t back = (uint32_t)pick(&seed, 0, RECENT);
		if (back <= number)
			pay(number - back);
	}
}

static bool all_done(void)
{
	struct timerhub_journal_stats stats;

	must("stats", timerhub_journal_stats(market.journal, &stats));
	return atomic_load(&market.closed) && stats.tasks == 0;
}

/*
 * Drops the order, and then acknowledges the task. If the process is killed after the drop and
 * before the acknowledgement, the next run gets the order again.
 */
static void drop(const struct timerhub_journal_task *task)
{
	struct order order;

	memcpy(&order, task->data, sizeof(order));
	note(DROPPED, order.number, clock_ns(CLOCK_REALTIME));
	must("done", timerhub_journal_done(market.journal, task));
	note(ACKNOWLEDGED, order.number, 0);
}

/*
 * Ends the workers' waits if no order is left. The worker that ends the last order calls this
 * function, and the main thread calls it after closing the market.
 */
static void stop_if_done(void)
{
	if (all_done())
		timerhub_journal_stop(market.journal);
}

static void *worker(void *argument)
{
	struct timerhub_journal_task task;
	int r;

	(void)argument;
	while ((r = timerhub_journal_take(market.journal, &task, UINT64_MAX)) == 1) {
		drop(&task);
		stop_if_done();
	}
	must("take", r == -ESHUTDOWN ? 0 : r);
	return NULL;
}

static void *crash(void *argument)
{
	uint64_t seed = clock_ns(CLOCK_REALTIME);
	const uint64_t wait_ns = pick(&seed, CRASH_MIN_NS, CRASH_MAX_NS);
	const struct timespec wait = { .tv_nsec = (long)wait_ns };

	(void)argument;
	nanosleep(&wait, NULL);
	printf("killed after %" PRIu64 " ms\n", wait_ns / MS);
	fflush(stdout);
	kill(getpid(), SIGKILL);
	return NULL;
}

/* ---- the book ---- */

struct fate {
	uint64_t pay_by_ns;
	unsigned events[ACKNOWLEDGED + 1]; /* number of the order's entries of each kind */
	unsigned put_run;                  /* the run that put the order */
	unsigned dropped_run;              /* the last run that dropped the order */
};

struct verdict {
	unsigned lost, early, paid_and_dropped, twice_in_a_run, after_acknowledgement, again;
	unsigned paid_later; /* number of orders that were put in one run and paid in a later run */
};

static void judge_drop(struct verdict *verdict, const struct fate *fate, uint64_t now_ns,
                       unsigned run)
{
	verdict->early += now_ns < fate->pay_by_ns;
	verdict->again += fate->events[DROPPED] > 0;
	verdict->twice_in_a_run += fate->events[DROPPED] > 0 && fate->dropped_run == run;
	verdict->after_acknowledgement += fate->events[ACKNOWLEDGED] > 0;
}

/*
 * Judges how an order ended. If the process was killed during a call, the book has no result of the
 * call. An order without a result may be paid or dropped.
 */
static void judge_end(struct verdict *verdict, const struct fate *fate)
{
	const unsigned *events = fate->events;

	verdict->lost +=
		events[PUT] > 0 && events[PAYING] == events[TOO_LATE] && events[DROPPED] == 0;
	verdict->paid_and_dropped += events[PAID] > 0 && events[DROPPED] > 0;
}

static void read_book(struct fate *fates, unsigned count, struct verdict *verdict)
{
	struct entry entry;
	unsigned run = 0;
	off_t at = 0;

	while (pread(market.book, &entry, sizeof(entry), at) == sizeof(entry)) {
		struct fate *fate = &fates[entry.order % count];
		run += entry.event == OPENED;
		if (entry.event == PUTTING) {
			fate->pay_by_ns = entry.time_ns;
			fate->put_run = run;
		}
		verdict->paid_later += entry.event == PAID && fate->put_run != run;
		if (entry.event == DROPPED) {
			judge_drop(verdict, fate, entry.time_ns, run);
			fate->dropped_run = run;
		}
		if (entry.event != OPENED)
			fate->events[entry.event]++;
		at += ENTRY_BYTES;
	}
}

static int check_book(void)
{
	const unsigned count = market.end;
	struct fate *fates = calloc(count, sizeof(*fates));
	unsigned sums[ACKNOWLEDGED + 1] = { 0 };
	struct verdict verdict = { 0 };

	must("reserve fates", fates == NULL ? -ENOMEM : 0);
	read_book(fates, count, &verdict);
	for (unsigned i = 0; i < count; i++) {
		judge_end(&verdict, &fates[i]);
		for (unsigned event = 0; event <= ACKNOWLEDGED; event++)
			sums[event] += fates[i].events[event] > 0;
	}
	free(fates);
	printf("%u orders paid that an earlier run had put\n", verdict.paid_later);
	printf("%u orders put, %u paid, %u dropped, %u of them again: not acknowledged before\n",
	       sums[PUT], sums[PAID], sums[DROPPED], verdict.again);
	printf("%u lost, %u early, %u paid and dropped, %u twice in a run, "
	       "%u after acknowledgement\n",
	       verdict.lost, verdict.early, verdict.paid_and_dropped, verdict.twice_in_a_run,
	       verdict.after_acknowledgement);
	return verdict.lost + verdict.early + verdict.paid_and_dropped + verdict.twice_in_a_run +
	               verdict.after_acknowledgement >
	       0;
}

/* Opens the book. The numbers of new orders continue from the last number in the book. */
static void open_book(unsigned orders)
{
	struct entry entry;
	unsigned next = 0;
	off_t at = 0;

	market.book = open("book", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	must("open the book", market.book < 0 ? -errno : 0);
	while (pread(market.book, &entry, sizeof(entry), at) == sizeof(entry)) {
		if (entry.event == PUTTING && entry.order >= next)
			next = entry.order + 1;
		at += ENTRY_BYTES;
	}
	market.next = next;
	market.end = next + orders;
	note(OPENED, 0, 0);
}

/* ---- a run ---- */

static void start(pthread_t *thread, void *(*run)(void *), uintptr_t argument)
{
	must("start thread", -pthread_create(thread, NULL, run, (void *)argument));
}

static void join(pthread_t *threads, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		must("join thread", -pthread_join(threads[i], NULL));
}

static void run_market(bool crashing)
{
	pthread_t shops[SHOPS], workers[WORKERS], killer;

	if (crashing)
		start(&killer, crash, 0);
	for (uintptr_t i = 0; i < WORKERS; i++)
		start(&workers[i], worker, i);
	for (uintptr_t i = 0; i < SHOPS; i++)
		start(&shops[i], shop, i + 1);
	join(shops, SHOPS);
	atomic_store(&market.closed, true);
	stop_if_done();
	join(workers, WORKERS);
	if (crashing)
		join(&killer, 1);
}

static void open_journal(const char *dir)
{
	struct timerhub_journal_stats stats;

	if ((mkdir(dir, 0700) < 0 && errno != EEXIST) || chdir(dir) < 0 ||
	    (mkdir("journal", 0700) < 0 && errno != EEXIST))
		must(dir, -errno);
	must("open journal", timerhub_journal_open(&market.journal, "journal", NULL));
	must("stats", timerhub_journal_stats(market.journal, &stats));
	printf("found %" PRIu64 " orders, of runs before this one\n", stats.recovered);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const bool crashing = argc > 1 && strcmp(argv[1], "--crash") == 0;
	char **arguments = argv + 1 + crashing;
	const int count = argc - 1 - crashing;
	const unsigned long orders = count > 1 ? strtoul(arguments[1], NULL, 10) : ORDERS_DEFAULT;

	if (count < 1 || count > 2 || orders == 0 || orders > ORDERS_MAX) {
		fprintf(stderr, "usage: orders [--crash] DIR [ORDERS]\n");
		return 2;
	}
	open_journal(arguments[0]);
	open_book((unsigned)orders);
	run_market(crashing);
	timerhub_journal_close(market.journal);
	return check_book();
}
