/* SPDX-License-Identifier: MIT */
/*
 * See owner.h; control flow only.
 *
 * A pass: number it; read the clock, then look at the inbox (the other way round a timer armed in
 * between, with the earlier deadline, would come out second); expire up to that reading, telling
 * queues as it goes; rest; promise. What is filed in the schedule is a hint like everything else:
 * the state word decides. Invariant: a timer that is armed and not in the inbox is filed no later
 * than it may expire.
 *
 * Labels: [started] owner_main → owner_start: carries start_result, the tid and the sleeper.
 *         [armed] any change of a state word → owner_look_at, owner_expire_slot, owner_true_ns:
 *         carries the cold record and the identity of that life.
 *         [life] hub_arm_slot → owner_expire_slot: carries the cold record, if the word equals that
 *         of an earlier life.
 *         [queue] timerhub_queue_open → owner_deliver: carries the queue.
 *         [pass] owner_begin_pass → owner_wait_pass: carries that the pass before is over.
 */
#define _GNU_SOURCE
#include "owner.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "check.h"
#include "cpu.h"
#include "futex.h"
#include "probe.h"

/* Slots taken from the inbox at once, so that their memory can be fetched side by side. */
#define OWNER_BATCH 32
/* How many expiries ahead their memory is fetched. */
#define OWNER_AHEAD 12
/* Slots looked at before the inbox is looked at again: a dozen microseconds or two. */
#ifndef OWNER_REST
#define OWNER_REST 256
#endif
/* After so many refusals in a row to sleep in io_uring, use the other sleeper for good. */
#define OWNER_SLEEP_FAILURES_MAX 3
/* More expiries than this in a millisecond are a crowd: then the owner looks only so often. */
#ifndef OWNER_CROWD
#define OWNER_CROWD 128
#endif
#define OWNER_CROWD_NS 1000000
#define OWNER_GATHER_NS 250000
/* How often to look at a clock that may be set without our being told. */
#define OWNER_ALARM_REFUSED_NS 1000000000u

int owner_open(struct owner *owner, const struct owner_world *world)
{
	owner->world = *world;
	owner->counts = world->counts;
	teller_init(&owner->teller, world->clock, world->counts);
	return schedule_open(&owner->schedule, world->arena->filings, world->arena->capacity);
}

void owner_close(struct owner *owner)
{
	schedule_close(&owner->schedule);
}

/* ---- looking at the inbox ---- */

/* The instant to file a timer under. */
static uint64_t owner_instant_ns(const struct owner *owner, uint32_t slot, uint64_t word,
                                 uint64_t identity)
{
	uint64_t deadline_ns = timer_deadline_ns(word, identity);
	uint64_t queue_slack;

	if (!identity_has_slack(identity))
		return deadline_ns;
	queue_slack = u64_load_relaxed(&owner->world.arena->cold[slot].queue_slack);
	return timer_slacken_ns(deadline_ns, queue_slack_slack_ns(queue_slack));
}

/*
 * A re-armed timer's periods begin at its new deadline. Until the owner makes the timer pending, no
 * consumer reads the base.
 */
static void owner_move_base(struct owner *owner, uint32_t slot, uint64_t word, uint64_t identity)
{
	struct timer_period *period = &owner->world.arena->periods[slot];

	/* Relaxed: the CAS that makes the timer pending carries both. [armed] */
	u64_store_relaxed(&period->moved_ns, timer_deadline_ns(word, identity));
	u64_store_relaxed(&period->moved_life, identity);
}

/*
 * The CAS also confirms that the word's life is that of the identity which was read before.
 * Models: tests/models/word.pml, tests/models/inbox.pml.
 */
static void owner_look_at(struct owner *owner, uint32_t slot)
{
	struct timer_hot *hot = &owner->world.arena->hot[slot];
	uint64_t word = u64_load_acquire(&hot->word); /* [armed] */
	uint64_t identity;

	/* After this a change puts the slot into the inbox again. */
	do {
		identity = u64_load_relaxed(&hot->identity);
	} while (!u64_cas_seq_cst(&hot->word, &word, word_looked_at(word, identity)));
	switch (word_phase(word)) {
	case TIMER_FREE:
		schedule_remove(&owner->schedule, slot);
		break;
	case TIMER_ARMED:
		if (word_fresh(word, identity))
			owner_move_base(owner, slot, word, identity);
		schedule_insert(&owner->schedule, slot,
		                owner_instant_ns(owner, slot, word, identity));
		break;
	case TIMER_PENDING:
	case TIMER_PARKED:
		break; /* filed as it should be: expired since it was put in here */
	}
}

static void owner_empty_inbox(struct owner *owner)
{
	struct inbox *inbox = owner->world.inbox;
	uint32_t slots[OWNER_BATCH];
	uint64_t total = 0;
	unsigned count;

	inbox_begin(inbox);
	while ((count = inbox_take(inbox, slots, OWNER_BATCH)) > 0) {
		for (unsigned i = 0; i < count; i++) {
			__builtin_prefetch(&owner->world.arena->hot[slots[i]], 1);
			__builtin_prefetch(&owner->world.arena->filings[slots[i]], 1);
		}
		for (unsigned i = 0; i < count; i++)
			schedule_fetch(&owner->schedule, slots[i]);
		for (unsigned i = 0; i < count; i++)
			owner_look_at(owner, slots[i]);
		total += count;
	}
	if (total > u64_load_relaxed(&owner->counts->inbox_max))
		u64_store_relaxed(&owner->counts->inbox_max, total);
}

/* ---- expiring ---- */

/* Is the handle still that of an undelivered expiry, and this its latest place? */
static bool owner_keep(void *context, uint64_t handle, uint64_t old_place, uint64_t new_place)
{
	struct owner *owner = context;
	uint32_t slot = handle_slot(handle);
	struct timer_hot *hot = &owner->world.arena->hot[slot];
	struct timer_filing *filing = &owner->world.arena->filings[slot];
	/* Relaxed: we made it pending; if that seems to last too long, a dead handle is kept. */
	uint64_t word = u64_load_relaxed(&hot->word);

	owner->swept++;
	if (!timer_is(word, u64_load_relaxed(&hot->identity), handle) || !word_undelivered(word) ||
	    filing->place != (uint32_t)old_place)
		return false;
	filing->place = (uint32_t)new_place;
	return true;
}

/* Make room in the queue's outbox. */
static void owner_compact(struct owner *owner, struct timerhub_queue *queue)
{
	teller_tell(&owner->teller);
	owner->swept = 0;
	teller_put_back(&owner->teller, queue, outbox_compact(&queue->outbox, owner_keep, owner));
	u64_count(&queue->counts->put, -owner->swept);
}

/* Models: tests/models/notifier.pml, tests/models/close.pml. */
static void owner_put(struct owner *owner, struct timerhub_queue *queue, uint64_t handle,
                      uint64_t deadline_ns)
{
	if (!outbox_has_room(&queue->outbox))
		owner_compact(owner, queue);
	owner->world.arena->filings[handle_slot(handle)].place =
		(uint32_t)outbox_put(&queue->outbox, handle);
	teller_put(&owner->teller, queue, deadline_ns);
}

/*
 * File a periodic timer, which has just expired, for its first period that is not due. If its life
 * has ended since, the slot is in the inbox, and the owner files the next life when it looks there.
 */
static void owner_file_next_period(struct owner *owner, uint32_t slot, uint64_t identity,
                                   uint64_t interval_ns, uint64_t slack_ns)
{
	uint64_t base_ns = period_base_ns(&owner->world.arena->periods[slot], identity);
	uint64_t next_ns = period_next_ns(base_ns, interval_ns, owner->now_ns);

	schedule_insert(&owner->schedule, slot, timer_slacken_ns(next_ns, slack_ns));
}

/* The timer was armed on a queue that was being closed: its life ends here. */
static void owner_drop(struct owner *owner, uint64_t handle)
{
	uint32_t slot = handle_slot(handle);
	struct timer_hot *hot = &owner->world.arena->hot[slot];
	uint64_t word = u64_load_acquire(&hot->word); /* [armed] */

	schedule_remove(&owner->schedule, slot);
	while (timer_is(word, u64_load_relaxed(&hot->identity), handle))
		if (u64_cas_seq_cst(&hot->word, &word, word_with_phase(word, TIMER_FREE))) {
			arena_put(owner->world.arena, 0, slot);
			return;
		}
}

/*
 * The timer has just become pending: hand it to its queue, and file its next period if it has any.
 */
static void owner_deliver(struct owner *owner, uint32_t slot, uint64_t identity,
                          uint64_t deadline_ns, uint64_t interval_ns, uint64_t queue_slack)
{
	uint64_t handle = handle_make(identity_generation(identity), slot);
	struct timerhub_queue *queue = ptr_load_acquire(
		&owner->world.queues[queue_slack_queue(queue_slack)]); /* [queue] */

	if (!queue || queue == QUEUE_GONE) {
		owner_drop(owner, handle);
		return;
	}
	if (interval_ns > 0)
		owner_file_next_period(owner, slot, identity, interval_ns,
		                       queue_slack_slack_ns(queue_slack));
	probe3(expire, handle, deadline_ns, owner->now_ns - deadline_ns);
	owner_put(owner, queue, handle, deadline_ns);
}

/*
 * The slot's instant has come, and it is filed nowhere. What is read of the caller's before the CAS
 * is of the same life if the CAS succeeds. Model: tests/models/word.pml.
 */
static void owner_expire_slot(struct owner *owner, uint32_t slot)
{
	struct timer_hot *hot = &owner->world.arena->hot[slot];
	const struct timer_cold *cold = &owner->world.arena->cold[slot];
	uint64_t word = u64_load_acquire(&hot->word); /* [armed] */

	for (;;) {
		uint64_t identity = u64_load_acquire(&hot->identity); /* [life] */
		uint64_t queue_slack = u64_load_relaxed(&cold->queue_slack);
		uint64_t interval_ns = u64_load_relaxed(&cold->interval_ns);
		uint64_t deadline_ns = timer_deadline_ns(word, identity);
		uint64_t at_ns = timer_slacken_ns(deadline_ns, queue_slack_slack_ns(queue_slack));

		if (word_phase(word) == TIMER_FREE || word_phase(word) == TIMER_PARKED)
			return;
		if (word_phase(word) == TIMER_PENDING) {
			/* Not delivered in a whole period: the delivery will file it. */
			if (!identity_periodic(identity) ||
			    u64_cas_seq_cst(&hot->word, &word, word_with_phase(word, TIMER_PARKED)))
				return;
			continue;
		}
		/* Re-armed: the slot is in the inbox, or on its way there. */
		if (word_fresh(word, identity))
			return;
		/* Moved later. Filed again even if that is due by now, to come in order. */
		if (at_ns > owner->schedule.taken_ns) {
			schedule_insert(&owner->schedule, slot, at_ns);
			u64_count(&owner->counts->refiled, 1);
			return;
		}
		test_point(TEST_POINT_OWNER_BEFORE_CAS);
		if (!u64_cas_seq_cst(&hot->word, &word, word_with_phase(word, TIMER_PENDING)))
			continue;
		if (u64_load_relaxed(&hot->identity) != identity) {
			/* Not the life that we read of: leave it as it was, and read again. */
			uint64_t pending = word_with_phase(word, TIMER_PENDING);

			(void)u64_cas_seq_cst(&hot->word, &pending, word);
			word = u64_load_acquire(&hot->word); /* [armed] */
			continue;
		}
		test_point(TEST_POINT_OWNER_BEFORE_PUBLISH);
		owner_deliver(owner, slot, identity, deadline_ns, interval_ns, queue_slack);
		return;
	}
}

/* Fetch what will be needed of the slot that comes up `ahead` takes from now. */
CPU_FETCHES void owner_fetch(const struct owner *owner, uint32_t ahead)
{
	uint32_t slot = schedule_peek(&owner->schedule, ahead);

	if (slot == SLOT_NONE)
		return;
	__builtin_prefetch(&owner->world.arena->hot[slot], 1);
	__builtin_prefetch(&owner->world.arena->cold[slot]);
}

static uint32_t owner_take(struct owner *owner)
{
	if (teller_has_untold(&owner->teller) && schedule_next_is_dear(&owner->schedule))
		teller_tell(&owner->teller);
	return schedule_take(&owner->schedule, owner->now_ns);
}

static void owner_expire(struct owner *owner)
{
	uint32_t slot;

	while ((slot = owner_take(owner)) != SLOT_NONE) {
		if (schedule_at_front(&owner->schedule))
			for (uint32_t ahead = 0; ahead < OWNER_AHEAD; ahead++)
				owner_fetch(owner, ahead);
		owner_fetch(owner, OWNER_AHEAD);
		owner_expire_slot(owner, slot);
		teller_took_slot(&owner->teller);
	}
	teller_tell(&owner->teller);
}

/* ---- resting ---- */

/*
 * The instant that is true of a filed slot: never before the one it is filed under, since a timer
 * that was moved to before that is in the inbox, or on its way there. UINT64_MAX: none; the slot
 * comes through the inbox if its timer comes at all. A word read too late costs a wake-up. Only a
 * stale word can be of another life than the identity, and then the slot is in the inbox too.
 */
static uint64_t owner_true_ns(const struct owner *owner, uint32_t slot, uint64_t filed_ns)
{
	const struct timer_hot *hot = &owner->world.arena->hot[slot];
	uint64_t word = u64_load_acquire(&hot->word); /* [armed] */
	uint64_t identity = u64_load_relaxed(&hot->identity);

	switch (word_phase(word)) {
	case TIMER_ARMED:
		return word_fresh(word, identity)
		               ? UINT64_MAX
		               : u64_max(filed_ns, owner_instant_ns(owner, slot, word, identity));
	case TIMER_PENDING:
		return identity_periodic(identity) ? filed_ns : UINT64_MAX;
	default:
		return UINT64_MAX;
	}
}

static void owner_refile(struct owner *owner, uint32_t slot)
{
	uint64_t filed_ns = schedule_at_ns(&owner->schedule, slot);
	uint64_t true_ns = owner_true_ns(owner, slot, filed_ns);

	test_point(TEST_POINT_OWNER_BEFORE_REFILE);
	schedule_insert(&owner->schedule, slot, true_ns);
	owner->true_ns = u64_min(owner->true_ns, true_ns);
	if (true_ns != filed_ns && true_ns != UINT64_MAX)
		u64_count(&owner->counts->refiled, 1);
}

/*
 * Look at what would wake the owner first, until it is something that was true since it last slept.
 * So each slot is looked at once at most between two sleeps, however quickly callers move timers.
 * False if there is more to look at: first another pass is due, so that no caller waits for this.
 */
static bool owner_rest(struct owner *owner)
{
	uint32_t slots[OWNER_BATCH];
	unsigned looked = 0, count;

	while (looked < OWNER_REST) {
		count = schedule_doubt(&owner->schedule, owner->true_ns, slots,
		                       (unsigned)u64_min(OWNER_BATCH, OWNER_REST - looked));
		if (count == 0)
			return true;
		for (unsigned i = 0; i < count; i++) {
			__builtin_prefetch(&owner->world.arena->hot[slots[i]]);
			__builtin_prefetch(&owner->world.arena->filings[slots[i]], 1);
		}
		for (unsigned i = 0; i < count; i++)
			owner_refile(owner, slots[i]);
		looked += count;
	}
	return false;
}

/* ---- the pass ---- */

static void owner_begin_pass(struct owner *owner)
{
	promise_begin_pass(owner->world.promise);
	(void)u32_fetch_add_seq_cst(&owner->passes_begun, 1); /* [pass] */
	/* Relaxed: the bell that a waiter rings carries it to the next pass, if not to this. */
	if (u32_load_relaxed(&owner->pass_waiters) > 0)
		futex_wake(&owner->passes_begun, UINT32_MAX);
}

/*
 * When a stream of timers falls due, one after the other within microseconds, a wake for each costs
 * more than all else, the owner's and the consumer's. So they are gathered, as network drivers do
 * with packets (J. Mogul and K. Ramakrishnan, "Eliminating receive livelock in an interrupt-driven
 * kernel", 1997): late by a quarter of a millisecond at most. Not after one burst, however large;
 * not if the owner is to spin, for then lateness is all that counts.
 */
static uint64_t owner_gather(struct owner *owner, uint64_t next_ns)
{
	uint64_t elapsed_ns = owner->now_ns - owner->crowd_ns;

	if (elapsed_ns >= OWNER_CROWD_NS) {
		owner->crowded = owner->teller.told - owner->crowd_told >= OWNER_CROWD &&
		                 elapsed_ns < 2 * OWNER_CROWD_NS && owner->gathers;
		owner->crowd_ns = owner->now_ns;
		owner->crowd_told = owner->teller.told;
	}
	if (!owner->crowded || next_ns == UINT64_MAX)
		return next_ns;
	return next_ns < owner->now_ns + OWNER_GATHER_NS ? owner->now_ns + OWNER_GATHER_NS
	                                                 : next_ns;
}

/*
 * True if there must be another: there is more to look at before a promise can be made, or the
 * promise was raised over something in the inbox.
 * Model: tests/models/promise.pml.
 */
static bool owner_pass(struct owner *owner, uint64_t *ret_promise_ns)
{
	owner_begin_pass(owner);
	owner->now_ns = clock_now_ns(owner->world.clock);
	test_point(TEST_POINT_OWNER_BEFORE_INBOX);
	owner_empty_inbox(owner);
	owner_expire(owner);
	u64_store_relaxed(&owner->counts->cascaded, owner->schedule.cascaded);
	if (!owner_rest(owner))
		return true;
	*ret_promise_ns = owner_gather(owner, schedule_next_ns(&owner->schedule));
	test_point(TEST_POINT_OWNER_BEFORE_PROMISE);
	if (!promise_make(owner->world.promise, *ret_promise_ns))
		return false;
	test_point(TEST_POINT_OWNER_AFTER_PROMISE);
	return !inbox_empty(owner->world.inbox);
}

uint64_t owner_run_passes(struct owner *owner)
{
	uint64_t promise_ns = 0;

	owner->true_ns = UINT64_MAX;
	while (owner_pass(owner, &promise_ns)) {
	}
	return promise_ns;
}

/* ---- sleeping ---- */

static void owner_use_poll(struct owner *owner)
{
	owner->sleeper.ops->close(&owner->sleeper);
	sleeper_open_poll(&owner->sleeper, owner->world.bell, owner->sleeper.alarm);
	(void)owner->sleeper.ops->start(&owner->sleeper);
	u64_store_relaxed(&owner->counts->sleeper, OWNER_SLEEPER_POLL); /* a number to read */
}

/*
 * The kernel would not let us sleep. For now sleep the other way, and if that goes on, for good: a
 * seccomp filter may have been put on us since we started.
 */
static void owner_sleep_otherwise(struct owner *owner, uint64_t timeout_ns, int error)
{
	struct sleeper otherwise;
	bool transient = error == -EAGAIN || error == -EBUSY || error == -ENOMEM || error == -EINTR;

	if (!transient || ++owner->sleep_failures >= OWNER_SLEEP_FAILURES_MAX)
		owner_use_poll(owner);
	sleeper_open_poll(&otherwise, owner->world.bell, owner->sleeper.alarm);
	(void)otherwise.ops->start(&otherwise);
	(void)otherwise.ops->sleep(&otherwise, timeout_ns);
}

/* Does a caller want us to look before, a closer to come round, or the hub to stop? */
static bool owner_wanted(const struct owner *owner)
{
	/* Relaxed: a stale answer costs the spinner one more turn. */
	return promise_woken(owner->world.promise) || u32_load_relaxed(&owner->pass_waiters) > 0 ||
	       u32_load_relaxed(&owner->stop) != 0;
}

/* Spin up to the instant, or until a caller wants us, or the clock is set back. */
static void owner_spin(struct owner *owner, uint64_t until_ns, uint64_t ahead_ns)
{
	uint64_t now_ns = clock_now_ns(owner->world.clock);

	while (now_ns < until_ns && until_ns - now_ns <= ahead_ns && !owner_wanted(owner)) {
		cpu_relax();
		now_ns = clock_now_ns(owner->world.clock);
	}
}

/*
 * Have the alarm end the sleep at this instant, in place of the timeout. False if the clock was
 * set meanwhile: there may be something due.
 */
static bool owner_set_alarm(struct owner *owner, uint64_t at_ns, uint64_t *timeout_ns)
{
	int result = alarm_set(&owner->alarm, at_ns);

	if (result == -ECANCELED) {
		u64_count(&owner->counts->clock_jumps, 1);
		return false;
	}
	/*
	 * Refused (a filter put on us): the owner asks the clock itself, now and then. An alarm set
	 * before may have gone off, or will, and then stays readable: it is not to be polled.
	 */
	*timeout_ns = result < 0 ? u64_min(*timeout_ns, OWNER_ALARM_REFUSED_NS) : UINT64_MAX;
	owner->sleeper.alarm = result < 0 ? -1 : owner->alarm.fd;
	return true;
}

/* Returns whether it slept. */
static bool owner_sleep_for(struct owner *owner, uint64_t until_ns, uint64_t timeout_ns)
{
	int result;

	if (owner->alarm.fd >= 0 && !owner_set_alarm(owner, until_ns, &timeout_ns))
		return false;
	result = owner->sleeper.ops->sleep(&owner->sleeper, timeout_ns);
	if (result < 0)
		owner_sleep_otherwise(owner, timeout_ns, result);
	else
		owner->sleep_failures = 0;
	u64_count(&owner->counts->wakeups, 1);
	return true;
}

/* Sleep, and learn how late that ends, unless something else ends it before. */
static void owner_sleep_until(struct owner *owner, uint64_t until_ns, uint64_t timeout_ns)
{
	uint64_t now_ns;

	if (!owner_sleep_for(owner, until_ns, timeout_ns))
		return;
	now_ns = clock_now_ns(owner->world.clock);
	if (now_ns >= until_ns)
		lead_learn(&owner->lead, now_ns - until_ns);
}

/*
 * Ask to be woken earlier than the instant, by the time that we are to spin or by the lead, and
 * spin for what is left.
 */
static void owner_sleep(struct owner *owner, uint64_t until_ns)
{
	uint64_t ahead_ns = u64_max(owner->config.spin_ns, owner->lead.ns);
	uint64_t now_ns = clock_now_ns(owner->world.clock);

	if (until_ns == UINT64_MAX) {
		(void)owner_sleep_for(owner, UINT64_MAX, UINT64_MAX);
		return;
	}
	if (until_ns > now_ns && until_ns - now_ns > ahead_ns)
		owner_sleep_until(owner, until_ns - ahead_ns, until_ns - now_ns - ahead_ns);
	if (ahead_ns > 0)
		owner_spin(owner, until_ns, ahead_ns);
}

/* ---- the thread ---- */

static int owner_pin(unsigned cpu)
{
	cpu_set_t cpus;

	if (cpu >= CPU_SETSIZE)
		return -EINVAL;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return -pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

/* What can only be done on the thread itself. */
static int owner_settle(struct owner *owner)
{
	int result = 0;

	(void)prctl(PR_SET_NAME, owner->name, 0, 0, 0);
	if (owner->config.cpu_plus_one > 0)
		result = owner_pin(owner->config.cpu_plus_one - 1);
	if (result < 0)
		return result;
	result = owner->sleeper.ops->start(&owner->sleeper);
	if (result < 0 && owner->config.sleeper == OWNER_SLEEPER_AUTO) {
		owner_use_poll(owner);
		result = 0;
	}
	return result;
}

static void *owner_main(void *argument)
{
	struct owner *owner = argument;
	int result = owner_settle(owner);

	owner->tid = gettid();
	owner->start_result = result;
	u32_store_release(&owner->started, 1); /* [started] */
	futex_wake(&owner->started, 1);
	if (result < 0)
		return NULL;
	/* Relaxed: carried by the bell. */
	while (u32_load_relaxed(&owner->stop) == 0)
		owner_sleep(owner, owner_run_passes(owner));
	return NULL;
}

/* Create the thread with all signals blocked: it never handles one, from its first instant on. */
static int owner_create_thread(struct owner *owner)
{
	sigset_t all, before;
	int result;

	(void)sigfillset(&all);
	result = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (result != 0)
		return -result;
	result = pthread_create(&owner->thread, NULL, owner_main, owner);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -result;
}

static int owner_open_sleeper(struct owner *owner)
{
	int result = -ENOSYS;

	if (owner->config.sleeper != OWNER_SLEEPER_POLL)
		result = sleeper_open_uring(&owner->sleeper, owner->world.bell, owner->alarm.fd);
	if (result < 0 && owner->config.sleeper == OWNER_SLEEPER_URING)
		return result;
	if (result < 0)
		sleeper_open_poll(&owner->sleeper, owner->world.bell, owner->alarm.fd);
	u64_store_relaxed(&owner->counts->sleeper,
	                  result < 0 ? OWNER_SLEEPER_POLL : OWNER_SLEEPER_URING);
	return 0;
}

int owner_start(struct owner *owner, const struct owner_config *config)
{
	int result;

	owner->config = *config;
	owner->gathers = config->spin_ns == 0;
	(void)strncpy(owner->name, config->name, OWNER_NAME_MAX - 1);
	result = alarm_open(&owner->alarm, owner->world.clock);
	if (result < 0)
		return result;
	result = owner_open_sleeper(owner);
	if (result < 0) {
		alarm_close(&owner->alarm);
		return result;
	}
	result = owner_create_thread(owner);
	if (result < 0) {
		owner->sleeper.ops->close(&owner->sleeper);
		alarm_close(&owner->alarm);
		return result;
	}
	owner->running = true;
	while (u32_load_acquire(&owner->started) == 0) /* [started] */
		futex_wait(&owner->started, 0, UINT64_MAX);
	if (owner->start_result < 0) {
		result = owner->start_result;
		owner_stop(owner, true);
	}
	return result;
}

int owner_tid(const struct owner *owner)
{
	return owner->running ? owner->tid : 0;
}

void owner_stop(struct owner *owner, bool alive)
{
	if (!owner->running)
		return;
	if (alive) {
		u32_store_relaxed(&owner->stop, 1);
		bell_ring(owner->world.bell);
		(void)pthread_join(owner->thread, NULL);
	}
	owner->running = false;
	owner->sleeper.ops->close(&owner->sleeper);
	alarm_close(&owner->alarm);
}

/* Model: tests/models/close.pml. */
void owner_wait_pass(struct owner *owner)
{
	/*
	 * Adds nothing, and is a read-modify-write all the same: the closer's store that the queue
	 * is gone must be seen by any pass that begins after this. A load, even a seq_cst one, may
	 * be done before an earlier release store leaves the store buffer.
	 */
	uint32_t begun = u32_fetch_add_seq_cst(&owner->passes_begun, 0);

	if (!owner->running)
		return;
	(void)u32_fetch_add_relaxed(&owner->pass_waiters, 1);
	bell_ring(owner->world.bell);
	while (u32_load_acquire(&owner->passes_begun) == begun) /* [pass] */
		futex_wait(&owner->passes_begun, begun, UINT64_MAX);
	(void)u32_fetch_add_relaxed(&owner->pass_waiters, UINT32_MAX);
}
