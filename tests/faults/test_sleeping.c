/* SPDX-License-Identifier: MIT */
/*
 * From some time on the kernel refuses all calls by which the owner sleeps (laws 1, 2, 8, 11), as a
 * sandbox does that a program enters late. tests/service/test_denied.c refuses before the open, and
 * the simulation refuses single calls.
 */
#include "checked_workload.h"
#include "older_uring.h"
#include "refuse_calls.h"

#include <seccomp.h>

/* the first three last, and the last one interrupts, and refuses nothing */
#define TRANSIENT 3
static const int errors[] = { EPERM, ENOSYS, EACCES, EAGAIN, EBUSY, ENOMEM, EINTR };

static bool asked_for_uring(void)
{
	return sleeper_asked() == TIMERHUB_SLEEPER_URING;
}

/* Without io_uring it sleeps by ppoll(), without both it naps between rounds. */
static void owner_copes(struct timerhub *hub)
{
	if (asked_for_uring())
		owner_rests(hub);
	else
		owner_only_naps(hub);
}

/* Time in which the owner waits for a processor does not count. */
static struct timerhub_event take_within_a_second(struct rig *rig, pid_t owner)
{
	struct timerhub_event event = { .data = 0 };
	uint64_t asleep_ns = 0;
	int count;

	while ((count = timerhub_wait(rig->queue, &event, 1, 10 * MS)) == 0) {
		asleep_ns += thread_is_blocked(owner) ? 10 * MS : 0;
		expect_cmp(asleep_ns, <, SEC);
	}
	expect_eq(count, 1);
	return event;
}

/*
 * If the kernel begins to refuse the call in which the owner sleeps, timers are still delivered
 * within a second. The owner then gives up its ring, but not if calls are only interrupted (EINTR).
 */
TEST_LOOP(denied_after_open_pending_timers_are_delivered_within_a_second, 60, 2 * COUNT_OF(errors))
{
	int error = errors[_i / 2];
	struct rig rig = rig_open_config((struct timerhub_config){
		.timers_max = 256,
		.clock = _i % 2 ? TIMERHUB_CLOCK_BOOTTIME : TIMERHUB_CLOCK_MONOTONIC });
	unsigned fds = process_fd_count();
	pid_t owner = timerhub_owner_tid(rig.hub);
	/* On an older ring, an owner with a timerfd never calls io_uring_enter(). */
	bool notices = error != EINTR && (!uring_is_older || _i % 2 == 0);

	arm_after(rig.queue, HOUR, 0);
	arm_after(rig.queue, 30 * MS, 1);
	arm_after(rig.queue, 40 * MS, 2);
	thread_blocks(owner);
	refuse_calls(asked_for_uring() ? SCMP_SYS(io_uring_enter) : SCMP_SYS(ppoll), error);
	for (unsigned i = 1; i <= 2; i++) {
		sleep_ns(30 * MS);
		expect_eq(take_within_a_second(&rig, owner).data, i);
	}
	arm_after(rig.queue, 0, 3);
	expect_eq(take_one(rig.queue).data, 3);
	for (unsigned i = 0; i < 4; i++)
		life_live(&rig, 24, 3 * MS);
	/* If EINTR keeps an older ring from setting its timeout, the owner may give it up. */
	if (error != EINTR || !uring_is_older) {
		expect_eq(stats_of(rig.hub).sleeper,
		          notices ? TIMERHUB_SLEEPER_POLL : sleeper_asked());
		if (asked_for_uring())
			expect_eq(process_fd_count(), fds - notices);
	}
	owner_copes(rig.hub);
	rig_close(&rig);
}

/* If ppoll(2) is refused, the owner still sleeps in its ring, which may then count as iowait. */
TEST_LOOP(denied_ppoll_does_not_disturb_a_ring, 60, COUNT_OF(errors) - 1)
{
	struct rig rig;

	if (!asked_for_uring())
		return;
	rig = rig_open(256);
	arm_after(rig.queue, HOUR, 0);
	refuse_calls(SCMP_SYS(ppoll), errors[_i]);
	for (unsigned i = 0; i < 4; i++)
		life_live(&rig, 24, 3 * MS);
	expect_eq(stats_of(rig.hub).sleeper, TIMERHUB_SLEEPER_URING);
	owner_rests(rig.hub);
	rig_close(&rig);
}

/* After a transient error it still uses the sleeper asked for. */
TEST_LOOP(refused_once_the_owner_keeps_its_ring, 60, COUNT_OF(errors) - TRANSIENT)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	struct rig rig;

	if (!asked_for_uring())
		return;
	rig = rig_open(256);
	count_calls(SCMP_SYS(io_uring_enter));
	for (unsigned k = 1; k <= 4; k++) {
		refuse_some(errors[TRANSIENT + _i], k, 1);
		while (trap_hits == 0) {
			/* again: on a busy machine all timers may be late, and the owner awake */
			life_live(&rig, 12, 2 * MS);
			expect(monotonic_ns() < until_ns);
		}
	}
	(void)refuse_no_more();
	expect_eq(stats_of(rig.hub).sleeper, TIMERHUB_SLEEPER_URING);
	owner_rests(rig.hub);
	rig_close(&rig);
}
