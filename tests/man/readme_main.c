/* SPDX-License-Identifier: MIT */
/*
 * The main() that README's server lacks. readme_server.h contains the parts that README shows. It
 * comes first, so that the server does not compile if README lacks one of its headers.
 */
#include "readme_server.h"

#include <netinet/in.h>
#include <stdio.h>

int main(void)
{
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_in address = { 0 };
	socklen_t size = sizeof(address);

	if (listen(listener, 64) < 0 || getsockname(listener, (void *)&address, &size) < 0) {
		perror("readme_server");
		return 1;
	}
	fprintf(stderr, "try: nc localhost %d (Debian: netcat-openbsd)\n", ntohs(address.sin_port));
	return run(listener);
}
