/* SPDX-License-Identifier: MIT */
/* Law 1: no event before its deadline has passed on the hub's clock. */
#include "rig.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#define TIMERS 4000

/* Of every kind, `count` events. */
static void run_real(struct rig *rig, unsigned count, uint64_t delay_max_ns)
{
	struct dice dice = dice_new(1);
	static uint64_t earliest_ns[TIMERS];
	unsigned armed = 0;

	for (unsigned taken = 0; taken < count; taken++) {
		struct timerhub_event event;

		while (armed < count && armed < taken + 50) {
			uint64_t delay_ns = dice_below(&dice, delay_max_ns);
			struct timerhub_spec spec = SPEC(.expires_ns = delay_ns, .data = armed);

			earliest_ns[armed] = monotonic_ns() + delay_ns;
			if (armed % 3 == 1)
				spec.slack_ns = dice_below(&dice, delay_max_ns);
			if (armed % 3 == 2) {
				spec.flags = TIMERHUB_ABSOLUTE;
				spec.expires_ns = earliest_ns[armed];
			}
			arm(rig->queue, spec);
			armed++;
		}
		event = take_one(rig->queue);
		expect_cmp(monotonic_ns(), >=, event.expires_ns);
		expect(event.data < armed);
		expect_cmp(event.expires_ns, >=, earliest_ns[event.data]);
		if (event.data % 3 == 2) /* every third timer has an absolute deadline */
			expect_eq(event.expires_ns, earliest_ns[event.data]);
		earliest_ns[event.data] = UINT64_MAX;
	}
	expect_empty(rig->queue);
}

TEST(never_early_real, 60)
{
	struct rig rig = rig_open(TIMERS);

	run_real(&rig, scaled(1500) < TIMERS ? scaled(1500) : TIMERS, 20 * MS);
	rig_close(&rig);
}

TEST(never_early_with_spin, 60)
{
	struct rig rig =
		rig_open_config((struct timerhub_config){ .timers_max = 64, .spin_ns = 100 * US });

	run_real(&rig, scaled(300) < TIMERS ? scaled(300) : TIMERS, 5 * MS);
	rig_close(&rig);
}

static void ignore_signal(int signal)
{
	(void)signal;
}

/* After each wake-up the clock must be read again. */
TEST(never_early_under_signals, 60)
{
	struct sigaction action = { .sa_handler = ignore_signal };
	struct itimerval storm = { .it_interval = { 0, 300 }, .it_value = { 0, 300 } };
	struct rig rig = rig_open(64);

	expect_eq(sigaction(SIGALRM, &action, NULL), 0);
	expect_eq(setitimer(ITIMER_REAL, &storm, NULL), 0);
	run_real(&rig, scaled(500) < TIMERS ? scaled(500) : TIMERS, 5 * MS);
	storm = (struct itimerval){ 0 };
	expect_eq(setitimer(ITIMER_REAL, &storm, NULL), 0);
	rig_close(&rig);
}

/* SIGCONT interrupts a wait whatever is masked. */
TEST(never_early_through_stop_and_continue, 60)
{
	pid_t child = fork();
	struct dice dice = dice_new(0);

	if (child == 0) {
		struct rig rig = rig_open(64);

		run_real(&rig, 300, 10 * MS);
		rig_close(&rig);
		_exit(EXIT_SUCCESS);
	}
	for (unsigned i = 0; i < 60; i++) {
		sleep_ns(dice_below(&dice, 2 * MS));
		kill(child, SIGSTOP);
		sleep_ns(dice_below(&dice, 2 * MS));
		kill(child, SIGCONT);
	}
	child_ends_well(child);
}
