/* SPDX-License-Identifier: MIT */
/* timerhub in a Boost.Asio loop (C++17): reminders, see reminders.h. Usage: asio [FILE...] */
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <iostream>

#include "reminders.h"

namespace
{

using boost::asio::posix::stream_descriptor;

/* Borrows the queue's fd: a stream_descriptor closes what it was not told to release. */
class Watch
{
      public:
	Watch(boost::asio::io_context &context, timerhub_queue *queue)
	    : queue_(queue), descriptor_(context, timerhub_queue_fd(queue))
	{
	}

	~Watch()
	{
		descriptor_.release();
	}

	Watch(const Watch &) = delete;
	Watch &operator=(const Watch &) = delete;

	/* The context runs out of work, and ends, when nobody waits any more. */
	void wait()
	{
		descriptor_.async_wait(stream_descriptor::wait_read, [this](const auto &error) {
			if (error)
				std::cerr << "asio: " << error.message() << '\n';
			else if (timerhub_dispatch(queue_, REMINDERS_BATCH) >= 0 &&
			         reminders_left())
				wait();
		});
	}

      private:
	timerhub_queue *queue_;
	stream_descriptor descriptor_;
};

} // namespace

int main(int argc, char **argv)
{
	timerhub_queue *queue = reminders_open(argc - 1, argv + 1);
	boost::asio::io_context context;

	{
		Watch watch(context, queue);
		watch.wait();
		context.run();
	}
	return reminders_close();
}
