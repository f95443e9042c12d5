/* SPDX-License-Identifier: MIT */
/*
 * Tests queue::run() of C++20. Each test ends with the end of its std::jthreads: a thread that is
 * not woken makes the program hang.
 */
#include <timerhub.hpp>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "rig.hpp"

using namespace std::chrono_literals;

namespace
{

void runs(const timerhub::queue &queue, std::stop_token stop, std::atomic<int> &ended)
{
	expect(!queue.run(stop));
	expect(stop.stop_requested());
	ended++;
	ended.notify_all();
}

void count_one(const timerhub::queue &queue, std::atomic<int> &calls)
{
	expect(!queue.call_after(1ms, [&calls] {
		calls++;
		calls.notify_all();
	}));
}

TEST(waiting_thread_calls_what_is_due_and_is_woken_by_its_stop)
{
	threaded_rig rig;
	std::atomic<int> calls{ 0 }, ended{ 0 };
	std::jthread first([&](std::stop_token stop) { runs(rig.queue, stop, ended); });

	for (int i = 0; i < 3; i++) {
		count_one(rig.queue, calls);
		calls.wait(i);
	}
	first.request_stop();
	first.join();
	expect(calls == 3 && ended == 1);
}

TEST(stop_ends_one_thread_of_a_queue)
{
	threaded_rig rig;
	std::atomic<int> calls{ 0 }, first_ended{ 0 }, second_ended{ 0 };
	std::jthread first([&](std::stop_token stop) { runs(rig.queue, stop, first_ended); });
	std::jthread second([&](std::stop_token stop) { runs(rig.queue, stop, second_ended); });

	first.request_stop();
	first_ended.wait(0);
	expect(second_ended == 0);
	count_one(rig.queue, calls);
	calls.wait(0); /* the second thread goes on */
}

TEST(stop_by_a_callable_or_before_the_run)
{
	threaded_rig rig;
	std::stop_source source;
	const auto stop_it = [&source] { source.request_stop(); };

	expect(!rig.queue.call_after(1ms, stop_it));
	expect(!rig.queue.run(source.get_token()));
	expect(source.stop_requested() && !rig.queue.run(source.get_token()));
}

TEST(queue_that_is_not_open)
{
	expect(timerhub::queue().run(std::stop_token()) == std::errc::invalid_argument);
}

/* The descriptor that a stop signals. */
TEST(closed_stderr_is_not_taken)
{
	const int kept = ::dup(STDERR_FILENO);
	threaded_rig rig;
	std::atomic<int> ended{ 0 }, seen{ 0 };

	expect(kept > STDERR_FILENO && ::close(STDERR_FILENO) == 0);
	{
		std::jthread first([&](std::stop_token stop) { runs(rig.queue, stop, ended); });

		expect(!rig.queue.call_after(1ms, [&seen] {
			seen = ::fcntl(STDERR_FILENO, F_GETFD) == -1 ? 1 : -1;
			seen.notify_all();
		}));
		seen.wait(0);
	}
	expect(::dup2(kept, STDERR_FILENO) == STDERR_FILENO && ::close(kept) == 0);
	expect(seen == 1 && ended == 1);
}

} // namespace
