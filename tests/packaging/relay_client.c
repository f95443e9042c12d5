/* SPDX-License-Identifier: MIT */
/*
 * The smallest program that uses the relay, in C11 and in C++17. No server is running, so the
 * library must report this. The program prints the version.
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
	puts(good ? timerhub_version() : "failed");
	return good ? 0 : 1;
}
