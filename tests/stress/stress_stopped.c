/* SPDX-License-Identifier: MIT */
/*
 * Law 6, to the letter: "a thread stopped for ever at any single instruction inside arm, rearm or
 * cancel delays no timer but the one it was working on, and no other thread".
 *
 * A victim thread runs one call with the processor's trap flag set, so that every instruction
 * raises SIGTRAP; at the chosen one the handler never returns. Then others arm, re-arm, cancel and
 * take, and must be served; victims accumulate in the same hub. Only instructions of the library
 * are counted (a sanitizer's runtime may hold locks of its own). Where there is no trap flag to
 * set, tests/service/test_submission.c stops threads by a signal, at random.
 */
#include "hub.h"

#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define VICTIMS 150 /* per call; of more instructions a random choice is made */
#define VICTIMS_MAX 1200
#define OTHERS 8 /* timers beyond those that victims may hold */

#if defined(__x86_64__)

#define TRAP_FLAG 0x100

static struct {
	uintptr_t begin; /* the library's code */
	uintptr_t end;
} code;

static volatile unsigned stop_at; /* the instruction to stop at, counted from 1; 0: none */
static volatile unsigned stepped; /* instructions of the library in this call so far */
static volatile bool victim_stopped;
static atomic_bool victim_returned;

static int find_code(struct dl_phdr_info *info, size_t size, void *symbol)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)symbol >= begin &&
		    (uintptr_t)symbol < end) {
			code.begin = begin;
			code.end = end;
			return 1;
		}
	}
	return 0;
}

/*
 * int3 turns stepping on and off; in between every instruction comes here, also those of a
 * sanitizer's runtime with its locks held. So nothing here may lead back into that: no
 * instrumentation, no atomics, no libc, and the handler is installed behind its back.
 */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void step(int signal,
                                                                                siginfo_t *info,
                                                                                void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)registers[REG_RIP];

	(void)signal;
	if (info->si_code != TRAP_TRACE) {
		registers[REG_EFL] ^= TRAP_FLAG;
		return;
	}
	if (at < code.begin || at >= code.end)
		return;
	stepped = stepped + 1;
	if (stepped != stop_at)
		return;
	victim_stopped = true;
	for (long result = SYS_pause;; result = SYS_pause)
		__asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
}

__asm__(".pushsection .text\n"
        "restore_registers:\n"
        "	mov	$15, %eax\n" /* SYS_rt_sigreturn */
        "	syscall\n"
        ".popsection\n");
void restore_registers(void);

static void install_step(void)
{
	struct {
		void (*handler)(int, siginfo_t *, void *);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = { step, SA_SIGINFO | 0x04000000 /* SA_RESTORER */, restore_registers, 0 };

	expect_eq(syscall(SYS_rt_sigaction, SIGTRAP, &action, NULL, sizeof(action.mask)), 0);
}

#define STEPPING() __asm__ volatile("int3" ::: "memory", "cc")

/* Never closed: threads are inside. */
static struct rig rig;
static struct timerhub_queue *victims_queue;

typedef void call_fn(timerhub_timer timer);

static void call_arm(timerhub_timer timer)
{
	(void)timer;
	timerhub_after(victims_queue, HOUR, 0, NULL);
}

static void call_arm_at_once(timerhub_timer timer)
{
	(void)timer;
	timerhub_after(victims_queue, 0, 0, NULL);
}

static void call_rearm_earlier(timerhub_timer timer)
{
	timerhub_rearm(rig.hub, timer, HOUR, 0);
}

static void call_rearm_at_once(timerhub_timer timer)
{
	timerhub_rearm(rig.hub, timer, 0, 0);
}

static void call_rearm_later(timerhub_timer timer)
{
	timerhub_rearm(rig.hub, timer, 3 * HOUR, 0);
}

static void call_cancel(timerhub_timer timer)
{
	timerhub_cancel(rig.hub, timer);
}

/* What a victim is doing when it is stopped. */
struct scene {
	const char *name;
	call_fn *call;
	uint64_t delay_ns; /* of the timer that it is about; 0: it is in the queue already */
};

static const struct scene submissions[] = {
	{ "arm", call_arm, HOUR },
	{ "arm at once", call_arm_at_once, HOUR },
	{ "rearm earlier", call_rearm_earlier, 2 * HOUR },
	{ "rearm at once", call_rearm_at_once, 2 * HOUR },
	{ "rearm later", call_rearm_later, 2 * HOUR },
	{ "rearm of an expired one", call_rearm_later, 0 },
	{ "cancel", call_cancel, 2 * HOUR },
	{ "cancel of an expired one", call_cancel, 0 },
};

struct victim {
	call_fn *call;
	timerhub_timer timer;
};

static void *run_victim(void *arg)
{
	const struct victim *me = arg;

	STEPPING();
	me->call(me->timer);
	STEPPING();
	atomic_store(&victim_returned, true);
	return NULL;
}

static void start_victim(struct victim *victim, unsigned instruction)
{
	pthread_attr_t attributes;
	pthread_t thread;

	stop_at = instruction;
	stepped = 0;
	victim_stopped = false;
	atomic_store(&victim_returned, false);
	expect_eq(pthread_attr_init(&attributes), 0);
	expect_eq(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
	expect_eq(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED), 0);
	expect_eq(pthread_create(&thread, &attributes, run_victim, victim), 0);
	expect_eq(pthread_attr_destroy(&attributes), 0);
	while (!victim_stopped && !atomic_load(&victim_returned))
		clock_sleep_ns(20 * US);
}

static timerhub_timer timer_for(const struct scene *scene)
{
	timerhub_timer timer = arm_after(victims_queue, scene->delay_ns, 0);
	uint64_t until_ns = clock_now_ns() + ARRIVES;
	uint64_t left_ns = 1;

	while (scene->delay_ns == 0 && left_ns) {
		expect(clock_now_ns() < until_ns);
		expect_eq(timerhub_remaining(rig.hub, timer, &left_ns), 0);
	}
	return timer;
}

/* The shortest of everything: each hangs, or is refused, if a victim stands in the way. */
static void others_are_served(void)
{
	timerhub_timer timers[OTHERS];

	for (unsigned i = 0; i < OTHERS; i++)
		timers[i] = arm_after(rig.queue, i % 2 ? HOUR : 0, i);
	for (unsigned i = 0; i < OTHERS / 2; i++)
		expect_eq(take_one(rig.queue).data % 2, 0);
	expect_eq(timerhub_cancel(rig.hub, timers[1]), 0);
	for (unsigned i = 3; i < OTHERS; i += 2)
		expect_eq(timerhub_rearm(rig.hub, timers[i], 0, 0), 0);
	for (unsigned i = 3; i < OTHERS; i += 2)
		expect_eq(take_one(rig.queue).data % 2, 1);
	for (unsigned i = 0; i < 20; i++)
		expect_eq(timerhub_cancel(rig.hub, arm_after(rig.queue, HOUR, i)), 0);
}

/*
 * Plays the scene once to its end, to count its instructions, and then once for each of them, or
 * for a random choice; after each `others` must find themselves undisturbed.
 */
static void stop_everywhere(const struct scene *scene, int salt,
                            timerhub_timer (*prepare)(const struct scene *), void (*others)(void))
{
	/* Every instruction of a sanitizer's runtime is stepped through, too. */
	unsigned wanted = scaled(sanitized() ? VICTIMS / 3 : VICTIMS);
	unsigned max = wanted < VICTIMS_MAX ? wanted : VICTIMS_MAX;
	struct victim *victims = calloc(max + 1, sizeof(*victims));
	struct dice dice = dice_new((uint64_t)salt);
	unsigned instructions;

	expect(dl_iterate_phdr(find_code, (void *)(uintptr_t)timerhub_arm));
	install_step();
	thread_pin(0); /* so that victims and others share what is split by CPU */
	victims[max] = (struct victim){ scene->call, prepare(scene) };
	start_victim(&victims[max], 0);
	others();
	instructions = stepped;
	expect_cmp(instructions, >, 10);
	max = instructions < max ? instructions : max;
	printf("%s: %u of %u instructions\n", scene->name, max, instructions);
	for (unsigned i = 0; i < max; i++) {
		unsigned at =
			max == instructions ? i + 1 : 1 + (unsigned)dice_below(&dice, instructions);

		victims[i] = (struct victim){ scene->call, prepare(scene) };
		start_victim(&victims[i], at);
		others();
	}
}

START_TEST(stopped_while_submitting_it_delays_nobody)
{
	rig = rig_open(2 * VICTIMS_MAX + OTHERS + 2); /* a victim may hold two */
	victims_queue = queue_open(rig.hub);
	stop_everywhere(&submissions[_i], _i, timer_for, others_are_served);
}
END_TEST

/*
 * A consumer stopped for ever takes with it what it has in its hands, and nothing else. On a manual
 * hub, so that what is there to be taken is known.
 */
#define DUE 3

static uint64_t virtual_ns;

static void call_drain_one(timerhub_timer timer)
{
	struct timerhub_event event;

	(void)timer;
	timerhub_drain(rig.queue, &event, 1);
}

static void call_drain_all(timerhub_timer timer)
{
	struct timerhub_event events[DUE + 1];

	(void)timer;
	timerhub_drain(rig.queue, events, DUE + 1);
}

static void call_dispatch_all(timerhub_timer timer)
{
	(void)timer;
	timerhub_dispatch(rig.queue, DUE + 1);
}

static const struct scene consumptions[] = {
	{ "drain of one", call_drain_one, 0 },
	{ "drain of all", call_drain_all, 0 },
	{ "dispatch of all", call_dispatch_all, 0 },
};

static timerhub_timer events_for(const struct scene *scene)
{
	timerhub_timer timer = 0;

	(void)scene;
	for (unsigned i = 0; i < DUE; i++)
		timer = arm_after(rig.queue, 1, i);
	virtual_ns += US;
	advance(rig.hub, virtual_ns);
	return timer;
}

static void others_are_told(void)
{
	int fd = timerhub_queue_fd(rig.queue);

	expect_cmp(drain_all(rig.queue), <=, DUE);
	expect(!fd_readable(fd));
	for (unsigned i = 0; i < 3; i++) {
		events_for(NULL);
		expect(fd_readable(fd));
		expect_eq(drain_all(rig.queue), DUE);
		expect(!fd_readable(fd));
	}
	events_for(NULL);
	for (unsigned i = 0; i < DUE; i++)
		take_one(rig.queue);
}

START_TEST(stopped_while_consuming_it_delays_nobody)
{
	rig = rig_manual(DUE * (VICTIMS_MAX + 2));
	stop_everywhere(&consumptions[_i], _i, events_for, others_are_told);
}
END_TEST

/*
 * Law 7 with law 6: a thread stopped in arm keeps one slot from the others, the one it was about
 * to use, however many it may have moved about for later. A new hub for each, first untouched,
 * then with all its free slots where another CPU has put them.
 */
#define SLOTS 2048

/* One for each victim, which stays inside it for ever; named by the number that prepare returns. */
static struct rig arming_rigs[VICTIMS_MAX + 2];
static unsigned arming_rigs_count;

static timerhub_timer open_arming_rig(void)
{
	expect_cmp(arming_rigs_count, <, COUNT_OF(arming_rigs));
	rig = rig_manual(SLOTS);
	arming_rigs[arming_rigs_count] = rig;
	return arming_rigs_count++;
}

static void call_arm_here(timerhub_timer number)
{
	timerhub_after(arming_rigs[number].queue, HOUR, 0, NULL);
}

static unsigned fill(void)
{
	timerhub_timer timer;
	unsigned count = 0;

	while (timerhub_after(rig.queue, HOUR, 0, &timer) == 0)
		count++;
	return count;
}

static timerhub_timer open_untouched(const struct scene *scene)
{
	(void)scene;
	return open_arming_rig();
}

static timerhub_timer open_used_by_another_cpu(const struct scene *scene)
{
	static timerhub_timer timers[SLOTS];
	timerhub_timer number;

	(void)scene;
	thread_pin(1);
	number = open_arming_rig();
	for (unsigned i = 0; i < SLOTS; i++)
		timers[i] = arm_after(rig.queue, HOUR, i);
	expect_eq(timerhub_cancel_many(rig.hub, timers, SLOTS), SLOTS);
	thread_pin(0);
	return number;
}

static void others_have_the_rest(void)
{
	expect_cmp(fill(), >=, SLOTS - 1);
}

static const struct {
	struct scene scene;
	timerhub_timer (*prepare)(const struct scene *);
} armings[] = {
	{ { "arm in a new hub", call_arm_here, 0 }, open_untouched },
	{ { "arm after another CPU", call_arm_here, 0 }, open_used_by_another_cpu },
};

START_TEST(stopped_while_arming_it_keeps_one_slot)
{
	stop_everywhere(&armings[_i].scene, _i, armings[_i].prepare, others_have_the_rest);
}
END_TEST

#endif

int main(int argc, char **argv)
{
	tests_begin("stress_stopped", argc, argv);
#if defined(__x86_64__)
	tests_add_loop(stopped_while_submitting_it_delays_nobody, 120, COUNT_OF(submissions));
	tests_add_loop(stopped_while_consuming_it_delays_nobody, 120, COUNT_OF(consumptions));
	tests_add_loop(stopped_while_arming_it_keeps_one_slot, 120, COUNT_OF(armings));
#endif
	return tests_run();
}
