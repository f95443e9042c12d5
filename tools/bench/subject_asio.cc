/* SPDX-License-Identifier: MIT */
/*
 * Measures Boost.Asio, with one steady_timer for each timer, on one io_context. A re-arm calls
 * expires_at, which cancels the pending wait, and async_wait, as its documentation recommends.
 * Threads may use different timers of an io_context, so all call it directly.
 */
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <new>

#include "embedding_objects.h"

namespace
{
using boost::asio::io_context;
using boost::asio::steady_timer;

io_context *context;
boost::asio::executor_work_guard<io_context::executor_type> *guard;
bool alone; // no other thread runs the loop
thread_local steady_timer::time_point cached;

void asio_open(const struct subject_setup *setup)
{
	alone = !setup->cross;
	context = new io_context(setup->cross ? BOOST_ASIO_CONCURRENCY_HINT_SAFE : 1);
	guard = new boost::asio::executor_work_guard<io_context::executor_type>(
		context->get_executor());
	records_open(setup, sizeof(steady_timer));
	for (uint32_t i = 0; i <= setup->timers; i++)
		new (records_timer(i)) steady_timer(*context);
}

steady_timer &asio_timer(uint32_t timer)
{
	return *static_cast<steady_timer *>(records_timer(timer));
}

int asio_arm(uint32_t timer, uint64_t delay_ns)
{
	steady_timer &self = asio_timer(timer);

	self.expires_at(cached + std::chrono::nanoseconds(delay_ns));
	self.async_wait([timer](const boost::system::error_code &error) {
		if (!error)
			subject_expired(timer);
	});
	return 0;
}

void asio_cancel(uint32_t timer)
{
	asio_timer(timer).cancel();
}

/*
 * If the caller owns the loop, run a turn of the loop. The turn also completes cancelled waits.
 */
void asio_tick()
{
	if (alone)
		context->poll();
	cached = steady_timer::clock_type::now();
}

void asio_run(bool (*done)())
{
	while (!done())
		context->run_one();
}

struct subject asio_subject()
{
	struct subject subject = {};

	subject.name = "asio";
	subject.how = "a steady_timer each, expires_at and async_wait, from any thread";
	subject.can =
		ALL_CALLS | CAN_CROSS | CAN_ANY_THREAD | CAN_PUSH_TAKE | CAN_BE_LATE | ONE_LOOP;
	subject.timers_max = 1000000;
	subject.open = asio_open;
	subject.tick = asio_tick;
	subject.arm = asio_arm;
	subject.rearm = asio_arm;
	subject.cancel = asio_cancel;
	subject.run = asio_run;
	return subject;
}
} // namespace

extern "C" {
extern const struct subject subject_asio;
const struct subject subject_asio = asio_subject();
}
