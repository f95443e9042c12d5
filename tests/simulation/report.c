/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "scheduler.h"

char *report_text;
bool report_telling;

_Noreturn void report_failure(const char *format, ...)
{
	char text[REPORT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (report_text)
		(void)snprintf(report_text, REPORT_BYTES, "%s", text);
	if (!report_text || report_telling)
		printf("FAILED at %" PRIu64 " ns: %s\n", scheduler.now_ns, text);
	fflush(stdout);
	_exit(REPORT_EXIT_STATUS);
}

void report_line(const char *format, ...)
{
	va_list arguments;

	printf("%20" PRIu64 " ns  %-5td ", scheduler.now_ns, scheduler.current - scheduler.actors);
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	(void)putchar('\n');
}
