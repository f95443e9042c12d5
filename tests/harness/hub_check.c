/* SPDX-License-Identifier: MIT */
#include "hub_check.h"

#include "hub/hub.h"

#define OWNER_GATHER_NS 250000 /* as in lib/owner/owner.c */

/*
 * What the checks have read of a slot. All loads here are relaxed: nobody changes the hub
 * meanwhile.
 */
struct sight {
	const struct timerhub *hub;
	uint32_t slot;
	enum timer_phase phase;
	struct pair pair;
	uint64_t at_ns;      /* instant of the slot's schedule entry, or UINT64_MAX */
	uint64_t instant_ns; /* deadline of the slot's timer, delayed within its slack */
};

struct slot_set {
	uint64_t words[(TIMER_SLOTS_MAX + 63) / 64];
};

static struct slot_set in_inbox, on_stack;

static void set_clear(struct slot_set *set, uint32_t slots)
{
	for (uint32_t i = 0; i <= slots / 64; i++)
		set->words[i] = 0;
}

static bool set_has(const struct slot_set *set, uint32_t slot)
{
	return (set->words[slot / 64] >> slot % 64 & 1) != 0;
}

static void set_add(struct slot_set *set, uint32_t slot)
{
	set->words[slot / 64] |= (uint64_t)1 << slot % 64;
}

/* ---- invariants of a slot, while the owner sleeps ---- */

static bool phase_and_flags_are_legal(const struct sight *sight)
{
	return pair_is_legal(sight->pair);
}

/* Unless a push is on its way (CLAIMED), no later than deadline plus slack. */
static bool armed_is_scheduled(const struct sight *sight)
{
	return sight->phase != TIMER_ARMED || state_claimed(sight->pair.state) ||
	       sight->at_ns <= sight->instant_ns;
}

/*
 * A free slot's schedule entry is no later than the slot's deadline. In a slot that never had a
 * timer, a stopped thread may not have stored the deadline yet.
 */
static bool free_is_scheduled(const struct sight *sight)
{
	return sight->phase != TIMER_FREE || state_claimed(sight->pair.state) ||
	       state_generation(sight->pair.state) == 0 || sight->at_ns <= sight->pair.deadline_ns;
}

/* A periodic timer with an undelivered event is scheduled no later than its next period. */
static bool period_is_scheduled(const struct sight *sight)
{
	const struct timerhub *hub = sight->hub;
	const struct timer_cold *cold = &hub->arena.timers.cold[sight->slot];
	uint64_t next_ns;

	if (sight->phase != TIMER_PENDING || !state_periodic(sight->pair.state))
		return true;
	next_ns = period_next_ns(
		sight->pair.deadline_ns,
		timer_interval_ns(&hub->arena.timers, sight->slot, sight->pair.state),
		sight->pair.deadline_ns);
	return sight->at_ns <=
	       timer_slacken_ns(next_ns,
	                        queue_slack_slack_ns(u64_load_relaxed(&cold->queue_slack)));
}

/* Only a periodic timer that waits for a consumer or a caller has a schedule entry. */
static bool waiting_is_unscheduled(const struct sight *sight)
{
	bool waits = sight->phase == TIMER_IDLE ||
	             (sight->phase == TIMER_PENDING && !state_periodic(sight->pair.state));

	return !waits || sight->at_ns == UINT64_MAX;
}

/*
 * The promise is when the owner looks at its inbox: no later than the earliest entry, or 250 us
 * after it while a burst is coalesced.
 */
static bool promise_covers_schedule(const struct sight *sight)
{
	const struct owner *owner = &sight->hub->owner;
	uint64_t look_by_ns = u64_load_relaxed(&sight->hub->promise.look_by_ns);

	return look_by_ns <= sight->at_ns ||
	       (owner->crowded && look_by_ns <= owner->now_ns + OWNER_GATHER_NS);
}

/* ---- invariants of a slot, while no thread is inside a call either ---- */

static bool claim_is_pushed(const struct sight *sight)
{
	return !state_claimed(sight->pair.state) || set_has(&in_inbox, sight->slot);
}

/* A slot in the inbox that is due before the promise: a caller has woken the owner. */
static bool promise_covers_inbox(const struct sight *sight)
{
	const struct promise *promise = &sight->hub->promise;

	return sight->phase != TIMER_ARMED || !state_claimed(sight->pair.state) ||
	       sight->instant_ns >= u64_load_relaxed(&promise->look_by_ns) ||
	       promise_woken(promise);
}

/* At the place that the owner recorded last. */
static bool expiry_is_in_outbox(const struct sight *sight)
{
	const struct arena *arena = &sight->hub->arena;
	uint64_t queue_slack = u64_load_relaxed(&arena->timers.cold[sight->slot].queue_slack);
	const struct timerhub_queue *queue =
		ptr_load_relaxed(&sight->hub->queues[queue_slack_queue(queue_slack)]);
	uint64_t head, tail, place;

	if (!state_undelivered(sight->pair.state))
		return true;
	if (!queue || queue == QUEUE_GONE)
		return false;
	head = u64_load_relaxed(&queue->outbox.head);
	tail = u64_load_relaxed(&queue->outbox.tail);
	place = head + (uint32_t)(arena->filings[sight->slot].place - (uint32_t)head);
	return place < tail && u64_load_relaxed(&queue->outbox.cells[place & queue->outbox.mask]) ==
	                               handle_of(sight->pair.state, sight->slot);
}

static bool free_is_on_stack(const struct sight *sight)
{
	return sight->phase != TIMER_FREE || set_has(&on_stack, sight->slot);
}

/* ---- invariants of the whole, while the owner sleeps ---- */

/* Its slots are FREE, on no stack seen before, and their links count the slots below. */
static bool stack_holds(const struct arena *arena, const struct arena_shard *shard)
{
	uint64_t top = u64_load_relaxed(&shard->top);
	uint32_t slot = (uint32_t)(top & TIMER_SLOT_MASK) - 1;
	uint64_t link = 0;

	for (bool first = true; slot != SLOT_NONE; first = false) {
		uint64_t depth_below = link >> 32;

		if (slot >= arena->capacity || set_has(&on_stack, slot) ||
		    state_phase(u64_load_relaxed(&arena->timers.pairs[slot].state)) != TIMER_FREE)
			return false;
		set_add(&on_stack, slot);
		link = u64_load_relaxed(&arena->timers.cold[slot].data);
		if (!first && (link >> 32) + 1 != depth_below)
			return false;
		slot = (uint32_t)link - 1;
	}
	return link >> 32 == 0;
}

static bool free_stacks_hold_a_slot_once(const struct timerhub *hub)
{
	set_clear(&on_stack, hub->arena.capacity);
	for (uint32_t i = 0; i <= hub->arena.shard_mask; i++)
		if (!stack_holds(&hub->arena, &hub->arena.shards[i]))
			return false;
	return true;
}

/* After the first empty cell of a lane, all are empty. */
static bool lane_holds(const struct timerhub *hub, const struct inbox_lane *lane)
{
	uint64_t head = u64_load_relaxed(&lane->head), tail = u64_load_relaxed(&lane->tail);
	uint64_t end = head;
	bool filled = true;

	/* Look only a few cache lines further: no producer fills cells beyond these. */
	for (uint64_t place = head; place < head + INBOX_LANE_CELLS && place < end + 4 * INBOX_LINE;
	     place++) {
		uint64_t cell = u64_load_relaxed(&lane->cells[place % INBOX_LANE_CELLS]);
		uint32_t slot = (uint32_t)(cell & TIMER_SLOT_MASK);

		filled &= (cell & INBOX_FILLED) != 0;
		if (cell != (place / INBOX_LANE_CELLS * INBOX_LAP |
		             (filled ? INBOX_FILLED | slot : 0)) ||
		    (filled && slot >= hub->arena.capacity))
			return false;
		if (!filled)
			continue;
		set_add(&in_inbox, slot);
		end++;
	}
	/* inbox_begin() relies on this bound. */
	return tail <= end && end <= tail + INBOX_LINE;
}

static void map_add(const struct inbox *inbox, unsigned level, uint32_t word)
{
	uint64_t bits = u64_load_relaxed(&inbox->map.words[level][word]);

	for (; bits != 0; bits &= bits - 1) {
		uint32_t below = word * INBOX_WORD + bits_lowest(bits);

		if (level == 0)
			set_add(&in_inbox, below);
		else
			map_add(inbox, level - 1, below);
	}
}

/* No empty cell comes before a filled one, so the owner finds every slot in the inbox. */
static bool inbox_has_no_hole(const struct timerhub *hub)
{
	set_clear(&in_inbox, hub->arena.capacity);
	for (uint32_t i = 0; i <= hub->inbox.lane_mask; i++)
		if (!lane_holds(hub, &hub->inbox.lanes[i]))
			return false;
	for (uint32_t i = 0; i < hub->inbox.map.top_words; i++)
		map_add(&hub->inbox, INBOX_LEVELS - 1, i);
	return true;
}

static const struct timerhub_queue *hub_queue(const struct timerhub *hub, uint32_t index)
{
	const struct timerhub_queue *queue = ptr_load_relaxed(&hub->queues[index]);

	return queue == QUEUE_GONE ? NULL : queue;
}

static bool events_are_published(const struct timerhub *hub)
{
	for (uint32_t i = 0; i < u64_load_relaxed(&hub->queues_end); i++) {
		const struct timerhub_queue *queue = hub_queue(hub, i);

		if (queue && (queue->unpublished != 0 ||
		              queue->outbox.put != u64_load_relaxed(&queue->outbox.tail)))
			return false;
	}
	return !publisher_has_untold(&hub->owner.publisher);
}

/* ---- invariants of the whole, while no thread is inside a call either ---- */

static bool events_are_signalled(const struct timerhub *hub)
{
	for (uint32_t i = 0; i < u64_load_relaxed(&hub->queues_end); i++) {
		const struct timerhub_queue *queue = hub_queue(hub, i);

		if (queue && outbox_count(&queue->outbox) > 0 &&
		    u32_load_relaxed(&queue->notifier.signalled) == 0)
			return false;
	}
	return true;
}

static bool board_counts_what_waits(const struct timerhub *hub)
{
	for (uint32_t i = 0; i < u64_load_relaxed(&hub->queues_end); i++) {
		const struct timerhub_queue *queue = hub_queue(hub, i);

		if (queue && u64_load_relaxed(&queue->counts->put) -
		                             u64_load_relaxed(&queue->counts->delivered) -
		                             u64_load_relaxed(&queue->counts->passed_over) !=
		                     outbox_count(&queue->outbox))
			return false;
	}
	return true;
}

/* ---- the walk ---- */

#define LINE(holds, callers)                                                                       \
	{                                                                                          \
#holds, holds, callers                                                             \
	}

/* in this order: hub_lines[] fill `on_stack` and `in_inbox`, which slot_lines[] read */
static const struct {
	const char *name;
	bool (*holds)(const struct timerhub *hub);
	enum hub_callers callers;
} hub_lines[] = {
	LINE(free_stacks_hold_a_slot_once, HUB_HAS_CALLERS),
	LINE(inbox_has_no_hole, HUB_HAS_CALLERS),
	LINE(events_are_published, HUB_HAS_CALLERS),
	LINE(events_are_signalled, HUB_HAD_LATE_CALLERS),
	LINE(board_counts_what_waits, HUB_HAS_NO_CALLERS),
};

static const struct {
	const char *name;
	bool (*holds)(const struct sight *sight);
	enum hub_callers callers;
} slot_lines[] = {
	LINE(phase_and_flags_are_legal, HUB_HAS_CALLERS),
	LINE(armed_is_scheduled, HUB_HAS_CALLERS),
	LINE(free_is_scheduled, HUB_HAS_CALLERS),
	LINE(period_is_scheduled, HUB_HAS_CALLERS),
	LINE(waiting_is_unscheduled, HUB_HAS_CALLERS),
	LINE(promise_covers_schedule, HUB_HAS_CALLERS),
	LINE(claim_is_pushed, HUB_HAD_LATE_CALLERS),
	LINE(promise_covers_inbox, HUB_HAD_LATE_CALLERS),
	LINE(expiry_is_in_outbox, HUB_HAD_LATE_CALLERS),
	LINE(free_is_on_stack, HUB_HAD_LATE_CALLERS),
};

static const char *slot_check(const struct timerhub *hub, uint32_t slot, enum hub_callers callers)
{
	const struct timers *timers = &hub->arena.timers;
	struct sight sight = {
		.hub = hub,
		.slot = slot,
		.pair = { .deadline_ns = u64_load_relaxed(&timers->pairs[slot].deadline_ns),
		          .state = u64_load_relaxed(&timers->pairs[slot].state) },
		.at_ns = schedule_at_ns(&hub->owner.schedule, slot),
	};

	sight.phase = state_phase(sight.pair.state);
	sight.instant_ns = timer_instant_ns(timers, slot, sight.pair);
	for (unsigned i = 0; i < sizeof(slot_lines) / sizeof(slot_lines[0]); i++)
		if (slot_lines[i].callers <= callers && !slot_lines[i].holds(&sight))
			return slot_lines[i].name;
	return NULL;
}

const char *hub_check(const struct timerhub *hub, enum hub_callers callers)
{
	const char *broken = schedule_check(&hub->owner.schedule, hub->arena.capacity);
	uint32_t slot = arena_next_used(&hub->arena, 0);

	for (unsigned i = 0; !broken && i < sizeof(hub_lines) / sizeof(hub_lines[0]); i++)
		if (hub_lines[i].callers <= callers && !hub_lines[i].holds(hub))
			broken = hub_lines[i].name;
	for (; !broken && slot != SLOT_NONE; slot = arena_next_used(&hub->arena, slot + 1))
		broken = slot_check(hub, slot, callers);
	return broken;
}
