/* SPDX-License-Identifier: MIT */
/*
 * The first actor opens the hub, waits until all workers have ended, and closes the hub. After that
 * the simulated kernel must have nothing left of it.
 */
#include "simulated_run.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../harness/hub_check.h"
#include "own_steps.h"
#include "report.h"

/* EARLY_WAKE_MAX_NS of lib/owner/early_wake.h: how long the owner spins, if spin_ns is shorter. */
#define EARLY_WAKE_NS 16000
/* OWNER_GATHER_NS of lib/owner/owner.c: how late a coalescing owner may be. */
#define GATHER_NS 250000
/*
 * STOPPED_NAP_NS of lib/hub/wait_stop.c: a waiter's nap while the owner compacts a stopped
 * queue.
 */
#define STOPPED_NAP_NS 50000

struct world world;

/* Below 2^62: just before a bucket or a power of two, or of random magnitude. */
static uint64_t first_instant(struct dice *dice)
{
	unsigned shift = dice_below(dice, 3) == 0 ? 16 + 12 * (unsigned)dice_below(dice, 4) : 0;

	if (shift > 0)
		return ((1 + dice_magnitude(dice, 61 - shift)) << shift) -
		       dice_magnitude(dice, shift);
	if (dice_one_in(dice, 2))
		return (UINT64_C(1) << (6 + dice_below(dice, 57))) - dice_magnitude(dice, 6);
	return dice_magnitude(dice, 62);
}

/* ---- open ---- */

/* With room to set it forward later. */
static uint32_t world_choose_clock(struct dice *dice)
{
	unsigned choice = world.manual ? 2 : (unsigned)dice_below(dice, 6);

	if (world.plan->focus == FOCUS_CLOCK)
		choice = 0;

	if (choice > 1)
		return TIMERHUB_CLOCK_MONOTONIC;
	kernel.clock = choice == 0 ? CLOCK_REALTIME : CLOCK_BOOTTIME;
	kernel.ahead_ns = first_instant(dice) - scheduler.now_ns;
	return choice == 0 ? TIMERHUB_CLOCK_REALTIME : TIMERHUB_CLOCK_BOOTTIME;
}

static void world_open_hub(struct dice *dice)
{
	static const uint32_t capacities[] = { 1, 2, 3, 4, 6, 8, 16, 24, 48, 64, 20, 52 };
	enum focus focus = world.plan->focus;
	bool few = focus == FOCUS_TINY || (focus == FOCUS_WAITS && dice_one_in(dice, 2));
	unsigned first = focus == FOCUS_STOP ? 1 : focus == FOCUS_FULL ? 5 : 0;
	unsigned choices = focus == FOCUS_FULL ? 7 : few || first > 0 ? 2 : 10;
	struct timerhub_config config = {
		.size = sizeof(config),
		.flags = world.manual ? TIMERHUB_MANUAL : 0,
		.timers_max = capacities[first + dice_below(dice, choices)],
		.clock = world_choose_clock(dice),
		.sleeper = dice_one_in(dice, 3) ? TIMERHUB_SLEEPER_POLL : TIMERHUB_SLEEPER_AUTO,
		.spin_ns = dice_magnitude(dice, 20),
	};
	int result = -1;

	if (dice_one_in(dice, 3))
		config.spin_ns = dice_below(dice, 2);
	kernel.spin_max_ns = config.spin_ns > EARLY_WAKE_NS ? config.spin_ns : EARLY_WAKE_NS;
	oracle_begin(config.timers_max);
	oracle.gather_ns = !world.manual && config.spin_ns == 0 ? GATHER_NS : 0;
	/* the k-th request for memory, a descriptor or a thread fails; if k is 13, none does */
	for (unsigned k = dice_one_in(dice, 4) ? 1 : 12; result < 0; k++) {
		kernel.refuse_after = k <= 12 ? k : 0;
		result = timerhub_open(&world.hub, &config);
		if (result < 0 && k > 12)
			report_failure("open was refused, %d, for no reason", result);
		if (result < 0 && (kernel.bells | kernel.regions | kernel.threads | kernel.rings))
			report_failure("a refused open left something behind");
	}
	kernel.refuse_after = 0;
	oracle.manual_hub = world.manual ? world.hub : NULL;
	report_tell("open: %s, for %u timers, spin %" PRIu64 " ns, %u processors, clock %u",
	            world.manual ? "manual" : "with an owner", config.timers_max, config.spin_ns,
	            kernel.cpus, config.clock);
}

void world_open_queue(unsigned index, struct dice *dice)
{
	struct world_queue *queue = &world.queues[index];
	int result = -1;

	kernel.refuse_after = dice_one_in(dice, 4) ? 1 + (unsigned)dice_below(dice, 3) : 0;
	while (result < 0) {
		bool refuse = kernel.refuse_after > 0;
		uint64_t begin = oracle_stamp();
		struct timerhub_queue *opened = NULL;

		world.refusing += refuse;
		result = timerhub_queue_open(world.hub, &opened, NULL);
		world.refusing -= refuse;
		/* of two opens at once, the refusal may hit the one that was not meant */
		if (result < 0 &&
		    ((!refuse && world.refusing == 0 && world.refused < begin) || opened))
			report_failure("a queue was refused, %d, for no reason", result);
		kernel.refuse_after = 0;
		if (refuse)
			world.refused = oracle_stamp();
		queue->queue = opened;
	}
	queue->stopping = queue->stopped = false;
	oracle.queues[index].queue = queue->queue;
	queue->fd = timerhub_queue_fd(queue->queue);
	memory_publish(&queue->opened);
	for (unsigned i = 0; i < world.workers_count; i++)
		world.workers[i].edges[index] = 0;
}

static void world_open_queues(struct dice *dice)
{
	world.queues_count = 1 + (unsigned)dice_below(dice, QUEUES_MAX);
	if (world.plan->focus == FOCUS_STOP)
		world.queues_count = 1;
	for (unsigned i = 0; i < world.queues_count; i++) {
		struct world_queue *queue = &world.queues[i];

		queue->dispatched = dice_one_in(dice, 3) || world.dispatches;
		queue->consumer =
			dice_one_in(dice, 3) ? -1 : (int)dice_below(dice, world.workers_count);
		oracle.queues[i].sole_consumer = queue->consumer >= 0;
		world_open_queue(i, dice);
	}
}

/* ---- actors ---- */

static void worker_run(void *argument)
{
	struct worker *worker = argument;

	for (unsigned i = 0; i < world.plan->operations; i++)
		if (world.doers[i] == worker->index)
			operation_run(worker, i);
	world.workers_over++;
	scheduler_wake(&world.workers_over, 1);
}

static void mover_poll(uint64_t until_ns)
{
	struct bell *bell = kernel_bell(timerhub_wake_fd(world.hub));

	scheduler_step();
	while (bell->count == 0 && !world.mover_called && scheduler.now_ns < until_ns)
		scheduler_block(bell, until_ns);
	world.mover_called = false;
	memory_lock(&bell->view);
}

/* At the times that it asks for, and when its wake descriptor is readable. */
static void mover_run(void *unused)
{
	uint64_t next_ns;

	(void)unused;
	while (!world.over) {
		uint64_t now_ns = scheduler.now_ns;
		int result;

		next_ns = 0;
		/* the program does other things for long */
		if (world.unattended)
			scheduler_block(NULL,
			                now_ns + (1 << 20) + dice_magnitude(&memory.dice, 30));
		now_ns = scheduler.now_ns;
		report_tell("  advance");
		result = timerhub_advance(world.hub, now_ns, &next_ns);
		/* a worker is advancing the hub, perhaps stalled, and wakes this actor later */
		if (result == -EBUSY) {
			mover_poll(UINT64_MAX);
			continue;
		}
		/* a worker has advanced beyond now_ns */
		if (result == -EINVAL && oracle_now_ns() > now_ns)
			continue;
		if (result < 0)
			report_failure("advance returned %d", result);
		if (next_ns <= now_ns)
			report_failure("advance asks to be called again at once");
		report_tell("  advance = %d, next %" PRIu64, result, next_ns);
		if (world.over)
			return;
		kernel.owner_until_ns = next_ns;
		oracle.mover_sleeps = true;
		mover_poll(next_ns);
		oracle.mover_sleeps = false;
	}
}

static void world_spawn(struct dice *dice)
{
	world.workers_count = 1 + (unsigned)dice_below(dice, WORKERS_MAX);
	for (unsigned i = 0; i < world.plan->operations; i++)
		world.doers[i] =
			(uint8_t)operation_worker(world.plan->seed, i, world.workers_count);
	for (unsigned i = 0; i < world.workers_count; i++) {
		struct worker *worker = &world.workers[i];

		*worker = (struct worker){ .index = i, .blocked_on = -1, .polls_edge = -1 };
		worker->actor = scheduler_spawn(worker_run, worker);
	}
	oracle.mover = kernel.owner;
	if (world.manual)
		oracle.mover = scheduler_spawn(mover_run, NULL);
}

/* ---- when no actor can run ---- */

/*
 * A consumer may hold events: also a worker inside a callback, which may wait in
 * timerhub_cancel_sync() for a stalled dispatcher and signals only at its dispatch's end, and one
 * that waits for a callback cell.
 */
static bool world_taking(unsigned index)
{
	for (unsigned i = 0; i < world.workers_count; i++) {
		const struct worker *worker = &world.workers[i];

		if (worker->inside && worker->inside->queue == index)
			return true;
		if (worker->taking && worker->taking->queue == index &&
		    worker->actor->wake_ns != UINT64_MAX)
			return true;
	}
	return oracle_taking(index);
}

/*
 * Fails if it waits although its queue has an event (`due`) or was stopped.
 */
static void worker_quiet(const struct worker *worker, unsigned due)
{
	int index = worker->blocked_on >= 0 ? worker->blocked_on : worker->polls_edge;

	if (index < 0 || !worker->actor->waits_on)
		return;
	if ((due >> index & 1) != 0 && !world_taking((unsigned)index))
		report_failure("worker %u waits for queue %d, which has timer %u", worker->index,
		               index, oracle.queues[index].due);
	/* a waiter naps while the owner compacts, and perhaps still when that is done */
	if (worker->blocked_on >= 0 && world.queues[index].stopped && oracle_mover_sleeps() &&
	    worker->actor->wake_ns > scheduler.now_ns + STOPPED_NAP_NS)
		report_failure("worker %u waits on, and the queue is stopped", worker->index);
}

static bool world_has_no_callers(void)
{
	if (oracle.calls > 0)
		return false;
	for (unsigned i = 0; i < world.queues_count; i++)
		if (oracle_taking(i) || world.queues[i].closing)
			return false;
	return true;
}

/* hub_check() at every second sleep, to save time. */
static void world_check(void)
{
	enum hub_callers callers = HUB_HAS_CALLERS;
	const char *broken;

	if (!oracle_mover_sleeps() || world.sleeps++ % 2 != 0)
		return;
	scheduler_hold();
	memory_peek(true);
	if (world_has_no_callers())
		callers = world.late ? HUB_HAD_LATE_CALLERS : HUB_HAS_NO_CALLERS;
	broken = hub_check(world.hub, callers);
	memory_peek(false);
	scheduler_release();
	if (broken)
		report_failure("while the owner sleeps: %s is broken", broken);
}

static void world_quiet(void)
{
	unsigned due;

	if (!world.hub || world.over || !oracle.mover) /* the run has not begun, or is over */
		return;
	due = oracle_quiet();
	for (unsigned i = 0; i < world.queues_count; i++) {
		const struct world_queue *queue = &world.queues[i];

		if (queue->queue && !queue->closing && (due >> i & 1) != 0 && !world_taking(i) &&
		    !kernel_readable(queue->fd))
			report_failure("queue %u has timer %u, and its descriptor does not say so",
			               i, oracle.queues[i].due);
	}
	for (unsigned i = 0; i < world.workers_count; i++)
		worker_quiet(&world.workers[i], due);
	world_check();
	world_conserve();
}

static void world_stuck(void)
{
	if (world.stuck || world.workers_over == world.workers_count)
		report_failure("no actor can run, and none waits for a time");
	world.stuck = true;
	scheduler_wake(&world.workers_over, 1);
}

void world_conserve(void)
{
	struct timerhub_stats stats;

	if (!world_has_no_callers() || world.late)
		return;
	scheduler_hold();
	memory_peek(true);
	if (timerhub_stats(world.hub, &stats) < 0)
		report_failure("stats");
	memory_peek(false);
	scheduler_release();
	oracle_conserve(&stats);
}

/* ---- the run ---- */

void world_stop_queue(unsigned index)
{
	struct world_queue *queue = &world.queues[index];

	report_tell("stop queue %u", index);
	queue->stopping = true;
	timerhub_queue_stop(queue->queue);
	queue->stopped = true;
	queue->stopped_at = oracle_stamp();
}

static bool world_waited_for(unsigned queue)
{
	for (unsigned i = 0; i < world.workers_count; i++)
		if (world.workers[i].blocked_on == (int)queue)
			return true;
	return false;
}

/* Stops the queues that workers wait on, if nothing else will end these waits. */
static void world_wait_for_workers(void)
{
	while (world.workers_over < world.workers_count) {
		world.stuck = false;
		scheduler_block(&world.workers_over, UINT64_MAX);
		if (!world.stuck)
			continue;
		for (unsigned i = 0; i < world.queues_count; i++) {
			struct world_queue *queue = &world.queues[i];

			if (!world_waited_for(i) || queue->closing)
				continue;
			queue->users++; /* so that nobody closes it meanwhile */
			memory_acquire(&queue->opened);
			world_stop_queue(i);
			memory_publish(&queue->left);
			if (--queue->users == 0)
				scheduler_wake(queue, 1);
		}
	}
	for (unsigned i = 0; i < world.workers_count; i++)
		memory_join((unsigned)(world.workers[i].actor - scheduler.actors));
}

/* Tells the oracle that the owner reads the clock, except while world_close() closes the queues. */
static void world_owner_reads(bool spins)
{
	if (!world.over)
		oracle_owner_reads(spins);
}

static void world_close(struct dice *dice)
{
	world.over = true;
	if (world.manual) {
		scheduler_calm();
		world.mover_called = true;
		scheduler_wake(kernel_bell(timerhub_wake_fd(world.hub)), 1);
		while (!oracle.mover->over)
			scheduler_block(oracle.mover, UINT64_MAX);
		memory_join((unsigned)(oracle.mover - scheduler.actors));
	}
	for (unsigned i = 0; i < world.queues_count; i++)
		if (dice_one_in(dice, 2)) {
			timerhub_queue_close(world.queues[i].queue);
			world.queues[i].queue = NULL;
		}
	timerhub_close(world.hub);
	world.hub = NULL;
	if (kernel.bells | kernel.regions | kernel.threads | kernel.rings)
		report_failure("close left something behind: %u descriptors, %u regions, "
		               "%u threads, %u rings",
		               kernel.bells, kernel.regions, kernel.threads, kernel.rings);
}

void world_run(const struct plan *plan)
{
	struct dice dice = dice_seeded(plan->seed, 1);
	uint64_t now_ns;

	memset(&world, 0, sizeof(world));
	world.plan = plan;
	world.unattended = plan->focus == FOCUS_FULL && dice_one_in(&dice, 2);
	world.manual = world.unattended || (dice_one_in(&dice, 4) && plan->focus != FOCUS_CLOCK);
	now_ns = first_instant(&dice);
	scheduler_begin(dice_seeded(plan->seed, 2), now_ns);
	if (plan->focus == FOCUS_TINY) {
		scheduler.stall_one_in = 16;
		scheduler.length_mask = 15;
	}
	if (plan->focus == FOCUS_STOP) {
		scheduler.stall_one_in = 16;
		scheduler.stall_bits = 8;
		scheduler.length_mask = 3;
	}
	if (plan->focus == FOCUS_FULL) {
		scheduler.stall_one_in = 16;
		scheduler.stall_bits = world.unattended ? 16 : 32;
		scheduler.length_mask = 3;
		scheduler.signal_mask = 3;
	}
	/* slow in mode sc, so in one run of four */
	own_steps_start(plan->memory != MEMORY_SC || plan->focus == FOCUS_FULL ||
	                plan->seed % 4 == 0);
	memory_begin(plan->memory, dice_seeded(plan->seed, 4));
	scheduler.quiet = world_quiet;
	scheduler.stuck = world_stuck;
	kernel_begin(dice_seeded(plan->seed, 3));
	kernel.owner_reads = world_owner_reads;
	world.deadline_style = (unsigned)dice_below(&dice, 4);
	for (unsigned i = 0; i < 4; i++)
		world.instants[i] = dice_magnitude(&dice, 40);
	world_open_hub(&dice);
	operations_begin(&memory.dice);
	for (unsigned i = 0; i < 4; i++)
		world.instants[i] += oracle_now_ns();
	world.workers_count = WORKERS_MAX;
	world_open_queues(&dice);
	world_spawn(&dice);
	world_wait_for_workers();
	scheduler_calm();
	/* nobody else can run, so world_quiet() comes once more */
	scheduler_block(NULL, scheduler.now_ns + 1);
	world_close(&dice);
}
