/* SPDX-License-Identifier: MIT */
/*
 * The process of each test gets thousands of signals, or is stopped and continued many times. The
 * owner thread must take none of the signals. If a signal interrupts a sleep of the owner, the
 * owner must not conclude that a deadline has passed.
 */
#include "checked_workload.h"
#include "fault_suite.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIGNALS 10000
#define STOPS 150

static pid_t owner;
static atomic_uint handled;
static atomic_uint handled_by_owner;

static void note(int signal)
{
	(void)signal;
	atomic_fetch_add(&handled, 1);
	if ((pid_t)syscall(SYS_gettid) == owner)
		atomic_fetch_add(&handled_by_owner, 1);
}

static const int storm[] = { SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGURG, SIGIO, SIGWINCH };

static void install_handlers(void)
{
	struct sigaction action = { .sa_handler = note };

	for (unsigned i = 0; i < COUNT_OF(storm); i++)
		expect_eq(sigaction(storm[i], &action, NULL), 0);
}

static void block_storm(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < COUNT_OF(storm); i++)
		sigaddset(&set, storm[i]);
	expect_eq(pthread_sigmask(how, &set, NULL), 0);
}

/*
 * The test sends signals to the process and to the owner thread. The other threads do not block
 * these signals.
 */
START_TEST(ten_thousand_signals_are_not_the_owners)
{
	struct rig rig = rig_open(512);
	struct life *life;

	owner = timerhub_owner_tid(rig.hub);
	install_handlers();
	life = life_begin(&rig, scaled(400), 100 * MS);
	for (unsigned i = 0; i < SIGNALS; i++) {
		int signal = storm[i % COUNT_OF(storm)];

		if (i % 8 == 7)
			expect_eq(syscall(SYS_tgkill, getpid(), owner, signal), 0);
		else
			expect_eq(kill(getpid(), signal), 0);
	}
	faults_count(SIGNALS);
	life_end(life);
	expect_cmp(atomic_load(&handled), >, 0);
	expect_eq(atomic_load(&handled_by_owner), 0);
	owner_rests(rig.hub);
	rig_close(&rig);
}
END_TEST

/*
 * All threads except the owner block the signals. If the owner did not block them too, the kernel
 * would deliver every signal to the owner.
 */
START_TEST(signals_that_nobody_else_takes_stay_pending)
{
	uint64_t until_ns;
	struct rig rig;

	install_handlers();
	/* the hub is opened before block_storm(), so the owner does not inherit the mask */
	rig = rig_open(512);
	owner = timerhub_owner_tid(rig.hub);
	block_storm(SIG_BLOCK);
	for (unsigned i = 0; i < SIGNALS / 10; i++)
		expect_eq(kill(getpid(), storm[i % COUNT_OF(storm)]), 0);
	faults_count(SIGNALS / 10);
	life_live(&rig, scaled(100), 10 * MS);
	expect_eq(atomic_load(&handled), 0);
	block_storm(SIG_UNBLOCK);
	until_ns = monotonic_ns() + ARRIVES;
	while (atomic_load(&handled) < COUNT_OF(storm)) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(MS);
	}
	expect_eq(atomic_load(&handled_by_owner), 0);
	rig_close(&rig);
}
END_TEST

/*
 * SIGSTOP stops the threads of the process during waits, sleeps and calls. The test also sends
 * SIGCONT to a process that is not stopped.
 */
START_TEST(stop_and_continue_storms_make_nothing_early_or_lost)
{
	struct dice dice = dice_new(2);
	pid_t child = fork();

	if (child == 0) {
		struct rig rig = rig_open(2048);

		life_live(&rig, scaled(1500), 200 * MS);
		expect_eq(stats_of(rig.hub).sleeper, sleeper_asked());
		owner_rests(rig.hub);
		rig_close(&rig);
		_exit(EXIT_SUCCESS);
	}
	for (unsigned i = 0; i < STOPS; i++) {
		sleep_ns(dice_below(&dice, MS));
		if (i % 3 > 0)
			kill(child, SIGSTOP);
		sleep_ns(dice_below(&dice, MS));
		kill(child, SIGCONT);
	}
	faults_count(STOPS);
	child_ends_well(child);
}
END_TEST

int main(int argc, char **argv)
{
	faults_begin("faults of signals", argc, argv);
	tests_add(ten_thousand_signals_are_not_the_owners, 60);
	tests_add(signals_that_nobody_else_takes_stay_pending, 60);
	tests_add(stop_and_continue_storms_make_nothing_early_or_lost, 60);
	return faults_run();
}
