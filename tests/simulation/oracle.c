/* SPDX-License-Identifier: MIT */
/*
 * The current actor calls the oracle between two steps of the library. Call A is before call B if
 * A's end has a lower stamp than B's begin. If the two overlap, either order is accepted.
 */
#include "oracle.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "kernel.h"
#include "report.h"

struct oracle oracle;

#define fail(...) report_failure(__VA_ARGS__)

/* By which messages name it. */
static unsigned life_number(const struct life *life)
{
	return (unsigned)(life - oracle.lives);
}

static _Noreturn void fail_early(const struct life *life, uint64_t deadline_ns)
{
	fail("timer %u, due at %" PRIu64 ", came early, at %" PRIu64, life_number(life),
	     deadline_ns, oracle_now_ns());
}

void oracle_begin(unsigned capacity)
{
	oracle.lives_count = 0;
	oracle.lingering = 0;
	oracle.active_count = oracle.arming_count = oracle.occupancy_peak = 0;
	oracle.capacity = capacity;
	oracle.calls = 0;
	oracle.owner_read = 0;
	oracle.stamp = oracle.clock_set = 0;
	memset(oracle.queues, 0, sizeof(oracle.queues));
	oracle.armed = oracle.delivered = oracle.retired = 0;
	oracle.cancelled = oracle.dropped = oracle.overruns = 0;
	oracle.manual_hub = NULL;
	oracle.mover = NULL;
	oracle.mover_sleeps = false;
	oracle.advancing = oracle.counting = 0;
	oracle.advances = 0;
	oracle.apart = memory.mode != MEMORY_SC && dice_one_in(&memory.dice, 2);
	memset(&oracle.places_view, 0, sizeof(oracle.places_view));
}

uint64_t oracle_now_ns(void)
{
	uint64_t now_ns;

	if (!oracle.manual_hub)
		return kernel_clock_ns();
	scheduler_hold();
	now_ns = timerhub_now(oracle.manual_hub);
	scheduler_release();
	return now_ns;
}

uint64_t oracle_stamp(void)
{
	return ++oracle.stamp;
}

bool oracle_full(void)
{
	return oracle.lives_count == LIVES_MAX;
}

static bool life_active(const struct life *life)
{
	return life->state <= LIFE_LIVE;
}

bool oracle_mover_sleeps(void)
{
	return oracle.mover && oracle.mover->waits_on && oracle.advancing == 0 &&
	       (oracle.mover_sleeps || kernel.owner_sleeps);
}

/* Returns a number that changes whenever the owner runs or the manual hub is advanced. */
static uint64_t oracle_mover_runs(void)
{
	return oracle.mover ? oracle.mover->runs + oracle.advances : 0;
}

/* ---- lives ---- */

static void life_activate(struct life *life)
{
	life->index = oracle.active_count;
	oracle.active[oracle.active_count++] = life;
}

static void life_leave(struct life *life)
{
	struct life *last = oracle.active[--oracle.active_count];

	oracle.active[life->index] = last;
	last->index = life->index;
}

static void life_end(struct life *life, enum life_state state, uint64_t begin)
{
	if (life->missed < begin)
		fail("timer %u was reported as ended before the call that ended it began",
		     life_number(life));
	if (life->state == LIFE_ARMING) { /* the call that arms the timer has not returned */
		oracle.armed++;
		oracle.arming_count--;
	}
	life_leave(life);
	life->state = state;
	life->end_begin = begin;
	life->end_end = oracle_stamp();
}

static struct write *life_write(struct life *life, uint64_t first_ns, uint64_t begin)
{
	struct write *write;

	if (life->writes_count == WRITES_MAX) {
		/* a drain in progress may still return an event of the deadline that is removed */
		life->ahead_lost |= life->interval_ns > 0 || life->kept;
		memmove(life->writes, life->writes + 1, (WRITES_MAX - 1) * sizeof(*write));
		life->writes_count--;
	}
	/* the owner may act by a reading from before the clock was set back */
	if (kernel.owner_latest_ns > oracle_now_ns()) {
		if (first_ns <= kernel.owner_latest_ns)
			life->was_due = oracle_stamp();
		life->loose = true;
	}
	write = &life->writes[life->writes_count++];
	*write = (struct write){ .first_ns = first_ns,
		                 .last_ns = first_ns,
		                 .thread = scheduler_self(),
		                 .epoch = memory_known()->epochs[scheduler_self()],
		                 .switches = scheduler.switches,
		                 .begin = begin,
		                 .end = STAMP_NONE,
		                 .closed = STAMP_NONE };
	return write;
}

static struct write *life_find_write(struct life *life, uint64_t begin)
{
	for (unsigned i = 0; i < life->writes_count; i++)
		if (life->writes[i].begin == begin)
			return &life->writes[i];
	return NULL;
}

static void life_remove_write(struct life *life, struct write *write)
{
	struct write *end = life->writes + --life->writes_count;

	memmove(write, write + 1, (size_t)((char *)end - (char *)write));
}

/* False if another call on the timer overlapped it. */
static bool life_call_end(struct life *life)
{
	bool alone = !life->crowded;

	memory_publish(&life->view);
	life->callers[scheduler_self()]--;
	if (--life->calls == 0) {
		life->crowded = false;
		oracle.lingering -= life->lingers;
		life->lingers = false;
	}
	life->settled_ns = oracle_now_ns();
	return alone;
}

/* By when it must have expired; NEVER: unknown. */
static uint64_t life_due_ns(const struct life *life)
{
	uint64_t due_ns = 0;
	unsigned open = 0;

	if (life->ahead_lost)
		return NEVER;
	for (unsigned i = 0; i < life->writes_count; i++) {
		const struct write *write = &life->writes[i];
		uint64_t ns = write->last_ns;

		if (write->closed != STAMP_NONE)
			continue;
		open++;
		if (write->maybe)
			return NEVER;
		if (ns == NEVER || ns > UINT64_MAX - life->slack_ns)
			return NEVER;
		if (ns + life->slack_ns > due_ns)
			due_ns = ns + life->slack_ns;
	}
	return open == 0 ? NEVER : due_ns;
}

/*
 * Returns by when a timer must expire while stopped threads are inside calls on it. The deadline of
 * a re-arm that began after these threads stopped, and has returned, is in force. Returns NEVER if
 * no such re-arm exists.
 */
static uint64_t life_due_beside_stopped_ns(const struct life *life)
{
	uint64_t since = 0, due_ns = 0;
	bool promised = false;

	for (unsigned i = 0; i < scheduler.count; i++) {
		const struct actor *actor = &scheduler.actors[i];

		if (life->callers[i] > 0 && !actor->stalled)
			return NEVER;
		if (life->callers[i] > 0 && actor->stalled_at > since)
			since = actor->stalled_at;
	}
	if (life->ahead_lost)
		return NEVER;
	for (unsigned i = 0; i < life->writes_count; i++) {
		const struct write *write = &life->writes[i];

		if (write->end == STAMP_NONE || write->closed != STAMP_NONE)
			continue;
		if (write->maybe || write->last_ns == NEVER ||
		    write->last_ns > UINT64_MAX - life->slack_ns)
			return NEVER;
		promised |= write->switches > since;
		if (write->last_ns + life->slack_ns > due_ns)
			due_ns = write->last_ns + life->slack_ns;
	}
	return promised ? due_ns : NEVER;
}

/* Returns whether the timer may have expired. Deadlines of calls in progress do not count. */
static bool life_maybe_expired(const struct life *life)
{
	if (life->was_due != 0)
		return true;
	for (unsigned i = 0; i < life->writes_count; i++)
		if (life->writes[i].first_ns <= oracle_now_ns() &&
		    life->writes[i].end != STAMP_NONE)
			return true;
	return false;
}

/* ---- arm ---- */

struct life *oracle_arm_begin(unsigned queue, const struct timerhub_spec *spec, uint64_t first_ns)
{
	struct life *life = &oracle.lives[oracle.lives_count++];

	*life = (struct life){ .interval_ns = spec->interval_ns,
		               .slack_ns = spec->slack_ns,
		               .queue = queue,
		               .queue_life = oracle.queues[queue].life,
		               .fn = spec->fn,
		               .armer = scheduler.current,
		               .has_fn = spec->fn != NULL,
		               .kept = (spec->flags & TIMERHUB_KEEP) != 0,
		               .calls = 1,
		               .armed = STAMP_NONE,
		               .missed = STAMP_NONE,
		               .end_end = STAMP_NONE };
	life->callers[scheduler_self()] = 1;
	life->arm_begin = oracle_stamp();
	(void)life_write(life, first_ns, life->arm_begin);
	memory_call();
	plain_write(&life->data);
	if (!oracle.apart)
		memory_acquire(&oracle.places_view);
	if (oracle.arming_count == 0)
		oracle.occupancy_peak = 0;
	life_activate(life);
	oracle.arming_count++;
	oracle.calls++;
	if (oracle.active_count + oracle.lingering > oracle.occupancy_peak)
		oracle.occupancy_peak = oracle.active_count + oracle.lingering;
	oracle.live_most++;
	return life;
}

void oracle_arm_end(struct life *life, int result, uint64_t later_ns)
{
	struct write *write;

	oracle.calls--;
	(void)life_call_end(life);
	memory_publish(&oracle.places_view);
	if (result < 0) {
		if (life->state != LIFE_ARMING)
			fail("the arm of timer %u was refused, and it was delivered",
			     life_number(life));
		if (result == -EAGAIN && !oracle.apart && oracle.occupancy_peak <= oracle.capacity)
			fail("timer %u was refused while at most %u of %u were live",
			     life_number(life), oracle.occupancy_peak - 1, oracle.capacity);
		oracle.arming_count--;
		life_leave(life);
		life->state = LIFE_REFUSED;
		return;
	}
	life->armed = oracle_stamp();
	life->told = true;
	if (life->state == LIFE_ARMING) {
		life->state = LIFE_LIVE;
		oracle.arming_count--;
		oracle.armed++;
	}
	write = life_find_write(life, life->arm_begin);
	if (!write)
		return; /* another caller has re-armed the timer, or a consumer has delivered it */
	write->end = oracle_stamp();
	if (write->first_ns != NEVER)
		write->last_ns = write->first_ns + later_ns;
}

/* ---- re-arm, cancel, remaining ---- */

void oracle_call_begin(struct life *life)
{
	memory_call();
	oracle.calls++;
	if (!life)
		return;
	if (life->calls++ > 0)
		life->crowded = true;
	life->callers[scheduler_self()]++;
	memory_acquire(&life->view);
}

bool oracle_knows(const struct life *life)
{
	return life->handle != 0 &&
	       (memory.mode == MEMORY_SC || life->told || life->armer == scheduler.current);
}

/* A call returned -ENOENT: it has ended, or a consumer is about to return its event. */
static void life_missed(struct life *life, uint64_t begin, bool alone)
{
	if (life->kept && alone && life_active(life) && life->armed < begin &&
	    !oracle.queues[life->queue].closing)
		fail("timer %u is kept, and was reported as ended", life_number(life));
	/* while its arm is in progress, it may not exist yet */
	if (life_active(life) && life->armed < begin && life->missed == STAMP_NONE)
		life->missed = oracle_stamp();
}

struct write *oracle_rearm_begin(struct life *life, uint64_t first_ns)
{
	oracle_call_begin(life);
	life->must = false;
	return life_write(life, first_ns, oracle_stamp());
}

/*
 * A re-arm that began at `begin` has replaced the deadlines of all calls that had returned before.
 * Unless `withdrawn`, a drain in progress may still return an event of a replaced deadline.
 */
static void life_close_writes(struct life *life, uint64_t begin, bool withdrawn)
{
	for (unsigned i = 0; i < life->writes_count;) {
		struct write *write = &life->writes[i];

		if (oracle_now_ns() >= write->first_ns && write->begin != begin)
			life->loose = true;
		if (write->end >= begin || write->closed != STAMP_NONE) {
			i++;
		} else if (withdrawn) {
			life_remove_write(life, write);
		} else if (life->kept) {
			write->closed = oracle_stamp();
			i++;
		} else {
			/* a slow drain may still return a period counted from this deadline */
			write->closed = oracle_stamp();
			write->last_ns = NEVER;
			i++;
		}
	}
}

/* Finds a call that may have given the delivered deadline and had not returned before `begin`. */
static bool life_match_anew(struct life *life, uint64_t begin)
{
	for (unsigned i = 0; i < life->writes_count; i++) {
		const struct write *write = &life->writes[i];

		if (write->end < begin || life->matched_ns < write->first_ns ||
		    (write->end != STAMP_NONE && life->matched_ns > write->last_ns))
			continue;
		life->matched_begin = write->begin;
		life->matched_end = write->end;
		return true;
	}
	return false;
}

/* Returns whether a deadline, besides that of the call at `begin`, may be (`sure`: is) in force. */
static bool life_rules(const struct life *life, uint64_t begin, bool sure)
{
	for (unsigned i = 0; i < life->writes_count; i++) {
		const struct write *write = &life->writes[i];

		if (write->begin != begin && write->closed == STAMP_NONE &&
		    (!sure || (write->end < begin && !write->maybe)))
			return true;
	}
	return false;
}

/*
 * If no other call overlaps the re-arm of a timer with TIMERHUB_KEEP, it returns 0 if a deadline
 * was still to be delivered, and 1 if not. During a drain, 1 is right in any case.
 */
static void life_idle_told(const struct life *life, uint64_t begin, int result)
{
	if (life->ahead_lost)
		return;
	if (result == 0 && !life_rules(life, begin, false))
		fail("timer %u had idled, and its re-arm says that it had not", life_number(life));
	if (result == 1 && life_rules(life, begin, true) && !oracle.queues[life->queue].takings)
		fail("timer %u had a deadline to come, and its re-arm says that it had idled",
		     life_number(life));
}

/* Forgets replaced deadlines. No drain may be in progress, which could return their events. */
static void life_forget_closed(struct life *life)
{
	for (unsigned i = 0; i < life->writes_count;)
		if (life->writes[i].closed != STAMP_NONE)
			life_remove_write(life, &life->writes[i]);
		else
			i++;
}

/* Returns how many deadlines may be in force, without that of the call that began at `begin`. */
static unsigned life_writes_open(const struct life *life, uint64_t begin)
{
	unsigned open = 0;

	for (unsigned i = 0; i < life->writes_count; i++)
		open += life->writes[i].begin != begin && life->writes[i].closed == STAMP_NONE;
	return open;
}

static void life_rearmed_kept(struct life *life, uint64_t begin, int result, bool alone)
{
	struct write *write = life_find_write(life, begin);
	bool taken = oracle.queues[life->queue].takings != NULL;
	/* if several deadlines may have been in force, a drain may still return the event of one */
	bool withdrawn = result == 0 && alone && (!taken || life_writes_open(life, begin) <= 1);

	if (alone && write)
		life_idle_told(life, begin, result);
	if (alone && write)
		write->maybe = false;
	if (alone && !taken && life->taken < begin)
		life->ahead_lost = false;
	life_close_writes(life, begin, withdrawn);
	if (!taken)
		life_forget_closed(life);
}

static void life_rearmed(struct life *life, uint64_t begin, int result, bool alone,
                         uint64_t later_ns)
{
	struct write *write;

	if (!life_active(life) && life->end_end < begin)
		fail("timer %u was over, and could be re-armed", life_number(life));
	write = life_find_write(life, begin);
	if (write && write->first_ns != NEVER)
		write->last_ns = write->first_ns + later_ns;
	if (life->state == LIFE_DELIVERED && life->matched_end < begin &&
	    !life_match_anew(life, begin))
		fail("timer %u was re-armed, and its old deadline was delivered",
		     life_number(life));
	/* periods returned out of order may count from the old deadline or from the new one */
	life->ahead_lost |= life->ahead_count > 0;
	life->ahead_count = 0;
	/* the clock was set back: a drain may still be giving the early timer back to the owner */
	if (life->was_due < begin && !oracle.queues[life->queue].takings)
		life->was_due = 0;
	if (life->kept) {
		life_rearmed_kept(life, begin, result, alone);
	} else {
		/* without a drain meanwhile, the next period counts from the new deadline */
		if (alone && life->taken < begin && !oracle.queues[life->queue].takings)
			life->ahead_lost = false;
		life_close_writes(life, begin, life->interval_ns == 0);
	}
	write = life_find_write(life, begin);
	if (!write)
		return;
	write->end = oracle_stamp();
}

void oracle_rearm_end(struct life *life, uint64_t begin, int result, uint64_t later_ns)
{
	struct write *write;
	bool alone;

	oracle.calls--;
	alone = life_call_end(life);
	if (result == 0 || (result == 1 && life->kept)) {
		life_rearmed(life, begin, result, alone, later_ns);
		return;
	}
	write = life_find_write(life, begin);
	if (write)
		life_remove_write(life, write);
	if (!life->kept && life->matched_begin == begin && !life_match_anew(life, 0))
		fail("timer %u was delivered at a deadline that was refused", life_number(life));
	if (result == -ENOENT)
		life_missed(life, begin, alone);
}

bool oracle_unsure(const struct life *life)
{
	bool unsure = life->ahead_lost || life->calls > 0;

	for (unsigned i = 0; i < life->writes_count; i++)
		unsure |= life->writes[i].maybe;
	return unsure || oracle.queues[life->queue].takings;
}

bool oracle_idles(const struct life *life)
{
	return life->kept && !life_rules(life, 0, false);
}

/* Unless it is freed already. */
static void life_free_data(struct life *life)
{
	if (!life->freed)
		plain_write(&life->data);
	life->freed = true;
}

void oracle_cancel_end(struct life *life, uint64_t begin, int result)
{
	bool alone;

	oracle.calls--;
	if (!life) {
		if (result != -ENOENT)
			fail("a handle of no timer was cancelled: %d", result);
		return;
	}
	alone = life_call_end(life);
	if (result == -ENOENT) {
		life_missed(life, begin, alone);
		return;
	}
	if (result != 0)
		fail("cancel returned %d", result);
	memory_publish(&oracle.places_view);
	/* a cancelled one-shot is never delivered */
	if (life->interval_ns == 0 && !life->kept)
		life_free_data(life);
	if (life->state == LIFE_DROPPED && life->end_end > begin) {
		/* just before the close */
		life->state = LIFE_CANCELLED;
		oracle.dropped--;
		oracle.cancelled++;
		return;
	}
	if (!life_active(life))
		fail("timer %u was cancelled after it was over (%d)", life_number(life),
		     (int)life->state);
	life_end(life, LIFE_CANCELLED, begin);
	oracle.cancelled++;
}

/* Frees the timer's data, unless a drain has returned its event, or is perhaps about to. */
void oracle_silenced(struct life *life)
{
	const struct taking *taking = oracle.queues[life->queue].takings;

	for (; taking; taking = taking->next)
		if (taking->by_hand)
			return;
	if (!life->by_hand)
		life_free_data(life);
}

void oracle_remaining_end(struct life *life, uint64_t begin, uint64_t begin_ns, int result,
                          uint64_t remaining_ns)
{
	const struct write *write = life->writes;
	bool alone;

	oracle.calls--;
	alone = life_call_end(life);
	if (result == -ENOENT) {
		life_missed(life, begin, alone);
		return;
	}
	if (result != 0)
		fail("remaining returned %d", result);
	if (!life_active(life) && life->end_end < begin)
		fail("timer %u was over, and had time left", life_number(life));
	if (life->kept && (oracle_unsure(life) || !alone || life->taken > begin ||
	                   oracle.queues[life->queue].last_taking > begin))
		return;
	if (oracle_idles(life) && remaining_ns != NEVER)
		fail("timer %u idles, and has %" PRIu64 " ns left", life_number(life),
		     remaining_ns);
	if (oracle_idles(life))
		return;
	if (life->calls > 0 || life->interval_ns > 0 || life->writes_count != 1 ||
	    write->end > begin || oracle.clock_set > begin)
		return;
	if ((remaining_ns == NEVER) != (write->first_ns == NEVER))
		fail("timer %u: NEVER is not the requested deadline", life_number(life));
	if (write->first_ns == NEVER)
		return;
	if (remaining_ns > 0 ? begin_ns + remaining_ns > write->last_ns ||
	                               oracle_now_ns() + remaining_ns < write->first_ns
	                     : oracle_now_ns() < write->first_ns)
		fail("timer %u: %" PRIu64 " ns remain, which cannot be", life_number(life),
		     remaining_ns);
}

/* ---- deliveries ---- */

void oracle_take_begin(struct taking *taking, unsigned queue)
{
	struct oracle_queue *oq = &oracle.queues[queue];

	memory_call();
	*taking = (struct taking){
		.queue = queue,
		.begin = oracle_stamp(),
		.earliest_ns = oracle_now_ns(),
		.actor = scheduler.current,
		.owner_runs = oracle_mover_runs(),
		.owner_slept = oracle_mover_sleeps(),
		.crowded = oq->takings != NULL,
		.next = oq->takings,
	};
	for (struct taking *other = oq->takings; other; other = other->next)
		other->crowded = true;
	oq->takings = taking;
	oq->last_taking = taking->begin;
}

bool oracle_taking(unsigned queue)
{
	const struct taking *taking = oracle.queues[queue].takings;

	for (; taking; taking = taking->next)
		if (!taking->actor->waits_on)
			return true;
	return false;
}

/* Since it began. */
static uint64_t taking_latest_ns(const struct taking *taking)
{
	uint64_t now_ns = oracle_now_ns();

	return taking->latest_ns > now_ns ? taking->latest_ns : now_ns;
}

static bool write_matches(const struct life *life, const struct write *write,
                          const struct taking *taking, uint64_t expires_ns)
{
	uint64_t last_ns = write->last_ns;

	if (write->closed != STAMP_NONE && taking->begin > write->closed)
		return false;
	/* the relative deadline of a call in progress is unknown; periodic ones are absolute */
	if (write->end == STAMP_NONE && life->interval_ns == 0)
		last_ns = NEVER;
	return expires_ns >= write->first_ns && expires_ns <= last_ns;
}

static struct write *life_match(struct life *life, const struct taking *taking, uint64_t expires_ns)
{
	struct write *found = NULL;

	/* prefer a deadline in force, then one of a call in progress, then a replaced one */
	for (unsigned i = 0; i < life->writes_count; i++) {
		struct write *write = &life->writes[i];

		if (!write_matches(life, write, taking, expires_ns))
			continue;
		if (write->end != STAMP_NONE && write->closed == STAMP_NONE)
			return write;
		if (!found || found->closed != STAMP_NONE)
			found = write;
	}
	return found;
}

/* After `count` delivered periods. */
static void write_advance(const struct life *life, struct write *write, uint64_t count)
{
	uint64_t next_ns;

	if (__builtin_mul_overflow(life->interval_ns, count, &next_ns) ||
	    __builtin_add_overflow(write->first_ns, next_ns, &next_ns) || next_ns > DEADLINE_MAX_NS)
		next_ns = NEVER;
	write->first_ns = write->last_ns = next_ns;
}

static void life_catch_up(struct life *life, struct write *write)
{
	for (unsigned i = 0; i < life->ahead_count; i++) {
		struct ahead ahead = life->ahead[i];

		if (ahead.expires_ns != write->first_ns)
			continue;
		write_advance(life, write, ahead.count);
		life->ahead[i] = life->ahead[--life->ahead_count];
		i = UINT32_MAX; /* search from the first element again */
	}
}

/* Returns whether another call than that of `write` may have given the delivered deadline. */
static bool life_rearmed_alike(const struct life *life, const struct write *write,
                               const struct taking *taking, uint64_t expires_ns)
{
	for (unsigned i = 0; i < life->writes_count; i++)
		if (&life->writes[i] != write &&
		    write_matches(life, &life->writes[i], taking, expires_ns))
			return true;
	return false;
}

/* Returns how many periods are due by `now_ns` if the first is due at `first_ns`; at least 1. */
static uint64_t life_periods_by(const struct life *life, uint64_t first_ns, uint64_t now_ns)
{
	return now_ns < first_ns ? 1 : (now_ns - first_ns) / life->interval_ns + 1;
}

static void life_check_count(const struct life *life, const struct taking *taking,
                             const struct timerhub_event *event)
{
	uint64_t at_most = life_periods_by(life, event->expires_ns, taking_latest_ns(taking));
	uint64_t at_least = life_periods_by(life, event->expires_ns, taking->earliest_ns);

	if (event->count < at_least || event->count > at_most)
		fail("timer %u stands for %" PRIu64 " periods, not %" PRIu64 " to %" PRIu64,
		     life_number(life), event->count, at_least, at_most);
}

/* Returns true if an overlapping drain may hold an earlier period, or dropped it at a cancel. */
static bool life_may_lack_periods(const struct life *life, const struct taking *taking)
{
	if (life_active(life) && life->calls == 0)
		return oracle.queues[life->queue].takings->next != NULL;
	return taking->crowded;
}

static void life_delivered_periods(struct life *life, const struct taking *taking,
                                   const struct timerhub_event *event)
{
	struct write *write = life->ahead_lost ? NULL : life_match(life, taking, event->expires_ns);
	bool rules = write && write->closed == STAMP_NONE;
	/* the period may also count from another deadline, if two drains overlap the re-arm */
	bool alike = rules && (life_rearmed_alike(life, write, taking, event->expires_ns) ||
	                       (write->end > taking->begin && taking->crowded));

	life_check_count(life, taking, event);
	life->must = false;
	if (rules) {
		life->ahead_lost = alike;
		write_advance(life, write, event->count);
		life->matched_begin = write->begin;
		life->matched_ns = event->expires_ns;
		life_catch_up(life, write);
	} else if (write) {
		/* counted from a replaced deadline, or a later period of the present one */
		life->ahead_lost = true;
	} else if (!life_may_lack_periods(life, taking) && !life->ahead_lost) {
		fail("timer %u came at %" PRIu64 ", not at a period of its own", life_number(life),
		     event->expires_ns);
	} else if (life->ahead_count < AHEAD_MAX) {
		/* a second drain has taken the period before, and has not returned it yet */
		life->ahead[life->ahead_count++] =
			(struct ahead){ .expires_ns = event->expires_ns, .count = event->count };
	} else {
		life->ahead_lost = true;
	}
	life->settled_ns = oracle_now_ns();
	life->taken = oracle_stamp();
}

/* The begin of the arm or re-arm that gave a deadline happens before the deadline's delivery. */
static void life_delivered_after(const struct life *life, const struct write *write,
                                 const struct taking *taking, uint64_t expires_ns)
{
	if (memory.mode != MEMORY_SC && memory_known()->epochs[write->thread] < write->epoch &&
	    !life_rearmed_alike(life, write, taking, expires_ns))
		fail("timer %u was delivered, and its deadline was not given before",
		     life_number(life));
}

static void life_delivered_once(struct life *life, const struct taking *taking,
                                const struct timerhub_event *event)
{
	const struct write *write;

	if (life->state == LIFE_DELIVERED)
		fail("timer %u was delivered twice", life_number(life));
	write = life_match(life, taking, event->expires_ns);
	if (!write)
		fail("timer %u came at %" PRIu64 ", a deadline that no call gave",
		     life_number(life), event->expires_ns);
	if (event->count != 1)
		fail("timer %u counts %" PRIu64, life_number(life), event->count);
	life_delivered_after(life, write, taking, event->expires_ns);
	life->matched_begin = write->begin;
	life->matched_end = write->end;
	life->matched_ns = event->expires_ns;
	life_end(life, LIFE_DELIVERED, taking->begin);
	oracle.retired++;
}

/*
 * A delivery makes a timer with TIMERHUB_KEEP idle: it ends the deadlines of all calls that had
 * returned before the drain began. The deadline of an overlapping call may still expire.
 */
static void life_consume(struct life *life, struct write *write, const struct taking *taking)
{
	uint64_t begin = write->begin;

	if (write->closed == STAMP_NONE)
		for (unsigned i = 0; i < life->writes_count;) {
			struct write *other = &life->writes[i];

			if (other->begin == begin || other->closed != STAMP_NONE) {
				i++;
			} else if (other->end < taking->begin && taking->crowded) {
				/* a second consumer may hold its event */
				other->closed = oracle_stamp();
				i++;
			} else if (other->end < taking->begin) {
				life_remove_write(life, other);
			} else {
				other->maybe = true;
				i++;
			}
		}
	life_remove_write(life, life_find_write(life, begin));
}

static void life_delivered_kept(struct life *life, const struct taking *taking,
                                const struct timerhub_event *event)
{
	struct write *write = life->ahead_lost ? NULL : life_match(life, taking, event->expires_ns);

	if (!write && !life->ahead_lost)
		fail("timer %u came at %" PRIu64 ", a deadline that no call gave",
		     life_number(life), event->expires_ns);
	if (event->count != 1)
		fail("timer %u counts %" PRIu64, life_number(life), event->count);
	life->must = false;
	life->taken = oracle_stamp();
	life->settled_ns = oracle_now_ns();
	if (!write || life_rearmed_alike(life, write, taking, event->expires_ns))
		life->ahead_lost = true;
	else
		life_consume(life, write, taking);
}

/* In order if both timers were armed before the earlier deadline. */
static void oracle_order(struct oracle_queue *oq, const struct life *life, uint64_t expires_ns)
{
	/* not due now: the clock was set back, and order is free */
	bool firm = life->calls == 0 && !life->loose && life->slack_ns == 0 &&
	            expires_ns <= oracle_now_ns();
	unsigned at = oq->order_count++ % ORDER_EVENTS;

	if (!firm) {
		oq->order[at].expires_ns = 0;
		return;
	}
	for (unsigned i = 0; i < ORDER_EVENTS; i++)
		if (oq->order[i].expires_ns > expires_ns && oq->order[i].settled_ns < expires_ns &&
		    life->settled_ns < expires_ns)
			fail("timer %u, due at %" PRIu64 ", came after one due at %" PRIu64,
			     life_number(life), expires_ns, oq->order[i].expires_ns);
	oq->order[at].expires_ns = expires_ns;
	oq->order[at].settled_ns = life->settled_ns;
}

/* Fails if this dispatch has called it already. */
static void oracle_called(struct taking *taking, const struct life *life)
{
	unsigned number = life_number(life);

	for (unsigned i = 0; i < taking->calls; i++)
		if (taking->called[i] == number)
			fail("timer %u was called twice by one dispatch", number);
	taking->called[taking->calls++] = number;
	taking->may_leave |= life->interval_ns > 0 || life->kept;
}

void oracle_taken(struct taking *taking, const struct timerhub_event *event)
{
	struct oracle_queue *oq = &oracle.queues[taking->queue];
	struct life *life = &oracle.lives[event->data];

	if (event->data >= oracle.lives_count)
		fail("an event of no timer: %" PRIu64, event->data);
	if (life->handle == 0)
		life->handle = event->timer;
	if (event->timer != life->handle || life->queue != taking->queue ||
	    life->queue_life != oq->life || (event->fn != NULL) != life->has_fn)
		fail("timer %u came with values of another timer", life_number(life));
	if (event->expires_ns > taking_latest_ns(taking))
		fail_early(life, event->expires_ns);
	if (life->state == LIFE_REFUSED)
		fail("the arm of timer %u was refused, and it was delivered", life_number(life));
	if (!life_active(life) &&
	    ((life->interval_ns == 0 && !life->kept) || life->end_end < taking->begin) &&
	    life->state != LIFE_DELIVERED)
		fail("timer %u was delivered after it was over (%d)", life_number(life),
		     (int)life->state);
	if (!taking->by_hand)
		oracle_called(taking, life);
	life->told = true;
	life->by_hand |= taking->by_hand;
	if (life->interval_ns > 0 || life->kept)
		plain_read(&life->data);
	else
		plain_write(&life->data);
	memory_publish(&life->view);
	memory_publish(&oracle.places_view);
	if (oq->sole_consumer)
		oracle_order(oq, life, event->expires_ns);
	oracle.delivered++;
	oracle.overruns += event->count - 1;
	if (event->queue != oq->queue)
		fail("timer %u came with another queue", life_number(life));
	if (life->interval_ns > 0)
		life_delivered_periods(life, taking, event);
	else if (life->kept)
		life_delivered_kept(life, taking, event);
	else
		life_delivered_once(life, taking, event);
}

/* A drain found the queue empty while the owner slept. Fails if the queue must have an event. */
static void oracle_found_empty(const struct taking *taking)
{
	for (unsigned i = 0; i < oracle.active_count; i++) {
		struct life *life = oracle.active[i];

		if (life->queue != taking->queue || life->calls > 0)
			continue;
		if (life->must)
			fail("timer %u is due, but not in its queue", life_number(life));
		life->loose = false;
	}
}

void oracle_shut_down(const struct taking *taking)
{
	if (oracle.queues[taking->queue].takings != taking || taking->next)
		return; /* another consumer may hold the event of a due timer */
	for (unsigned i = 0; i < oracle.active_count; i++) {
		const struct life *life = oracle.active[i];

		if (life->queue == taking->queue && life->calls == 0 && life->must &&
		    life->must_since < taking->begin)
			fail("timer %u is due, and its queue was said to be stopped and empty",
			     life_number(life));
	}
}

/* With no drain in progress, fails if a period was delivered, but not the period before it. */
static void oracle_no_gaps(unsigned queue)
{
	for (unsigned i = 0; i < oracle.active_count; i++) {
		const struct life *life = oracle.active[i];

		if (life->queue == queue && life->ahead_count > 0 && !life->ahead_lost &&
		    life->calls == 0)
			fail("timer %u came at %" PRIu64 ", and a period before that is missing",
			     life_number(life), life->ahead[0].expires_ns);
	}
}

void oracle_take_end(struct taking *taking, bool empty)
{
	struct oracle_queue *oq = &oracle.queues[taking->queue];
	bool alone = oq->takings == taking && !taking->next;

	memory_publish(&oracle.places_view);
	for (struct taking **at = &oq->takings; *at; at = &(*at)->next)
		if (*at == taking) {
			*at = taking->next;
			break;
		}
	if (alone)
		oracle_no_gaps(taking->queue);
	if (empty && alone && taking->owner_slept && taking->owner_runs == oracle_mover_runs())
		oracle_found_empty(taking);
}

/* ---- the walk ---- */

void oracle_walk_begin(struct walk *walk)
{
	memset(walk, 0, sizeof(*walk));
	memory_call();
	walk->begin = oracle_stamp();
}

void oracle_shown(struct walk *walk, const struct timerhub_event *timer, uint64_t interval_ns)
{
	const struct life *life = &oracle.lives[timer->data];

	if (timer->data >= oracle.lives_count)
		fail("no timer is shown: %" PRIu64, timer->data);
	if ((life->handle != 0 && life->handle != timer->timer) || life->fn != timer->fn ||
	    life->interval_ns != interval_ns || timer->count > 1)
		fail("timer %u is shown with values of another timer", life_number(life));
	if (!life_active(life) && life->end_end < walk->begin)
		fail("timer %u was over, and is shown (%d)", life_number(life), (int)life->state);
	if (walk->shown[timer->data])
		fail("timer %u is shown twice", life_number(life));
	walk->shown[timer->data] = true;
}

void oracle_walk_end(const struct walk *walk)
{
	/* c11: may miss a timer whose armer it has not synchronized with */
	if (memory.mode != MEMORY_SC)
		return;
	for (unsigned i = 0; i < oracle.active_count; i++) {
		const struct life *life = oracle.active[i];
		const struct oracle_queue *oq = &oracle.queues[life->queue];

		/* a timer that a call in progress may have ended need not be shown */
		if (life->armed < walk->begin && !walk->shown[life_number(life)] &&
		    life->calls == 0 && !oq->takings && !oq->closing)
			fail("timer %u lives, and is not shown", life_number(life));
	}
}

uint64_t oracle_drop_begin(unsigned queue)
{
	memory_call();
	oracle.queues[queue].closing = true;
	return oracle_stamp();
}

void oracle_drop_end(unsigned queue, uint64_t begin)
{
	oracle.queues[queue].closing = false;
	memory_publish(&oracle.places_view);
	for (unsigned i = oracle.active_count; i-- > 0;) {
		struct life *life = oracle.active[i];

		if (life->queue != queue)
			continue;
		/* a call may have had -ENOENT while the close dropped its timers */
		life->missed = STAMP_NONE;
		life_end(life, LIFE_DROPPED, begin);
		memory_publish(&life->view);
		life->lingers = life->calls > 0;
		oracle.lingering += life->lingers;
		oracle.dropped++;
	}
	oracle.queues[queue].order_count = 0;
	memset(oracle.queues[queue].order, 0, sizeof(oracle.queues[queue].order));
	oracle.queues[queue].life++;
}

/* ---- checks when no actor can run ---- */

unsigned oracle_quiet(void)
{
	uint64_t now_ns = oracle_now_ns();
	unsigned queues = 0;

	if (!oracle_mover_sleeps())
		return 0;
	for (unsigned i = 0; i < oracle.active_count; i++) {
		struct life *life = oracle.active[i];
		uint64_t due_ns =
			life->calls > 0 ? life_due_beside_stopped_ns(life) : life_due_ns(life);

		if (due_ns == NEVER || oracle.queues[life->queue].closing)
			continue;
		due_ns += oracle.gather_ns;
		if (due_ns > now_ns && due_ns < kernel.owner_until_ns && !life_maybe_expired(life))
			fail("timer %u is due at %" PRIu64 ", but the owner sleeps until %" PRIu64,
			     life_number(life), due_ns, kernel.owner_until_ns);
		/* time may have passed between its last reading and its sleep */
		if (due_ns > now_ns || due_ns >= kernel.owner_until_ns)
			continue;
		/* the clock was set back: a drain may be giving the timer back to the owner */
		if (life->was_due != 0 && oracle_taking(life->queue))
			continue;
		if (!life->must)
			life->must_since = oracle_stamp();
		/* a stopped thread may yet move it */
		life->must = life->calls == 0;
		oracle.queues[life->queue].due = life_number(life);
		queues |= 1u << life->queue;
	}
	return queues;
}

/*
 * Returns whether a timer must end the owner's spin: it became due during the spin, and its arm or
 * re-arm had returned before the owner last read the clock.
 */
static bool life_should_end_spin(const struct life *life)
{
	uint64_t due_ns = life_due_ns(life);

	if (life->state != LIFE_LIVE || life->calls > 0 || life->interval_ns > 0 || life->loose ||
	    life->was_due != 0 || oracle.queues[life->queue].closing || due_ns == NEVER)
		return false;
	for (unsigned i = 0; i < life->writes_count; i++)
		if (life->writes[i].end >= oracle.owner_read ||
		    life->writes[i].first_ns <= kernel.owner_spin_ns)
			return false;
	return due_ns + oracle.gather_ns <= kernel.owner_read_ns;
}

void oracle_owner_reads(bool spins)
{
	/* not in mode c11, where the owner may see a new timer only at a later reading */
	for (unsigned i = 0; spins && memory.mode == MEMORY_SC && i < oracle.active_count; i++)
		if (life_should_end_spin(oracle.active[i]))
			fail("timer %u is due, but the owner has spun since %" PRIu64,
			     life_number(oracle.active[i]), kernel.owner_spin_ns);
	oracle.owner_read = oracle_stamp();
}

uint64_t oracle_next_ns(void)
{
	uint64_t now_ns = kernel_clock_ns();
	uint64_t next_ns = NEVER;

	for (unsigned i = 0; i < oracle.active_count; i++) {
		uint64_t due_ns = life_due_ns(oracle.active[i]);

		if (due_ns > now_ns && due_ns < next_ns)
			next_ns = due_ns;
	}
	return next_ns == NEVER ? NEVER : scheduler.now_ns + (next_ns - now_ns);
}

/*
 * If the clock is set back, a timer that was due may be early again. Its event is delivered when
 * the clock reaches the deadline, perhaps in the old order.
 */
void oracle_clock_set(uint64_t before_ns)
{
	uint64_t now_ns = oracle_now_ns();

	oracle.clock_set = oracle_stamp();
	for (unsigned i = 0; i < QUEUES_MAX; i++) {
		struct oracle_queue *oq = &oracle.queues[i];

		if (now_ns < before_ns)
			memset(oq->order, 0, sizeof(oq->order));
		for (struct taking *taking = oq->takings; taking; taking = taking->next) {
			if (taking->latest_ns < before_ns)
				taking->latest_ns = before_ns;
			if (taking->earliest_ns > now_ns)
				taking->earliest_ns = now_ns;
		}
	}
	for (unsigned i = 0; i < oracle.active_count && now_ns < before_ns; i++) {
		struct life *life = oracle.active[i];

		life->loose = true;
		life->must = false;
		for (unsigned j = 0; j < life->writes_count; j++)
			if (life->writes[j].first_ns <= before_ns)
				life->was_due = oracle_stamp();
	}
}

void oracle_conserve(const struct timerhub_stats *stats)
{
	if (oracle.armed !=
	    oracle.retired + oracle.cancelled + oracle.dropped + oracle.active_count)
		fail("the counts of the oracle itself are wrong");
	if (oracle.active_count > oracle.capacity)
		fail("%u timers are live", oracle.active_count);
	if (stats->armed != oracle.armed || stats->live != oracle.active_count ||
	    stats->cancelled != oracle.cancelled || stats->delivered != oracle.delivered ||
	    stats->overruns != oracle.overruns ||
	    /* the owner may just have been told */
	    kernel.jumps_told - stats->clock_jumps > 1)
		fail("the counts: armed %" PRIu64 " of %" PRIu64 ", live %" PRIu64 " of %u, "
		     "cancelled %" PRIu64 " of %" PRIu64 ", delivered %" PRIu64 " of %" PRIu64
		     ", jumps %" PRIu64 " of %" PRIu64,
		     stats->armed, oracle.armed, stats->live, oracle.active_count, stats->cancelled,
		     oracle.cancelled, stats->delivered, oracle.delivered, stats->clock_jumps,
		     kernel.jumps_told);
}
