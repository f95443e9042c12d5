/* SPDX-License-Identifier: MIT */
/*
 * Puts run() of examples/loops/asio.cc into the storm of storm.h.
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
		return served + hung_up < CONNECTIONS;
	}
};

} // namespace

int main()
{
	boost::asio::io_context context;
	std::deque<stream_descriptor> sockets;
	storm_job job;

	static_cast<void>(recipe_main);
	must("open", job.timeouts.open());
	storm_open(job.timeouts.native());
	storm_send();
	for (connection &one : connections) {
		sockets.emplace_back(context, one.fds[0]);
		sockets.back().async_wait(stream_descriptor::wait_read, [&one](const auto &error) {
			must("wait", error);
			storm_serve(&one);
		});
	}
	run(context, job);
	return storm_verdict();
}
