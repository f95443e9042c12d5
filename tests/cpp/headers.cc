/* SPDX-License-Identifier: MIT */
/*
 * Compiled with more warnings than the library itself, as errors: the headers stand in programs
 * that have them all. Calls each template once, since a compiler warns where a template is
 * instantiated.
 */
#include <timerhub.h>
#include <timerhub.hpp>
#include <timerhub_loop.h>
#include <timerhub_relay.h>
#include <timerhub_store.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#ifdef __cpp_lib_coroutine
#include <stop_token>

#include "coroutine.hpp"
#endif

using namespace std::chrono_literals;

void every_template(const timerhub::queue &queue, const timerhub::loop &loop);

void every_template(const timerhub::queue &queue, const timerhub::loop &loop)
{
	timerhub::hub hub;
	timerhub::timer timer, other;
	timerhub::timeout<> small;
	timerhub::timeout<std::function<void()>> large;
	timerhub::clock::duration left{};
	timerhub::time_point next;
	const std::function<void(timerhub::expiry)> block = [](timerhub::expiry) {};

	static_cast<void>(timer.arm_after(
		queue, 10ms, [&left] { left = {}; }, 1.5s));
	static_cast<void>(timer.arm_at(queue, timerhub::time_point(1h), block));
	static_cast<void>(timer.arm_every(queue, 1h, [](timerhub::expiry) {}));
	static_cast<void>(timer.arm_never(queue, block));
	static_cast<void>(queue.call_after(0s, [] {}));
	static_cast<void>(timer.remaining(left));
	static_cast<void>(hub.advance(timerhub::time_point(left), &next));
	other = std::move(timer);
	static_cast<void>(small.add(loop, [&left] { left = {}; }));
	static_cast<void>(large.add(loop, [] {}));
}

/* Each is complete here, and is the struct and not the function of the same name. */
static_assert(std::is_same_v<timerhub::hub_stats, struct timerhub_stats>);
static_assert(sizeof(timerhub::loop_stats) == sizeof(struct timerhub_loop_stats));
static_assert(sizeof(timerhub::relay_stats) == sizeof(struct timerhub_relay_stats));
static_assert(sizeof(timerhub::store_stats) == sizeof(struct timerhub_store_stats));
static_assert(sizeof(timerhub::store_put) == sizeof(struct timerhub_store_put));

#ifdef __cpp_lib_coroutine
#pragma GCC diagnostic push
/* gcc has this warning of its own code for each coroutine */
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
detached every_sleep(const timerhub::queue &queue, const timerhub::loop &loop,
                     std::stop_token stop);

detached every_sleep(const timerhub::queue &queue, const timerhub::loop &loop, std::stop_token stop)
{
	co_await sleep_for(loop, 1ms);
	co_await sleep_for(queue, 1ms);
	co_await sleep_for(queue, 1ms, stop);
	if (co_await timerhub::sleep_for(loop, 1ms) || co_await timerhub::sleep_for(queue, 1ms))
		co_await timerhub::sleep_for(queue, 1ms, std::move(stop));
}
#pragma GCC diagnostic pop
#endif

#if defined(__SIZEOF_INT128__) && !defined(__STRICT_ANSI__)
__extension__ typedef __int128 wide;
template <class Period> using long_delay = std::chrono::duration<wide, Period>;

static_assert(timerhub::delay(long_delay<std::nano>(wide{ 1 } << 64)).ns() > UINT64_MAX / 2);
static_assert(timerhub::delay(long_delay<std::pico>(wide{ 1 } << 64)).ns() > UINT64_MAX / 2);
static_assert(timerhub::delay(long_delay<std::nano>(-(wide{ 1 } << 64))).ns() == 0);
static_assert(timerhub::delay(long_delay<std::milli>(7)).ns() == 7000000);
#endif
