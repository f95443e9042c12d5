/* SPDX-License-Identifier: MIT */
/*
 * Implements the tracer of single_stepper.h with two processes. The test program has the victim and
 * the other threads. The tracer's process is forked before there are threads, and gets its orders
 * through a socket. The recorded path is in memory that both processes share. The victim executes
 * the instruction int3 (a mark) before and after each call.
 */
#include "single_stepper.h"

#include "rig.h"

#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEBUG_REGISTER(n) offsetof(struct user, u_debugreg[n])
#define REGISTER(name) offsetof(struct user, regs.name)

enum what { ATTACH, LEARN, STOP_AT, LEARN_REST, FINISH };

struct order {
	enum what what;
	/* stop the victim when it reaches the instruction `at` for the `times`-th time */
	unsigned times;
	uintptr_t at;
};

static struct shared {
	uintptr_t begin; /* addresses of the begin and the end of the library's code */
	uintptr_t end;
	pid_t victim;
	/* whether debug registers work; false on some virtual processors */
	bool breakpoints_fire;
	struct tracer_way way;
} * shared;

/* ---- the tracer's process ---- */

static bool in_library(uintptr_t at)
{
	return at >= shared->begin && at < shared->end;
}

static uintptr_t peek_register(size_t offset)
{
	return (uintptr_t)ptrace(PTRACE_PEEKUSER, shared->victim, offset, 0);
}

/*
 * Set a breakpoint in a debug register, which stops the victim before the instruction at `at`. If
 * `at` is 0, remove the breakpoint. Returns 0 or an errno.
 */
static int set_breakpoint(uintptr_t at)
{
	if (ptrace(PTRACE_POKEUSER, shared->victim, DEBUG_REGISTER(0), at) < 0 ||
	    ptrace(PTRACE_POKEUSER, shared->victim, DEBUG_REGISTER(7), at ? 1 : 0) < 0)
		return errno;
	return 0;
}

/*
 * Waits until the victim stops. Returns false if the victim stopped at a MARK(). The si_code is
 * then SI_KERNEL. A step over a system call ends with TRAP_BRKPT. If the victim did not stop as
 * expected, the tracer exits, and the test program reads EOF from the socket.
 */
static bool await_stop(void)
{
	siginfo_t info;
	int status;

	if (waitpid(shared->victim, &status, __WALL) != shared->victim || !WIFSTOPPED(status) ||
	    WSTOPSIG(status) != SIGTRAP || ptrace(PTRACE_GETSIGINFO, shared->victim, 0, &info) < 0)
		_exit(EXIT_FAILURE);
	return info.si_code == TRAP_TRACE || info.si_code == TRAP_HWBKPT ||
	       info.si_code == TRAP_BRKPT;
}

static void let_go(enum __ptrace_request request)
{
	if (ptrace(request, shared->victim, 0, 0) < 0)
		_exit(EXIT_FAILURE);
}

static bool go_on(enum __ptrace_request request)
{
	let_go(request);
	return await_stop();
}

/*
 * Find out whether breakpoints in debug registers work. The victim is at a mark, outside the
 * library. probe_breakpoints() sets a breakpoint at the victim's next instruction. The victim then
 * makes a single step. If breakpoints work, the victim stops before it executes the instruction.
 */
static void probe_breakpoints(void)
{
	uintptr_t at = peek_register(REGISTER(rip));

	(void)set_breakpoint(at);
	(void)go_on(PTRACE_SINGLESTEP);
	(void)set_breakpoint(0);
	shared->breakpoints_fire = peek_register(REGISTER(rip)) == at;
}

/* Waits until the victim stops at the mark before its next call. */
static void await_call(void)
{
	static bool probed;

	(void)await_stop();
	if (!probed)
		probe_breakpoints();
	probed = true;
}

static bool go_on_to(uintptr_t at)
{
	bool going;

	(void)set_breakpoint(at);
	going = go_on(PTRACE_CONT);
	(void)set_breakpoint(0);
	return going;
}

/*
 * Let the victim execute one instruction of the library and all following code outside the library.
 * Returns false if the victim has reached the mark at the end of the call.
 */
static bool step(void)
{
	bool inside = in_library(peek_register(REGISTER(rip)));
	bool going = go_on(PTRACE_SINGLESTEP);

	while (going && !in_library(peek_register(REGISTER(rip)))) {
		uintptr_t back = (uintptr_t)ptrace(PTRACE_PEEKDATA, shared->victim,
		                                   peek_register(REGISTER(rsp)), 0);

		if (inside && in_library(back) && shared->breakpoints_fire)
			going = go_on_to(back);
		else
			going = go_on(PTRACE_SINGLESTEP);
	}
	return going;
}

static void learn(void)
{
	struct tracer_way *way = &shared->way;

	way->length = 0;
	while (step())
		if (way->length < TRACER_WAY_MAX)
			way->instructions[way->length++] = peek_register(REGISTER(rip));
}

static bool step_to(const struct order *order)
{
	unsigned times = 0;

	while (times < order->times && step())
		times += peek_register(REGISTER(rip)) == order->at;
	return times == order->times;
}

static bool run_to(const struct order *order)
{
	bool going = true;

	if (!shared->breakpoints_fire)
		return step_to(order);
	(void)set_breakpoint(order->at);
	for (unsigned i = 0; going && i < order->times; i++)
		going = go_on(PTRACE_CONT);
	(void)set_breakpoint(0);
	return going;
}

/* Attaches the tracer to the victim, and tries a breakpoint. Returns 0 or an errno. */
static int attach(void)
{
	int status;
	int error;

	if (ptrace(PTRACE_SEIZE, shared->victim, 0, 0) < 0 ||
	    ptrace(PTRACE_INTERRUPT, shared->victim, 0, 0) < 0 ||
	    waitpid(shared->victim, &status, __WALL) != shared->victim)
		return errno;
	error = set_breakpoint(shared->begin);
	if (error == 0)
		error = set_breakpoint(0);
	let_go(PTRACE_CONT);
	return error;
}

static int obey(const struct order *order)
{
	bool going = false;

	if (order->what == ATTACH)
		return attach();
	if (order->what == LEARN_REST) {
		learn();
	} else if (order->what == FINISH) {
		while (go_on(PTRACE_CONT)) {
		}
	} else {
		await_call();
		if (order->what == LEARN)
			learn();
		else
			going = run_to(order);
	}
	if (!going)
		let_go(PTRACE_CONT);
	return going;
}

_Noreturn static void run_tracer(int socket)
{
	struct order order;

	while (read(socket, &order, sizeof(order)) == sizeof(order)) {
		int answer = obey(&order);

		if (write(socket, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(EXIT_SUCCESS);
}

/* ---- the program's process ---- */

static pid_t tracer;
static int tracer_socket;
static int victim_pipe[2];
static pthread_t victim_thread;
static atomic_uint calls_begun;
/*
 * Number of the victim's calls that have returned. A thread that loads calls_ended also sees the
 * writes of these calls.
 */
static atomic_uint calls_ended;

struct job {
	void (*call)(void *);
	void *argument;
};

static int send_order(struct order order)
{
	int answer = 0;

	expect_eq(write(tracer_socket, &order, sizeof(order)), sizeof(order));
	expect_eq(read(tracer_socket, &answer, sizeof(answer)), sizeof(answer));
	return answer;
}

#define MARK() __asm__ volatile("int3" ::: "memory", "cc")

static void *run_victim(void *arg)
{
	struct job job;

	(void)arg;
	thread_pin(0); /* all threads must use the same per-CPU data */
	__atomic_store_n(&shared->victim, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (read(victim_pipe[0], &job, sizeof(job)) == sizeof(job)) {
		MARK();
		job.call(job.argument);
		MARK();
		atomic_fetch_add(&calls_ended, 1);
	}
	return NULL;
}

static int find_code(struct dl_phdr_info *info, size_t size, void *symbol)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)symbol >= begin &&
		    (uintptr_t)symbol < end) {
			shared->begin = begin;
			shared->end = end;
			return 1;
		}
	}
	return 0;
}

static void start_tracer(void)
{
	int sockets[2];

	expect_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	tracer = fork();
	if (tracer == 0) {
		close(sockets[0]);
		run_tracer(sockets[1]);
	}
	close(sockets[1]);
	tracer_socket = sockets[0];
	/* some systems refuse this prctl(), but let the tracer attach without it */
	(void)prctl(PR_SET_PTRACER, tracer);
}

bool tracer_open(void)
{
	int refused;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	expect(shared != MAP_FAILED);
	expect(dl_iterate_phdr(find_code, (void *)(uintptr_t)timerhub_arm));
	start_tracer();
	expect_eq(pipe(victim_pipe), 0);
	thread_start(&victim_thread, run_victim, NULL);
	while (__atomic_load_n(&shared->victim, __ATOMIC_ACQUIRE) == 0)
		sleep_ns(100 * US);
	refused = send_order((struct order){ .what = ATTACH });
	if (refused) {
		printf("skipped: ptrace: %s\n", strerror(refused));
		tracer_close();
	}
	return refused == 0;
}

void tracer_close(void)
{
	close(tracer_socket);
	child_ends_well(tracer);
	close(victim_pipe[1]);
	thread_join(victim_thread);
	close(victim_pipe[0]);
	expect_eq(munmap(shared, sizeof(*shared)), 0);
}

bool tracer_only_steps(void)
{
	return !shared->breakpoints_fire;
}

void tracer_call(void (*call)(void *), void *argument)
{
	struct job job = { call, argument };

	atomic_fetch_add(&calls_begun, 1);
	expect_eq(write(victim_pipe[1], &job, sizeof(job)), sizeof(job));
}

static void await_end(void)
{
	while (atomic_load(&calls_ended) != atomic_load(&calls_begun))
		(void)sched_yield();
}

const struct tracer_way *tracer_learn(void)
{
	send_order((struct order){ .what = LEARN });
	await_end();
	expect_cmp(shared->way.length, <, TRACER_WAY_MAX);
	return &shared->way;
}

bool tracer_stop_at(const struct tracer_way *way, unsigned instruction)
{
	struct order order = { .what = STOP_AT, .at = way->instructions[instruction] };
	bool stopped;

	/*
	 * The path may contain the instruction several times. Count its occurrences up to the index
	 * `instruction`.
	 */
	for (unsigned i = 0; i <= instruction; i++)
		order.times += way->instructions[i] == order.at;
	stopped = send_order(order);
	if (!stopped)
		await_end();
	return stopped;
}

const struct tracer_way *tracer_learn_rest(void)
{
	send_order((struct order){ .what = LEARN_REST });
	await_end();
	expect_cmp(shared->way.length, <, TRACER_WAY_MAX);
	return &shared->way;
}

void tracer_finish(void)
{
	send_order((struct order){ .what = FINISH });
	await_end();
}
