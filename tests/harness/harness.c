/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "uring_allowed.h"

#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SLOWDOWN 8
#elif defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SLOWDOWN 3
#define ADDRESS_SANITIZED
#else
#define SLOWDOWN 1
#endif

static struct {
	Suite *suite;
	pid_t pid; /* process that runs main(); libcheck forks for each test */
	/* skipped tests, in memory shared with the tests' processes */
	atomic_uint *skipped;
	struct test *first, *last;
	const char *only; /* word of the arguments: only tests whose name contains it are run */
	uint64_t seed;
	unsigned length;
} program = { .length = 1 };

static _Thread_local struct {
	const char *what;
	uint64_t a, b;
} context = { .what = "" };

void expect_context(const char *what, uint64_t a, uint64_t b)
{
	context.what = what;
	context.a = a;
	context.b = b;
}

static void context_print(void)
{
	printf("seed 0x%" PRIx64 ", %s %" PRIu64 " %" PRIu64 "\n", program.seed, context.what,
	       context.a, context.b);
	fflush(stdout);
}

/* libcheck reports the test; a fuzzer's process aborts. */
static _Noreturn void test_failed(const char *message)
{
	context_print();
	if (program.suite)
		ck_abort_msg("%s", message);
	printf("%s\n", message);
	fflush(stdout);
	abort();
}

void expect_failed(const char *file, int line, const char *what)
{
	char message[512];

	(void)snprintf(message, sizeof(message), "%s:%d: expected %s", file, line, what);
	test_failed(message);
}

static void print_number(char *text, size_t size, expect_number number)
{
	(void)snprintf(text, size, number < 0 ? "%" PRId64 : "%" PRIu64, (int64_t)number);
}

void expect_cmp_failed(const char *file, int line, const char *what, expect_number left,
                       expect_number right)
{
	char texts[2][32];
	char message[512];

	print_number(texts[0], sizeof(texts[0]), left);
	print_number(texts[1], sizeof(texts[1]), right);
	(void)snprintf(message, sizeof(message), "%s:%d: expected %s: %s and %s", file, line, what,
	               texts[0], texts[1]);
	test_failed(message);
}

static void number_from_env(const char *name, uint64_t *number)
{
	const char *text = getenv(name);

	if (text && *text)
		*number = strtoull(text, NULL, 0);
}

void tests_begin(int argc, char **argv)
{
	const char *name = program_invocation_short_name;
	uint64_t numbers[2] = { monotonic_ns(), 1 };
	unsigned given = 0;

	number_from_env("TIMERHUB_TEST_SEED", &numbers[0]);
	number_from_env("TIMERHUB_TEST_LENGTH", &numbers[1]);
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] < '0' || argv[i][0] > '9')
			program.only = argv[i];
		else if (given < COUNT_OF(numbers))
			numbers[given++] = strtoull(argv[i], NULL, 0);
	}
	program.seed = numbers[0];
	program.length = numbers[1] > 0 ? (unsigned)numbers[1] : 1;
	program.suite = suite_create(name);
	program.pid = getpid();
	program.skipped = mmap(NULL, sizeof(*program.skipped), PROT_READ | PROT_WRITE,
	                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect(program.skipped != MAP_FAILED);
	printf("%s: TIMERHUB_TEST_SEED=0x%" PRIx64 " TIMERHUB_TEST_LENGTH=%u\n", name, program.seed,
	       program.length);
	fflush(stdout);
}

void test_add(struct test *test)
{
	if (program.last)
		program.last->next = test;
	else
		program.first = test;
	program.last = test;
}

int tests_run(void)
{
	SRunner *runner = srunner_create(program.suite);
	int failed;

	for (const struct test *test = program.first; test; test = test->next) {
		TCase *tcase;

		if (program.only && !strstr(test->test.name, program.only))
			continue;
		tcase = tcase_create(test->test.name);
		tcase_set_timeout(tcase, (double)test->limit_s * program.length);
		tcase_add_loop_test(tcase, &test->test, 0, test->count);
		suite_add_tcase(program.suite, tcase);
	}
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	if (failed > 0)
		return EXIT_FAILURE;
	return atomic_load(program.skipped) > 0 ? EXIT_SKIPPED : EXIT_SUCCESS;
}

void test_skips(const char *what, int error)
{
	printf("skipped: %s: %s (errno %d)\n", what, strerror(error), error);
	fflush(stdout);
	atomic_fetch_add(program.skipped, 1);
	/* with CK_FORK=no the test runs in the program's own process */
	_exit(getpid() == program.pid ? EXIT_SKIPPED : EXIT_SUCCESS);
}

unsigned scaled(unsigned count)
{
	unsigned result = (unsigned)((uint64_t)count * program.length / SLOWDOWN);

	return result > 0 ? result : 1;
}

bool sanitized(void)
{
	return SLOWDOWN > 1;
}

struct dice dice_new(uint64_t salt)
{
	return dice_seeded(program.seed + salt * UINT64_C(0xd1342543de82ef95), 0);
}

uint64_t dice_boundary(struct dice *dice)
{
	unsigned shift = dice_one_in(dice, 2) ? 16 + 12 * (unsigned)dice_below(dice, 4) : 62;
	uint64_t edge;

	/* a power of two, or an instant at which a digit of the wheel changes */
	if (shift == 62)
		edge = UINT64_C(1) << dice_below(dice, 62);
	else
		edge = (1 + dice_magnitude(dice, 61 - shift)) << shift;
	return edge + dice_below(dice, 3) - 1;
}

uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	expect_eq(clock_gettime(clock, &now), 0);
	return (uint64_t)now.tv_sec * SEC + (uint64_t)now.tv_nsec;
}

uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

void sleep_ns(uint64_t ns)
{
	struct timespec left = { .tv_sec = (time_t)(ns / SEC), .tv_nsec = (long)(ns % SEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
	}
}

void until_in_time(bool (*attempt)(uint64_t margin_ns), uint64_t margin_ns)
{
	while (!attempt(margin_ns)) {
		margin_ns *= 2;
		expect_lt(margin_ns, ARRIVES);
	}
}

void thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg)
{
	expect_eq(pthread_create(ret_thread, NULL, run, arg), 0);
}

void thread_join(pthread_t thread)
{
	expect_eq(pthread_join(thread, NULL), 0);
}

void threads_take_other_stacks(void)
{
	pthread_attr_t attributes;

	expect_eq(pthread_attr_init(&attributes), 0);
	expect_eq(pthread_attr_setstacksize(&attributes, 32u << 20), 0);
	expect_eq(pthread_setattr_default_np(&attributes), 0);
	expect_eq(pthread_attr_destroy(&attributes), 0);
}

#ifdef ADDRESS_SANITIZED
void __asan_handle_no_return(void);
#endif

void thread_ends_here(void)
{
#ifdef ADDRESS_SANITIZED
	__asan_handle_no_return();
#endif
}

unsigned thread_first_cpu(void)
{
	cpu_set_t allowed;
	unsigned cpu = 0;

	expect_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	return cpu;
}

void thread_pin(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(thread_first_cpu(), &one);
	expect_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}
