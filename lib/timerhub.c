/* SPDX-License-Identifier: MIT */
/*
 * Hubs and queues: open, close, advance, ask. Any thread, unless the header says otherwise.
 *
 * A queue closes in its closer's thread: waiters are sent away, the queue's timers are cancelled
 * one by one as by timerhub_cancel(), and when the owner has finished its pass nothing refers to
 * the queue. tests/service/ holds every call to the contract.
 *
 * Labels: [queue] timerhub_queue_open → owner_deliver: carries the queue.
 *         [life] hub_arm_slot → queue_drop_timers: carries the cold record.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cancellation.h"
#include "futex.h"
#include "hub.h"

#define HUB_TIMERS_DEFAULT (1u << 20)
/* How long a closer sleeps between two looks whether waiting or advancing threads have left. */
#define HUB_CLOSE_POLL_NS 1000000

const char *timerhub_version(void)
{
	return TIMERHUB_VERSION;
}

/* ---- options ---- */

/*
 * Copy what the caller's struct, of the size that it names, has of ours; the rest stays as it is.
 */
static int options_read(void *ours, size_t ours_bytes, const void *theirs)
{
	const unsigned char *bytes = theirs;
	uint32_t size;

	if (!theirs)
		return 0;
	memcpy(&size, theirs, sizeof(size));
	if (size < ours_bytes)
		return -EINVAL;
	if (size > TIMERHUB_OPTIONS_MAX_BYTES)
		return -E2BIG;
	for (size_t i = ours_bytes; i < size; i++)
		if (bytes[i] != 0)
			return -E2BIG;
	memcpy(ours, theirs, ours_bytes);
	return 0;
}

static int config_check(const struct timerhub_config *config)
{
	if ((config->flags & ~(TIMERHUB_MANUAL | TIMERHUB_OBSERVABLE | TIMERHUB_HUGE_PAGES)) != 0 ||
	    config->timers_max > TIMER_SLOTS_MAX || config->clock > TIMERHUB_CLOCK_REALTIME ||
	    config->sleeper > TIMERHUB_SLEEPER_POLL)
		return -EINVAL;
	return 0;
}

/* What the environment says, where the config leaves it open. */
static enum owner_sleeper hub_sleeper(const struct timerhub_config *config)
{
	const char *wanted = secure_getenv("TIMERHUB_SLEEPER");

	if (config->sleeper != TIMERHUB_SLEEPER_AUTO || !wanted)
		return (enum owner_sleeper)config->sleeper;
	if (strcmp(wanted, "poll") == 0)
		return OWNER_SLEEPER_POLL;
	return strcmp(wanted, "uring") == 0 ? OWNER_SLEEPER_URING : OWNER_SLEEPER_AUTO;
}

/* ---- open ---- */

/* Cache-line aligned and zeroed; free() it. */
static void *allocate(size_t bytes)
{
	void *memory = NULL;

	if (posix_memalign(&memory, CACHE_LINE_BYTES, bytes) != 0)
		return NULL;
	return memset(memory, 0, bytes);
}

static int hub_open_living(struct timerhub *hub)
{
	int result = memory_reserve_wiped_on_fork(&hub->living_memory, sizeof(*hub->living));

	if (result < 0)
		return result;
	hub->living = hub->living_memory.base;
	*hub->living = (struct hub_living){
		.hot = hub->arena.hot,
		.capacity = hub->arena.capacity,
	};
	return 0;
}

static int hub_open_queues(struct timerhub *hub)
{
	int result = memory_reserve(&hub->queues_memory, OWNER_QUEUES_MAX * sizeof(atomic_ptr));

	if (result == 0)
		hub->queues = hub->queues_memory.base;
	return result;
}

static int hub_open_bell(struct timerhub *hub)
{
	hub->bell = bell_open();
	return hub->bell < 0 ? hub->bell : 0;
}

static int hub_open_owner(struct timerhub *hub)
{
	struct owner_world world = {
		.arena = &hub->arena,
		.inbox = &hub->inbox,
		.promise = &hub->promise,
		.clock = &hub->clock,
		.queues = hub->queues,
		.bell = hub->bell,
		.counts = &hub->board->owner,
	};

	return owner_open(&hub->owner, &world);
}

static const char *hub_thread_name(const struct timerhub_config *config)
{
	return config->thread_name ? config->thread_name : "timerhub";
}

static int hub_open_board(struct timerhub *hub, const struct timerhub_config *config)
{
	struct board_about about = {
		.thread_name = hub_thread_name(config),
		.timers_max = hub->arena.capacity,
		.opened_ns = clock_monotonic_ns(),
		.clock = config->clock,
		.manual = hub->clock.manual,
		.observable = (config->flags & TIMERHUB_OBSERVABLE) != 0,
	};
	int result = board_open(&hub->board, &hub->board_fd, &about);

	if (result == 0 && about.observable) {
		arena_observe(&hub->arena, hub->board->shards);
		inbox_observe(&hub->inbox, hub->board->lanes);
	}
	return result;
}

static int hub_start_owner(struct timerhub *hub, const struct timerhub_config *config)
{
	struct owner_config owner_config = {
		.sleeper = hub_sleeper(config),
		.cpu_plus_one = config->cpu_plus_one,
		.spin_ns = config->spin_ns,
		.name = hub_thread_name(config),
	};

	return owner_start(&hub->owner, &owner_config);
}

/* Frees what has been opened so far; fine on a hub that was opened halfway. */
static void hub_free(struct timerhub *hub)
{
	owner_close(&hub->owner);
	bell_close(hub->bell);
	callbacks_close(&hub->callbacks);
	memory_release(&hub->queues_memory);
	memory_release(&hub->living_memory);
	inbox_close(&hub->inbox);
	arena_close(&hub->arena);
	board_close(hub->board, hub->board_fd);
	free(hub);
}

static int hub_open(struct timerhub *hub, const struct timerhub_config *config)
{
	uint32_t capacity = config->timers_max > 0 ? config->timers_max : HUB_TIMERS_DEFAULT;
	bool manual = (config->flags & TIMERHUB_MANUAL) != 0;
	int result;

	clock_init(&hub->clock, manual ? CLOCK_KIND_MANUAL : (enum clock_kind)config->clock);
	/* A manual hub's first advance is asked for by the bell; an owner starts with a pass. */
	promise_init(&hub->promise, manual ? UINT64_MAX : 0);
	hub->bell = -1;
	hub->board_fd = -1;
	result = arena_open(&hub->arena, capacity);
	if (result == 0)
		result = inbox_open(&hub->inbox, capacity);
	if (result == 0)
		result = hub_open_board(hub, config);
	if (result == 0)
		result = hub_open_living(hub);
	if (result == 0)
		result = hub_open_queues(hub);
	if (result == 0)
		result = callbacks_open(&hub->callbacks);
	if (result == 0)
		result = hub_open_bell(hub);
	if (result == 0)
		result = hub_open_owner(hub);
	if (result == 0 && (config->flags & TIMERHUB_HUGE_PAGES) != 0) {
		memory_advise_huge(&hub->arena.memory);
		memory_advise_huge(&hub->owner.schedule.memory);
	}
	if (result == 0 && !manual)
		result = hub_start_owner(hub, config);
	if (result == 0)
		board_announce(hub->board, true);
	return result;
}

int timerhub_open(struct timerhub **ret_hub, const struct timerhub_config *config)
{
	CANCELLATION_HELD;
	struct timerhub_config known = { .size = sizeof(known) };
	struct timerhub *hub;
	int result;

	if (!ret_hub)
		return -EINVAL;
	result = options_read(&known, sizeof(known), config);
	if (result == 0)
		result = config_check(&known);
	if (result < 0)
		return result;
	hub = allocate(sizeof(*hub));
	if (!hub)
		return -ENOMEM;
	result = hub_open(hub, &known);
	if (result < 0) {
		hub_free(hub);
		return result;
	}
	*ret_hub = hub;
	return 0;
}

/* ---- queues ---- */

static void hub_raise_queues_end(struct timerhub *hub, uint32_t end)
{
	uint32_t before = u32_load_relaxed(&hub->queues_end);

	/* Relaxed: a thread that looks for this queue has heard of it by other means. */
	while (before < end && !u32_cas_relaxed(&hub->queues_end, &before, end)) {
	}
}

/* Tell readers of the board. The index is ours, and nothing waits in the new outbox. */
static void queue_announce(struct timerhub_queue *queue)
{
	struct board_queue *counts = queue->counts;
	atomic_u64 *end = &queue->hub->board->callers.queues_end;
	uint64_t before = u64_load_relaxed(end);

	while (before <= queue->index && !u64_cas_relaxed(end, &before, queue->index + 1)) {
	}
	u64_store_relaxed(&counts->put, u64_load_relaxed(&counts->delivered) +
	                                        u64_load_relaxed(&counts->passed_over));
	u64_store_relaxed(&counts->fd_plus_one, (uint64_t)queue->notifier.fd + 1);
}

/* Put the queue into the hub's table. */
static int hub_add_queue(struct timerhub *hub, struct timerhub_queue *queue)
{
	for (uint32_t i = 0; i < OWNER_QUEUES_MAX; i++) {
		void *none = NULL;

		if (ptr_load_relaxed(&hub->queues[i]) != NULL) /* a hint */
			continue;
		queue->index = i;
		queue->counts = &hub->board->queues[i];
		hub_raise_queues_end(hub, i + 1);
		if (ptr_cas_acq_rel(&hub->queues[i], &none, queue)) { /* [queue] */
			queue_announce(queue);
			return 0;
		}
	}
	return -ENOSPC;
}

/*
 * The structs of queues closed lately, of the whole process. A worker that loops over
 * timerhub_wait() may be between two calls when its queue is closed: its next call then still
 * finds -ESHUTDOWN.
 */
#define GRAVES 64
static atomic_ptr graves[GRAVES];
static atomic_u32 graves_dug;

static void queue_free(struct timerhub_queue *queue)
{
	uint32_t grave = u32_fetch_add_relaxed(&graves_dug, 1) % GRAVES; /* only a number */

	outbox_close(&queue->outbox);
	notifier_close(&queue->notifier);
	/* Relaxed: said before, but in a forked child, or where the queue was never open. */
	u32_store_relaxed(&queue->closing, 1);
	free(ptr_exchange_acq_rel(&graves[grave], queue));
}

static int queue_open(struct timerhub *hub, struct timerhub_queue *queue)
{
	int result;

	queue->hub = hub;
	queue->notifier.fd = -1;
	result = outbox_open(&queue->outbox, hub->arena.capacity);
	if (result == 0)
		result = notifier_open(&queue->notifier);
	return result == 0 ? hub_add_queue(hub, queue) : result;
}

int timerhub_queue_open(struct timerhub *hub, struct timerhub_queue **ret_queue,
                        const struct timerhub_queue_config *config)
{
	CANCELLATION_HELD;
	struct timerhub_queue_config known = { .size = sizeof(known) };
	struct timerhub_queue *queue;
	int result;

	if (!hub || !ret_queue)
		return -EINVAL;
	result = options_read(&known, sizeof(known), config);
	if (result < 0)
		return result;
	if (known.flags != 0)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	queue = allocate(sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	result = queue_open(hub, queue);
	if (result < 0) {
		queue_free(queue);
		return result;
	}
	*ret_queue = queue;
	return 0;
}

/* Make waiters leave, and wait until they have. */
static void queue_send_waiters_away(struct timerhub_queue *queue)
{
	u32_store_seq_cst(&queue->closing, 1);
	for (;;) {
		uint32_t inside = u32_load_seq_cst(&queue->inside);

		if (inside == 0)
			return;
		notifier_wake_all(&queue->notifier);
		futex_wait(&queue->inside, inside, HUB_CLOSE_POLL_NS);
	}
}

static void queue_drop_timer(struct timerhub_queue *queue, timerhub_timer timer)
{
	if (hub_cancel(queue->hub, timer, queue) == 0)
		(void)u64_fetch_add_relaxed(&queue->hub->board->callers.dropped,
		                            1); /* a number to read */
}

/* Cancel every timer of the queue: the one place that walks all slots. */
static void queue_drop_timers(struct timerhub_queue *queue)
{
	struct timerhub *hub = queue->hub;
	uint32_t slot = arena_next_used(&hub->arena, 0);

	for (; slot != SLOT_NONE; slot = arena_next_used(&hub->arena, slot + 1)) {
		/* [life] The queue index is of this life then; hub_cancel() verifies the rest. */
		uint64_t identity = u64_load_acquire(&hub->arena.hot[slot].identity);

		queue_drop_timer(queue, handle_make(identity_generation(identity), slot));
	}
}

/*
 * If, against the contract, a thread was still arming on the queue, a timer that has expired since
 * we walked the slots would keep its slot for ever. The owner drops the others.
 */
static void queue_drop_late_expiries(struct timerhub_queue *queue)
{
	uint64_t handle;

	while (outbox_take(&queue->outbox, &handle, 1) > 0)
		queue_drop_timer(queue, handle);
}

/* A manual hub's pass runs in the thread that advances; two threads must not. */
static bool hub_try_enter(struct timerhub *hub)
{
	uint32_t advancing = u32_load_relaxed(&hub->advancing);

	return advancing % 2 == 0 && u32_cas_seq_cst(&hub->advancing, &advancing, advancing + 1);
}

static void hub_leave(struct timerhub *hub)
{
	(void)u32_fetch_add_seq_cst(&hub->advancing, 1);
}

/* Wait until the owner's pass in progress is over: what it read before is no longer used. */
static void hub_wait_pass(struct timerhub *hub)
{
	uint32_t advancing;

	if (!hub->clock.manual) {
		owner_wait_pass(&hub->owner);
		return;
	}
	/*
	 * Changes nothing; but a thread that enters after it, by its own change, sees our stores.
	 */
	advancing = u32_fetch_add_seq_cst(&hub->advancing, 0);
	while (advancing % 2 != 0 && u32_load_seq_cst(&hub->advancing) == advancing)
		futex_wait(&hub->advancing, advancing, HUB_CLOSE_POLL_NS);
}

/* Model: tests/models/close.pml. */
void timerhub_queue_close(struct timerhub_queue *queue)
{
	CANCELLATION_HELD;
	struct timerhub *hub;

	if (!queue)
		return;
	hub = queue->hub;
	if (hub_alive(hub)) {
		queue_send_waiters_away(queue);
		queue_drop_timers(queue);
		/* Relaxed: the change that the wait begins with carries it to the next pass. */
		ptr_store_relaxed(&hub->queues[queue->index], QUEUE_GONE);
		hub_wait_pass(hub);
		queue_drop_late_expiries(queue);
		u64_store_relaxed(&queue->counts->fd_plus_one, 0);
	}
	ptr_store_release(&hub->queues[queue->index], NULL); /* nothing is read of what was there */
	queue_free(queue);
}

int timerhub_queue_fd(const struct timerhub_queue *queue)
{
	return queue ? queue->notifier.fd : -EINVAL;
}

struct timerhub *timerhub_queue_hub(const struct timerhub_queue *queue)
{
	return queue ? queue->hub : NULL;
}

int timerhub_queue_attach_uring(struct timerhub_queue *queue, int ring_fd, uint64_t user_data)
{
	CANCELLATION_HELD;
	struct announcer *announcer;
	uint64_t waiting;
	int result;

	if (!queue)
		return -EINVAL;
	if (!hub_alive(queue->hub))
		return -EOWNERDEAD;
	result = announcer_open(&announcer, ring_fd, user_data);
	if (result < 0)
		return result;
	result = notifier_attach(&queue->notifier, announcer);
	if (result < 0) {
		announcer_close(announcer);
		return result;
	}
	/* Not the count decides: the outbox seems to be empty while the owner compacts it. */
	if (notifier_signalled(&queue->notifier)) {
		waiting = u64_min(outbox_count(&queue->outbox), INT_MAX);
		notifier_announce(&queue->notifier, waiting > 0 ? (unsigned)waiting : 1);
	}
	return 0;
}

int timerhub_queue_detach_uring(struct timerhub_queue *queue)
{
	CANCELLATION_HELD;

	if (!queue)
		return -EINVAL;
	if (!hub_alive(queue->hub))
		return -EOWNERDEAD;
	return notifier_detach(&queue->notifier);
}

/* ---- close ---- */

static void hub_close_queues(struct timerhub *hub)
{
	for (uint32_t i = 0; i < u32_load_relaxed(&hub->queues_end); i++) {
		/* Relaxed: the closer of the hub knows of all its queues. */
		struct timerhub_queue *queue = ptr_load_relaxed(&hub->queues[i]);

		if (!queue || queue == QUEUE_GONE) /* this in a child forked in the middle */
			continue;
		if (hub_alive(hub))
			queue_send_waiters_away(queue);
		queue_free(queue);
	}
}

void timerhub_close(struct timerhub *hub)
{
	CANCELLATION_HELD;

	if (!hub)
		return;
	owner_stop(&hub->owner, hub_alive(hub));
	if (hub_alive(hub))
		board_announce(hub->board, false);
	hub_close_queues(hub);
	hub_free(hub);
}

/* ---- manual hubs ---- */

int timerhub_advance(struct timerhub *hub, uint64_t now_ns, uint64_t *ret_next_ns)
{
	uint64_t next_ns;
	bool moved;

	if (!hub || !hub->clock.manual)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	if (!hub_try_enter(hub))
		return -EBUSY;
	moved = clock_set(&hub->clock, now_ns);
	if (moved) {
		/* Before the pass is numbered: a later ring must stay. */
		bell_clear(hub->bell);
		next_ns = owner_run_passes(&hub->owner);
	}
	hub_leave(hub);
	if (!moved)
		return -EINVAL;
	if (ret_next_ns)
		*ret_next_ns = next_ns;
	return 0;
}

int timerhub_wake_fd(const struct timerhub *hub)
{
	return hub && hub->clock.manual ? hub->bell : -EINVAL;
}

/* ---- ask ---- */

uint64_t timerhub_now(const struct timerhub *hub)
{
	return hub ? clock_now_ns(&hub->clock) : 0;
}

int timerhub_owner_tid(const struct timerhub *hub)
{
	if (!hub || hub->clock.manual)
		return -EINVAL;
	return hub_alive(hub) ? owner_tid(&hub->owner) : -EOWNERDEAD;
}

/* Relaxed throughout: numbers to read, each exact by itself. Returns how many timers they ended. */
static uint64_t stats_add_queues(const struct timerhub *hub, struct timerhub_stats *stats)
{
	uint64_t retired = 0;

	for (uint32_t i = 0; i < u32_load_relaxed(&hub->queues_end); i++) {
		const struct board_queue *counts = &hub->board->queues[i];

		stats->delivered += u64_load_relaxed(&counts->delivered);
		stats->overruns += u64_load_relaxed(&counts->overruns);
		retired += u64_load_relaxed(&counts->retired);
	}
	return retired;
}

static void stats_add_owner(const struct owner *owner, struct timerhub_stats *stats)
{
	const struct board_owner *counts = owner->counts;

	stats->refiled = u64_load_relaxed(&counts->refiled);
	stats->expired = u64_load_relaxed(&counts->expired);
	stats->inbox_max = u64_load_relaxed(&counts->inbox_max);
	stats->owner_wakeups = u64_load_relaxed(&counts->wakeups);
	stats->queue_signals = u64_load_relaxed(&counts->queue_signals);
	stats->cascaded = u64_load_relaxed(&counts->cascaded);
	stats->clock_jumps = u64_load_relaxed(&counts->clock_jumps);
	stats->sleeper = (uint32_t)u64_load_relaxed(&counts->sleeper);
	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		stats->lateness[i] = u64_load_relaxed(&counts->lateness[i]);
}

int timerhub_stats(struct timerhub *hub, struct timerhub_stats *ret_stats)
{
	struct timerhub_stats stats = { .armed = 0 };
	const struct board_callers *callers;
	struct arena_counts arena;
	uint64_t ended;

	if (!hub || !ret_stats)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	callers = &hub->board->callers;
	arena = arena_count(&hub->arena); /* first: what it shows as ended has been counted */
	ended = stats_add_queues(hub, &stats);
	stats_add_owner(&hub->owner, &stats);
	stats.armed = arena.taken - u64_load_relaxed(&callers->untaken);
	stats.live = arena.in_use;
	stats.live_max = arena.in_use_max;
	stats.submit_wakes = u64_load_relaxed(&callers->submit_wakes);
	ended += u64_load_relaxed(&callers->dropped) + arena.in_use;
	/* What was armed and is neither live, delivered nor dropped has been cancelled. */
	stats.cancelled = stats.armed > ended ? stats.armed - ended : 0;
	*ret_stats = stats;
	return 0;
}
