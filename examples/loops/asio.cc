/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a Boost.Asio loop (C++17): the job of reminders.h, here with timerhub.hpp. Usage:
 * asio [FILE...]
 *
 * The program turns before each run_one(), and a wait for the loop's fd ends that.
 */
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <timerhub.hpp>

namespace
{

using boost::asio::posix::stream_descriptor;

/*
 * Ends the program after an error, because a reminder could be lost. The function does not use
 * exit(), because a reader may call the function, and exit() would destroy objects in use.
 */
void must(const std::string &what, const std::error_code &error)
{
	if (!error)
		return;
	std::cerr << "asio: " << what << ": " << error.message() << std::endl;
	std::_Exit(1);
}

void must(const std::string &what, bool good)
{
	must(what, good ? std::error_code() : std::make_error_code(std::errc::io_error));
}

/* The readers are threads. The loop does all other work. */
class reminders
{
      public:
	reminders(int file_count, char **files)
	{
		must("hub", hub_.open());
		must("loop", loop_.open(hub_));
		for (int i = 0; i < file_count; i++)
			start(files[i]);
		if (file_count == 0)
			start("/dev/stdin");
	}

	~reminders()
	{
		for (reader &one : readers_)
			one.thread.join();
	}

	reminders(const reminders &) = delete;
	reminders &operator=(const reminders &) = delete;

	const timerhub::loop &loop() const
	{
		return loop_;
	}

	/* Returns whether the loop must continue. */
	bool left() const
	{
		return running_ > 0 || left_ > 0;
	}

      private:
	struct reader {
		std::string path;
		std::int64_t given = 0; /* the thread writes; the loop reads it after `over` */
		std::thread thread;
		timerhub::timer over; /* the thread moves it when its file has ended */
	};

	struct reminder {
		reminders *job;
		std::string text;
		timerhub::time_point due;
		timerhub::timeout<> timeout;
	};

	void start(const std::string &path)
	{
		reader &one = readers_.emplace_back();

		one.path = path;
		running_++;
		must("arm", one.over.arm_never(loop_.queue(), [this, &one] {
			left_ += one.given;
			running_--;
		}));
		one.thread = std::thread([this, &one] { read(one); });
	}

	void read(reader &one)
	{
		std::ifstream file(one.path);
		std::string line;

		must(one.path, file.is_open());
		for (; std::getline(file, line); one.given++)
			remind(line);
		/* Unlike an arm, a move cannot be refused, so the loop always learns of the end. */
		must("over", one.over.expires_after(std::chrono::seconds(0)));
	}

	/* A line "MS TEXT", on a reader's thread. The delay counts from here. */
	void remind(const std::string &line)
	{
		auto made = std::make_unique<reminder>();
		std::istringstream words(line);
		std::int64_t delay_ms;

		must(line, bool(words >> delay_ms >> std::ws));
		std::getline(words, made->text);
		made->job = this;
		made->due = hub_.now() + std::chrono::milliseconds(delay_ms);
		must("call", loop_.queue().call_after(std::chrono::seconds(0),
		                                      [at = made.get()] { at->job->set(*at); }));
		static_cast<void>(made.release()); /* the loop owns the reminder now */
	}

	/* On the loop's thread. The reminder's timeout frees it. */
	void set(reminder &given)
	{
		must("add", given.timeout.add(loop_, [at = &given] {
			const std::unique_ptr<reminder> due(at);

			due->job->print(due->text);
		}));
		must("set", given.timeout.set_at(given.due));
	}

	void print(const std::string &text)
	{
		std::cout << text << std::endl;
		must("standard output", std::cout.good());
		left_--;
	}

	timerhub::hub hub_;
	timerhub::loop loop_;   /* destroyed before its hub */
	int running_ = 0;       /* readers whose end the loop has not seen */
	std::int64_t left_ = 0; /* given by ended readers, minus printed; temporarily negative */
	std::deque<reader> readers_;
};

/*
 * Uses the loop's fd without closing it: a stream_descriptor closes its fd unless it releases it.
 */
class watch
{
      public:
	watch(boost::asio::io_context &context, const timerhub::loop &loop)
	    : descriptor_(context, loop.fd())
	{
		wait();
	}

	~watch()
	{
		descriptor_.release();
	}

	watch(const watch &) = delete;
	watch &operator=(const watch &) = delete;

      private:
	void wait()
	{
		descriptor_.async_wait(stream_descriptor::wait_read, [this](const auto &error) {
			if (error == boost::asio::error::operation_aborted)
				return; /* by release() */
			must("wait", error);
			wait();
		});
	}

	stream_descriptor descriptor_;
};

} // namespace

int main(int argc, char **argv)
{
	reminders job(argc - 1, argv + 1);
	boost::asio::io_context context;
	watch watch(context, job.loop());

	for (;;) {
		must("turn", job.loop().turn()); /* immediately before the loop blocks */
		if (!job.left())
			return 0;
		context.run_one();
	}
}
