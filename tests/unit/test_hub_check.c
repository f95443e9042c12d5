/* SPDX-License-Identifier: MIT */
/*
 * Tests that hub_check() detects each broken invariant of a hub. In an intact hub with a timer in
 * every phase, hub_check() must find that every invariant holds. Each of the other tests changes
 * one word of the hub's memory. hub_check() must then name the broken invariant.
 */
#include "harness.h"

#include <string.h>

#include "hub/hub.h"
#include "hub_check.h"

#define BUCKET_NS (UINT64_C(1) << WHEEL_FINEST_SHIFT)
/*
 * NOW_NS is in the middle of a bucket. Timers that are armed at NOW_NS for the same bucket go into
 * the run.
 */
#define NOW_NS (SEC / BUCKET_NS * BUCKET_NS + 1000)
#define CROWD 40 /* number of timers in one bucket of the wheel, enough to fill three chunks */

struct scene {
	struct timerhub *hub;
	struct timerhub_queue *queue;
	/* slots of armed timers in the run and in the heap, in order of instant */
	uint32_t run[3], heap[2];
	uint32_t far[CROWD]; /* slots of armed timers in one bucket of the wheel */
	uint32_t pending, period, overdue, idle;
	uint32_t cancelled; /* a free slot with a schedule entry */
	uint32_t free;      /* a free slot without a schedule entry */
	uint32_t submitted; /* an armed timer whose slot is in the inbox */
};

static uint32_t scene_arm(struct scene *scene, uint64_t at_ns, uint64_t interval_ns, uint32_t flags)
{
	struct timerhub_spec spec = { .size = sizeof(spec),
		                      .flags = TIMERHUB_ABSOLUTE | flags,
		                      .expires_ns = at_ns,
		                      .interval_ns = interval_ns };
	timerhub_timer timer;

	expect_eq(timerhub_arm(scene->queue, &spec, &timer), 0);
	return handle_slot(timer);
}

static struct timer *scene_timer(const struct scene *scene, uint32_t slot)
{
	return &scene->hub->arena.timers.pairs[slot];
}

static void scene_cancel(const struct scene *scene, uint32_t slot)
{
	timerhub_timer timer = timer_last(&scene->hub->arena.timers, slot);

	expect_eq(timerhub_cancel(scene->hub, timer), 0);
}

static void scene_advance(struct scene *scene, uint64_t now_ns)
{
	expect_eq(timerhub_advance(scene->hub, now_ns, NULL), 0);
}

static void queue_drain(struct timerhub_queue *queue, int count)
{
	struct timerhub_event events[8];

	expect_eq(timerhub_drain(queue, events, COUNT_OF(events)), count);
}

static void scene_open_hub(struct scene *scene)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_MANUAL,
		                          .timers_max = 128 };

	memset(scene, 0, sizeof(*scene));
	expect_eq(timerhub_open(&scene->hub, &config), 0);
	expect_eq(timerhub_queue_open(scene->hub, &scene->queue, NULL), 0);
}

/* scene_open() frees slots last, so that no timer armed later gets one of these slots. */
static void scene_open(struct scene *scene)
{
	struct timerhub_queue *other;
	struct scene other_scene;

	scene_open_hub(scene);
	expect_eq(timerhub_queue_open(scene->hub, &other, NULL), 0);
	other_scene = (struct scene){ .hub = scene->hub, .queue = other };
	scene->free = scene_arm(&other_scene, 1, 0, 0);
	scene->idle = scene_arm(scene, 1, 0, TIMERHUB_KEEP);
	scene_advance(scene, 1);
	queue_drain(scene->queue, 1);
	scene->overdue = scene_arm(scene, NOW_NS / 4, NOW_NS / 4, 0);
	scene_advance(scene, NOW_NS / 4);
	scene->period = scene_arm(scene, NOW_NS, HOUR, 0);
	scene->pending = scene_arm(scene, NOW_NS, 0, 0);
	for (unsigned i = 0; i < COUNT_OF(scene->run); i++)
		scene->run[i] = scene_arm(scene, NOW_NS + 1000 * (i + 1), 0, 0);
	for (unsigned i = 0; i < CROWD; i++)
		scene->far[i] = scene_arm(scene, 2 * HOUR + i, 0, 0);
	scene->cancelled = scene_arm(scene, 3 * HOUR, 0, 0);
	scene_advance(scene, NOW_NS);
	for (unsigned i = 0; i < COUNT_OF(scene->heap); i++)
		scene->heap[i] = scene_arm(scene, NOW_NS + 1500 * (i + 1), 0, 0);
	scene_advance(scene, NOW_NS + 1);
	scene->submitted = scene_arm(scene, HOUR, 0, 0);
	queue_drain(other, 1);
	scene_cancel(scene, scene->cancelled);
}

/* ---- what is broken: the schedule ---- */

static struct schedule *schedule_of(struct scene *scene)
{
	return &scene->hub->owner.schedule;
}

static struct wheel_chunk *far_chunk(struct scene *scene)
{
	uint32_t where = scene->hub->arena.filings[scene->far[0]].where & ~WHERE_MASK;

	return &schedule_of(scene)->wheel.chunks[where >> WHEEL_ENTRY_BITS];
}

static struct wheel_level *far_level(struct scene *scene)
{
	return &schedule_of(scene)->wheel.levels[far_chunk(scene)->bucket / WHEEL_DIGITS];
}

static struct wheel_bucket *far_bucket(struct scene *scene)
{
	return &far_level(scene)->buckets[far_chunk(scene)->bucket % WHEEL_DIGITS];
}

static void break_filing(struct scene *scene)
{
	scene->hub->arena.filings[scene->far[7]].where++;
}

static void break_filing_of_run(struct scene *scene)
{
	scene->hub->arena.filings[scene->run[2]].where = WHERE_RUN | 100;
}

static void break_filing_of_heap(struct scene *scene)
{
	scene->hub->arena.filings[scene->heap[0]].where = WHERE_HEAP | 2;
}

static void break_entry(struct scene *scene)
{
	scene->hub->arena.filings[scene->far[7]].where = 0;
}

static void break_entry_of_run(struct scene *scene)
{
	scene->hub->arena.filings[scene->run[2]].where = 0;
}

static void break_entry_of_heap(struct scene *scene)
{
	schedule_of(scene)->heap.entries[2] = schedule_of(scene)->heap.entries[1];
	schedule_of(scene)->heap.count++;
}

static void break_bitmap(struct scene *scene)
{
	uint32_t digit = far_chunk(scene)->bucket % WHEEL_DIGITS;

	far_level(scene)->bitmap[digit / 64] &= ~(UINT64_C(1) << digit % 64);
}

static void break_bitmap_of_empty(struct scene *scene)
{
	far_level(scene)->bitmap[63] |= UINT64_C(1) << 63;
	far_level(scene)->summary |= UINT64_C(1) << 63;
}

static void break_summary(struct scene *scene)
{
	far_level(scene)->summary |= UINT64_C(1) << 63;
}

static void break_chunk(struct scene *scene)
{
	schedule_of(scene)->wheel.chunks_used++;
}

static void break_free_chunk(struct scene *scene)
{
	schedule_of(scene)->wheel.free_chunk = 1;
	schedule_of(scene)->wheel.chunks[1].next = 1;
}

static void break_bucket(struct scene *scene)
{
	far_chunk(scene)->entries[3].at_ns += HOUR;
}

static void break_bound(struct scene *scene)
{
	far_bucket(scene)->bound_ns++;
}

static void break_bound_slot(struct scene *scene)
{
	far_bucket(scene)->bound_slot = scene->far[1];
}

static void break_run(struct scene *scene)
{
	struct run *run = &schedule_of(scene)->run;

	run->entries[run->begin].at_ns += 1500;
}

static void break_run_begin(struct scene *scene)
{
	struct run *run = &schedule_of(scene)->run;

	scene->hub->arena.filings[run->entries[run->begin].slot].where = 0;
	run->entries[run->begin].slot = SLOT_NONE;
}

static void break_heap(struct scene *scene)
{
	schedule_of(scene)->heap.entries[0].at_ns += 3000;
}

static void break_order_of_all(struct scene *scene)
{
	struct run *run = &schedule_of(scene)->run;

	run->entries[run->end - 1].at_ns += BUCKET_NS;
}

static void break_order_of_heap(struct scene *scene)
{
	schedule_of(scene)->heap.entries[1].at_ns += BUCKET_NS;
}

/* ---- the slots ---- */

static void set_state(const struct scene *scene, uint32_t slot, uint64_t clear, uint64_t set)
{
	atomic_u64 *state = &scene_timer(scene, slot)->state;

	u64_store_relaxed(state, (u64_load_relaxed(state) & ~clear) | set);
}

static void set_deadline(const struct scene *scene, uint32_t slot, uint64_t deadline_ns)
{
	u64_store_relaxed(&scene_timer(scene, slot)->deadline_ns, deadline_ns);
}

static void break_phase(struct scene *scene)
{
	set_state(scene, scene->far[0], STATE_PHASE_MASK, 5);
}

static void break_flags(struct scene *scene)
{
	set_state(scene, scene->far[0], 0, STATE_PUSHED);
}

static void break_kept(struct scene *scene)
{
	set_state(scene, scene->far[0], 0, STATE_KEPT | STATE_PERIODIC);
}

static void break_deadline(struct scene *scene)
{
	set_deadline(scene, scene->pending, TIMER_NEVER_NS);
}

static void break_armed(struct scene *scene)
{
	set_deadline(scene, scene->far[0], 2 * HOUR - 1);
}

static void break_armed_unscheduled(struct scene *scene)
{
	schedule_remove(schedule_of(scene), scene->heap[1]);
}

static void break_free(struct scene *scene)
{
	set_deadline(scene, scene->cancelled, 3 * HOUR - 1);
}

static void break_free_unscheduled(struct scene *scene)
{
	set_deadline(scene, scene->free, 5 * HOUR);
}

static void break_period(struct scene *scene)
{
	schedule_remove(schedule_of(scene), scene->period);
}

static void break_period_late(struct scene *scene)
{
	schedule_insert(schedule_of(scene), scene->period, NOW_NS + HOUR + 1);
}

static void break_pending(struct scene *scene)
{
	schedule_insert(schedule_of(scene), scene->pending, HOUR);
}

static void break_overdue(struct scene *scene)
{
	schedule_insert(schedule_of(scene), scene->overdue, HOUR);
}

static void break_idle(struct scene *scene)
{
	schedule_insert(schedule_of(scene), scene->idle, HOUR);
}

static void break_push(struct scene *scene)
{
	set_state(scene, scene->far[0], 0, STATE_CLAIMED | STATE_PUSHED);
}

static void break_claim(struct scene *scene)
{
	set_state(scene, scene->far[0], 0, STATE_CLAIMED);
}

static void break_promise(struct scene *scene)
{
	u64_store_relaxed(&scene->hub->promise.look_by_ns, NOW_NS + 1001);
}

static void break_promise_of_inbox(struct scene *scene)
{
	set_deadline(scene, scene->submitted, NOW_NS + 2);
}

/* ---- the stacks, the inbox, the outbox ---- */

static struct arena_shard *free_shard(struct scene *scene)
{
	struct arena_shard *shards = scene->hub->arena.shards;

	while (u64_load_relaxed(&shards->top) % (TIMER_SLOT_MASK + 1) == 0)
		shards++;
	return shards;
}

/*
 * Returns the link of the top slot of a free stack. The link contains the number of slots below the
 * top slot.
 */
static atomic_u64 *free_link(struct scene *scene)
{
	uint64_t top = u64_load_relaxed(&free_shard(scene)->top);

	return &scene->hub->arena.timers.cold[(top & TIMER_SLOT_MASK) - 1].data;
}

static void break_stack_of_used(struct scene *scene)
{
	u64_store_relaxed(&free_shard(scene)->top, scene->far[0] + 1);
}

static void break_stack_twice(struct scene *scene)
{
	uint64_t top = u64_load_relaxed(&free_shard(scene)->top);

	u64_store_relaxed(free_link(scene), top & TIMER_SLOT_MASK);
}

static void break_stack_depth(struct scene *scene)
{
	(void)u64_fetch_add_relaxed(free_link(scene), UINT64_C(1) << 32);
}

static void break_stack_lost(struct scene *scene)
{
	u64_store_relaxed(&free_shard(scene)->top, 0);
}

static struct inbox_lane *full_lane(struct scene *scene)
{
	struct inbox_lane *lane = scene->hub->inbox.lanes;
	uint64_t mask = (UINT64_C(1) << scene->hub->inbox.lane_shift) - 1;

	while ((u64_load_relaxed(&lane->cells[u64_load_relaxed(&lane->head) & mask]) >> 26 & 1) ==
	       0)
		lane++;
	return lane;
}

static void break_inbox(struct scene *scene)
{
	struct inbox_lane *lane = full_lane(scene);
	uint64_t head = u64_load_relaxed(&lane->head);

	u64_store_relaxed(&lane->cells[head + 1], u64_load_relaxed(&lane->cells[head]));
	u64_store_relaxed(&lane->cells[head], 0);
}

static void break_inbox_tail(struct scene *scene)
{
	struct inbox_lane *lane = full_lane(scene);

	u64_store_relaxed(&lane->tail, u64_load_relaxed(&lane->head) + 8);
}

static void break_inbox_slot(struct scene *scene)
{
	struct inbox_lane *lane = full_lane(scene);

	(void)u64_fetch_add_relaxed(&lane->cells[u64_load_relaxed(&lane->head)], 128);
}

static void break_publication(struct scene *scene)
{
	(void)outbox_put(&scene->queue->outbox, 0);
}

static void break_publisher(struct scene *scene)
{
	scene->queue->unpublished = 1;
}

static void break_publisher_list(struct scene *scene)
{
	scene->hub->owner.publisher.unpublished = scene->queue;
}

static void break_signal(struct scene *scene)
{
	u32_store_relaxed(&scene->queue->notifier.signalled, 0);
}

static void break_outbox(struct scene *scene)
{
	struct outbox *outbox = &scene->queue->outbox;
	uint32_t place = scene->hub->arena.filings[scene->pending].place;

	u64_store_relaxed(&outbox->cells[place & outbox->mask], 0);
}

static void break_outbox_place(struct scene *scene)
{
	scene->hub->arena.filings[scene->overdue].place += 100;
}

static void break_outbox_queue(struct scene *scene)
{
	atomic_u64 *queue_slack = &scene->hub->arena.timers.cold[scene->pending].queue_slack;

	u64_store_relaxed(queue_slack, queue_slack_make(OWNER_QUEUES_MAX - 1, 0));
}

static void break_board(struct scene *scene)
{
	(void)u64_fetch_add_relaxed(&scene->queue->counts->put, 1);
}

static const struct {
	const char *invariant;
	void (*break_it)(struct scene *scene);
	bool callers_may; /* true if the broken state is legal while a caller is inside a call */
} faults[] = {
	{ "filing_names_entry", break_filing, false },
	{ "filing_names_entry", break_filing_of_run, false },
	{ "filing_names_entry", break_filing_of_heap, false },
	{ "entry_has_filing", break_entry, false },
	{ "entry_has_filing", break_entry_of_run, false },
	{ "entry_has_filing", break_entry_of_heap, false },
	{ "bitmap_says_occupied", break_bitmap, false },
	{ "bitmap_says_occupied", break_bitmap_of_empty, false },
	{ "bitmap_says_occupied", break_summary, false },
	{ "chunk_is_filled", break_chunk, false },
	{ "chunk_is_filled", break_free_chunk, false },
	{ "bucket_holds_its_instants", break_bucket, false },
	{ "bound_is_low", break_bound, false },
	{ "bound_is_low", break_bound_slot, false },
	{ "run_is_sorted", break_run, false },
	{ "run_is_sorted", break_run_begin, false },
	{ "heap_is_ordered", break_heap, false },
	{ "run_and_heap_come_first", break_order_of_all, false },
	{ "run_and_heap_come_first", break_order_of_heap, false },
	{ "phase_and_flags_are_legal", break_phase, false },
	{ "phase_and_flags_are_legal", break_flags, false },
	{ "phase_and_flags_are_legal", break_kept, false },
	{ "phase_and_flags_are_legal", break_deadline, false },
	{ "armed_is_scheduled", break_armed, false },
	{ "armed_is_scheduled", break_armed_unscheduled, false },
	{ "free_is_scheduled", break_free, false },
	{ "free_is_scheduled", break_free_unscheduled, false },
	{ "period_is_scheduled", break_period, false },
	{ "period_is_scheduled", break_period_late, false },
	{ "waiting_is_unscheduled", break_pending, false },
	{ "waiting_is_unscheduled", break_overdue, false },
	{ "waiting_is_unscheduled", break_idle, false },
	{ "pushed_is_in_inbox", break_push, false },
	{ "claim_is_pushed", break_claim, true },
	{ "promise_covers_schedule", break_promise, false },
	{ "promise_covers_inbox", break_promise_of_inbox, true },
	{ "free_stacks_hold_a_slot_once", break_stack_of_used, false },
	{ "free_stacks_hold_a_slot_once", break_stack_twice, false },
	{ "free_stacks_hold_a_slot_once", break_stack_depth, false },
	{ "free_is_on_stack", break_stack_lost, true },
	{ "inbox_has_no_hole", break_inbox, false },
	{ "inbox_has_no_hole", break_inbox_tail, false },
	{ "inbox_has_no_hole", break_inbox_slot, false },
	{ "events_are_published", break_publication, false },
	{ "events_are_published", break_publisher, false },
	{ "events_are_published", break_publisher_list, false },
	{ "events_are_signalled", break_signal, true },
	{ "board_counts_what_waits", break_board, true },
	{ "expiry_is_in_outbox", break_outbox, true },
	{ "expiry_is_in_outbox", break_outbox_place, true },
	{ "expiry_is_in_outbox", break_outbox_queue, true },
};

/*
 * The close of a hub reads neither timers nor schedule, so a hub with a broken invariant can be
 * closed.
 */
START_TEST(broken_invariant_is_named)
{
	struct scene scene;
	const char *broken;

	scene_open(&scene);
	expect_unbroken(hub_check(scene.hub, HUB_HAS_NO_CALLERS));
	expect_context("fault", (uint64_t)_i, 0);
	faults[_i].break_it(&scene);
	broken = hub_check(scene.hub, HUB_HAS_NO_CALLERS);
	expect(broken);
	ck_assert_str_eq(broken, faults[_i].invariant);
	broken = hub_check(scene.hub, HUB_HAS_CALLERS);
	expect((broken == NULL) == faults[_i].callers_may);
	timerhub_close(scene.hub);
}
END_TEST

/* The scene also has slots in the run, the heap, the wheel and the inbox. */
START_TEST(scene_has_a_timer_in_every_phase)
{
	struct scene scene;

	scene_open(&scene);
#define PHASE(slot) state_phase(u64_load_relaxed(&scene_timer(&scene, scene.slot)->state))
#define WHERE(slot) (scene.hub->arena.filings[scene.slot].where & WHERE_MASK)
	expect_eq(PHASE(pending), TIMER_PENDING);
	expect_eq(PHASE(period), TIMER_PENDING);
	expect_eq(PHASE(overdue), TIMER_OVERDUE);
	expect_eq(PHASE(idle), TIMER_IDLE);
	expect_eq(PHASE(free), TIMER_FREE);
	expect_eq(WHERE(run[1]), WHERE_RUN);
	expect_eq(WHERE(heap[1]), WHERE_HEAP);
	expect_eq(WHERE(far[CROWD - 1]), WHERE_WHEEL);
	expect_eq(WHERE(cancelled), WHERE_WHEEL);
	expect_eq(WHERE(submitted), 0);
	timerhub_close(scene.hub);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("hub_check", argc, argv);
	tests_add(scene_has_a_timer_in_every_phase, 20);
	tests_add_loop(broken_invariant_is_named, 20, COUNT_OF(faults));
	return tests_run();
}
