/* SPDX-License-Identifier: MIT */
/*
 * Defines the assertion and the list of tests of the C++ programs. The assertion does not use
 * libcheck, because libcheck's macros contain C casts.
 */
#ifndef TESTS_CPP_EXPECT_HPP
#define TESTS_CPP_EXPECT_HPP

#include <cstdio>
#include <cstdlib>

/* Ends the program if the condition is false. Any thread may use expect(). */
#define expect(condition)                                                                          \
	((condition) ? static_cast<void>(0) : expect_failed(__FILE__, __LINE__, #condition))

[[noreturn]] inline void expect_failed(const char *file, int line, const char *what)
{
	std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
	std::abort();
}

/* A test of the program, which adds itself to the list of all. */
struct test {
	const char *name;
	void (*run)();
	test *next = nullptr;

	inline static test *first;
	inline static test **end = &first;

	test(const char *of, void (*function)()) : name(of), run(function)
	{
		*end = this;
		end = &next;
	}

	test(const test &) = delete;
	test &operator=(const test &) = delete;
};

/* Begins a test. */
#define TEST(name)                                                                                 \
	static void name();                                                                        \
	static test name##_test(#name, name);                                                      \
	static void name()

/* By how much a test that repeats something repeats it more often: the second argument, or 1. */
extern unsigned length;

#endif
