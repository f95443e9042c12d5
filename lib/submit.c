/* SPDX-License-Identifier: MIT */
/*
 * Arm, re-arm, cancel: what callers do to timers. Any thread, lock-free, signal-safe.
 *
 * Each is one compare-and-swap on the state word, which also claims the slot's place in the inbox
 * (WORD_INBOX). The claimant pushes and then says that it has (WORD_PUSHED). If the word has
 * changed meanwhile, the claimant decides by the deadline that is there *now* whether to wake the
 * owner: other callers that moved the timer saw the claim, and did not push. Moving a deadline
 * later claims nothing: the owner finds the new one when the old one comes up.
 *
 * A cancelled timer's slot goes straight to the free list. It may live again while it is still
 * filed or in the inbox: to the owner that is a timer that has moved. A new life ignores an
 * unconfirmed claim of the previous one, since the claimant may never run again, and pushes the
 * slot itself. For each thread so stopped the slot may then be in the inbox once more.
 *
 * Labels: [armed] hub_arm and every other CAS on a word → a load of the word: carries the cold
 *         record and the identity of that life.
 *         [life] hub_arm_slot → timerhub_cancel_sync: carries that the life before is over, and
 *         which thread delivered it; → hub_look, owner_expire_slot, queue_drop_timers: carries the
 *         cold record to a reader that was not told the handle.
 */
#include <errno.h>

#include "check.h"
#include "cpu.h"
#include "hub.h"
#include "probe.h"

/* When the owner must have looked at this slot; UINT64_MAX if there is no hurry. */
static uint64_t hub_look_by_ns(const struct timerhub *hub, uint32_t slot, uint64_t word)
{
	uint64_t identity = u64_load_relaxed(&hub->arena.hot[slot].identity);
	uint64_t deadline_ns = timer_deadline_ns(word, identity);
	uint64_t queue_slack;

	if (word_phase(word) != TIMER_ARMED)
		return UINT64_MAX;
	if (!identity_has_slack(identity))
		return deadline_ns;
	/* If the slot has been reused, its new armer wakes the owner; our wake is harmless. */
	queue_slack = u64_load_relaxed(&hub->arena.cold[slot].queue_slack);
	return timer_slacken_ns(deadline_ns, queue_slack_slack_ns(queue_slack));
}

static void hub_wake(struct timerhub *hub, uint64_t pass)
{
	probe1(wake, hub);
	bell_ring(hub->bell);
	(void)u64_fetch_add_relaxed(&hub->board->callers.submit_wakes,
	                            1); /* next to a system call */
	test_point(TEST_POINT_WAKE_BEFORE_RECORD);
	promise_record_wake(&hub->promise, pass);
}

/*
 * Push the slot, and say so in its word, unless the owner has looked at it by then: the slot would
 * cost another cell in its next life. If the word is not as we left it, but has been loaded before
 * the entry is found where we put it, the owner is yet to come. Returns the word as it then was.
 * Model: tests/models/inbox.pml.
 */
static uint64_t hub_push(struct timerhub *hub, uint32_t slot, uint64_t word, bool *ret_crowded)
{
	struct timer_hot *hot = &hub->arena.hot[slot];
	struct inbox_entry entry;

	test_point(TEST_POINT_SUBMIT_BEFORE_PUSH);
	*ret_crowded = inbox_push(&hub->inbox, cpu_current(), slot, &entry);
	test_point(TEST_POINT_SUBMIT_AFTER_PUSH);
	while (!u64_cas_seq_cst(&hot->word, &word, word | WORD_PUSHED))
		if (!word_in_inbox(word) || word_pushed(word) || !inbox_holds(&entry))
			break;
	return word;
}

/* Model: tests/models/promise.pml. */
void hub_submit(struct timerhub *hub, uint32_t slot, uint64_t word, bool push)
{
	bool crowded = false;
	uint64_t pass;

	if (push)
		word = hub_push(hub, slot, word, &crowded);
	if (promise_wants_wake(&hub->promise, crowded ? 0 : hub_look_by_ns(hub, slot, word), &pass))
		hub_wake(hub, pass);
}

/*
 * Is the word what a change left as `after`, apart from what the owner does by itself? It may have
 * expired the timer, and looked at it if it lay in the inbox. A re-arm to the same deadline moves
 * the tag too, but leaves the inbox flags, so that it is told from that look.
 */
static bool word_is_as_left(uint64_t word, uint64_t after, uint64_t identity)
{
	/* A slot that we made free is ours alone; only the owner may have looked at it. */
	uint64_t theirs = WORD_INBOX_FLAGS;

	if (word_phase(after) == TIMER_FREE)
		theirs |= WORD_TAG_MASK << WORD_TAG_SHIFT;
	if (word_phase(after) == TIMER_ARMED && word_phase(word) == TIMER_PENDING)
		word = word_with_phase(word, TIMER_ARMED);
	return ((word ^ after) & ~theirs) == 0 ||
	       (word_in_inbox(after) && word == word_looked_at(after, identity));
}

bool hub_undo(struct timerhub *hub, uint32_t slot, uint64_t before, uint64_t after)
{
	struct timer_hot *hot = &hub->arena.hot[slot];
	uint64_t identity = u64_load_relaxed(&hot->identity); /* if another by now, we give up */
	uint64_t word = after;
	uint64_t undone;

	test_point(TEST_POINT_UNDO);
	do {
		if (!word_is_as_left(word, after, identity))
			return false;
		undone = word_restored(word, before);
		/* The owner has stored our deadline for the base, and is to store one again. */
		if (word_fresh(after, identity) && !word_fresh(word, identity))
			undone |= WORD_FRESH;
	} while (!u64_cas_seq_cst(&hot->word, &word, undone));
	hub_submit(hub, slot, undone, !word_pushed(word));
	return true;
}

/* ---- arm ---- */

/* May a periodic timer have this deadline? It has a bit less than others. */
static bool deadline_suits_periods(uint64_t deadline_ns)
{
	return deadline_ns <= TIMER_PERIODIC_MAX_NS || deadline_ns == UINT64_MAX;
}

/* A spec, checked and with its deadline worked out. */
struct arming {
	uint64_t deadline_ns; /* on the hub's clock; UINT64_MAX: never */
	uint64_t interval_ns;
	uint64_t slack_ns;
	uint64_t data;
	timerhub_fn *fn;
	uint64_t kept; /* 0 or 1 */
};

/* A delay or a point in time to a deadline. 0 or -ERANGE. */
static int deadline_from(uint64_t expires_ns, uint32_t flags, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t base_ns = (flags & TIMERHUB_ABSOLUTE) != 0 ? 0 : now_ns;

	if (expires_ns != UINT64_MAX) {
		if (base_ns > TIMER_DEADLINE_MAX_NS || expires_ns > TIMER_DEADLINE_MAX_NS - base_ns)
			return -ERANGE;
		expires_ns += base_ns;
	}
	*ret_ns = expires_ns;
	return 0;
}

/* Relative deadlines need the time; absolute ones are spared the reading. */
static uint64_t now_if_relative(const struct timerhub *hub, uint32_t flags)
{
	return (flags & TIMERHUB_ABSOLUTE) != 0 ? 0 : clock_now_ns(&hub->clock);
}

static int spec_check(const struct timerhub_spec *spec)
{
	const unsigned char *bytes = (const unsigned char *)spec;

	if (spec->size < sizeof(*spec) ||
	    (spec->flags & ~(TIMERHUB_ABSOLUTE | TIMERHUB_KEEP)) != 0 ||
	    ((spec->flags & TIMERHUB_KEEP) != 0 && spec->interval_ns > 0))
		return -EINVAL;
	if (spec->size > TIMERHUB_OPTIONS_MAX_BYTES)
		return -E2BIG;
	for (uint32_t i = sizeof(*spec); i < spec->size; i++)
		if (bytes[i] != 0)
			return -E2BIG;
	return 0;
}

/* Of a spec that has been checked. */
static int arming_from(const struct timerhub_spec *spec, uint64_t now_ns, struct arming *ret_arming)
{
	int result;

	if (spec->interval_ns > TIMER_DEADLINE_MAX_NS)
		return -ERANGE;
	*ret_arming = (struct arming){
		.interval_ns = spec->interval_ns,
		.slack_ns = spec->slack_ns,
		.data = spec->data,
		.fn = spec->fn,
		.kept = spec->flags / TIMERHUB_KEEP % 2,
	};
	result = deadline_from(spec->expires_ns, spec->flags, now_ns, &ret_arming->deadline_ns);
	if (result == 0 && spec->interval_ns > 0 &&
	    !deadline_suits_periods(ret_arming->deadline_ns))
		return -ERANGE;
	return result;
}

/*
 * Give the slot, which is ours alone, a new life. The handle is told before that can be over.
 * Model: tests/models/word.pml.
 */
static void hub_arm_slot(struct timerhub_queue *queue, uint32_t slot, const struct arming *arming,
                         timerhub_timer *ret_timer)
{
	struct timerhub *hub = queue->hub;
	struct timer_hot *hot = &hub->arena.hot[slot];
	struct timer_cold *cold = &hub->arena.cold[slot];
	uint64_t before = u64_load_relaxed(&hot->identity); /* ours, like the stores below */
	uint64_t generation = generation_next(before == 0 ? hub->arena.first_generation
	                                                  : identity_generation(before),
	                                      arming->kept);
	uint64_t flags = (arming->interval_ns > 0 ? IDENTITY_PERIODIC : 0) |
	                 (arming->slack_ns > 0 ? IDENTITY_SLACK : 0);
	uint64_t word, armed;

	u64_store_relaxed(&cold->data, arming->data);
	u64_store_relaxed(&cold->fn, (uint64_t)(uintptr_t)arming->fn);
	u64_store_relaxed(&cold->interval_ns, arming->interval_ns);
	u64_store_relaxed(&cold->queue_slack, queue_slack_make(queue->index, arming->slack_ns));
	if (arming->interval_ns > 0)
		u64_store_relaxed(&hub->arena.periods[slot].first_ns, arming->deadline_ns);
	u64_store_release(&hot->identity, identity_make(generation, flags)); /* [life] */
	if (ret_timer)
		*ret_timer = handle_make(generation, slot);
	/* Here, where the handle is in a register; if the caller wants none, one `or` makes it. */
	probe3(arm, handle_make(generation, slot), arming->deadline_ns, arming->interval_ns);
	test_point(TEST_POINT_ARM_BEFORE_PUBLISH);
	word = u64_load_relaxed(&hot->word); /* only the owner may change it yet: the inbox flags */
	do {
		armed = word_armed(word, ticks_from_ns(arming->deadline_ns));
	} while (!u64_cas_seq_cst(&hot->word, &word, armed)); /* [armed] */
	hub_submit(hub, slot, armed, !word_pushed(word));
}

static int hub_arm(struct timerhub_queue *queue, const struct arming *arming,
                   timerhub_timer *ret_timer)
{
	uint32_t slot = arena_take(&queue->hub->arena, cpu_current());

	if (slot == SLOT_NONE)
		return -EAGAIN;
	hub_arm_slot(queue, slot, arming, ret_timer);
	return 0;
}

int timerhub_arm(struct timerhub_queue *queue, const struct timerhub_spec *spec,
                 timerhub_timer *ret_timer)
{
	struct arming arming;
	int result;

	if (!queue || !spec)
		return -EINVAL;
	if (!hub_alive(queue->hub))
		return -EOWNERDEAD;
	result = spec_check(spec);
	if (result == 0)
		result = arming_from(spec, now_if_relative(queue->hub, spec->flags), &arming);
	return result < 0 ? result : hub_arm(queue, &arming, ret_timer);
}

/* Arm a one-shot with these data and this callback. */
static int hub_arm_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                         timerhub_fn *fn, timerhub_timer *ret_timer)
{
	struct arming arming = { .data = data, .fn = fn };
	int result;

	if (!queue)
		return -EINVAL;
	if (!hub_alive(queue->hub))
		return -EOWNERDEAD;
	result = deadline_from(delay_ns, 0, clock_now_ns(&queue->hub->clock), &arming.deadline_ns);
	return result < 0 ? result : hub_arm(queue, &arming, ret_timer);
}

int timerhub_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                   timerhub_timer *ret_timer)
{
	return hub_arm_after(queue, delay_ns, data, NULL, ret_timer);
}

int timerhub_call(struct timerhub_queue *queue, uint64_t delay_ns, timerhub_fn *fn, void *ptr,
                  timerhub_timer *ret_timer)
{
	return fn ? hub_arm_after(queue, delay_ns, (uint64_t)(uintptr_t)ptr, fn, ret_timer)
	          : -EINVAL;
}

static const struct timerhub_spec *spec_at(const struct timerhub_spec *specs, unsigned index)
{
	return (const struct timerhub_spec *)(const void *)((const char *)specs +
	                                                    (size_t)specs->size * index);
}

static int specs_check(const struct timerhub_spec *specs, unsigned count, uint64_t now_ns)
{
	if (count > 1 && specs->size % _Alignof(struct timerhub_spec) != 0)
		return -EINVAL;
	for (unsigned i = 0; i < count; i++) {
		const struct timerhub_spec *spec = spec_at(specs, i);
		struct arming arming;
		/* First of all: the array need not go on for as long as a larger one says. */
		int result = spec->size == specs->size ? spec_check(spec) : -EINVAL;

		if (result == 0)
			result = arming_from(spec, now_ns, &arming);
		if (result < 0)
			return result;
	}
	return 0;
}

/*
 * Take `count` slots at once, or none: a list through the data of their cold records, which are
 * ours alone by now. Returns the first, or SLOT_NONE.
 */
static uint32_t hub_take_slots(struct timerhub *hub, unsigned count)
{
	uint32_t list = SLOT_NONE;

	for (unsigned i = 0; i < count; i++) {
		uint32_t slot = arena_take(&hub->arena, cpu_current());

		if (slot == SLOT_NONE) {
			(void)u64_fetch_add_relaxed(&hub->board->callers.untaken,
			                            i); /* a number to read */
			while (list != SLOT_NONE) {
				slot = list;
				list = (uint32_t)u64_load_relaxed(&hub->arena.cold[slot].data);
				arena_put(&hub->arena, cpu_current(), slot);
			}
			return SLOT_NONE;
		}
		u64_store_relaxed(&hub->arena.cold[slot].data, list);
		list = slot;
	}
	return list;
}

int timerhub_arm_many(struct timerhub_queue *queue, const struct timerhub_spec *specs,
                      unsigned count, timerhub_timer *ret_timers)
{
	uint64_t now_ns;
	uint32_t list;
	int result;

	if (!queue || (!specs && count > 0) || count > INT32_MAX)
		return -EINVAL;
	if (!hub_alive(queue->hub))
		return -EOWNERDEAD;
	if (count == 0)
		return 0;
	now_ns = clock_now_ns(&queue->hub->clock);
	result = specs_check(specs, count, now_ns);
	if (result < 0)
		return result;
	list = hub_take_slots(queue->hub, count);
	if (list == SLOT_NONE)
		return -EAGAIN;
	for (unsigned i = 0; i < count; i++) {
		struct arming arming;
		uint32_t slot = list;

		list = (uint32_t)u64_load_relaxed(&queue->hub->arena.cold[slot].data);
		(void)arming_from(spec_at(specs, i), now_ns, &arming); /* checked above */
		hub_arm_slot(queue, slot, &arming, ret_timers ? &ret_timers[i] : NULL);
	}
	return (int)count;
}

/* ---- re-arm ---- */

/* Whatever the case: the whole of re-arming. Model: tests/models/word.pml. */
static __attribute__((noinline)) int hub_rearm(struct timerhub *hub, timerhub_timer timer,
                                               uint64_t expires_ns, uint32_t flags)
{
	uint32_t slot = handle_slot(timer);
	uint64_t deadline_ns, word, rearmed;
	struct timer_hot *hot;
	bool submit;
	int result;

	if (!hub || (flags & ~TIMERHUB_ABSOLUTE) != 0)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	result = deadline_from(expires_ns, flags, now_if_relative(hub, flags), &deadline_ns);
	if (result < 0)
		return result;
	if (slot >= hub->arena.capacity)
		return -ENOENT;
	hot = &hub->arena.hot[slot];
	word = u64_load_acquire(&hot->word); /* [armed] */
	do {
		uint64_t identity = u64_load_relaxed(&hot->identity);
		bool periodic = identity_periodic(identity);

		if (!timer_is(word, identity, timer))
			return -ENOENT;
		if (periodic && !deadline_suits_periods(deadline_ns))
			return -ERANGE;
		/*
		 * Touched: a consumer that has read the word, and the base of the periods, must not
		 * find the word unchanged when it comes back to the same deadline.
		 */
		rearmed = word_rearmed(word_touched(word), periodic ? ticks_fresh(deadline_ns)
		                                                    : ticks_from_ns(deadline_ns));
		/*
		 * The owner has an armed timer filed no later than this, and need not be told; but
		 * it is to store the new base of a periodic one.
		 */
		submit = word_phase(word) != TIMER_ARMED || periodic ||
		         word_deadline(rearmed) < word_deadline(word);
		if (submit)
			rearmed |= WORD_INBOX;
		test_point(TEST_POINT_REARM_BEFORE_CAS);
	} while (!u64_cas_seq_cst(&hot->word, &word, rearmed));
	if (!hub_hit(hot, timer) && hub_undo(hub, slot, word, rearmed))
		return -ENOENT;
	probe2(rearm, timer, deadline_ns);
	if (submit)
		hub_submit(hub, slot, rearmed, !word_in_inbox(word));
	return word_idles(word) && handle_kept(timer) ? 1 : 0;
}

/*
 * A plain re-arm changed `word` to `rearmed`, and then the identity was not the handle's any more.
 */
static __attribute__((noinline)) int hub_rearmed_other(struct timerhub *hub, timerhub_timer timer,
                                                       uint64_t word, uint64_t rearmed)
{
	uint32_t slot = handle_slot(timer);

	if (!hub_hit(&hub->arena.hot[slot], timer) && hub_undo(hub, slot, word, rearmed))
		return -ENOENT;
	return 0;
}

/*
 * The case that counts, an armed timer to a later point in time, without a call and so without a
 * store to the stack: the locked instruction waits for every store before it. And with few results:
 * physical registers limit how many re-arms are in flight, so fewer results mean more overlapping
 * cache misses. So refusals are branches. Everything else is
 * hub_rearm()'s.
 */
int timerhub_rearm(struct timerhub *hub, timerhub_timer timer, uint64_t expires_ns, uint32_t flags)
{
	uint32_t slot = handle_slot(timer);
	/* Of a one-shot without slack, kept or not. */
	uint64_t identity = identity_make(handle_generation(timer), 0);
	const struct hub_living *living;
	struct timer_hot *hot;
	uint64_t word, rearmed;

	if (!hub || flags != TIMERHUB_ABSOLUTE)
		return hub_rearm(hub, timer, expires_ns, flags);
	if (__builtin_expect(expires_ns > TIMER_DEADLINE_MAX_NS, 0))
		return hub_rearm(hub, timer, expires_ns, TIMERHUB_ABSOLUTE);
	living = hub->living;
	if (slot >= living->capacity) /* none in a forked child */
		return hub_rearm(hub, timer, expires_ns, TIMERHUB_ABSOLUTE);
	hot = &living->hot[slot];
	word = u64_load_acquire(&hot->word); /* [armed] */
	rearmed = word_moved(word, ticks_from_ns(expires_ns));
	if (u64_load_relaxed(&hot->identity) != identity || word_phase(word) != TIMER_ARMED ||
	    rearmed <= word || !u64_cas_seq_cst(&hot->word, &word, rearmed))
		return hub_rearm(hub, timer, expires_ns, TIMERHUB_ABSOLUTE);
	if (u64_load_relaxed(&hot->identity) != identity)
		return hub_rearmed_other(hub, timer, word, rearmed);
	return 0;
}

int timerhub_rearm_many(struct timerhub *hub, const timerhub_timer *timers, unsigned count,
                        uint64_t expires_ns, uint32_t flags)
{
	uint64_t deadline_ns;
	int live = 0;
	int result;

	if (!hub || (!timers && count > 0) || count > INT32_MAX ||
	    (flags & ~TIMERHUB_ABSOLUTE) != 0)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	result = deadline_from(expires_ns, flags, now_if_relative(hub, flags), &deadline_ns);
	if (result < 0)
		return result;
	for (unsigned i = 0; i < count; i++)
		live += timerhub_rearm(hub, timers[i], deadline_ns, TIMERHUB_ABSOLUTE) >= 0;
	return live;
}

/* ---- cancel ---- */

/* Must the owner be told that this timer is no more? Only if it may have it filed. */
static bool word_maybe_filed(uint64_t word, uint64_t identity)
{
	return word_phase(word) == TIMER_ARMED ||
	       (word_phase(word) == TIMER_PENDING && identity_periodic(identity));
}

/* Models: tests/models/word.pml; for a queue that closes, tests/models/close.pml. */
int hub_cancel(struct timerhub *hub, timerhub_timer timer, const struct timerhub_queue *only)
{
	uint32_t slot = handle_slot(timer);
	struct timer_hot *hot = &hub->arena.hot[slot];
	uint64_t word, dead;
	bool filed;

	__builtin_prefetch(&hub->arena.cold[slot], 1); /* to be written when it is put back */
	word = u64_load_acquire(&hot->word);           /* [armed] */
	do {
		uint64_t identity = u64_load_relaxed(&hot->identity);
		uint64_t queue_slack =
			only ? u64_load_relaxed(&hub->arena.cold[slot].queue_slack) : 0;

		if (!timer_is(word, identity, timer) ||
		    (only && queue_slack_queue(queue_slack) != only->index))
			return -ENOENT;
		filed = word_maybe_filed(word, identity);
		dead = word_with_phase(word, TIMER_FREE) | (filed ? WORD_INBOX : 0);
		test_point(TEST_POINT_CANCEL_BEFORE_CAS);
	} while (!u64_cas_seq_cst(&hot->word, &word, dead));
	if (hub_hit(hot, timer))
		probe1(cancel, timer); /* here, where the handle is in a register anyway */
	else if (hub_undo(hub, slot, word, dead))
		return -ENOENT;
	if (filed && !word_in_inbox(word))
		hub_submit(hub, slot, dead, true);
	test_point(TEST_POINT_CANCEL_BEFORE_FREE);
	arena_put(&hub->arena, cpu_current(), slot);
	return 0;
}

int timerhub_cancel(struct timerhub *hub, timerhub_timer timer)
{
	if (!hub)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	return handle_slot(timer) < hub->arena.capacity ? hub_cancel(hub, timer, NULL) : -ENOENT;
}

int timerhub_cancel_many(struct timerhub *hub, const timerhub_timer *timers, unsigned count)
{
	int cancelled = 0;

	if (!hub || (!timers && count > 0) || count > INT32_MAX)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	for (unsigned i = 0; i < count; i++)
		cancelled += timerhub_cancel(hub, timers[i]) == 0;
	return cancelled;
}

/* ---- ask ---- */

int timerhub_remaining(struct timerhub *hub, timerhub_timer timer, uint64_t *ret_ns)
{
	uint32_t slot = handle_slot(timer);
	uint64_t word, identity, deadline_ns, now_ns;

	if (!hub || !ret_ns)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	if (slot >= hub->arena.capacity)
		return -ENOENT;
	word = u64_load_acquire(&hub->arena.hot[slot].word); /* [armed] */
	identity = u64_load_relaxed(&hub->arena.hot[slot].identity);
	if (!timer_is(word, identity, timer))
		return -ENOENT;
	deadline_ns = timer_deadline_ns(word, identity);
	now_ns = clock_now_ns(&hub->clock);
	/* One that has expired too: the wall clock may have been set back since. */
	if (deadline_ns == UINT64_MAX)
		*ret_ns = UINT64_MAX;
	else
		*ret_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	return 0;
}

/*
 * Read what is known of the slot's timer. False if there is none. As with a delivery, what was read
 * is of one life if the word is then unchanged and the generation the same; the compare-and-swap
 * that finds it so changes nothing. Model: tests/models/word.pml.
 */
static bool hub_look(const struct timerhub *hub, uint32_t slot, struct timerhub_event *timer,
                     uint64_t *ret_interval_ns)
{
	struct timer_hot *hot = &hub->arena.hot[slot];
	const struct timer_cold *cold = &hub->arena.cold[slot];
	uint64_t word = u64_load_acquire(&hot->word); /* [armed] */
	uint64_t queue_slack;

	do {
		/* Acquire: its life may be a later one than the word's, with the same word. */
		uint64_t identity = u64_load_acquire(&hot->identity); /* [life] */

		if (word_phase(word) == TIMER_FREE)
			return false;
		*timer = (struct timerhub_event){
			.data = u64_load_relaxed(&cold->data),
			.timer = handle_make(identity_generation(identity), slot),
			.expires_ns = timer_deadline_ns(word, identity),
			.count = word_undelivered(word) ? 1 : 0,
			.fn = (timerhub_fn *)(uintptr_t)u64_load_relaxed(&cold->fn),
		};
		*ret_interval_ns = u64_load_relaxed(&cold->interval_ns);
		queue_slack = u64_load_relaxed(&cold->queue_slack);
		timer->queue = ptr_load_acquire(
			&hub->queues[queue_slack_queue(queue_slack)]); /* [queue] */
		test_point(TEST_POINT_EACH_BEFORE_CAS);
	} while (!u64_cas_seq_cst(&hot->word, &word, word) || !hub_hit(hot, timer->timer));
	return timer->queue && timer->queue != QUEUE_GONE;
}

int timerhub_each(struct timerhub *hub, timerhub_each_fn *fn, void *context)
{
	uint32_t slot;
	int result = 0;

	if (!hub || !fn)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	slot = arena_next_used(&hub->arena, 0);
	for (; slot != SLOT_NONE && result == 0; slot = arena_next_used(&hub->arena, slot + 1)) {
		struct timerhub_event timer;
		uint64_t interval_ns;

		if (hub_look(hub, slot, &timer, &interval_ns))
			result = fn(&timer, interval_ns, context);
	}
	return result;
}
