/* SPDX-License-Identifier: MIT */
#include "harness.h"

int main(int argc, char **argv)
{
	tests_begin(argc, argv);
	return tests_run();
}
