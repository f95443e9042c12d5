/* SPDX-License-Identifier: MIT */
/*
 * A delay queue inside one process: an order is dropped if it is not paid in time.
 *
 * Three shops put orders, each with a timer. Most orders are paid, some of them too late. For each
 * payment a cashier cancels the order's timer, and the result of the cancel says which came first,
 * the payment or the expiry. Two workers block in timerhub_wait() until an order is overdue. The
 * payments come through a second queue, on which the cashier waits. If in the end the sums are
 * wrong, the exit status is 1.
 *
 * Usage: delay_queue [ORDERS]
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timerhub.h>

#define MS UINT64_C(1000000)
#define PAY_WITHIN_MAX_NS (600 * MS)
#define CLOSING_TIME UINT64_MAX /* value of timerhub_event.data that ends a worker or the cashier */

enum { SHOPS = 3, WORKERS = 2, LINES_MAX = 40, ORDERS_DEFAULT = 24, ORDERS_MAX = 1000000 };

struct order {
	timerhub_timer timer; /* written by the shop, before the cashier can get the order */
	uint64_t price;       /* price in cents, written by the shop */
	atomic_uint paid;     /* how often the cashier cancelled the order's timer: 0 or 1 */
	atomic_uint late;     /* how often a payment came after the timer's expiry: 0 or 1 */
	atomic_uint dropped;  /* how often a worker got the overdue order: 0 or 1 */
};

static struct {
	struct timerhub *hub;
	struct timerhub_queue *unpaid;   /* queue of the orders' timers, for the workers */
	struct timerhub_queue *payments; /* queue of the payments' timers, for the cashier */
	struct order *orders;
	unsigned count;
	atomic_uint next; /* number of the next order to put */
} market;

/* Ends the program if `r` is an error, because the sums would be wrong. */
static void must(const char *what, int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "delay_queue: %s: %s\n", what, strerror(-r));
	exit(1);
}

/*
 * Returns a random number from low up to but not including high, by a xorshift. Each shop has a
 * seed of its own, so that the shops need no lock.
 */
static uint64_t pick(uint64_t *seed, uint64_t low, uint64_t high)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return low + *seed % (high - low);
}

static void expect_payment(unsigned index, uint64_t delay_ns)
{
	must("expect payment", timerhub_after(market.payments, delay_ns, index, NULL));
}

static void put_order(unsigned index, uint64_t *seed)
{
	struct order *order = &market.orders[index];
	const uint64_t pay_within_ns = pick(seed, 100 * MS, PAY_WITHIN_MAX_NS);

	order->price = pick(seed, 100, 10000);
	must("put order", timerhub_after(market.unpaid, pay_within_ns, index, &order->timer));
	/* two of three customers pay, and one payment of six is too late */
	if (pick(seed, 0, 3) > 0)
		expect_payment(index, pick(seed, 0, pay_within_ns * 6 / 5));
}

static void *shop(void *argument)
{
	uint64_t seed = (uint64_t)(uintptr_t)argument * UINT64_C(0x9e3779b97f4a7c15);

	for (;;) {
		const unsigned index = atomic_fetch_add(&market.next, 1);
		if (index >= market.count)
			return NULL;
		put_order(index, &seed);
	}
}

/* Waits for one event and returns its data. Later events stay in the queue for other threads. */
static uint64_t wait_for_one(struct timerhub_queue *queue)
{
	struct timerhub_event event;
	int r;

	do
		r = timerhub_wait(queue, &event, 1, UINT64_MAX);
	while (r == 0 || r == -ECANCELED);
	must("wait", r);
	return event.data;
}

static void *worker(void *argument)
{
	(void)argument;
	for (;;) {
		const uint64_t index = wait_for_one(market.unpaid);
		if (index == CLOSING_TIME)
			return NULL;
		atomic_fetch_add(&market.orders[index].dropped, 1);
	}
}

static void *cashier(void *argument)
{
	(void)argument;
	for (;;) {
		const uint64_t index = wait_for_one(market.payments);
		if (index == CLOSING_TIME)
			return NULL;
		struct order *order = &market.orders[index];
		const int r = timerhub_cancel(market.hub, order->timer);
		if (r != -ENOENT)
			must("cancel", r);
		/*
		 * After 0 the order is paid, and no worker gets it. After -ENOENT a worker has got
		 * it, or is about to.
		 */
		atomic_fetch_add(r == 0 ? &order->paid : &order->late, 1);
	}
}

static void print_fate(unsigned index, const struct order *order)
{
	const char *fate = order->paid   ? "paid"
	                   : order->late ? "dropped; a payment came too late"
	                                 : "dropped, unpaid";

	printf("order %3u %4" PRIu64 ".%02" PRIu64 "  %s\n", index, order->price / 100,
	       order->price % 100, fate);
}

/* Checks that every order was either paid or dropped, exactly once, and that the prices add up. */
static int check_sums(void)
{
	unsigned paid = 0, dropped = 0, late = 0, wrong = 0;
	uint64_t put_sum = 0, paid_sum = 0, dropped_sum = 0;

	for (unsigned i = 0; i < market.count; i++) {
		const struct order *order = &market.orders[i];
		paid += order->paid;
		dropped += order->dropped;
		late += order->late;
		put_sum += order->price;
		paid_sum += order->paid * order->price;
		dropped_sum += order->dropped * order->price;
		wrong += order->paid + order->dropped != 1 || order->late > order->dropped;
		if (i < LINES_MAX)
			print_fate(i, order);
	}
	if (market.count > LINES_MAX)
		printf("... and %u more\n", market.count - LINES_MAX);
	printf("%u put = %u paid + %u dropped (%u of them paid too late); %u with a wrong fate\n",
	       market.count, paid, dropped, late, wrong);
	printf("%" PRIu64 " cents = %" PRIu64 " + %" PRIu64 "\n", put_sum, paid_sum, dropped_sum);
	return wrong > 0 || paid + dropped != market.count || paid_sum + dropped_sum != put_sum;
}

static void start(pthread_t *thread, void *(*run)(void *), uintptr_t argument)
{
	must("start thread", -pthread_create(thread, NULL, run, (void *)argument));
}

static void join(pthread_t thread)
{
	must("join thread", -pthread_join(thread, NULL));
}

/*
 * Runs all threads. An event ends each worker; its deadline is later than that of any order, so it
 * comes after all of them.
 */
static void run_market(void)
{
	pthread_t shops[SHOPS], workers[WORKERS], till;

	for (uintptr_t i = 0; i < WORKERS; i++)
		start(&workers[i], worker, i);
	start(&till, cashier, 0);
	for (uintptr_t i = 0; i < SHOPS; i++)
		start(&shops[i], shop, i + 1);
	for (unsigned i = 0; i < SHOPS; i++)
		join(shops[i]);
	must("close", timerhub_after(market.payments, 2 * PAY_WITHIN_MAX_NS, CLOSING_TIME, NULL));
	for (unsigned i = 0; i < WORKERS; i++)
		must("close", timerhub_after(market.unpaid, PAY_WITHIN_MAX_NS, CLOSING_TIME, NULL));
	for (unsigned i = 0; i < WORKERS; i++)
		join(workers[i]);
	join(till);
}

int main(int argc, char **argv)
{
	const unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : ORDERS_DEFAULT;
	/*
	 * An order can have two timers at once, its own and its payment's. At the end each worker
	 * and the cashier need one more.
	 */
	const struct timerhub_config config = { .size = sizeof(config),
		                                .timers_max = (uint32_t)(2 * count + WORKERS + 1) };

	if (argc > 2 || count == 0 || count > ORDERS_MAX) {
		fprintf(stderr, "usage: delay_queue [ORDERS], 1 to %d\n", ORDERS_MAX);
		return 2;
	}
	market.count = (unsigned)count;
	market.orders = calloc(count, sizeof(*market.orders));
	must("reserve orders", market.orders == NULL ? -ENOMEM : 0);
	must("open hub", timerhub_open(&market.hub, &config));
	must("open queue", timerhub_queue_open(market.hub, &market.unpaid, NULL));
	must("open queue", timerhub_queue_open(market.hub, &market.payments, NULL));
	run_market();
	const int wrong = check_sums();
	timerhub_close(market.hub);
	free(market.orders);
	return wrong;
}
