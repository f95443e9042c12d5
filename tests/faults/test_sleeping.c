/* SPDX-License-Identifier: MIT */
/*
 * The kernel refuses the calls by which the owner sleeps: the k-th, all from there, or all after
 * the open (laws 1, 2, 8, 11). tests/service/test_denied.c refuses before the open.
 */
#include "checked_workload.h"
#include "fault_suite.h"
#include "older_uring.h"
#include "refusal.h"

#include <seccomp.h>
#include <stdlib.h>

#define K_MAX 40
#define FROM_MAX 3

static const int transient_errors[] = { EINTR, EAGAIN, EBUSY, ENOMEM };
static const int lasting_errors[] = { EPERM, ENOSYS, EACCES, EAGAIN, EBUSY, ENOMEM };

static const int uring_calls[] = { SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_setup),
	                           SCMP_SYS(io_uring_register) };
static const int poll_calls[] = { SCMP_SYS(ppoll) };

static bool asked_for_uring(void)
{
	return sleeper_asked() == TIMERHUB_SLEEPER_URING;
}

static int sleeping_call(void)
{
	return asked_for_uring() ? uring_calls[0] : poll_calls[0];
}

static bool watch_sleeping_calls(void)
{
	return asked_for_uring() ? refusals_open(uring_calls, COUNT_OF(uring_calls))
	                         : refusals_open(poll_calls, COUNT_OF(poll_calls));
}

/* Without io_uring it sleeps by ppoll(), without both it naps between rounds. */
static void owner_copes(struct timerhub *hub)
{
	if (asked_for_uring())
		owner_rests(hub);
	else
		owner_only_naps(hub);
}

static int open_sleeper(uint32_t sleeper, struct rig *ret_rig)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .sleeper = sleeper,
		                          .timers_max = 256 };
	int result = timerhub_open(&ret_rig->hub, &config);

	if (result == 0)
		ret_rig->queue = queue_open(ret_rig->hub);
	return result;
}

/*
 * Only the k-th call of the kind is refused. An open fails only if it insists on io_uring. False if
 * fewer than k calls came.
 */
static bool live_with_one_refusal(uint32_t sleeper, int call, int error, unsigned k)
{
	bool may_fail = sleeper == TIMERHUB_SLEEPER_URING &&
	                !(call == SCMP_SYS(io_uring_enter) && error == EINTR);
	unsigned fds = process_fd_count();
	struct rig rig = { NULL, NULL };
	int result;

	refuse(call, error, k, 1);
	result = open_sleeper(sleeper, &rig);
	if (result == 0) {
		life_live(&rig, 12, 2 * MS);
		rig_close(&rig);
	} else {
		if (refused() == 0 && uring_ran_out(result))
			test_skips("io_uring", -result);
		expect(may_fail);
		expect_eq(result, -error);
		expect(!rig.hub);
	}
	expect_eq(process_fd_count(), fds);
	return refuse_no_more() > 0;
}

static void live_with_each_refusal(uint32_t sleeper, int call, int error)
{
	unsigned k = 1;

	while (k <= K_MAX && live_with_one_refusal(sleeper, call, error, k))
		k++;
	expect_cmp(k, >, 1);
}

TEST_LOOP(refused_once_at_the_kth_call, 60, COUNT_OF(transient_errors))
{
	int error = transient_errors[_i];

	if (!watch_sleeping_calls())
		return;
	if (!asked_for_uring())
		live_with_each_refusal(TIMERHUB_SLEEPER_POLL, SCMP_SYS(ppoll), error);
	for (unsigned i = 0; asked_for_uring() && i < COUNT_OF(uring_calls); i++) {
		live_with_each_refusal(TIMERHUB_SLEEPER_URING, uring_calls[i], error);
		live_with_each_refusal(TIMERHUB_SLEEPER_AUTO, uring_calls[i], error);
	}
	refusals_close();
}

/* After a transient error it still uses the sleeper asked for. */
TEST_LOOP(refused_once_the_owner_keeps_its_sleeper, 60, COUNT_OF(transient_errors))
{
	int error = transient_errors[_i];
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	struct rig rig;

	if (!watch_sleeping_calls())
		return;
	rig = rig_open(256);
	for (unsigned k = 1; k <= 4; k++) {
		refuse(sleeping_call(), error, k, 1);
		while (refused() == 0) {
			/*
			 * again until a call was refused: on a busy machine all timers may be late,
			 * and the owner does not sleep
			 */
			life_live(&rig, 12, 2 * MS);
			expect(monotonic_ns() < until_ns);
		}
	}
	expect_eq(stats_of(rig.hub).sleeper, sleeper_asked());
	owner_rests(rig.hub);
	rig_close(&rig);
	refusals_close();
}

/* The owner changes to its other sleeper, and the statistics name it. */
static void live_from_then_on_without(int error, unsigned k)
{
	struct rig rig = rig_open(256);
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	timerhub_timer far = arm_after(rig.queue, HOUR, 0);

	refuse(sleeping_call(), error, k, REFUSE_ALWAYS);
	do {
		life_live(&rig, 24, 3 * MS);
		expect(monotonic_ns() < until_ns);
	} while (refused() == 0);
	if (asked_for_uring())
		while (stats_of(rig.hub).sleeper != TIMERHUB_SLEEPER_POLL) {
			life_live(&rig, 4, MS);
			expect(monotonic_ns() < until_ns);
		}
	life_live(&rig, 12, 2 * MS);
	expect_eq(timerhub_cancel(rig.hub, far), 0);
	if (k == FROM_MAX)
		owner_copes(rig.hub);
	rig_close(&rig);
	expect_cmp(refuse_no_more(), >, 0);
}

TEST_LOOP(refused_from_the_kth_call_on, 60, COUNT_OF(lasting_errors))
{
	if (!watch_sleeping_calls())
		return;
	for (unsigned k = 1; k <= FROM_MAX; k++)
		live_from_then_on_without(lasting_errors[_i], k);
	refusals_close();
}

/* A signal interrupts each sleep; the owner must not use all the CPU time. */
TEST(interrupted_each_time_the_owner_comes_to_rest, 60)
{
	struct rig rig;

	if (!watch_sleeping_calls())
		return;
	rig = rig_open(256);
	arm_after(rig.queue, HOUR, 0);
	refuse(sleeping_call(), EINTR, 1, REFUSE_ALWAYS);
	for (unsigned i = 0; i < 4; i++)
		life_live(&rig, 24, 3 * MS);
	/* an older ring needs a call to set its timeout, which must succeed some time */
	if (!uring_is_older)
		expect_eq(stats_of(rig.hub).sleeper, sleeper_asked());
	owner_copes(rig.hub);
	expect_cmp(refuse_no_more(), >, 0);
	life_live(&rig, 24, 3 * MS);
	owner_rests(rig.hub);
	rig_close(&rig);
	refusals_close();
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
 * A filter for the whole process comes while the owner sleeps: on waking it notices, and closes its
 * ring.
 */
TEST_LOOP(denied_after_open_pending_timers_are_delivered_within_a_second, 60,
          2 * COUNT_OF(lasting_errors))
{
	int error = lasting_errors[_i / 2];
	struct rig rig = rig_open_config((struct timerhub_config){
		.timers_max = 256,
		.clock = _i % 2 ? TIMERHUB_CLOCK_BOOTTIME : TIMERHUB_CLOCK_MONOTONIC });
	unsigned fds = process_fd_count();
	pid_t owner = timerhub_owner_tid(rig.hub);
	/* with a timerfd, an owner on an older ring makes no such call */
	bool notices = !uring_is_older || _i % 2 == 0;

	arm_after(rig.queue, HOUR, 0);
	arm_after(rig.queue, 30 * MS, 1);
	arm_after(rig.queue, 40 * MS, 2);
	thread_blocks(owner);
	deny_everywhere(sleeping_call(), error);
	for (unsigned i = 1; i <= 2; i++) {
		sleep_ns(30 * MS);
		expect_eq(take_within_a_second(&rig, owner).data, i);
	}
	arm_after(rig.queue, 0, 3);
	expect_eq(take_one(rig.queue).data, 3);
	for (unsigned i = 0; i < 4; i++)
		life_live(&rig, 24, 3 * MS);
	expect_eq(stats_of(rig.hub).sleeper,
	          notices ? TIMERHUB_SLEEPER_POLL : TIMERHUB_SLEEPER_URING);
	if (asked_for_uring())
		expect_eq(process_fd_count(), fds - notices);
	owner_copes(rig.hub);
	rig_close(&rig);
}

/* On an older ring, too: then the owner waits in the ring, and counts as iowait. */
TEST_LOOP(denied_ppoll_does_not_disturb_a_ring, 60, COUNT_OF(lasting_errors))
{
	struct rig rig;

	if (!asked_for_uring())
		return;
	rig = rig_open(256);
	arm_after(rig.queue, HOUR, 0);
	deny_everywhere(SCMP_SYS(ppoll), lasting_errors[_i]);
	for (unsigned i = 0; i < 4; i++)
		life_live(&rig, 24, 3 * MS);
	expect_eq(stats_of(rig.hub).sleeper, TIMERHUB_SLEEPER_URING);
	owner_rests(rig.hub);
	rig_close(&rig);
}
