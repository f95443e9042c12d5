/* SPDX-License-Identifier: MIT */
/*
 * Runs event loops and checks them. Calls take time, so the deadline of a timeout is known only as
 * a range, from `first_ns` to `last_ns`.
 *
 * What is checked: no callback comes early, out of order, without a set, or in the turn that has
 * set it. No turn leaves out what is due. Neither a returned time nor the descriptor lets the
 * program sleep past a deadline. And no program turns its loop for ever.
 */
#include "loops.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loop_header.h"
#include "report.h"

#define TIMEOUTS_MAX 8
#define LOOPS_SALT 5
#define CHANGES_MAX 3
/* A wake for each grid instant of each timeout (law 6), and some more. */
#define IDLE_TURNS_MAX (TIMEOUTS_MAX * 16 + 32)
/* A hub has no later deadlines, and a timerfd no later alarm: beyond is never. */
#define LATEST_NS (UINT64_C(1) << 62)

enum loop_kind { LOOP_PLAIN, LOOP_ON_HUB, LOOP_MANUAL, LOOP_KINDS };

struct loop_timeout {
	struct timerhub_timeout *timeout; /* in memory of its own while it is added, or NULL */
	bool is_set, is_fresh; /* fresh: set by a delay that no call has counted from a reading */
	bool is_of_turn;       /* set by a callback of the turn in progress */
	uint64_t delay_ns, first_ns, last_ns;
};

struct world_loop {
	struct timerhub_loop *loop; /* NULL: not open */
	enum loop_kind kind;
	bool is_polled;      /* by `poller`; false: blocks for the returned time */
	bool is_locked;      /* no worker needs to adopt it */
	bool is_wall;        /* it has the hub's clock, which may be set */
	int queue;           /* index of the loop's queue in the world, or -1 */
	uint64_t program_ns; /* the time that the program gave last to a manual loop */
	struct poller poller;
	struct worker *user; /* who uses the loop now */
	struct actor *owner; /* who used it last, or NULL */
	uint64_t refused;    /* calls answered -EPERM */
	struct memory_view left;
	bool is_calling, is_turning, is_waiting;
	bool has_waited; /* since its last turn: a poller of edges must turn before the next wait */
	bool is_refused; /* the kernel has refused to set the descriptor */
	/* smallest and largest value of the loop's clock during the call in progress */
	uint64_t earliest_ns, latest_ns;
	unsigned called;     /* timeouts that the turn in progress has called */
	uint64_t order_ns;   /* the latest `first_ns` of these */
	unsigned idle_turns; /* turns that called nothing, since something was changed */
	uint64_t edges;      /* of the queue's descriptor, after the loop's last call */
	struct loop_timeout timeouts[TIMEOUTS_MAX];
};

static struct world_loop loops[LOOPS_MAX];
static unsigned loops_count;

static uint64_t plus(uint64_t ns, uint64_t more_ns)
{
	return more_ns < UINT64_MAX - 1 - ns ? ns + more_ns : UINT64_MAX - 1;
}

static uint64_t loop_clock_ns(const struct world_loop *loop)
{
	if (loop->kind == LOOP_MANUAL)
		return loop->program_ns;
	if (loop->kind == LOOP_ON_HUB)
		return oracle_now_ns();
	return loop->is_wall ? kernel_clock_ns() : scheduler.now_ns;
}

/* Returns whether a delay counts from the time at the call. */
static bool loop_is_exact(const struct world_loop *loop)
{
	return loop->kind == LOOP_MANUAL || (loop->kind == LOOP_ON_HUB && world.manual);
}

static unsigned loop_number(const struct world_loop *loop)
{
	return (unsigned)(loop - loops);
}

static unsigned timeout_number(const struct world_loop *loop, const struct loop_timeout *one)
{
	return loop_number(loop) * 100 + (unsigned)(one - loop->timeouts);
}

/* ---- open and close ---- */

static void loop_open_queue(struct world_loop *loop)
{
	unsigned index = world.queues_count++;
	struct world_queue *queue = &world.queues[index];
	struct timerhub_stats stats;

	*queue = (struct world_queue){
		.queue = timerhub_loop_queue(loop->loop),
		.of_loop = true,
		.dispatched = true,
	};
	queue->fd = timerhub_queue_fd(queue->queue);
	oracle.queues[index].queue = queue->queue;
	oracle.queues[index].sole_consumer = true;
	memory_publish(&queue->opened);
	loop->queue = (int)index;
	if (timerhub_stats(world.hub, &stats) < 0)
		report_failure("stats");
	oracle.alarms_armed = stats.armed;
	oracle.alarms++;
	oracle.capacity--;
}

/* Open the loop again and again; in attempt k the kernel refuses the k-th request. */
static void loop_open(struct world_loop *loop, struct dice *dice)
{
	struct timerhub_loop_config config = {
		.size = sizeof(config),
		.flags = (loop->kind == LOOP_MANUAL ? TIMERHUB_LOOP_MANUAL : 0) |
		         (loop->is_locked ? TIMERHUB_LOOP_LOCKED : 0),
		.timeouts_max = TIMEOUTS_MAX,
		.clock = !loop->is_wall                   ? TIMERHUB_CLOCK_MONOTONIC
		         : kernel.clock == CLOCK_REALTIME ? TIMERHUB_CLOCK_REALTIME
		                                          : TIMERHUB_CLOCK_BOOTTIME,
	};
	struct timerhub *hub = loop->kind == LOOP_ON_HUB ? world.hub : NULL;
	unsigned bells = kernel.bells, regions = kernel.regions;
	int result = -1;

	for (unsigned k = dice_one_in(dice, 32) ? 1 : 12; result < 0; k++) {
		kernel.refuse_after = k <= 12 ? k : 0;
		result = timerhub_loop_open(&loop->loop, hub, &config);
		if (result < 0 && k > 12)
			report_failure("a loop was refused, %d, for no reason", result);
		/* a hub keeps the memory of closed queues */
		if (result < 0 && (kernel.bells != bells || (!hub && kernel.regions != regions)))
			report_failure("a refused loop left something behind");
	}
	kernel.refuse_after = 0;
}

static void loop_open_fd(struct world_loop *loop, struct dice *dice)
{
	int fd;

	do {
		fd = timerhub_loop_fd(loop->loop);
	} while (fd == -EPERM); /* refused timerfd_settime() */
	if (fd < 0)
		report_failure("loop_fd returned %d", fd);
	poller_begin(&loop->poller,
	             loop->is_polled ? (enum poller_kind)dice_below(dice, POLLER_KINDS)
	                             : POLLER_LEVEL,
	             fd);
}

void loops_open(void)
{
	struct dice dice = dice_seeded(world.plan->seed, LOOPS_SALT);

	memset(loops, 0, sizeof(loops));
	loops_count = 0;
	world.loop_one_in = 0;
	if (world.plan->focus != FOCUS_LOOP &&
	    (world.plan->focus != FOCUS_NONE || !dice_one_in(&dice, 30)))
		return;
	world.loop_one_in = 2 + (unsigned)dice_below(&dice, 8);
	loops_count = 1 + (unsigned)dice_below(&dice, LOOPS_MAX);
	for (struct world_loop *loop = loops; loop < loops + loops_count; loop++) {
		loop->kind = (enum loop_kind)dice_below(&dice, LOOP_KINDS);
		if (loop->kind == LOOP_ON_HUB && oracle.capacity < 3)
			loop->kind = LOOP_PLAIN;
		loop->is_wall = kernel.clock != CLOCK_MONOTONIC && loop->kind != LOOP_MANUAL &&
		                (loop->kind == LOOP_ON_HUB || dice_one_in(&dice, 2));
		loop->is_polled = loop->kind != LOOP_MANUAL && !dice_one_in(&dice, 4);
		loop->is_locked = dice_one_in(&dice, 4);
		loop->queue = -1;
		loop_open(loop, &dice);
		if (loop->kind == LOOP_ON_HUB)
			loop_open_queue(loop);
		if (loop->is_polled || loop->kind == LOOP_ON_HUB)
			loop_open_fd(loop, &dice);
		report_tell("loop %u: kind %d, locked %d, polled %d by %d, wall %d, queue %d",
		            loop_number(loop), (int)loop->kind, loop->is_locked, loop->is_polled,
		            (int)loop->poller.kind, loop->is_wall, loop->queue);
	}
}

void loops_close(void)
{
	for (struct world_loop *loop = loops; loop < loops + loops_count; loop++) {
		memory_acquire(&loop->left);
		timerhub_loop_close(loop->loop);
		if (loop->queue >= 0)
			world.queues[loop->queue].queue = NULL;
		for (unsigned i = 0; i < TIMEOUTS_MAX; i++)
			free(loop->timeouts[i].timeout);
		loop->loop = NULL;
	}
	loops_count = 0;
}

/* ---- the oracle ---- */

static void call_begin(struct world_loop *loop)
{
	memory_call();
	loop->is_calling = true;
	loop->earliest_ns = loop->latest_ns = loop_clock_ns(loop);
	/* Somebody else has rung: the loop may have to look for nothing. */
	if (loop->queue >= 0 && kernel_bell(loop->poller.fd)->edges != loop->edges)
		loop->idle_turns = 0;
}

static uint64_t call_latest_ns(const struct world_loop *loop)
{
	uint64_t now_ns = loop_clock_ns(loop);

	return now_ns > loop->latest_ns ? now_ns : loop->latest_ns;
}

/* The call has read the clock, so each delay has been counted from a reading by now. */
static void call_end(struct world_loop *loop)
{
	uint64_t latest_ns = call_latest_ns(loop);

	for (struct loop_timeout *one = loop->timeouts; one < loop->timeouts + TIMEOUTS_MAX; one++)
		if (one->is_fresh) {
			one->is_fresh = false;
			one->last_ns = plus(latest_ns, one->delay_ns);
		}
	if (loop->queue >= 0)
		loop->edges = kernel_bell(loop->poller.fd)->edges;
	loop->is_calling = false;
}

static bool loop_has_fresh(const struct world_loop *loop)
{
	bool has = false;

	for (unsigned i = 0; i < TIMEOUTS_MAX; i++)
		has |= loop->timeouts[i].is_fresh;
	return has;
}

/* Fail if the loop's time is not a reading that the call in progress can have made. */
static void check_reading(const struct world_loop *loop)
{
	uint64_t now_ns = timerhub_loop_now(loop->loop);

	if (now_ns < loop->earliest_ns || now_ns > call_latest_ns(loop))
		report_failure("loop %u says that it is %" PRIu64 ", and the clock was at %" PRIu64,
		               loop_number(loop), now_ns, loop->earliest_ns);
}

/* The loop lets the program block for `block_ns` from its last reading; `grain_ns` is the unit. */
static void check_answer(const struct world_loop *loop, uint64_t block_ns, uint64_t grain_ns)
{
	uint64_t until_ns =
		block_ns == UINT64_MAX ? UINT64_MAX : plus(timerhub_loop_now(loop->loop), block_ns);

	for (const struct loop_timeout *one = loop->timeouts; one < loop->timeouts + TIMEOUTS_MAX;
	     one++)
		if (one->is_set && block_ns > grain_ns && until_ns > plus(one->last_ns, grain_ns))
			report_failure("timeout %u is due at %" PRIu64
			               ", and the loop may block until %" PRIu64,
			               timeout_number(loop, one), one->last_ns, until_ns);
}

static uint64_t loop_due_ns(const struct world_loop *loop)
{
	uint64_t due_ns = NEVER;

	for (unsigned i = 0; i < TIMEOUTS_MAX; i++)
		if (loop->timeouts[i].is_set && loop->timeouts[i].last_ns < due_ns)
			due_ns = loop->timeouts[i].last_ns;
	return due_ns < LATEST_NS ? due_ns : NEVER;
}

static void loop_quiet(const struct world_loop *loop)
{
	uint64_t due_ns = loop_due_ns(loop), wakes_ns;

	if (!loop->is_waiting || !loop->user->actor->waits_on || loop->is_refused ||
	    due_ns == NEVER)
		return;
	if (loop->kind == LOOP_PLAIN) {
		wakes_ns = timerfd_meant_ns(loop->poller.fd);
		due_ns += due_ns == 0; /* a timerfd can't be set to 0 */
	} else {
		if (!oracle_mover_sleeps())
			return;
		due_ns += oracle.gather_ns;
		wakes_ns = due_ns <= oracle_now_ns() && due_ns < kernel.owner_until_ns
		                   ? UINT64_MAX
		                   : kernel.owner_until_ns;
	}
	if (wakes_ns > due_ns)
		report_failure("timeout of loop %u is due at %" PRIu64
		               ", but it sleeps until %" PRIu64,
		               loop_number(loop), due_ns, wakes_ns);
}

void loops_quiet(void)
{
	for (unsigned i = 0; i < loops_count; i++)
		loop_quiet(&loops[i]);
}

bool loops_are_calling(void)
{
	bool calling = false;

	for (unsigned i = 0; i < loops_count; i++)
		calling |= loops[i].is_calling && loops[i].kind == LOOP_ON_HUB;
	return calling;
}

/* A delay that no call has counted yet counts from the clock that was set. */
static void loop_clock_set(struct world_loop *loop, uint64_t before_ns)
{
	uint64_t now_ns = kernel_clock_ns();

	loop->idle_turns = 0;
	if (loop->latest_ns < before_ns)
		loop->latest_ns = before_ns;
	if (loop->earliest_ns > now_ns)
		loop->earliest_ns = now_ns;
	for (struct loop_timeout *one = loop->timeouts; one < loop->timeouts + TIMEOUTS_MAX; one++)
		if (one->is_fresh && plus(now_ns, one->delay_ns) < one->first_ns)
			one->first_ns = plus(now_ns, one->delay_ns);
}

void loops_clock_set(uint64_t before_ns)
{
	for (unsigned i = 0; i < loops_count; i++)
		if (loops[i].is_wall)
			loop_clock_set(&loops[i], before_ns);
}

/* ---- changes ---- */

static void on_timeout(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

static uint64_t random_delay_ns(struct dice *dice)
{
	switch (dice_below(dice, 8)) {
	case 0:
	case 1:
		return dice_below(dice, 3) * dice_below(dice, 300);
	case 2:
		return dice_magnitude(dice, dice_one_in(dice, 8) ? 64 : 40);
	case 3:
	case 4:
		return UINT64_C(1) << dice_below(dice, 30);
	default:
		return dice_magnitude(dice, 26);
	}
}

static void timeout_is_set(struct world_loop *loop, struct loop_timeout *one, uint64_t first_ns,
                           uint64_t last_ns)
{
	one->is_set = true;
	one->is_of_turn = loop->is_turning;
	one->first_ns = first_ns;
	one->last_ns = last_ns;
}

static void timeout_set(struct world_loop *loop, struct loop_timeout *one, uint64_t delay_ns)
{
	uint64_t before_ns = loop_clock_ns(loop);
	int result = timerhub_timeout_set(loop->loop, one->timeout, delay_ns);
	bool exact = loop_is_exact(loop);

	report_tell("  set %u in %" PRIu64 " = %d", timeout_number(loop, one), delay_ns, result);
	if (result == -ERANGE && plus(loop_clock_ns(loop), delay_ns) == UINT64_MAX - 1)
		return;
	if (result != 0)
		report_failure("set returned %d", result);
	timeout_is_set(loop, one, plus(before_ns, delay_ns),
	               exact ? plus(loop_clock_ns(loop), delay_ns) : UINT64_MAX - 1);
	one->is_fresh = !exact;
	one->delay_ns = delay_ns;
}

static void timeout_set_at(struct world_loop *loop, struct loop_timeout *one, uint64_t deadline_ns)
{
	int result = timerhub_timeout_set_at(loop->loop, one->timeout, deadline_ns);

	report_tell("  set %u at %" PRIu64 " = %d", timeout_number(loop, one), deadline_ns, result);
	if (result != 0)
		report_failure("set_at returned %d", result);
	timeout_is_set(loop, one, deadline_ns, deadline_ns);
	one->is_fresh = false;
}

static void timeout_stop(struct world_loop *loop, struct loop_timeout *one)
{
	int result = timerhub_timeout_stop(loop->loop, one->timeout);

	report_tell("  stop %u = %d", timeout_number(loop, one), result);
	if (result != one->is_set)
		report_failure("stop returned %d", result);
	one->is_set = one->is_fresh = false;
}

/* Its memory is freed at once, as a program may do inside any callback. */
static void timeout_remove(struct world_loop *loop, struct loop_timeout *one)
{
	int result = timerhub_timeout_remove(loop->loop, one->timeout);

	report_tell("  remove %u = %d", timeout_number(loop, one), result);
	if (result != 0)
		report_failure("remove returned %d", result);
	free(one->timeout);
	*one = (struct loop_timeout){ .timeout = NULL };
}

static void timeout_add(struct world_loop *loop, struct loop_timeout *one)
{
	int result;

	one->timeout = calloc(1, sizeof(*one->timeout));
	result = timerhub_timeout_add(loop->loop, one->timeout, on_timeout);
	report_tell("  add %u = %d", timeout_number(loop, one), result);
	if (result != 0)
		report_failure("add returned %d", result);
}

/* Returns a random timeout; in a turn mostly one that is due too. */
static struct loop_timeout *random_timeout(struct world_loop *loop, struct dice *dice)
{
	unsigned first = (unsigned)dice_below(dice, TIMEOUTS_MAX);

	for (unsigned i = 0; loop->is_turning && i < TIMEOUTS_MAX && !dice_one_in(dice, 8); i++) {
		struct loop_timeout *one = &loop->timeouts[(first + i) % TIMEOUTS_MAX];

		if (one->is_set && !one->is_of_turn && one->first_ns <= loop->latest_ns)
			return one;
	}
	return &loop->timeouts[first];
}

static void loop_change(struct world_loop *loop, struct dice *dice)
{
	struct loop_timeout *one = random_timeout(loop, dice);
	uint64_t roll = dice_below(dice, 16), now_ns;

	loop->idle_turns = 0;
	if (!one->timeout)
		timeout_add(loop, one);
	else if (roll < 2)
		timeout_remove(loop, one);
	else if (roll < 4)
		timeout_stop(loop, one);
	if (!one->timeout || (roll >= 2 && roll < 4))
		return;
	now_ns = loop_clock_ns(loop);
	if (roll < 12)
		timeout_set(loop, one, random_delay_ns(dice));
	else
		timeout_set_at(loop, one,
		               dice_one_in(dice, 4) ? now_ns / 2
		                                    : plus(now_ns, random_delay_ns(dice) / 2));
	if (timerhub_timeout_is_set(one->timeout) != one->is_set)
		report_failure("timeout %u is set or not", timeout_number(loop, one));
}

static void loop_changes(struct world_loop *loop, struct dice *dice)
{
	for (uint64_t i = dice_below(dice, CHANGES_MAX + 1); i > 0; i--)
		loop_change(loop, dice);
}

static void check_result(int result, int expected)
{
	if (result != expected)
		report_failure("a wrong call of a loop returned %d, not %d", result, expected);
}

void loops_in_callback(struct worker *worker)
{
	struct world_loop *loop = worker->loop;

	if (!loop || worker->actor->in_signal)
		return;
	if (dice_one_in(&worker->dice, 8)) {
		check_result(timerhub_loop_turn(loop->loop), -EBUSY);
		check_result(timerhub_loop_settle(loop->loop, NULL), -EBUSY);
		check_result(timerhub_loop_adopt(loop->loop), loop->is_locked ? 0 : -EBUSY);
		check_result(timerhub_loop_timeout(loop->loop) == 0, true);
		check_result(timerhub_loop_update(loop->loop) == timerhub_loop_now(loop->loop),
		             true);
	}
	loop_changes(loop, &worker->dice);
}

static struct loop_timeout *timeout_of(struct world_loop *loop,
                                       const struct timerhub_timeout *timeout)
{
	for (unsigned i = 0; i < TIMEOUTS_MAX; i++)
		if (loop->timeouts[i].timeout == timeout)
			return &loop->timeouts[i];
	report_failure("a callback of a timeout that is not added");
}

static void on_timeout(struct timerhub_loop *called, struct timerhub_timeout *timeout)
{
	struct worker *worker = scheduler.current->argument;
	struct world_loop *loop = worker->loop;
	struct loop_timeout *one = timeout_of(loop, timeout);
	unsigned number = timeout_number(loop, one);

	report_tell("  timeout %u", number);
	if (called != loop->loop || !loop->is_turning)
		report_failure("timeout %u is called outside its loop's turn", number);
	if (!one->is_set || timerhub_timeout_is_set(timeout))
		report_failure("timeout %u is called, and not set", number);
	if (one->is_of_turn)
		report_failure("timeout %u is called in the turn that set it", number);
	if (one->first_ns > timerhub_loop_now(called))
		report_failure("timeout %u, due at %" PRIu64 ", came early, at %" PRIu64, number,
		               one->first_ns, timerhub_loop_now(called));
	if (loop->order_ns > one->last_ns && !one->is_fresh)
		report_failure("timeout %u, due at %" PRIu64 ", came after one due at %" PRIu64,
		               number, one->last_ns, loop->order_ns);
	if (timerhub_loop_due(called) < one->first_ns || timerhub_loop_due(called) > one->last_ns)
		report_failure("timeout %u, due at %" PRIu64 ", is said to be due at %" PRIu64,
		               number, one->first_ns, timerhub_loop_due(called));
	check_reading(loop);
	loop->order_ns = loop->order_ns > one->first_ns ? loop->order_ns : one->first_ns;
	loop->called++;
	one->is_set = one->is_fresh = false;
	if (dice_one_in(&worker->dice, 3))
		timeout_set(loop, one, random_delay_ns(&worker->dice));
	loops_in_callback(worker);
	scheduler_step();
}

/* ---- turn, settle, timeout ---- */

/* A refused timerfd_settime() is told; the program then blocks by time. */
static bool call_is_refused(struct world_loop *loop, int result)
{
	if (result != -EPERM || loop->kind != LOOP_PLAIN || !loop->is_polled ||
	    kernel.refuse_one_in == 0)
		return false;
	loop->is_refused = true;
	loop->idle_turns = 0;
	return true;
}

static void check_none_is_due(const struct world_loop *loop)
{
	for (const struct loop_timeout *one = loop->timeouts; one < loop->timeouts + TIMEOUTS_MAX;
	     one++)
		if (one->is_set && !one->is_of_turn && one->last_ns <= loop->earliest_ns)
			report_failure("timeout %u is due at %" PRIu64
			               ", and the turn has called none",
			               timeout_number(loop, one), one->last_ns);
}

static void loop_turn(struct worker *worker, struct world_loop *loop)
{
	struct taking taking = { .calls = 0 };
	int result;

	for (unsigned i = 0; i < TIMEOUTS_MAX; i++)
		loop->timeouts[i].is_of_turn = false;
	if (loop->queue >= 0) {
		oracle_take_begin(&taking, (unsigned)loop->queue);
		worker->taking = &taking;
	}
	loop->has_waited = false;
	loop->called = 0;
	loop->order_ns = 0;
	loop->is_refused = false;
	call_begin(loop);
	loop->is_turning = true;
	result = timerhub_loop_turn(loop->loop);
	loop->is_turning = false;
	report_tell("turn %u = %d", loop_number(loop), result);
	worker->taking = NULL;
	if (loop->queue >= 0)
		oracle_take_end(&taking, false);
	if (call_is_refused(loop, result))
		result = (int)(loop->called + taking.calls);
	if (result != (int)(loop->called + taking.calls))
		report_failure("turn returned %d of %u", result, loop->called + taking.calls);
	check_reading(loop);
	if (result == 0)
		check_none_is_due(loop);
	call_end(loop);
	loop->idle_turns = result == 0 ? loop->idle_turns + 1 : 0;
	if (loop->idle_turns > IDLE_TURNS_MAX)
		report_failure("loop %u turns without end", loop_number(loop));
}

static void loop_settle(struct world_loop *loop)
{
	uint64_t block_ns = 0;
	int result;

	loop->is_refused = false;
	call_begin(loop);
	result = timerhub_loop_settle(loop->loop, &block_ns);
	report_tell("settle %u = %d, %" PRIu64, loop_number(loop), result, block_ns);
	check_reading(loop);
	call_end(loop);
	if (result == 0)
		check_answer(loop, block_ns, 0);
	else if (!call_is_refused(loop, result))
		report_failure("settle returned %d", result);
}

/* As after a wait. In a manual loop it reads nothing. */
static void loop_update(struct world_loop *loop)
{
	uint64_t now_ns;

	call_begin(loop);
	now_ns = timerhub_loop_update(loop->loop);
	if (now_ns != timerhub_loop_now(loop->loop))
		report_failure("update is not now");
	check_reading(loop);
	call_end(loop);
	if (timerhub_loop_due(loop->loop) != UINT64_MAX)
		report_failure("a loop is due outside its callbacks");
}

/* Returns for how long the program may block. */
static uint64_t loop_ask(struct world_loop *loop, struct dice *dice)
{
	bool reads = loop_has_fresh(loop) || (loop_is_exact(loop) && loop->kind != LOOP_MANUAL);
	uint64_t block_ns, grain_ns = 0;

	call_begin(loop);
	if (dice_one_in(dice, 2)) {
		block_ns = timerhub_loop_timeout(loop->loop);
	} else {
		int ms = timerhub_loop_timeout_ms(loop->loop);

		block_ns = ms < 0 ? UINT64_MAX : (uint64_t)ms * 1000000;
		grain_ns = 999999;
	}
	report_tell("timeout %u = %" PRIu64, loop_number(loop), block_ns);
	if (reads)
		check_reading(loop);
	call_end(loop);
	check_answer(loop, block_ns, grain_ns);
	return block_ns;
}

/* ---- the program's loop ---- */

static void loop_wait(struct world_loop *loop, struct dice *dice, uint64_t until_ns)
{
	if (!loop->is_polled || loop->is_refused) {
		uint64_t block_ns = loop_ask(loop, dice);

		if (block_ns < until_ns - scheduler.now_ns)
			until_ns = scheduler.now_ns + block_ns;
	}
	if (loop->is_polled || loop->kind == LOOP_ON_HUB) {
		if (!loop->poller.armed)
			poller_arm(&loop->poller);
		loop->is_waiting = loop->is_polled;
		loop->user->polls_edge = loop->queue;
		(void)poller_wait(&loop->poller, until_ns);
		loop->user->polls_edge = -1;
		loop->is_waiting = false;
		loop->has_waited = true;
		/* The watch of a one-shot poll begins anew before the turn, or after it. */
		if (!loop->poller.armed && dice_one_in(dice, 2))
			poller_arm(&loop->poller);
	} else if (until_ns > scheduler.now_ns) {
		scheduler_block(NULL, until_ns);
	}
	if (loop->kind == LOOP_MANUAL) {
		loop->program_ns = scheduler.now_ns;
		if (timerhub_loop_advance(loop->loop, loop->program_ns) != 0)
			report_failure("loop_advance");
	}
	if (dice_one_in(dice, 4))
		loop_update(loop);
}

static void loop_count(struct world_loop *loop)
{
	struct timerhub_loop_stats stats = { .size = sizeof(stats) };
	unsigned added = 0, set = 0;

	for (unsigned i = 0; i < TIMEOUTS_MAX; i++) {
		added += loop->timeouts[i].timeout != NULL;
		set += loop->timeouts[i].is_set;
	}
	if (timerhub_loop_stats(loop->loop, &stats) != 0 || stats.added != added ||
	    stats.set != set || stats.refused != loop->refused)
		report_failure("loop %u counts %" PRIu64 " of %u added, %" PRIu64
		               " of %u set and %" PRIu64 " of %" PRIu64 " refused",
		               loop_number(loop), stats.added, added, stats.set, set, stats.refused,
		               loop->refused);
}

/* Another thread used the loop last. */
static void loop_adopt(struct world_loop *loop, struct worker *worker)
{
	if (loop->owner == worker->actor || (loop->is_locked && !dice_one_in(&worker->dice, 8)))
		return;
	if (!loop->is_locked && loop->owner && dice_one_in(&worker->dice, 4)) {
		check_result(timerhub_loop_turn(loop->loop), -EPERM);
		check_result(timerhub_loop_settle(loop->loop, NULL), -EPERM);
		check_result(timerhub_loop_fd(loop->loop), -EPERM);
		check_result(timerhub_loop_update(loop->loop) == 0, true);
		loop->refused += 4;
	}
	if (loop->owner || dice_one_in(&worker->dice, 2))
		check_result(timerhub_loop_adopt(loop->loop), 0);
	loop->owner = worker->actor;
}

void operation_loop(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	struct world_loop *loop = &loops[dice_below(dice, loops_count)];
	uint64_t until_ns = scheduler.now_ns + 1 + dice_magnitude(dice, 34);
	unsigned rounds = 1 + (unsigned)dice_below(dice, 3);
	bool settles_first = dice_one_in(dice, 2);

	if (loop->user)
		return;
	loop->user = worker;
	worker->loop = loop;
	memory_acquire(&loop->left);
	loop_adopt(loop, worker);
	loop_changes(loop, dice);
	while (rounds > 0 && scheduler.now_ns < until_ns) {
		if (settles_first && !loop->has_waited)
			loop_settle(loop);
		else
			loop_turn(worker, loop);
		if (dice_one_in(dice, 4)) {
			loop_changes(loop, dice);
			rounds--;
			if (loop->is_polled)
				loop_settle(loop);
		}
		loop_wait(loop, dice, until_ns);
		if (loop->called > 0) {
			loop_changes(loop, dice);
			rounds--;
		}
		if (settles_first)
			loop_turn(worker, loop);
	}
	loop_count(loop);
	worker->loop = NULL;
	memory_publish(&loop->left);
	loop->user = NULL;
}

/* ---- a forked child ---- */

/* Any thread of it may stop, set and remove what the parent has added. */
static void child_changes(struct world_loop *loop, struct dice *dice)
{
	for (struct loop_timeout *one = loop->timeouts; one < loop->timeouts + TIMEOUTS_MAX; one++)
		if (one->timeout && dice_one_in(dice, 4))
			timeout_remove(loop, one);
		else if (one->timeout && dice_one_in(dice, 4))
			timeout_stop(loop, one);
		else if (one->timeout && dice_one_in(dice, 2))
			timeout_set(loop, one, random_delay_ns(dice));
}

/* Its descriptor must wake a poller in time. */
static void child_check_fd(const struct world_loop *loop)
{
	uint64_t due_ns = loop_due_ns(loop);

	if (!loop->is_polled || loop->is_refused || due_ns == NEVER ||
	    timerfd_readable(loop->poller.fd))
		return;
	if (timerfd_meant_ns(loop->poller.fd) > due_ns + (due_ns == 0))
		report_failure("timeout of the child's loop %u is due at %" PRIu64
		               ", but its descriptor is set to %" PRIu64,
		               loop_number(loop), due_ns, timerfd_meant_ns(loop->poller.fd));
}

static void child_runs(struct worker *worker, struct world_loop *loop)
{
	struct dice *dice = &worker->dice;

	call_begin(loop);
	check_result(timerhub_loop_adopt(loop->loop), 0);
	call_end(loop);
	loop->owner = worker->actor;
	loop->is_refused = false;
	if (loop->is_polled)
		loop_open_fd(loop, dice);
	for (unsigned round = 0; round < 4; round++) {
		child_check_fd(loop);
		(void)loop_ask(loop, dice);
		scheduler.now_ns += dice_magnitude(dice, 34);
		if (loop->kind == LOOP_MANUAL) {
			loop->program_ns = scheduler.now_ns;
			check_result(timerhub_loop_advance(loop->loop, loop->program_ns), 0);
		}
		loop_turn(worker, loop);
		loop_changes(loop, dice);
		loop_settle(loop);
	}
	loop_count(loop);
}

void loops_check_child(struct worker *worker)
{
	for (struct world_loop *loop = loops; loop < loops + loops_count; loop++) {
		struct timerhub_timeout another = { .deadline_ns = 0 };
		bool is_on_hub = loop->kind == LOOP_ON_HUB;

		check_result(timerhub_loop_turn(loop->loop), -EOWNERDEAD);
		check_result(timerhub_loop_settle(loop->loop, NULL), -EOWNERDEAD);
		check_result(timerhub_loop_fd(loop->loop), -EOWNERDEAD);
		check_result(timerhub_timeout_add(loop->loop, &another, on_timeout), -EOWNERDEAD);
		if (is_on_hub)
			check_result(timerhub_loop_adopt(loop->loop), -EOWNERDEAD);
		if (!loop->user) { /* else the fork may have cut a change in two */
			loop->user = worker;
			worker->loop = loop;
			child_changes(loop, &worker->dice);
			if (!is_on_hub)
				child_runs(worker, loop);
		}
		if (!loop->is_turning)
			timerhub_loop_close(loop->loop);
	}
}
