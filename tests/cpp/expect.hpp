/* SPDX-License-Identifier: MIT */
/*
 * Defines the assertion and the list of tests of the C++ programs. The assertion does not use
 * libcheck, because libcheck's macros contain C casts.
 */
#ifndef TESTS_CPP_EXPECT_HPP
#define TESTS_CPP_EXPECT_HPP

#include <cstdio>
#include <cstdlib>
#include <cstring>

/* Ends the program if the condition is false. Any thread may use expect(). */
#define expect(condition)                                                                          \
	((condition) ? static_cast<void>(0) : expect_failed(__FILE__, __LINE__, #condition))

[[noreturn]] inline void expect_failed(const char *file, int line, const char *what)
{
	std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
	std::abort();
}

struct test {
	const char *name;
	void (*run)();
};

/*
 * Runs all tests, or the tests whose names contain the program's first argument. Returns the exit
 * status of the program.
 */
template <std::size_t Count> int tests_run(const test (&tests)[Count], int argc, char **argv)
{
	int count = 0;

	for (const test &one : tests) {
		if (argc > 1 && !std::strstr(one.name, argv[1]))
			continue;
		std::printf("%s\n", one.name);
		std::fflush(stdout);
		one.run();
		count++;
	}
	return count > 0 ? 0 : 1;
}

#endif
