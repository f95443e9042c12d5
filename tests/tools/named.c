/* SPDX-License-Identifier: MIT */
/*
 * Prints the addresses of three functions, which timerhub-top is to name: of a static function, of
 * an exported one, and of a static one of the library that it loads from the path in its argument.
 * If a line of input comes, it unloads that library, loads the one in the line, and prints again.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void function(void);

void exported_function(void);

static void static_function(void)
{
	(void)puts("static");
}

void exported_function(void)
{
	(void)puts("exported");
}

int main(int argc, char **argv)
{
	void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
	char line[4096];

	for (;;) {
		function *(*find)(void) = NULL;

		if (library)
			*(void **)&find = dlsym(library, "library_function");
		if (!find) {
			(void)fprintf(stderr, "named: %s\n", dlerror());
			return 1;
		}
		(void)printf("%ju %ju %ju\n", (uintmax_t)(uintptr_t)static_function,
		             (uintmax_t)(uintptr_t)exported_function, (uintmax_t)(uintptr_t)find());
		(void)fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		line[strcspn(line, "\n")] = 0;
		(void)dlclose(library);
		library = dlopen(line, RTLD_NOW);
	}
}
