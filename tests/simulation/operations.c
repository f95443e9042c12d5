/* SPDX-License-Identifier: MIT */
/*
 * What the workers of a run do. Each operation is one call of the library, of which the oracle is
 * told before and after. The seed and the number of the operation decide which worker makes which
 * call. It chooses among the timers and queues that exist then, so a run stays valid if its last
 * operations are left out.
 */
#include "simulated_run.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMERHUB_TEST_POINTS
#include "../../lib/base/test_point.h"
#include "own_steps.h"
#include "report.h"

#define MANY_MAX 6
/* A fork costs as much as a thousand operations. */
#define FORK_ONE_IN 16384
/* One signal in so many that interrupts a drain or a wait forks. */
#define SPLIT_ONE_IN 256
/*
 * The library keeps the memory of the last 64 queues that closed or failed to open, and a late call
 * may use one until the run ends: so fewer than 64 of both.
 */
#define CLOSES_MAX 24
/* of timers armed on a closing queue, unknown to the oracle */
#define LATE_DATA UINT64_MAX
/* beyond it no operation sets the clock forward */
#define CLOCK_SET_MAX_NS (UINT64_C(1) << 61)
/* Operation n is seeded with the run's seed and OPERATION_SALT + n. */
#define OPERATION_SALT UINT64_C(0x100)

/* ---- choices ---- */

/*
 * A multiple of 2^6, or of a bucket's width (2^16, 2^28, 2^40, 2^52), soon after `now_ns`, or a
 * nanosecond beside it.
 */
static uint64_t instant_at_edge(struct dice *dice, uint64_t now_ns)
{
	static const unsigned shifts[] = { 6, 6, 16, 16, 16, 28, 28, 40, 52 };
	unsigned shift = shifts[dice_below(dice, 9)];
	uint64_t edge = (now_ns >> shift) + 1 + dice_magnitude(dice, 4);

	return (edge << shift) + dice_below(dice, 3) - 1;
}

/* At most DEADLINE_MAX_NS, or NEVER. */
static uint64_t random_instant(struct dice *dice)
{
	uint64_t now_ns = oracle_now_ns();
	uint64_t ns = now_ns;

	if ((world.plan->focus == FOCUS_PUSH || world.plan->focus == FOCUS_CLOCK) &&
	    !dice_one_in(dice, 8))
		return ns + (UINT64_C(512) << dice_below(dice, 10));
	if (world.plan->focus == FOCUS_FULL)
		return ns + (UINT64_C(1) << ((world.unattended ? 20 : 8) + dice_below(dice, 24)));
	if ((world.plan->focus >= FOCUS_TINY || world.plan->focus == FOCUS_WAITS) &&
	    !dice_one_in(dice, 8))
		/* 64 ns is long past, so the timer expires at once and its slot is soon reused */
		return 64;
	switch (dice_below(dice, 12) + 2 * world.deadline_style) {
	case 0:
		if (dice_one_in(dice, 8))
			return NEVER;
		ns += dice_magnitude(dice, 62);
		break;
	case 1:
		ns -= ns > 1000 ? dice_magnitude(dice, 9) : 0;
		break;
	case 2:
	case 3:
	case 4:
		ns += dice_magnitude(dice, 18);
		break;
	case 5:
	case 6:
		ns += dice_magnitude(dice, 36);
		break;
	case 7:
	case 8:
	case 9:
		ns = instant_at_edge(dice, ns);
		break;
	case 10:
	case 11:
		if (oracle.active_count > 0 && dice_one_in(dice, 2)) {
			const struct life *other =
				oracle.active[dice_below(dice, oracle.active_count)];

			if (other->writes_count > 0)
				return other->writes[0].first_ns;
		}
		ns = world.instants[dice_below(dice, 4)];
		if (ns < now_ns)
			world.instants[dice_below(dice, 4)] = now_ns + dice_magnitude(dice, 30);
		break;
	case 12:
		ns = now_ns + 64 * dice_below(dice, 4);
		break;
	default:
		ns = now_ns + dice_below(dice, 300);
		break;
	}
	return ns > DEADLINE_MAX_NS ? DEADLINE_MAX_NS : ns;
}

/* Returns a timer, mostly a live one, sometimes an ended one; NULL if none was ever armed. */
static struct life *random_life(struct dice *dice)
{
	if (oracle.lives_count == 0)
		return NULL;
	/* mostly the newest, re-armed again and again while other expiries stay in the outbox */
	if (world.plan->focus == FOCUS_STOP && !dice_one_in(dice, 8))
		return &oracle.lives[oracle.lives_count - 1];
	if (oracle.active_count > 0 && !dice_one_in(dice, 8))
		return oracle.active[dice_below(dice, oracle.active_count)];
	return &oracle.lives[oracle.lives_count - 1 -
	                     dice_below(dice, oracle.lives_count < 64 ? oracle.lives_count : 64)];
}

/* Returns the index of a queue that stays open until queue_leave(), or -1 if it can't be used. */
static int queue_enter(struct dice *dice, const struct worker *consumer)
{
	int index = (int)dice_below(dice, world.queues_count);
	struct world_queue *queue = &world.queues[index];

	if (!queue->queue || queue->closing ||
	    (consumer && queue->consumer >= 0 && queue->consumer != (int)consumer->index))
		return -1;
	queue->users++;
	memory_acquire(&queue->opened);
	return index;
}

static void queue_leave(int index)
{
	memory_publish(&world.queues[index].left);
	if (--world.queues[index].users == 0)
		scheduler_wake(&world.queues[index], 1);
}

/* ---- arm ---- */

static void on_event(const struct timerhub_event *event);

static struct timerhub_spec random_spec(struct dice *dice, unsigned queue)
{
	struct timerhub_spec spec = { .size = sizeof(spec), .expires_ns = random_instant(dice) };
	unsigned kind = (unsigned)dice_below(dice, 8);

	if (kind == 0 && world.plan->focus != FOCUS_STOP)
		spec.interval_ns = 1 + dice_magnitude(dice, dice_one_in(dice, 8) ? 62 : 26);
	if (kind == 1)
		spec.slack_ns = dice_magnitude(dice, 30);
	if (kind != 0 && dice_one_in(dice, 3))
		spec.flags = TIMERHUB_KEEP;
	if (world.queues[queue].dispatched || dice_one_in(dice, 4))
		spec.fn = on_event;
	if (spec.interval_ns > 0 || spec.expires_ns <= oracle_now_ns() || dice_one_in(dice, 2))
		spec.flags |= TIMERHUB_ABSOLUTE;
	else if (spec.expires_ns != NEVER)
		spec.expires_ns -= oracle_now_ns();
	return spec;
}

/* If the library reads the clock now. */
static uint64_t spec_deadline_ns(const struct timerhub_spec *spec)
{
	if ((spec->flags & TIMERHUB_ABSOLUTE) != 0 || spec->expires_ns == NEVER)
		return spec->expires_ns;
	return spec->expires_ns + oracle_now_ns();
}

/*
 * -EAGAIN always; -ERANGE if the deadline, which moved with the clock by up to `later_ns`, exceeds
 * DEADLINE_MAX_NS.
 */
static bool refusal_is_right(int result, uint64_t deadline_ns, uint64_t later_ns)
{
	return result == -EAGAIN || (result == -ERANGE && deadline_ns != NEVER &&
	                             deadline_ns + later_ns > DEADLINE_MAX_NS);
}

static int arm_by_some_call(struct timerhub_queue *queue, const struct timerhub_spec *spec,
                            timerhub_timer *ret_timer)
{
	if (spec->flags != 0 || spec->slack_ns > 0)
		return timerhub_arm(queue, spec, ret_timer);
	if (spec->fn)
		return timerhub_call(queue, spec->expires_ns, spec->fn, spec->ptr, ret_timer);
	return timerhub_after(queue, spec->expires_ns, spec->data, ret_timer);
}

static void operation_arm(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	int index = queue_enter(dice, NULL);
	struct timerhub_spec spec;
	struct life *life;
	uint64_t begin_ns = oracle_now_ns(), later_ns, first_ns;
	struct own_steps steps;
	bool silent = dice_one_in(dice, 16);
	int result;

	if (index < 0)
		return;
	spec = random_spec(dice, (unsigned)index);
	first_ns = spec_deadline_ns(&spec);
	life = oracle_arm_begin((unsigned)index, &spec, first_ns);
	spec.data = (uint64_t)(life - oracle.lives);
	report_tell("arm %" PRIu64 " queue %d at %" PRIu64 " interval %" PRIu64 " slack %" PRIu64
	            " flags %u",
	            spec.data, index, first_ns, spec.interval_ns, spec.slack_ns, spec.flags);
	worker->works_on = life;
	world.relative += (spec.flags & TIMERHUB_ABSOLUTE) == 0;
	own_steps_begin(&steps, "arm", 1);
	result = arm_by_some_call(world.queues[index].queue, &spec, silent ? NULL : &life->handle);
	own_steps_end(&steps);
	world.relative -= (spec.flags & TIMERHUB_ABSOLUTE) == 0;
	later_ns = (spec.flags & TIMERHUB_ABSOLUTE) != 0 ? 0 : oracle_now_ns() - begin_ns;
	if (result != 0 && !refusal_is_right(result, first_ns, later_ns))
		report_failure("arm returned %d", result);
	oracle_arm_end(life, result, later_ns);
	report_tell("arm %" PRIu64 " = %d", spec.data, result);
	queue_leave(index);
}

/*
 * Arms a timer on a closing queue, which the contract forbids. The arm may fail, and the timer may
 * be lost or reach a later queue, but the library must not touch freed memory.
 */
static void operation_arm_late(unsigned index)
{
	const struct world_queue *queue = &world.queues[index];
	struct timerhub_spec spec = { .size = sizeof(spec),
		                      .flags = TIMERHUB_ABSOLUTE,
		                      .expires_ns = oracle_now_ns(),
		                      .data = LATE_DATA };
	int result;

	memory_acquire(&queue->opened);
	report_tell("arm on queue %u, which closes", index);
	oracle.calls++;
	result = timerhub_arm(queue->queue, &spec, NULL);
	oracle.calls--;
	if (result != 0 && result != -EAGAIN)
		report_failure("late arm returned %d", result);
}

static void operation_arm_many(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	unsigned count = 1 + (unsigned)dice_below(dice, MANY_MAX);
	int index = queue_enter(dice, NULL);
	struct timerhub_spec specs[MANY_MAX];
	timerhub_timer timers[MANY_MAX] = { 0 };
	struct life *lives[MANY_MAX];
	uint64_t begin_ns = oracle_now_ns();
	struct own_steps steps;
	bool refusable = false;
	int result;

	if (index < 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		uint64_t first_ns;

		specs[i] = random_spec(dice, (unsigned)index);
		first_ns = spec_deadline_ns(&specs[i]);
		lives[i] = oracle_arm_begin((unsigned)index, &specs[i], first_ns);
		specs[i].data = (uint64_t)(lives[i] - oracle.lives);
		refusable |= first_ns != NEVER && first_ns > DEADLINE_MAX_NS / 2;
		report_tell("arm_many %" PRIu64 " queue %d at %" PRIu64 " interval %" PRIu64
		            " slack %" PRIu64,
		            specs[i].data, index, first_ns, specs[i].interval_ns,
		            specs[i].slack_ns);
	}
	world.relative++;
	own_steps_begin(&steps, "arm_many", count);
	result = timerhub_arm_many(world.queues[index].queue, specs, count, timers);
	own_steps_end(&steps);
	world.relative--;
	if (result != (int)count && result != -EAGAIN && !(result == -ERANGE && refusable))
		report_failure("arm_many returned %d", result);
	for (unsigned i = 0; i < count; i++) {
		uint64_t later_ns = oracle_now_ns() - begin_ns;

		if (lives[i]->handle == 0)
			lives[i]->handle = timers[i];
		if (result >= 0 && lives[i]->handle != timers[i])
			report_failure("arm_many told another handle than the event");
		if ((specs[i].flags & TIMERHUB_ABSOLUTE) != 0)
			later_ns = 0;
		oracle_arm_end(lives[i], result < 0 ? result : 0, later_ns);
	}
	report_tell("arm_many = %d", result);
	queue_leave(index);
}

/* ---- re-arm, cancel, remaining ---- */

/* A live timer that a call works on, in a handler the interrupted call's; or `otherwise`. */
static struct life *life_in_call(struct worker *worker, struct life *otherwise)
{
	unsigned count = oracle.active_count;
	unsigned first = count > 0 ? (unsigned)dice_below(&worker->dice, count) : 0;

	if (worker->actor->in_signal && worker->works_on && worker->works_on->state <= LIFE_LIVE)
		return worker->works_on;

	for (unsigned i = 0; i < count; i++)
		if (oracle.active[(first + i) % count]->calls > 0)
			return oracle.active[(first + i) % count];
	return otherwise;
}

static void operation_rearm(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	bool raced = world.plan->focus == FOCUS_FULL && dice_one_in(dice, 2);
	struct life *other = random_life(dice);
	struct life *life = raced ? life_in_call(worker, other) : other;
	uint64_t expires_ns = random_instant(dice);
	uint64_t begin_ns = oracle_now_ns(), first_ns, begin, later_ns;
	uint32_t flags = TIMERHUB_ABSOLUTE;
	struct own_steps steps;
	int result;

	/* a callback mostly re-arms its own timer, which may expire again before it returns */
	if (worker->inside && !worker->actor->in_signal && !dice_one_in(dice, 4))
		life = worker->inside;
	if (!life || !oracle_knows(life))
		return;
	/* FOCUS_FULL halves the time left; otherwise one re-arm in eight keeps the deadline */
	if (world.plan->focus == FOCUS_FULL && !raced && life->writes_count > 0 &&
	    life->writes[0].first_ns > begin_ns)
		expires_ns = begin_ns + (life->writes[0].first_ns - begin_ns) / 2;
	else if (dice_one_in(dice, 8) && life->writes_count > 0)
		expires_ns = life->writes[0].first_ns;
	first_ns = expires_ns;
	if (life->interval_ns == 0 && expires_ns != NEVER && expires_ns > begin_ns &&
	    dice_one_in(dice, 3)) {
		flags = 0;
		expires_ns -= begin_ns;
	}
	begin = oracle_rearm_begin(life, first_ns)->begin;
	report_tell("rearm %td to %" PRIu64 " flags %u", life - oracle.lives, first_ns, flags);
	worker->works_on = life;
	world.relative += flags == 0;
	own_steps_begin(&steps, "rearm", 1);
	result = timerhub_rearm(world.hub, life->handle, expires_ns, flags);
	own_steps_end(&steps);
	world.relative -= flags == 0;
	report_tell("rearm %td = %d", life - oracle.lives, result);
	later_ns = flags == 0 ? oracle_now_ns() - begin_ns : 0;
	if (result != 0 && result != -ENOENT && !(result == 1 && life->kept) &&
	    (result == -EAGAIN || !refusal_is_right(result, first_ns, later_ns)))
		report_failure("rearm returned %d", result);
	oracle_rearm_end(life, begin, result, later_ns);
	/* so that the owner puts a handle back into the outbox */
	if (world.plan->focus == FOCUS_STOP)
		scheduler_block(NULL, scheduler.now_ns + dice_magnitude(&memory.dice, 13));
}

/* Picks up to MANY_MAX different timers on which no call is in progress. Returns their number. */
static unsigned random_lives_at_rest(struct worker *worker, struct life **lives,
                                     timerhub_timer *timers)
{
	unsigned count = 0;

	for (unsigned i = 0; i < MANY_MAX; i++) {
		struct life *life = random_life(&worker->dice);
		bool unfit = !life || !oracle_knows(life) || life->calls > 0 ||
		             oracle_taking(life->queue) || world.queues[life->queue].closing;

		for (unsigned j = 0; j < count && !unfit; j++)
			unfit = lives[j] == life;
		if (unfit)
			continue;
		timers[count] = life->handle;
		lives[count++] = life;
	}
	return count;
}

/* The oracle must know how many are live, so no other call may be on them. */
static void operation_rearm_many(struct worker *worker)
{
	struct life *lives[MANY_MAX];
	timerhub_timer timers[MANY_MAX];
	uint64_t begins[MANY_MAX];
	bool idle[MANY_MAX];
	unsigned count = random_lives_at_rest(worker, lives, timers);
	uint64_t first_ns = random_instant(&worker->dice);
	int result, live = 0;

	for (unsigned i = 0; i < count; i++) {
		live += lives[i]->state == LIFE_LIVE;
		idle[i] = oracle_idles(lives[i]);
		if (lives[i]->kept && oracle_unsure(lives[i]))
			return;
	}
	for (unsigned i = 0; i < count; i++)
		begins[i] = oracle_rearm_begin(lives[i], first_ns)->begin;
	scheduler_hold();
	result = timerhub_rearm_many(world.hub, timers, count, first_ns, TIMERHUB_ABSOLUTE);
	scheduler_release();
	report_tell("rearm_many of %u to %" PRIu64 " = %d", count, first_ns, result);
	if (result != live)
		report_failure("rearm_many returned %d for %d", result, live);
	for (unsigned i = 0; i < count; i++)
		oracle_rearm_end(lives[i], begins[i],
		                 lives[i]->state == LIFE_LIVE ? idle[i] : -ENOENT, 0);
}

/*
 * After a timerhub_cancel_sync() that began at the stamp `begin`, no other worker runs the timer's
 * callback. If the arm had returned before `begin`, no worker will run the callback again.
 */
static void check_silent(const struct worker *worker, struct life *life, uint64_t begin)
{
	for (unsigned i = 0; i < world.workers_count; i++)
		if (&world.workers[i] != worker && world.workers[i].inside == life)
			report_failure("timer %td was cancelled, and its callback still runs",
			               life - oracle.lives);
	life->silent |= life->armed < begin;
	if (life->silent)
		oracle_silenced(life);
}

/* Or `otherwise`. */
static struct life *life_in_callback(struct dice *dice, struct life *otherwise)
{
	unsigned first = (unsigned)dice_below(dice, world.workers_count);

	for (unsigned i = 0; i < world.workers_count; i++) {
		struct worker *worker = &world.workers[(first + i) % world.workers_count];

		if (worker->inside)
			return worker->inside;
	}
	return otherwise;
}

static bool operation_cancel(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	struct life *life = random_life(dice);
	timerhub_timer handle = 0;
	/* not inside a callback, which the awaited one might await */
	bool wait = (dice_one_in(dice, 3) || world.waits) && !worker->inside &&
	            !worker->actor->in_signal;
	struct own_steps steps;
	uint64_t begin;
	int result;

	if (world.waits && !dice_one_in(dice, world.plan->focus == FOCUS_WAITS ? 8 : 2))
		life = life_in_callback(dice, life);
	if (world.plan->focus == FOCUS_FULL)
		life = life_in_call(worker, life);
	if (dice_one_in(dice, 64)) {
		life = NULL;
		handle = dice_one_in(dice, 2) ? 0 : dice_magnitude(dice, 25);
	} else if (!life || !oracle_knows(life)) {
		return false;
	} else {
		handle = life->handle;
	}
	oracle_call_begin(life);
	begin = oracle_stamp();
	report_tell("cancel%s %td", wait ? "_sync" : "", life ? life - oracle.lives : -1);
	if (wait) {
		result = timerhub_cancel_sync(world.hub, handle);
		if (life)
			check_silent(worker, life, begin);
	} else {
		own_steps_begin(&steps, "cancel", 1);
		result = timerhub_cancel(world.hub, handle);
		own_steps_end(&steps);
	}
	report_tell("cancel %td = %d", life ? life - oracle.lives : -1, result);
	oracle_cancel_end(life, begin, result);
	return result == 0;
}

/* Cancels timers on which no other call is in progress, so that the result is known. */
static void operation_cancel_many(struct worker *worker)
{
	struct life *lives[MANY_MAX];
	timerhub_timer timers[MANY_MAX];
	unsigned count = random_lives_at_rest(worker, lives, timers);
	uint64_t begin;
	int result, live = 0;

	for (unsigned i = 0; i < count; i++)
		live += lives[i]->state == LIFE_LIVE;
	begin = oracle_stamp();
	for (unsigned i = 0; i < count; i++)
		oracle_call_begin(lives[i]);
	scheduler_hold();
	result = timerhub_cancel_many(world.hub, timers, count);
	scheduler_release();
	report_tell("cancel_many of %u = %d", count, result);
	if (result != live)
		report_failure("cancel_many returned %d for %d", result, live);
	for (unsigned i = 0; i < count; i++) {
		int each = lives[i]->state == LIFE_LIVE ? 0 : -ENOENT;

		oracle_cancel_end(lives[i], begin, each);
	}
}

static void operation_remaining(struct worker *worker)
{
	struct life *life = random_life(&worker->dice);
	uint64_t remaining_ns = 0, begin, begin_ns = oracle_now_ns();
	int result;

	if (!life || !oracle_knows(life))
		return;
	oracle_call_begin(life);
	begin = oracle_stamp();
	result = timerhub_remaining(world.hub, life->handle, &remaining_ns);
	oracle_remaining_end(life, begin, begin_ns, result, remaining_ns);
}

/*
 * A worker advances the manual hub. Normally the mover does this, an actor that sleeps until the
 * next expiry. The worker wakes the mover, because the next expiry may be an earlier one now.
 */
static void operation_advance(void)
{
	struct bell *bell = kernel_bell(timerhub_wake_fd(world.hub));
	uint64_t next_ns;
	int result;

	oracle.advancing++;
	result = timerhub_advance(world.hub, scheduler.now_ns, &next_ns);
	report_tell("advance by a worker = %d", result);
	if (result != 0 && result != -EBUSY && result != -EINVAL)
		report_failure("advance returned %d", result);
	oracle.advances++;
	world.mover_called = true;
	scheduler_wake(bell, UINT_MAX);
	oracle.advancing--;
}

/* `stats.live` is at most what was live before or was armed meanwhile. */
static void operation_count(void)
{
	struct timerhub_stats stats;

	if (oracle.counting++ == 0)
		oracle.live_most = oracle.active_count + oracle.lingering;
	if (timerhub_stats(world.hub, &stats) < 0)
		report_failure("stats");
	if (!world.late && stats.live > oracle.live_most)
		report_failure("%" PRIu64 " timers are said to live, of at most %u", stats.live,
		               oracle.live_most);
	oracle.counting--;
}

static int on_shown(const struct timerhub_event *timer, uint64_t interval_ns, void *context)
{
	struct worker *worker = context;

	if (!world.late || timer->data != LATE_DATA)
		oracle_shown(&worker->walk, timer, interval_ns);
	if (dice_one_in(&worker->dice, 8))
		operation_nested(worker);
	return 0;
}

static void operation_each(struct worker *worker)
{
	report_tell("each");
	oracle_walk_begin(&worker->walk);
	if (timerhub_each(world.hub, on_shown, worker) != 0)
		report_failure("timerhub_each() did not return 0");
	oracle_walk_end(&worker->walk);
}

static void check_dead(int result)
{
	if (result != -EOWNERDEAD)
		report_failure("a call in a forked child returned %d", result);
}

static void child_begin(void)
{
	kernel_forked();
	memory_begin(MEMORY_SC, memory.dice);
	scheduler_hold();
}

static void child_wait(pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		report_failure("in a forked child: %s",
		               report_text && *report_text ? report_text : "it died");
}

/* A handler forks inside a drain or wait, and the child goes on alone. */
static void operation_split(void)
{
	pid_t pid;

	report_tell("a signal handler forks");
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		child_begin();
	else
		child_wait(pid);
}

/* A wait has its result, so a child forked from now on gets events instead of -EOWNERDEAD. */
static void point_reached(enum test_point point)
{
	struct worker *worker = scheduler.current->argument;

	if (point == TEST_POINT_WAIT_HAS_RESULT && !kernel.forked)
		worker->consumes = false;
}

/* A drain or wait has returned. In a child forked inside that call, checks `result` and exits. */
static void consumed(struct worker *worker, int result)
{
	worker->consumes = false;
	if (!kernel.forked)
		return;
	/* a wait on a closing queue may not ask the hub, which may be gone */
	if (result != -ESHUTDOWN || worker->blocked_on < 0 ||
	    !world.queues[worker->blocked_on].closing)
		check_dead(result);
	_exit(EXIT_SUCCESS);
}

/* Cancels what another thread re-arms or arms, and arms a new one, which gets the slot. */
static void operation_race(struct worker *worker)
{
	if (operation_cancel(worker) && !oracle_full())
		operation_arm(worker);
}

void operation_nested(void *argument)
{
	struct worker *worker = argument;
	struct dice before = worker->dice;

	/* without MADV_WIPEONFORK a child may use a descriptor before it checks for a fork */
	if (worker->consumes && kernel.wipes_on_fork && dice_one_in(&memory.dice, SPLIT_ONE_IN)) {
		operation_split();
		return;
	}
	report_tell("(in between)");
	switch (world.plan->focus == FOCUS_FULL ? 8 : dice_below(&worker->dice, 8)) {
	case 8:
		operation_race(worker);
		break;
	case 0:
	case 1:
		if (!oracle_full())
			operation_arm(worker);
		break;
	case 2:
	case 3:
	case 4:
		operation_rearm(worker);
		break;
	case 5:
	case 6:
		(void)operation_cancel(worker);
		break;
	default:
		operation_remaining(worker);
		break;
	}
	worker->dice = before;
	(void)dice_roll(&worker->dice);
}

/* ---- drain, wait, dispatch ---- */

static struct worker *current_worker(void)
{
	return scheduler.current->argument;
}

static void tell_event(const struct timerhub_event *event)
{
	report_tell("  event %" PRIu64 " due %" PRIu64 " count %" PRIu64, event->data,
	            event->expires_ns, event->count);
}

/* Of several threads in the timer's callbacks at most one gets 0, and then no other runs. */
static void cancel_from_inside(struct worker *worker, struct life *life)
{
	uint64_t begin;
	int result;

	oracle_call_begin(life);
	begin = oracle_stamp();
	report_tell("cancel_sync %td from inside", life - oracle.lives);
	result = timerhub_cancel_sync(world.hub, life->handle);
	report_tell("cancel %td = %d", life - oracle.lives, result);
	if (result == 0)
		check_silent(worker, life, begin);
	oracle_cancel_end(life, begin, result);
}

static void on_event(const struct timerhub_event *event)
{
	struct worker *worker = current_worker();
	struct life *life = &oracle.lives[event->data];

	tell_event(event);
	oracle_taken(worker->taking, event);
	if (life->silent)
		report_failure("timer %" PRIu64 " was cancelled, and its callback runs",
		               event->data);
	worker->inside = life;
	if (dice_one_in(&worker->dice, 8))
		cancel_from_inside(worker, life);
	if (dice_one_in(&worker->dice, 2) && !worker->actor->in_signal)
		operation_nested(worker);
	scheduler_step();
	/* under weak memory, other actors run up to three times during the callback */
	for (unsigned i = (unsigned)dice_below(&memory.dice, 4); memory.mode != MEMORY_SC && i > 0;
	     i--)
		scheduler_yield();
	if (world.waits && (world.plan->focus == FOCUS_WAITS || dice_one_in(&memory.dice, 2)))
		scheduler_block(NULL, scheduler.now_ns + 1 + dice_magnitude(&memory.dice, 20));
	plain_read(&life->data);
	worker->inside = NULL;
}

static void take_events(struct taking *taking, const struct timerhub_event *events, int count)
{
	for (int i = 0; i < count; i++) {
		tell_event(&events[i]);
		if (!world.late || events[i].data != LATE_DATA)
			oracle_taken(taking, &events[i]);
	}
}

static unsigned random_max(struct dice *dice)
{
	return dice_one_in(dice, 2) ? EVENTS_MAX : 1 + (unsigned)dice_below(dice, 4);
}

/* After a drain has emptied a queue, the eventfd is readable only if it was written meanwhile. */
static void take_end(struct taking *taking, int index, bool empty)
{
	int fd = timerhub_queue_fd(world.queues[index].queue);

	if (empty && !taking->crowded && kernel_bell(fd)->edges == taking->edges &&
	    kernel_readable(fd))
		report_failure("queue %d was found empty, and its descriptor is readable", index);
	oracle_take_end(taking, empty);
}

static void queue_drain(struct worker *worker, int index, bool read_first)
{
	struct timerhub_queue *queue = world.queues[index].queue;
	unsigned max = random_max(&worker->dice);
	struct timerhub_event events[EVENTS_MAX];
	struct taking taking;
	int count;

	oracle_take_begin(&taking, (unsigned)index);
	taking.edges = kernel_bell(timerhub_queue_fd(queue))->edges;
	taking.by_hand = !world.queues[index].dispatched;
	if (read_first)
		kernel_read(timerhub_queue_fd(queue));
	report_tell("%s queue %d max %u", world.queues[index].dispatched ? "dispatch" : "drain",
	            index, max);
	if (world.queues[index].dispatched) {
		worker->taking = &taking;
		count = timerhub_dispatch(queue, max);
		worker->taking = NULL;
	} else {
		worker->consumes = true;
		count = timerhub_drain(queue, events, max);
		consumed(worker, count);
		if (count <= (int)max)
			take_events(&taking, events, count);
	}
	report_tell("taken %d", count);
	if (count < 0 || count > (int)max)
		report_failure("drain returned %d", count);
	take_end(&taking, index, count < (int)max && !taking.may_leave);
}

static void operation_drain(struct worker *worker)
{
	int index = queue_enter(&worker->dice, worker);

	if (index < 0)
		return;
	queue_drain(worker, index, false);
	queue_leave(index);
}

/* Polls, sometimes reads, and drains. */
static void operation_poll(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	int index = queue_enter(dice, worker);
	uint64_t until_ns = scheduler.now_ns + dice_magnitude(dice, 30);
	int fd;

	if (index < 0)
		return;
	fd = timerhub_queue_fd(world.queues[index].queue);
	report_tell("poll queue %d until %" PRIu64, index, until_ns);
	if (world.queues[index].consumer >= 0 && dice_one_in(dice, 2)) {
		worker->polls_edge = index;
		kernel_poll_edge(fd, worker->edges[index], until_ns);
		worker->polls_edge = -1;
		worker->edges[index] = kernel_bell(fd)->edges;
	} else {
		kernel_poll_level(fd, until_ns);
	}
	if (kernel_readable(fd))
		queue_drain(worker, index, dice_one_in(dice, 4));
	queue_leave(index);
}

static void check_wait(int index, const struct taking *taking, int result, uint64_t until_ns)
{
	const struct world_queue *queue = &world.queues[index];

	if (result > 0)
		return;
	if (result == 0 && queue->stopped && queue->stopped_at < taking->begin)
		report_failure("a wait on a stopped queue ended by its timeout");
	if (result == 0 && scheduler.now_ns < until_ns)
		report_failure("a wait ended before its timeout");
	if (result == -ESHUTDOWN && !queue->closing && queue->closed < taking->begin &&
	    !queue->stopping)
		report_failure("a wait was shut down on an open queue");
	if (result < 0 && result != -ESHUTDOWN)
		report_failure("wait returned %d", result);
}

/* Returns whether a wait got -ESHUTDOWN from a timerhub_queue_stop(), and not from a close. */
static bool stopped(int index, const struct taking *taking)
{
	const struct world_queue *queue = &world.queues[index];

	return queue->stopping && !queue->closing && queue->closed < taking->begin;
}

static void operation_wait(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	int index = queue_enter(dice, worker);
	uint64_t timeout_ns = dice_one_in(dice, 4) ? UINT64_MAX : dice_magnitude(dice, 34);
	uint64_t until_ns = timeout_ns == UINT64_MAX ? UINT64_MAX : scheduler.now_ns + timeout_ns;
	struct timerhub_event events[EVENTS_MAX];
	unsigned max = random_max(dice);
	struct timerhub_queue *queue;
	struct taking taking;
	int count;

	if (index < 0)
		return;
	queue = world.queues[index].queue;
	queue_leave(index); /* the closer of a queue does not wait for waiters to leave */
	oracle_take_begin(&taking, (unsigned)index);
	taking.by_hand = true;
	worker->blocked_on = index;
	report_tell("wait queue %d max %u until %" PRIu64, index, max, until_ns);
	/* so that the wait may begin after the close */
	if (memory.mode != MEMORY_SC && dice_one_in(&memory.dice, 4))
		scheduler_block(NULL, scheduler.now_ns + 1 +
		                              (world.late ? dice_magnitude(&memory.dice, 20) : 0));
	else if (world.plan->focus == FOCUS_STOP)
		scheduler_block(NULL, scheduler.now_ns + dice_magnitude(&memory.dice, 12));
	worker->consumes = true;
	test_point_hook = point_reached;
	count = timerhub_wait(queue, events, max, timeout_ns);
	consumed(worker, count);
	report_tell("wait = %d", count);
	worker->blocked_on = -1;
	if (count > (int)max)
		report_failure("wait returned %d", count);
	check_wait(index, &taking, count, until_ns);
	take_events(&taking, events, count);
	if (count == -ESHUTDOWN && stopped(index, &taking))
		oracle_shut_down(&taking);
	oracle_take_end(&taking, count == 0 || (count == -ESHUTDOWN && stopped(index, &taking)));
}

static void operation_stop(struct worker *worker)
{
	int index = queue_enter(&worker->dice, NULL);

	if (index < 0)
		return;
	world_stop_queue((unsigned)index);
	queue_leave(index);
}

/* ---- the rest ---- */

static void operation_sleep(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	uint64_t until_ns = scheduler.now_ns + dice_magnitude(dice, 28);
	uint64_t next_ns = oracle_next_ns();

	if (dice_one_in(dice, 2) && next_ns != NEVER && next_ns < UINT64_C(5) << 60)
		until_ns = next_ns + dice_below(dice, 3) - 1;
	if (until_ns > scheduler.now_ns)
		scheduler_block(NULL, until_ns);
}

/* Or suspends the machine. */
static void operation_set_clock(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	uint64_t before_ns = kernel_clock_ns(), now_ns = before_ns, by_ns;

	/* not during a call with a relative deadline, whose reading the oracle would not know */
	if (kernel.clock == CLOCK_MONOTONIC || world.relative > 0)
		return;
	by_ns = dice_magnitude(dice, dice_one_in(dice, 8) ? 60 : 36);
	if (world.plan->focus == FOCUS_CLOCK)
		by_ns = dice_magnitude(dice, 20);
	if (before_ns < CLOCK_SET_MAX_NS &&
	    (kernel.clock != CLOCK_REALTIME || dice_one_in(dice, 2)))
		now_ns += by_ns;
	else if (kernel.clock == CLOCK_REALTIME)
		now_ns -= by_ns < before_ns ? by_ns : before_ns - 1;
	report_tell("clock set from %" PRIu64 " to %" PRIu64, before_ns, now_ns);
	kernel_set_clock(now_ns);
	oracle_clock_set(before_ns);
}

static void operation_reopen(struct worker *worker)
{
	int index = queue_enter(&worker->dice, NULL);
	struct world_queue *queue;
	uint64_t begin;

	if (index < 0)
		return;
	if (world.closes == CLOSES_MAX) {
		queue_leave(index);
		return;
	}
	world.closes++;
	queue = &world.queues[index];
	queue->closing = true;
	queue->users--;
	while (queue->users > 0)
		scheduler_block(queue, UINT64_MAX);
	memory_acquire(&queue->left);
	begin = oracle_drop_begin((unsigned)index);
	report_tell("close queue %d", index);
	timerhub_queue_close(queue->queue);
	report_tell("closed queue %d", index);
	queue->queue = NULL;
	oracle_drop_end((unsigned)index, begin);
	queue->closed = oracle_stamp();
	scheduler_step();
	world_open_queue((unsigned)index, &worker->dice);
	queue->closing = false;
}

/* ---- a forked child ---- */

/* Others were inside calls at the fork. */
static _Noreturn void child_run(const struct life *life)
{
	struct timerhub_event event;
	struct timerhub_stats stats;
	uint64_t remaining_ns;
	timerhub_timer timer = life ? life->handle : 1;

	child_begin();
	check_dead(timerhub_cancel(world.hub, timer));
	check_dead(timerhub_cancel_sync(world.hub, timer));
	check_dead(timerhub_rearm(world.hub, timer, 1, TIMERHUB_ABSOLUTE));
	check_dead(timerhub_remaining(world.hub, timer, &remaining_ns));
	check_dead(timerhub_stats(world.hub, &stats));
	for (unsigned i = 0; i < world.queues_count; i++) {
		struct timerhub_queue *queue = world.queues[i].queue;

		if (!queue || world.queues[i].closing)
			continue;
		check_dead(timerhub_after(queue, 1, 1, NULL));
		check_dead(timerhub_drain(queue, &event, 1));
		check_dead(timerhub_dispatch(queue, 1));
		check_dead(timerhub_wait(queue, &event, 1, UINT64_MAX));
		timerhub_queue_stop(queue);
		if (i == 0)
			timerhub_queue_close(queue);
	}
	timerhub_close(world.hub);
	_exit(EXIT_SUCCESS);
}

static void operation_fork(void)
{
	const struct life *life = random_life(&memory.dice);
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		child_run(life);
	child_wait(pid);
}

static void operation_do(struct worker *worker, unsigned kind)
{
	unsigned index = world.late ? (unsigned)dice_below(&worker->dice, world.queues_count) : 0;

	if (world.late && world.queues[index].queue && world.queues[index].closing)
		operation_arm_late(index);
	else if (kind < 24)
		operation_arm(worker);
	else if (kind < 30)
		operation_arm_many(worker);
	else if (kind < 48)
		for (unsigned i = world.plan->focus == FOCUS_STOP ? 4 : 1; i > 0; i--)
			operation_rearm(worker);
	else if (kind < 50)
		operation_rearm_many(worker);
	else if (kind < 62 && world.plan->focus == FOCUS_FULL)
		operation_race(worker);
	else if (kind < 62)
		(void)operation_cancel(worker);
	else if (kind < 64)
		operation_cancel_many(worker);
	else if (kind < 66)
		operation_remaining(worker);
	else if (kind < 67)
		operation_count();
	else if (kind < 79)
		operation_drain(worker);
	else if (kind < 84)
		operation_wait(worker);
	else if (kind < 89)
		operation_poll(worker);
	else if (kind < 90 && world.manual)
		operation_advance();
	else if (kind < 90)
		operation_set_clock(worker);
	else
		operation_sleep(worker);
}

/* Mostly re-arms, some arms, drains and stops, few cancels. */
static void operations_stop(void)
{
	for (unsigned i = 0; i < OPERATION_KINDS; i++)
		world.kinds[i] = i < 8 ? 0 : i < 88 ? 30 : i < 89 ? 50 : i < 97 ? 79 : 97;
}

/* Mostly re-arms and races (a cancel, then an arm), some arms, few drains. */
static void operations_full(void)
{
	for (unsigned i = 0; i < OPERATION_KINDS; i++)
		world.kinds[i] = i < 12 ? 0 : i < 60 ? 30 : i < 90 ? 50 : i < 95 ? 67 : 90;
}

/*
 * Under weak memory a fault needs a few related operations in a row, so most runs make four kinds
 * more frequent.
 */
void operations_begin(struct dice *dice)
{
	static const uint8_t firsts[] = {
		0, 0, 24, 30, 50, 50, 62, 64, 66, 67, 79, 84, 89, 90, 99
	};
	uint8_t favourites[] = { 0, 67, 0, 0 };
	const uint8_t closing = 99, cancelling = 50, setting = 89;
	enum focus focus = world.plan->focus;

	for (unsigned i = 0; i < OPERATION_KINDS; i++)
		world.kinds[i] = (uint8_t)i;
	if (focus == FOCUS_STOP) {
		operations_stop();
		return;
	}
	if (focus == FOCUS_FULL) {
		operations_full();
		return;
	}
	if (memory.mode == MEMORY_SC || (dice_one_in(dice, 4) && focus == FOCUS_NONE))
		return;
	world.late = dice_one_in(dice, 8) && focus == FOCUS_NONE;
	world.late |= focus == FOCUS_LATE;
	if (world.late) {
		oracle.apart = true;
		favourites[1] = closing;
	}
	world.dispatches = dice_one_in(dice, 2) || focus == FOCUS_WAITS;
	world.waits = world.dispatches && (dice_one_in(dice, 2) || focus == FOCUS_WAITS);
	if (focus >= FOCUS_PUSH)
		favourites[2] = cancelling;
	else if (focus == FOCUS_CLOCK)
		favourites[2] = setting;
	else if (world.waits)
		favourites[2] = favourites[3] = cancelling;
	for (unsigned i = focus >= FOCUS_CLOCK ? 3 : 2; i < sizeof(favourites); i++)
		favourites[i] = firsts[dice_below(dice, sizeof(firsts))];
	for (unsigned i = 0; i < OPERATION_KINDS; i++)
		if (!dice_one_in(dice, 8))
			world.kinds[i] = favourites[dice_below(dice, sizeof(favourites))];
}

unsigned operation_worker(uint64_t seed, unsigned number, unsigned workers)
{
	struct dice dice = dice_seeded(seed, OPERATION_SALT + number);

	return (unsigned)dice_below(&dice, workers);
}

void operation_run(struct worker *worker, unsigned number)
{
	struct dice dice = dice_seeded(world.plan->seed, OPERATION_SALT + number);
	unsigned kind;

	/* used by operation_worker() */
	(void)dice_roll(&dice);
	kind = world.kinds[dice_below(&dice, OPERATION_KINDS)];
	worker->dice = dice;
	worker->operation = number;
	if (oracle.lives_count + 64 > LIVES_MAX)
		return;
	if (dice_one_in(&memory.dice, FORK_ONE_IN))
		operation_fork();
	worker->actor->signal = operation_nested;
	if (kind == 99 && (world.late || dice_one_in(&dice, 4))) {
		worker->actor->signal = NULL;
		operation_reopen(worker);
	} else if (kind == 98) {
		operation_each(worker);
	} else if (kind == 97 && (dice_one_in(&dice, 4) || world.plan->focus == FOCUS_STOP)) {
		operation_stop(worker);
	} else {
		operation_do(worker, kind);
	}
	worker->actor->signal = NULL;
	if ((number & 3) == 0)
		world_conserve();
}
