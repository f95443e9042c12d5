/* SPDX-License-Identifier: MIT */
/*
 * Puts run() of examples/loops/asio.cc into the storm of storm.h. Usage: storm_asio [many]
 */
#define main recipe_main
#include "../../examples/loops/asio.cc"
#undef main

#include "storm.h"

namespace
{

struct storm_job {
	timerhub::loop timeouts;

	const timerhub::loop &loop() const
	{
		return timeouts;
	}

	bool left() const
	{
		return served + hung_up < connection_count;
	}

	static std::size_t handlers()
	{
		return 1 + static_cast<std::size_t>(connection_count);
	}
};

} // namespace

int main(int argc, char **)
{
	boost::asio::io_context context;
	std::deque<stream_descriptor> sockets;
	storm_job job;

	static_cast<void>(recipe_main);
	must("open", job.timeouts.open());
	if (argc > 1)
		connection_count = 4200;
	storm_open(job.timeouts.native());
	storm_send();
	for (int i = 0; i < connection_count; i++) {
		connection &one = connections[i];

		sockets.emplace_back(context, one.fd);
		sockets.back().async_wait(stream_descriptor::wait_read, [&one](const auto &error) {
			must("wait", error);
			storm_serve(&one);
		});
	}
	run(context, job);
	return storm_verdict();
}
