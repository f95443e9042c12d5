/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a Boost.Asio loop (C++17). It does the job of reminders.h with timerhub.hpp.
 * Usage: asio [FILE...]
 *
 * Asio runs one handler at a time, so a turn before each run_one() would come in the middle of a
 * batch of sockets, and hang up connections whose data lies in their sockets. run() therefore calls
 * turn() when no handler is left. If some socket is always ready, run() turns after as many
 * handlers as wait in asio, which runs each that is ready before it runs one again.
 */
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
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
#include <utility>

namespace
{

using boost::asio::posix::stream_descriptor;

/*
 * Ends the program if there is an error, because a reminder could be lost. It calls _Exit(),
 * because a reader's thread may call it, and exit() would destroy objects that other threads use.
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

/*
 * Reads and prints the reminders. Threads read the files; the loop's thread does all else.
 */
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

	/* Returns whether the event loop must continue. */
	bool left() const
	{
		return running_ > 0 || left_ > 0;
	}

	/* Returns how many handlers wait in asio; a server counts those of its connections too. */
	static std::size_t handlers()
	{
		return 1; /* that of class watch */
	}

      private:
	struct reader {
		std::string path;
		/*
		 * number of lines read from the file; the loop's thread must not read this number
		 * before the timer `over` has expired
		 */
		std::int64_t given = 0;
		std::thread thread;
		timerhub::timer over; /* timer that the thread moves when its file has ended */
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
		/*
		 * The timer `over` tells the loop that the file has ended. expires_after() moves an
		 * existing timer, so it never fails for lack of a slot.
		 */
		must("over", one.over.expires_after(std::chrono::seconds(0)));
	}

	/*
	 * Handles a line "MS TEXT" on a reader's thread. The delay MS counts from the call of
	 * remind().
	 */
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

	/*
	 * Sets the reminder's timeout, on the loop's thread. The timeout's callable frees the
	 * reminder.
	 */
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
	/* declared after `hub_`, so that the loop is destroyed before its hub */
	timerhub::loop loop_;
	/* number of readers whose timer `over` has not expired */
	int running_ = 0;
	/* number of lines of ended readers, minus printed lines; may be negative */
	std::int64_t left_ = 0;
	std::deque<reader> readers_;
};

/*
 * Waits for the loop's fd. The handler does not wait again, because the fd stays readable until the
 * next turn; run() does so after it. The destructor releases the fd, because that of a
 * stream_descriptor would close it, and it belongs to the loop.
 */
class watch
{
      public:
	watch(boost::asio::io_context &context, const timerhub::loop &loop)
	    : descriptor_(context, loop.fd())
	{
	}

	~watch()
	{
		descriptor_.release();
	}

	watch(const watch &) = delete;
	watch &operator=(const watch &) = delete;

	/* Waits, unless a wait is in progress. */
	void wait()
	{
		if (std::exchange(waits_, true))
			return;
		descriptor_.async_wait(stream_descriptor::wait_read, [this](const auto &error) {
			if (error == boost::asio::error::operation_aborted)
				return; /* release() has cancelled the wait */
			must("wait", error);
			waits_ = false;
		});
	}

      private:
	stream_descriptor descriptor_;
	bool waits_ = false;
};

/* The guard keeps the context from stopping when no handler is left between two waits. */
template <class Job> void run(boost::asio::io_context &context, const Job &job)
{
	const auto guard = boost::asio::make_work_guard(context);
	watch watch(context, job.loop());

	for (;;) {
		must("turn", job.loop().turn());
		if (!job.left())
			return;
		watch.wait();
		context.run_one();
		for (std::size_t i = 0; i < job.handlers() && context.poll_one() > 0; i++) {
		}
	}
}

} // namespace

int main(int argc, char **argv)
{
	reminders job(argc - 1, argv + 1);
	boost::asio::io_context context;

	run(context, job);
	return 0;
}
