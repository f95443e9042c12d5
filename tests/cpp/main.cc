/* SPDX-License-Identifier: MIT */
/* Runs the tests of a C++ program. Arguments: a part of their names, and the length. */
#include <cstring>

#include "expect.hpp"

unsigned length = 1;

int main(int argc, char **argv)
{
	int count = 0;

	if (argc > 2)
		length = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
	for (const test *one = test::first; one; one = one->next) {
		if (argc > 1 && !std::strstr(one->name, argv[1]))
			continue;
		std::printf("%s\n", one->name);
		std::fflush(stdout);
		one->run();
		count++;
	}
	return count > 0 ? 0 : 1;
}
