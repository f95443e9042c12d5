/* SPDX-License-Identifier: MIT */
/*
 * A small program that uses the relay alone, compiled as C11 and as C++17. No Redis server is
 * running, so timerhub_relay_open() must return -ECONNREFUSED.
 */
#include <errno.h>
#include <stdio.h>
#include <timerhub_relay.h>

int main(void)
{
	static struct timerhub_relay_config config;
	struct timerhub_relay *relay = NULL;

	config.size = sizeof(config);
	config.redis = "unix:no-server-here";
	config.timeout_ns = 1000000;
	const int good = timerhub_relay_open(&relay, "orders", &config) == -ECONNREFUSED;

	timerhub_relay_close(relay);
	puts(good ? "good" : "failed");
	return good ? 0 : 1;
}
