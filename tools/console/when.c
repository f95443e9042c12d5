/* SPDX-License-Identifier: MIT */
/*
 * Reads and prints points in time and delays, in the same way for all tools (when.h). The tests of
 * these tools also test this file.
 */
#define _GNU_SOURCE
#include "when.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)
#define LATEST_NS ((uint64_t)INT64_MAX)

bool when_in_ns;

static bool is_digit(char character)
{
	return character >= '0' && character <= '9';
}

/*
 * Reads a decimal number of units of `unit_ns` nanoseconds, and moves *text behind the number. It
 * uses integers, so that no digit of a date is rounded. Returns false if the number is too large,
 * or if there is none.
 */
static bool read_decimal(const char **text, uint64_t unit_ns, uint64_t *ret_ns)
{
	const char *from = *text;
	uint64_t ns = 0;

	for (; is_digit(**text) && ns <= LATEST_NS / 10; (*text)++)
		ns = ns * 10 + (uint64_t)(**text - '0');
	if (ns > LATEST_NS / unit_ns)
		return false;
	ns *= unit_ns;
	if (**text == '.') {
		from = ++*text;
		for (; is_digit(**text); (*text)++) {
			unit_ns /= 10;
			ns += (uint64_t)(**text - '0') * unit_ns;
		}
	}
	*ret_ns = ns;
	return *text != from && ns <= LATEST_NS;
}

static bool read_delay(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "", NS_PER_S }, /* behind a plus sign only */
		      { "us", 1000 },         { "ms", 1000000 },        { "s", NS_PER_S },
		      { "m", 60 * NS_PER_S }, { "h", 3600 * NS_PER_S }, { "d", 86400 * NS_PER_S } };
	const bool plus = *text == '+';
	const char *unit = text + plus + strspn(text + plus, "0123456789.");

	text += plus;
	for (unsigned i = !plus; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].name) == 0)
			return read_decimal(&text, units[i].ns, ret_ns) && text == unit;
	return false;
}

/*
 * Reads the time zone at the end of a date: "Z", or an offset such as "+01:00". There must be one,
 * because a date without a zone would mean another time on each machine.
 */
static bool read_zone(const char *text, int64_t *ret_seconds)
{
	unsigned hours = 0, minutes = 0;
	char sign[2] = "+";
	int length = 0;

	if (strcmp(text, "Z") != 0 &&
	    (sscanf(text, "%1[+-]%2u:%2u%n", sign, &hours, &minutes, &length) != 3 ||
	     text[length] != '\0' || hours > 23 || minutes > 59))
		return false;
	*ret_seconds = (int64_t)(hours * 60 + minutes) * (*sign == '-' ? -60 : 60);
	return true;
}

static bool read_date(const char *text, uint64_t *ret_ns)
{
	struct tm date = { .tm_isdst = 0 };
	int64_t seconds, zone_seconds;
	uint64_t ns;
	int day;

	text = strptime(text, "%Y-%m-%dT%H:%M:", &date);
	if (!text || !read_decimal(&text, NS_PER_S, &ns) || ns >= 60 * NS_PER_S ||
	    !read_zone(text, &zone_seconds))
		return false;
	day = date.tm_mday;
	seconds = timegm(&date) - zone_seconds;
	/* timegm() turns 31 February into a day of March, so compare the day. */
	if (date.tm_mday != day || (uint64_t)seconds >= LATEST_NS / NS_PER_S)
		return false;
	*ret_ns = (uint64_t)seconds * NS_PER_S + ns;
	return true;
}

bool when_read(const char *text, struct when *ret_when)
{
	const char *seconds = text + 1;

	*ret_when = (struct when){ .ns = WHEN_NEVER };
	if (strcmp(text, "never") == 0 || read_delay(text, &ret_when->ns))
		return true;
	ret_when->is_absolute = true;
	if (*text != '@')
		return read_date(text, &ret_when->ns);
	return read_decimal(&seconds, NS_PER_S, &ret_when->ns) && *seconds == '\0';
}

static void print_fraction(uint64_t ns)
{
	int digits = 9;

	for (; ns > 0 && ns % 10 == 0; ns /= 10)
		digits--;
	if (ns > 0)
		(void)printf(".%0*" PRIu64, digits, ns);
}

void when_print(const char *name, uint64_t ns)
{
	const time_t seconds = (time_t)(ns / NS_PER_S);
	char text[32] = "";
	struct tm date;

	if (ns == WHEN_NEVER) {
		(void)printf(" %s never", name);
	} else if (when_in_ns) {
		(void)printf(" %s %" PRIu64, name, ns);
	} else {
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &date));
		(void)printf(" %s %s", name, text);
		print_fraction(ns % NS_PER_S);
		(void)putchar('Z');
	}
}

void when_print_delay(const char *name, uint64_t ns)
{
	(void)printf(" %s %" PRIu64, name, when_in_ns ? ns : ns / NS_PER_S);
	if (when_in_ns)
		return;
	print_fraction(ns % NS_PER_S);
	(void)putchar('s');
}
