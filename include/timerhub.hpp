/* SPDX-License-Identifier: MIT */
/*
 * timerhub for C++17, and for the coroutines of C++20; the manual is timerhub_hpp(7). Loops,
 * timeouts, hubs, queues and timers are objects that close themselves. Times are those of
 * std::chrono, callbacks are any callables, and errors are std::error_code. If a comment here
 * leaves a question open, look at that of the C call in timerhub_loop.h or timerhub.h. native() and
 * handle() return the C object. Tested by tests/cpp.
 *
 * Errors. The error of a call is empty, or it is the errno of the C call in std::system_category().
 * A call that fails writes no output. The header itself throws nothing, and compiles with
 * -fno-exceptions and -fno-rtti. If a callable throws an exception, the exception leaves
 * dispatch(). If the constructor of a callable throws one, the exception leaves the call that arms
 * the timer, which has changed nothing then. With -fno-exceptions, and with musl, a callable must
 * not end its thread.
 *
 * Times. A time is rounded up to nanoseconds, and a negative one is taken as 0. A call returns
 * ERANGE for a time that is above 2^63 ns or NaN. A slack is at most three days: a longer one
 * counts as three days.
 *
 * Memory. A small callable (see is_small_v) is kept in the timer's data, and each expiry calls a
 * copy of it. Any other callable is kept in one block of the heap, and so stays at one address.
 *
 * Threads. Any number of threads may make const calls for an object at once. For any other call, no
 * other thread may use the object, except that a callback may move its own timer while another
 * thread cancels or destroys it. A timeout belongs to one thread.
 *
 * When a timer's data may be freed. After cancel() or the destructor, no other thread runs the
 * callable, and none will. If the callback itself cancels or destroys its timer, the callable lives
 * until the callback returns. The callback may use the other members of the object that the timer
 * belongs to. So declare the timer as the last member of its class, or call cancel() first in the
 * destructor.
 *
 * The destructor waits for the callback. So do not hold a mutex that the callback locks, and do not
 * let two callbacks destroy each other's timers, because they would wait for ever. If several
 * threads dispatch, callbacks of a periodic or moved timer can overlap, and only one of them may
 * destroy it. A hub must outlive its queues and timers, and the timers of a closed queue never
 * expire. drain() and wait() call no callback. Never call the fn of an event that they return,
 * because no destructor waits for that.
 *
 * Lifetime. Timers and timeouts keep their callable after an expiry. So capture `this` in it, and
 * not a shared_ptr to the object that contains the timer, because each would own the other until
 * cancel() or remove(). If a callback may release the last reference to its object, let it begin
 * with `const auto self = shared_from_this();`.
 */
#ifndef TIMERHUB_HPP
#define TIMERHUB_HPP

#if __cplusplus < 201703L
#error "timerhub.hpp needs C++17"
#endif

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <ratio>
#include <system_error>
#include <type_traits>
#include <utility>

#if __cplusplus >= 202002L
#include <version>
#endif
#ifdef __cpp_lib_coroutine
#include <coroutine>
#endif
#ifdef __cpp_lib_jthread
#include <stop_token>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#endif

#include "timerhub.h"
#include "timerhub_loop.h"

struct timerhub_relay_stats;
struct timerhub_store_put;
struct timerhub_store_stats;

/*
 * Programs write timerhub:: in place of timerhub_cpp::, as in timerhub::hub. The struct at the end
 * of this file makes that possible.
 */
namespace timerhub_cpp
{

/* Turns the result of a C call into an error, which is empty if the call has not failed. */
inline std::error_code error(int result) noexcept
{
	return result < 0 ? std::error_code(-result, std::system_category()) : std::error_code();
}

/*
 * Turns the result of a C call into an error, and stores the result in *ret_count if it is a count
 * and ret_count is not NULL.
 */
inline std::error_code counted(int result, unsigned *ret_count) noexcept
{
	if (result >= 0 && ret_count)
		*ret_count = static_cast<unsigned>(result);
	return error(result);
}

/*
 * The std::chrono clock of time points on a hub's clock. It has no now(), because each hub chooses
 * its clock when it is opened; call the hub's now() instead. If the hub's clock is
 * TIMERHUB_CLOCK_MONOTONIC, convert time points by from_steady() and to_steady(); if it is
 * TIMERHUB_CLOCK_REALTIME, by from_system() and to_system(). These change only the type of a time
 * point, so with another clock the result is wrong.
 */
struct clock {
	using duration = std::chrono::nanoseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<clock>;
	static constexpr bool is_steady = false;

	template <class Duration> using point = std::chrono::time_point<clock, Duration>;
	template <class Duration>
	using steady = std::chrono::time_point<std::chrono::steady_clock, Duration>;
	template <class Duration>
	using system = std::chrono::time_point<std::chrono::system_clock, Duration>;

	template <class Duration>
	static constexpr point<Duration> from_steady(steady<Duration> when)
	{
		return point<Duration>(when.time_since_epoch());
	}

	template <class Duration> static constexpr steady<Duration> to_steady(point<Duration> when)
	{
		return steady<Duration>(when.time_since_epoch());
	}

	template <class Duration>
	static constexpr point<Duration> from_system(system<Duration> when)
	{
		return point<Duration>(when.time_since_epoch());
	}

	template <class Duration> static constexpr system<Duration> to_system(point<Duration> when)
	{
		return system<Duration>(when.time_since_epoch());
	}
};

using time_point = clock::time_point;

/*
 * Other names for C structs that have the same name as a function. C++ finds the function under
 * such a name, and the struct only after the word `struct`. The structs of the relay and the store
 * are complete if the program includes timerhub_relay.h and timerhub_store.h.
 */
using hub_stats = struct ::timerhub_stats;
using loop_stats = struct ::timerhub_loop_stats;
using relay_stats = struct ::timerhub_relay_stats;
using store_stats = struct ::timerhub_store_stats;
using store_put = struct ::timerhub_store_put;

namespace detail
{

/*
 * Stands for a time that does not fit into 64 bits. No hub accepts this value as a deadline, so the
 * calls of timerhub.h return -ERANGE for it.
 */
inline constexpr std::uint64_t out_of_range = UINT64_MAX - 1;

/*
 * Returns `count` * num / den, rounded up, or out_of_range if the result does not fit. The caller
 * has checked that num * den fits into 64 bits.
 */
constexpr std::uint64_t scale(std::uint64_t count, std::uint64_t num, std::uint64_t den) noexcept
{
	const std::uint64_t whole = count / den;
	const std::uint64_t part = (count % den * num + den - 1) / den;

	if (whole > (out_of_range - part) / num)
		return out_of_range;
	return whole * num + part;
}

/* Converts a duration to nanoseconds, rounded up. Returns 0 if the duration is negative. */
template <class Rep, class Period>
constexpr std::uint64_t to_ns(const std::chrono::duration<Rep, Period> &distance) noexcept
{
	using ratio = std::ratio_divide<Period, std::nano>;
	constexpr auto num = static_cast<std::uint64_t>(ratio::num);
	constexpr auto den = static_cast<std::uint64_t>(ratio::den);

	static_assert(std::is_arithmetic_v<Rep>, "a duration of integers or floating point");
	static_assert(num <= (out_of_range - den) / den, "a period that is too odd");
	if (distance.count() <= 0)
		return 0;
	if constexpr (std::is_floating_point_v<Rep>) {
		using real = std::common_type_t<Rep, double>;
		constexpr real factor = static_cast<real>(num) / static_cast<real>(den);
		const real count = distance.count();

		/*
		 * A hub rejects deadlines of 2^63 ns or more, so such a count is out of range. NaN
		 * is out of range too, because every comparison with it is false.
		 */
		if (!(count < static_cast<real>(out_of_range / 2) / factor))
			return out_of_range;
		const auto whole = static_cast<std::uint64_t>(count * factor);
		return static_cast<real>(whole) < count * factor ? whole + 1 : whole;
	} else {
		if constexpr (sizeof(Rep) >
		              sizeof(std::uint64_t)) { /* __int128 with -std=gnu++17 */
			if (distance.count() > static_cast<Rep>(out_of_range))
				return out_of_range;
		}
		return scale(static_cast<std::uint64_t>(distance.count()), num, den);
	}
}

/*
 * Converts nanoseconds to a duration. UINT64_MAX, which means never, becomes the largest duration.
 */
constexpr clock::duration from_ns(std::uint64_t ns) noexcept
{
	const auto max = static_cast<std::uint64_t>(clock::duration::max().count());

	return clock::duration(static_cast<clock::rep>(ns < max ? ns : max));
}

} // namespace detail

/* A delay, interval or timeout in nanoseconds. Any std::chrono::duration converts to it. */
class delay
{
      public:
	constexpr delay() noexcept = default;

	template <class Rep, class Period>
	constexpr delay(const std::chrono::duration<Rep, Period> &distance) noexcept
	    : ns_(detail::to_ns(distance))
	{
	}

	/* Returns the delay in ns, or a number above 2^63 if it was out of range. */
	constexpr std::uint64_t ns() const noexcept
	{
		return ns_;
	}

      private:
	std::uint64_t ns_ = 0;
};

/*
 * A point in time on a hub's clock, in nanoseconds. Any time_point of timerhub::clock converts to
 * it.
 */
class deadline
{
      public:
	template <class Duration>
	constexpr deadline(const std::chrono::time_point<clock, Duration> &when) noexcept
	    : ns_(detail::to_ns(when.time_since_epoch()))
	{
	}

	/* Returns the deadline in ns, or a number above 2^63 if it was out of range. */
	constexpr std::uint64_t ns() const noexcept
	{
		return ns_;
	}

      private:
	std::uint64_t ns_;
};

/* The argument of a timer's callable, if the callable takes one. */
struct expiry {
	/*
	 * The timer's deadline. If the call stands for several periods, it is the deadline of the
	 * first.
	 */
	time_point due;
	/* How many periods the call stands for; 1 if the timer is not periodic. */
	std::uint64_t count;
};

/*
 * True if a callable of this type is small: it is kept in the timer's data, so that arming a timer
 * allocates nothing. Such a type has at most 8 bytes, is trivially copyable, and can be called
 * while it is const. A mutable lambda is not small, because it would lose its state when each
 * expiry calls a new copy.
 */
template <class Callable>
inline constexpr bool is_small_v =
	sizeof(Callable) <= sizeof(std::uint64_t) && alignof(Callable) <= alignof(std::uint64_t) &&
	std::is_trivially_copyable_v<Callable> &&std::is_trivially_destructible_v<Callable> &&
	(std::is_invocable_v<const Callable &> || std::is_invocable_v<const Callable &, expiry>);

namespace detail
{

template <class Callable> void invoke(Callable &callable, const timerhub_event &event)
{
	if constexpr (std::is_invocable_v<Callable &, expiry>)
		static_cast<void>(
			callable(expiry{ time_point(from_ns(event.expires_ns)), event.count }));
	else
		static_cast<void>(callable());
}

/* ---- a small callable: the timer's data is the bytes of the callable ---- */

template <class Callable> std::uint64_t pack(const Callable &callable) noexcept
{
	std::uint64_t data = 0;

	/* An object of an empty class has no bytes that matter. */
	if constexpr (!std::is_empty_v<Callable>)
		std::memcpy(&data, &callable, sizeof(callable));
	return data;
}

/*
 * Holds a copy of a small callable while it is called. The copy is on the stack of the calling
 * thread, because there no other thread can free it.
 */
template <class Callable> class unpacked
{
      public:
	explicit unpacked(std::uint64_t data) noexcept
	{
		std::memcpy(bytes_, &data, sizeof(bytes_));
	}

	const Callable &get() const noexcept
	{
		return *std::launder(
			static_cast<const Callable *>(static_cast<const void *>(bytes_)));
	}

      private:
	alignas(Callable) unsigned char bytes_[sizeof(Callable)];
};

/* The C callback of a timer that has a small callable. */
template <class Callable> void call_small(const timerhub_event *event)
{
	const unpacked<Callable> copy(event->data);

	invoke(copy.get(), *event);
}

/* ---- any other callable: a block on the heap holds the callable ---- */

/*
 * A block on the heap that holds a callable and counts its users. Its users are the timer object,
 * and each callback that is running. When the last of them leaves, the block is freed. After
 * timerhub_cancel_sync() no other thread runs a callback, so the only users left are the timer
 * object and callbacks further up on the calling thread's own stack.
 */
class block
{
      public:
	explicit block(void (*destroy)(block *)) noexcept : destroy_(destroy)
	{
	}

	block(const block &) = delete;
	block &operator=(const block &) = delete;

	/*
	 * Makes the caller a user. Relaxed order is enough, because nothing can free the block
	 * meanwhile: either the timer object still uses it, or the thread that cancels the timer
	 * waits for the callback that makes this call.
	 */
	void use() noexcept
	{
		users_.fetch_add(1, std::memory_order_relaxed);
	}

	/*
	 * Ends the caller's use, and frees the block if it was the last. Acquire and release order
	 * make everything that the users did with the callable happen before its destruction. What
	 * users on other threads did also happens before the last user calls leave(), because of
	 * timerhub_cancel_sync().
	 */
	void leave() noexcept
	{
		if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1)
			destroy_(this);
	}

      protected:
	~block() = default;

      private:
	void (*const destroy_)(block *);
	std::atomic<unsigned> users_{ 1 };
};

template <class Callable> class block_of final : public block
{
      public:
	template <class From>
	explicit block_of(From &&from) : block(destroy), callable(std::forward<From>(from))
	{
	}

	Callable callable;

      private:
	static void destroy(block *self)
	{
		delete static_cast<block_of *>(self);
	}
};

/*
 * Makes a callback a user of the block while it runs. The destructor ends that also if the callable
 * throws an exception or ends its thread.
 */
class block_user
{
      public:
	explicit block_user(block &used) noexcept : used_(used)
	{
		used_.use();
	}

	~block_user()
	{
		used_.leave();
	}

	block_user(const block_user &) = delete;
	block_user &operator=(const block_user &) = delete;

      private:
	block &used_;
};

/* The C callback of a timer that has its callable in a block. */
template <class Callable> void call_block(const timerhub_event *event)
{
	auto &home = *static_cast<block_of<Callable> *>(event->ptr);
	const block_user user(home);

	invoke(home.callable, *event);
}

/* Does not compile if an Argument cannot be stored as a Callable. */
template <class Callable, class Argument> constexpr void check_stored() noexcept
{
	static_assert(std::is_constructible_v<Callable, Argument>,
	              "a callable that cannot be copied is passed by std::move");
}

/* Returns false if the callable is a null function pointer, which timerhub_call() rejects too. */
template <class Callable> constexpr bool is_callable(const Callable &callable) noexcept
{
	if constexpr (std::is_pointer_v<Callable>)
		return callable != nullptr;
	else
		return static_cast<void>(callable), true;
}

} // namespace detail

#ifdef __cpp_lib_jthread
namespace detail
{

/*
 * An eventfd that wakes a thread out of poll(2). Nobody reads it, so it stays readable once it has
 * been signalled.
 */
class stop_fd
{
      public:
	stop_fd() noexcept : fd_(open_above_stdio())
	{
	}

	~stop_fd()
	{
		if (fd_ >= 0)
			::close(fd_);
	}

	stop_fd(const stop_fd &) = delete;
	stop_fd &operator=(const stop_fd &) = delete;

	/*
	 * Makes the descriptor readable. A write that fails needs no handling, because it fails
	 * only if the counter is full, and then the eventfd is readable already.
	 */
	void signal() const noexcept
	{
		static_cast<void>(::eventfd_write(fd_, 1));
	}

	int fd() const noexcept
	{
		return fd_;
	}

      private:
	/*
	 * Opens an eventfd whose number is above 2. If the program has closed stderr, an eventfd
	 * could get the number 2, and anything that the program prints to stderr would make it
	 * readable.
	 */
	static int open_above_stdio() noexcept
	{
		const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		if (fd < 0)
			return -errno;
		if (fd > STDERR_FILENO)
			return fd;
		const int above = open_above_stdio();

		::close(fd);
		return above;
	}

	int fd_;
};

} // namespace detail
#endif

/*
 * A timer service. It owns a struct timerhub, and closes it when it is destroyed. If a hub is moved
 * to another object, its queues and timers belong to that object from then on.
 */
class hub
{
      public:
	hub() noexcept = default;

	hub(hub &&other) noexcept : hub_(std::exchange(other.hub_, nullptr))
	{
	}

	hub &operator=(hub &&other) noexcept
	{
		if (this != &other) {
			close();
			hub_ = std::exchange(other.hub_, nullptr);
		}
		return *this;
	}

	~hub()
	{
		close();
	}

	/*
	 * Opens the hub by timerhub_open(). config.size may be 0. Returns EBUSY if the hub is open
	 * already.
	 */
	[[nodiscard]] std::error_code open(timerhub_config config = {}) noexcept
	{
		if (hub_)
			return error(-EBUSY);
		if (config.size == 0)
			config.size = sizeof(config);
		return error(timerhub_open(&hub_, &config));
	}

	/*
	 * Closes the hub. Close its loops and queues and destroy its timers before, because their
	 * destructors would use the hub. Does nothing if the hub is not open.
	 */
	void close() noexcept
	{
		timerhub_close(std::exchange(hub_, nullptr));
	}

	/* Returns the time on the hub's clock, or the epoch if the hub is not open. */
	time_point now() const noexcept
	{
		return time_point(detail::from_ns(timerhub_now(hub_)));
	}

	/*
	 * Sets the time of a manual hub and expires the timers that are due by then. In *ret_next,
	 * which may be NULL, it stores when the program must call it again at the latest;
	 * time_point::max() means that no timer has a deadline.
	 */
	std::error_code advance(deadline now, time_point *ret_next = nullptr) const noexcept
	{
		std::uint64_t next_ns = 0;
		int result = -ERANGE;

		if (now.ns() <= static_cast<std::uint64_t>(clock::duration::max().count()))
			result = timerhub_advance(hub_, now.ns(), &next_ns);
		if (result == 0 && ret_next)
			*ret_next = time_point(detail::from_ns(next_ns));
		return error(result);
	}

	/*
	 * Returns a descriptor of a manual hub, or a negative errno. It becomes readable when
	 * advance() must be called earlier than it had said.
	 */
	int wake_fd() const noexcept
	{
		return timerhub_wake_fd(hub_);
	}

	/* Returns the kernel's thread id of the hub's own thread, or a negative errno. */
	int owner_tid() const noexcept
	{
		return timerhub_owner_tid(hub_);
	}

	/*
	 * Stores in ret_stats what the hub has done since it was opened, as timerhub_stats() does.
	 */
	std::error_code stats(struct timerhub_stats &ret_stats) const noexcept
	{
		return error(timerhub_stats(hub_, &ret_stats));
	}

	/*
	 * Calls callable(running) for each thread that dispatches and for each observable loop, as
	 * timerhub_each_running() does. If the callable returns something other than 0, the walk
	 * ends.
	 */
	template <typename Callable> std::error_code each_running(Callable &&callable) const
	{
		using plain = std::remove_reference_t<Callable>;
		const auto visit = [](const timerhub_running *running, void *context) -> int {
			return (**static_cast<plain **>(context))(*running);
		};
		plain *at = std::addressof(callable);

		return error(timerhub_each_running(hub_, visit, &at));
	}

	/*
	 * Lists functions whose callbacks were slow, as timerhub_slow() does: stores up to `max` of
	 * them in `ret`, and in ret_count how many it has stored.
	 */
	std::error_code slow(timerhub_slow_callback *ret, unsigned max,
	                     unsigned &ret_count) const noexcept
	{
		return counted(timerhub_slow(hub_, ret, max), &ret_count);
	}

	/* Returns the C object for the calls of timerhub.h, or nullptr if the hub is not open. */
	timerhub *native() const noexcept
	{
		return hub_;
	}

      private:
	timerhub *hub_ = nullptr;
};

/*
 * A queue, in which expired timers wait until a thread dispatches them. It owns a struct
 * timerhub_queue, and closes it when it is destroyed. If a queue is moved to another object, its
 * timers belong to that object from then on.
 */
class queue
{
      public:
	queue() noexcept = default;

	queue(queue &&other) noexcept : queue_(std::exchange(other.queue_, nullptr))
	{
	}

	queue &operator=(queue &&other) noexcept
	{
		if (this != &other) {
			close();
			queue_ = std::exchange(other.queue_, nullptr);
		}
		return *this;
	}

	~queue()
	{
		close();
	}

	/*
	 * Opens the queue by timerhub_queue_open(). Returns EBUSY if the queue is open already, and
	 * EINVAL if the hub is not open.
	 */
	[[nodiscard]] std::error_code open(const hub &of) noexcept
	{
		return queue_ ? error(-EBUSY)
		              : error(timerhub_queue_open(of.native(), &queue_, nullptr));
	}

	/*
	 * Closes the queue; its timers never expire then. No thread may be inside a call on the
	 * queue, so call stop() and join the threads before. A callback of the queue must not close
	 * it. Does nothing if the queue is not open.
	 */
	void close() noexcept
	{
		timerhub_queue_close(std::exchange(queue_, nullptr));
	}

	/*
	 * Returns the queue's eventfd, or a negative errno. It is readable while expired timers
	 * wait. Poll it, but do not close it.
	 */
	int fd() const noexcept
	{
		return timerhub_queue_fd(queue_);
	}

	/*
	 * Calls the callables of up to `max` expired timers on this thread. In *ret_count, which
	 * may be NULL, it stores how many events it has taken. If a callable throws an exception,
	 * the exception leaves dispatch(). Its event then counts as delivered, and the later ones
	 * stay in the queue.
	 */
	std::error_code dispatch(unsigned max = 64, unsigned *ret_count = nullptr) const
	{
		return counted(timerhub_dispatch(queue_, max), ret_count);
	}

#ifdef __cpp_lib_jthread
	/*
	 * Waits for expired timers and dispatches them until a stop is requested, which also ends
	 * the wait. It can be the body of a std::jthread. Several threads may run one queue, and
	 * each has a stop of its own. If a callable throws an exception, the exception leaves
	 * run(). Returns the errors of dispatch(), eventfd(2) and poll(2).
	 */
	std::error_code run(const std::stop_token &stop) const
	{
		const detail::stop_fd stopped;
		pollfd ready[] = { { fd(), POLLIN, 0 }, { stopped.fd(), POLLIN, 0 } };

		for (const pollfd &polled : ready)
			if (polled.fd < 0)
				return error(polled.fd);
		const std::stop_callback on_stop(stop, [&stopped] { stopped.signal(); });

		while (!stop.stop_requested()) {
			if (::poll(ready, 2, -1) < 0 && errno != EINTR)
				return error(-errno);
			if (const std::error_code result = dispatch())
				return result;
		}
		return std::error_code();
	}
#endif

	/*
	 * Takes up to `max` events, and neither waits nor calls anything. Use it for timers that
	 * were armed by the calls of timerhub.h and have a number as their data. Never call the fn
	 * of an event, because no destructor waits for that call.
	 */
	std::error_code drain(timerhub_event *events, unsigned max,
	                      unsigned &ret_count) const noexcept
	{
		return counted(timerhub_drain(queue_, events, max), &ret_count);
	}

	/*
	 * Takes up to `max` events like drain(), but blocks until there is one. Returns ESHUTDOWN
	 * if the queue is stopped and has no more events.
	 */
	std::error_code wait(timerhub_event *events, unsigned max,
	                     unsigned &ret_count) const noexcept
	{
		return counted(timerhub_wait(queue_, events, max, UINT64_MAX), &ret_count);
	}

	/*
	 * Takes up to `max` events like drain(), but if there is none, it blocks until one comes,
	 * for up to `timeout`. After the timeout it stores 0 in ret_count. If the timeout is out of
	 * range, it blocks without limit.
	 */
	std::error_code wait(timerhub_event *events, unsigned max, delay timeout,
	                     unsigned &ret_count) const noexcept
	{
		return counted(timerhub_wait(queue_, events, max, timeout.ns()), &ret_count);
	}

	/* Makes wait() never block again, so that the threads that call it can end. */
	void stop() const noexcept
	{
		timerhub_queue_stop(queue_);
	}

	/*
	 * Arms a timer that calls a small callable once, when `after` has passed. No object cancels
	 * the timer. *ret_timer, which may be NULL, is its handle for the calls of timerhub.h.
	 * Returns the errors of timerhub_arm(), and EINVAL for a null function pointer.
	 */
	template <class Callable>
	[[nodiscard]] std::error_code call_after(delay after, Callable &&callable,
	                                         timerhub_timer *ret_timer = nullptr) const noexcept
	{
		using stored = std::decay_t<Callable>;

		static_assert(is_small_v<stored>,
		              "the callable has more than 8 bytes, a destructor, or is mutable, "
		              "and no object would free it: arm a timerhub::timer");
		detail::check_stored<stored, Callable>();
		return call_small(after, stored(std::forward<Callable>(callable)), ret_timer);
	}

	/* Returns the C object for the calls of timerhub.h, or nullptr if the queue is not open. */
	timerhub_queue *native() const noexcept
	{
		return queue_;
	}

      private:
	/*
	 * A loop has a queue object of its own, which must not be closed, because
	 * timerhub_loop_close() closes the C queue.
	 */
	friend class loop;

	template <class Callable>
	std::error_code call_small(delay after, const Callable &callable,
	                           timerhub_timer *ret_timer) const noexcept
	{
		timerhub_spec spec{};

		if (!detail::is_callable(callable))
			return error(-EINVAL);
		spec.size = sizeof(spec);
		spec.expires_ns = after.ns();
		spec.data = detail::pack(callable);
		spec.fn = detail::call_small<Callable>;
		return error(timerhub_arm(queue_, &spec, ret_timer));
	}

	timerhub_queue *queue_ = nullptr;
};

/*
 * A timer and its callable, which a dispatch of the queue calls when the deadline has passed. The
 * callable may take a timerhub::expiry.
 *
 * Once armed, a timer keeps its place in the hub until it is cancelled or destroyed. After an
 * expiry it is idle until expires_after() or expires_at() moves it (it has TIMERHUB_KEEP). So a
 * connection can have its timeout as a member, arm it once, and move it with each message.
 *
 * If the object has armed a timer before, each arm call first cancels that one, and as its last
 * step destroys that one's callable. If the call returns EAGAIN, EINVAL, ERANGE or ENOMEM, the
 * object has no timer. A timer with `slack` may expire up to `slack` after its deadline. As soon as
 * a timer can expire, the arm call no longer touches the object, so the callback may destroy it.
 *
 * An armed timer may be moved to another object, even by its callback. The callable stays at its
 * address. If it refers to the old object, make sure that it is not called any more.
 */
class timer
{
      public:
	timer() noexcept = default;

	timer(timer &&other) noexcept
	{
		swap(other);
	}

	/* Cancels the timer of this object, and takes over that of `other`. */
	timer &operator=(timer &&other) noexcept
	{
		timer taken(std::move(other));

		taken.swap(*this);
		return *this;
	}

	/* Cancels the timer, and waits until no other thread runs its callable. */
	~timer()
	{
		cancel();
	}

	void swap(timer &other) noexcept
	{
		std::swap(hub_, other.hub_);
		std::swap(handle_, other.handle_);
		std::swap(block_, other.block_);
	}

	/* Arms the timer, which expires when `after` has passed. */
	template <class Callable>
	[[nodiscard]] std::error_code arm_after(const queue &on, delay after, Callable &&callable,
	                                        delay slack = {})
	{
		return arm(on, spec_of(after.ns(), TIMERHUB_KEEP, slack),
		           std::forward<Callable>(callable));
	}

	/* Arms the timer, which expires at a point on the hub's clock. */
	template <class Callable>
	[[nodiscard]] std::error_code arm_at(const queue &on, deadline at, Callable &&callable,
	                                     delay slack = {})
	{
		return arm(on, spec_of(at.ns(), TIMERHUB_KEEP | TIMERHUB_ABSOLUTE, slack),
		           std::forward<Callable>(callable));
	}

	/* Arms the timer without a deadline. expires_after() or expires_at() can set one. */
	template <class Callable>
	[[nodiscard]] std::error_code arm_never(const queue &on, Callable &&callable,
	                                        delay slack = {})
	{
		return arm(on, spec_of(TIMERHUB_NEVER, TIMERHUB_KEEP, slack),
		           std::forward<Callable>(callable));
	}

	/*
	 * Arms a periodic timer, which expires for the first time after one interval.
	 * expires_after() and expires_at() start its periods anew. Returns EINVAL if the interval
	 * is not above 0.
	 */
	template <class Callable>
	[[nodiscard]] std::error_code arm_every(const queue &on, delay interval,
	                                        Callable &&callable, delay slack = {})
	{
		timerhub_spec spec = spec_of(interval.ns(), 0, slack);

		spec.interval_ns = interval.ns();
		if (spec.interval_ns == 0) {
			cancel();
			return error(-EINVAL);
		}
		return arm(on, spec, std::forward<Callable>(callable));
	}

	/*
	 * Moves the timer's deadline to `after` from now. If the timer has expired but nobody has
	 * taken its event, the event is withdrawn. It takes no lock, and may be called by any
	 * thread and by the timer's own callback. *ret_idled, which may be NULL, tells whether the
	 * timer was idle. Returns ENOENT if the timer is not armed or its queue is closed, or
	 * ERANGE.
	 */
	std::error_code expires_after(delay after, bool *ret_idled = nullptr) const noexcept
	{
		return rearm(after.ns(), 0, ret_idled);
	}

	/*
	 * Moves the timer's deadline to a point on the hub's clock. Threads, *ret_idled and errors
	 * are as for expires_after().
	 */
	std::error_code expires_at(deadline at, bool *ret_idled = nullptr) const noexcept
	{
		return rearm(at.ns(), TIMERHUB_ABSOLUTE, ret_idled);
	}

	/*
	 * Takes the timer's deadline away, but leaves it armed. If the timer has expired but nobody
	 * has taken its event, the event is withdrawn. A callback that runs on another thread may
	 * still be running when the call returns.
	 */
	std::error_code expires_never(bool *ret_idled = nullptr) const noexcept
	{
		return rearm(TIMERHUB_NEVER, 0, ret_idled);
	}

	/*
	 * Stores in ret_remaining how long it is until the timer is due, or duration::max() if it
	 * has no deadline or is idle. Returns ENOENT if the timer is not armed or its queue is
	 * closed.
	 */
	std::error_code remaining(clock::duration &ret_remaining) const noexcept
	{
		std::uint64_t ns = 0;
		const int result = handle_ ? timerhub_remaining(hub_, handle_, &ns) : -ENOENT;

		if (result == 0)
			ret_remaining = detail::from_ns(ns);
		return error(result);
	}

	/*
	 * Cancels the timer, waits until no other thread runs its callback, and destroys the
	 * callable. Even if the call returns an error, no other thread runs the callable
	 * afterwards, and none will. If the timer's own callback calls it, the callable lives until
	 * the callback returns. Returns ENOENT if the timer is not armed or its queue is closed, or
	 * EOWNERDEAD in a forked child.
	 */
	std::error_code cancel() noexcept
	{
		const withdrawn before(*this);

		return error(before.result);
	}

	/*
	 * Returns the handle for C calls such as timerhub_rearm_many(), or 0 if the timer is not
	 * armed. Do not cancel it by a C call, because the object would not notice.
	 */
	timerhub_timer handle() const noexcept
	{
		return handle_;
	}

      private:
	/*
	 * Cancels a timer and keeps its callable until the end of the caller's scope, because the
	 * callable's destructor may itself arm, move or destroy the timer.
	 */
	class withdrawn
	{
	      public:
		explicit withdrawn(timer &from) noexcept
		{
			if (!from.handle_)
				return;
			/*
			 * Clear handle_ only after the wait, because a callback on another thread
			 * may read it until then.
			 */
			result = timerhub_cancel_sync(from.hub_, from.handle_);
			from.handle_ = 0;
			block_ = from.block_;
		}

		~withdrawn()
		{
			if (block_)
				block_->leave();
		}

		withdrawn(const withdrawn &) = delete;
		withdrawn &operator=(const withdrawn &) = delete;

		int result = -ENOENT;

	      private:
		detail::block *block_ = nullptr;
	};

	static timerhub_spec spec_of(std::uint64_t expires_ns, std::uint32_t flags,
	                             delay slack) noexcept
	{
		timerhub_spec spec{};

		spec.size = sizeof(spec);
		spec.flags = flags;
		spec.expires_ns = expires_ns;
		spec.slack_ns = slack.ns();
		return spec;
	}

	/*
	 * Arms the timer as `spec` says. The callable is copied or moved before the earlier timer
	 * is cancelled. One reason is that the copy may throw. The other is that `callable` may
	 * refer to the callable of the earlier timer, which the cancel may destroy.
	 */
	template <class Callable>
	std::error_code arm(const queue &on, timerhub_spec spec, Callable &&callable)
	{
		using stored = std::decay_t<Callable>;

		static_assert(std::is_invocable_v<stored &> ||
		                      std::is_invocable_v<stored &, expiry>,
		              "a callable takes no argument, or a timerhub::expiry");
		detail::check_stored<stored, Callable>();
		if constexpr (is_small_v<stored>) {
			const stored copy(std::forward<Callable>(callable));

			spec.data = detail::pack(copy);
			spec.fn = detail::call_small<stored>;
			const withdrawn before(*this);

			return detail::is_callable(copy) ? begin(on, spec, nullptr)
			                                 : error(-EINVAL);
		} else {
			auto *const home = new (std::nothrow)
				detail::block_of<stored>(std::forward<Callable>(callable));

			spec.ptr = home;
			spec.fn = detail::call_block<stored>;
			const withdrawn before(*this);

			return home ? begin(on, spec, home) : error(-ENOMEM);
		}
	}

	/*
	 * Arms the timer in the hub. Its callback can run on another thread before timerhub_arm()
	 * returns, and may read hub_, block_ and handle_. So hub_ and block_ are set before the
	 * call, and timerhub_arm() sets handle_ before the timer can expire.
	 */
	std::error_code begin(const queue &on, const timerhub_spec &spec,
	                      detail::block *home) noexcept
	{
		hub_ = timerhub_queue_hub(on.native());
		block_ = home;
		const int result = spec.slack_ns <= detail::out_of_range / 2
		                           ? timerhub_arm(on.native(), &spec, &handle_)
		                           : -ERANGE;

		if (result < 0 && home)
			home->leave();
		return error(result);
	}

	std::error_code rearm(std::uint64_t expires_ns, std::uint32_t flags,
	                      bool *ret_idled) const noexcept
	{
		const int result =
			handle_ ? timerhub_rearm(hub_, handle_, expires_ns, flags) : -ENOENT;

		if (result >= 0 && ret_idled)
			*ret_idled = result > 0;
		return error(result);
	}

	/*
	 * The timer's handle. If it is 0, the timer is not armed, and the other members mean
	 * nothing.
	 */
	timerhub_timer handle_ = 0;
	timerhub *hub_ = nullptr; /* the hub of the timer's queue */
	/* The block on the heap that holds the callable, or NULL if the callable is small. */
	detail::block *block_ = nullptr;
};

/*
 * The timeouts of one event loop. It owns a struct timerhub_loop, and closes it when it is
 * destroyed. Timeouts expire only inside turn(), so call that in each round of the event loop,
 * right before the program blocks. If a loop is moved to another object, its timeouts belong to
 * that object from then on.
 *
 * A loop belongs to the thread that first adds a timeout, turns, settles or advances, or to the one
 * that called adopt() last. Other threads may only call queue(). If the loop was opened with
 * TIMERHUB_LOOP_LOCKED, any thread may use it while it holds a lock of the program.
 */
class loop
{
      public:
	loop() noexcept = default;

	loop(loop &&other) noexcept
	    : loop_(std::exchange(other.loop_, nullptr)), queue_(std::move(other.queue_))
	{
	}

	loop &operator=(loop &&other) noexcept
	{
		if (this != &other) {
			close();
			loop_ = std::exchange(other.loop_, nullptr);
			queue_.queue_ = std::exchange(other.queue_.queue_, nullptr);
		}
		return *this;
	}

	~loop()
	{
		close();
	}

	/*
	 * Opens the loop without a hub, by timerhub_loop_open(). config.size may be 0. Returns
	 * EBUSY if the loop is open already.
	 */
	[[nodiscard]] std::error_code open(timerhub_loop_config config = {}) noexcept
	{
		return open_on(nullptr, config);
	}

	/*
	 * Opens the loop on a hub, and lets it use the hub's clock. config.size may be 0. Returns
	 * EBUSY if the loop is open already, and EINVAL if the hub is not open.
	 */
	[[nodiscard]] std::error_code open(const hub &of, timerhub_loop_config config = {}) noexcept
	{
		return of.native() ? open_on(of.native(), config) : error(-EINVAL);
	}

	/*
	 * Closes the loop and removes its timeouts, whose objects may be destroyed afterwards.
	 * Close a loop before its hub. The callable of a timeout may close both, but a callable of
	 * the loop's queue must not close the hub. Does nothing if the loop is not open.
	 */
	void close() noexcept
	{
		queue_.queue_ = nullptr; /* timerhub_loop_close() closes the queue */
		timerhub_loop_close(std::exchange(loop_, nullptr));
	}

	/*
	 * Returns a descriptor that is readable when turn() has something to do, or a negative
	 * errno.
	 */
	int fd() const noexcept
	{
		return timerhub_loop_fd(loop_);
	}

	/*
	 * Returns how long the program may block: 0 if it must not block at all,
	 * clock::duration::max() if there is no limit.
	 */
	clock::duration timeout() const noexcept
	{
		return detail::from_ns(timerhub_loop_timeout(loop_));
	}

	/*
	 * Calls the callables of the timers on the loop's queue and of the timeouts that are due.
	 * In *ret_count, which may be NULL, it stores how many it has called. If a callable throws
	 * an exception, the exception leaves turn(), and the next turn goes on with the next
	 * callable.
	 */
	std::error_code turn(unsigned *ret_count = nullptr) const
	{
		const int result = timerhub_loop_turn(loop_);

		if (result >= 0 && ret_count)
			*ret_count = static_cast<unsigned>(result);
		return error(result);
	}

	/*
	 * Returns how long poll() or epoll_wait() may block, in ms, rounded up; -1 means without
	 * limit.
	 */
	int timeout_ms() const noexcept
	{
		return timerhub_loop_timeout_ms(loop_);
	}

	/*
	 * Prepares the loop for the program's wait, and calls no callable. It is for programs that
	 * call turn() after their wait. In *ret_block, which may be NULL, it stores how long the
	 * program may block, as timeout() returns it.
	 */
	std::error_code settle(clock::duration *ret_block = nullptr) const noexcept
	{
		std::uint64_t block_ns;
		const int result = timerhub_loop_settle(loop_, &block_ns);

		if (result == 0 && ret_block)
			*ret_block = detail::from_ns(block_ns);
		return error(result);
	}

	/* Sets the time of a loop that was opened with TIMERHUB_LOOP_MANUAL. */
	std::error_code advance(deadline now) const noexcept
	{
		return error(now.ns() <= static_cast<std::uint64_t>(clock::duration::max().count())
		                     ? timerhub_loop_advance(loop_, now.ns())
		                     : -ERANGE);
	}

	/*
	 * Gives the loop, with its timeouts, to the calling thread. In a forked child it makes the
	 * child's copy of a loop usable, if the loop has no hub.
	 */
	std::error_code adopt() const noexcept
	{
		return error(timerhub_loop_adopt(loop_));
	}

	/*
	 * Lists functions whose callbacks were slow, as timerhub_loop_slow() does: stores up to
	 * `max` of them in `ret`, and in ret_count how many it has stored.
	 */
	std::error_code slow(timerhub_slow_callback *ret, unsigned max,
	                     unsigned &ret_count) const noexcept
	{
		return counted(timerhub_loop_slow(loop_, ret, max), &ret_count);
	}

	/* Stores the loop's counters in ret_stats, as timerhub_loop_stats() does. */
	std::error_code stats(struct timerhub_loop_stats &ret_stats) const noexcept
	{
		return error(timerhub_loop_stats(loop_, &ret_stats));
	}

	/*
	 * Returns the time at which the loop last read its clock. In the handler of a socket that
	 * is the time before the wait. So if a handler uses now() or timeout::set_at(), call
	 * update() right after the wait.
	 */
	time_point now() const noexcept
	{
		return time_point(detail::from_ns(timerhub_loop_now(loop_)));
	}

	/*
	 * Reads the loop's clock and returns the time, which now() also returns until the next
	 * reading.
	 */
	time_point update() const noexcept
	{
		return time_point(detail::from_ns(timerhub_loop_update(loop_)));
	}

	/*
	 * Returns the deadline for which the running callable of a timeout was called, or
	 * time_point::max() outside such a callable.
	 */
	time_point due() const noexcept
	{
		return time_point(detail::from_ns(timerhub_loop_due(loop_)));
	}

	/*
	 * Returns the queue on which any thread can arm timers for this loop; turn() calls their
	 * callables. Do nothing else with the queue, because the loop dispatches and closes it. If
	 * the loop has no hub, the queue is not open.
	 */
	const timerhub_cpp::queue &queue() const noexcept
	{
		return queue_;
	}

	/*
	 * Returns the C object for the calls of timerhub_loop.h, or nullptr if the loop is not
	 * open.
	 */
	timerhub_loop *native() const noexcept
	{
		return loop_;
	}

      private:
	std::error_code open_on(timerhub *hub, timerhub_loop_config config) noexcept
	{
		if (loop_)
			return error(-EBUSY);
		if (config.size == 0)
			config.size = sizeof(config);
		const int result = timerhub_loop_open(&loop_, hub, &config);

		queue_.queue_ = timerhub_loop_queue(loop_);
		return error(result);
	}

	timerhub_loop *loop_ = nullptr;
	/*
	 * The loop's queue. timerhub_loop_close() closes it, and not the destructor of this object.
	 */
	timerhub_cpp::queue queue_;
};

namespace detail
{

/*
 * Converts a time for the calls of a loop. Loops would accept times above 2^63 ns, so these become
 * UINT64_MAX, for which they return -ERANGE.
 */
constexpr std::uint64_t of_loop(std::uint64_t ns) noexcept
{
	return ns <= std::uint64_t{ 1 } << 63 ? ns : UINT64_MAX;
}

/*
 * The part that all timeout types share. It is derived from the C struct, so that a callback, which
 * gets a pointer to the struct, can cast it to the object.
 */
class timeout_base : protected timerhub_timeout
{
      public:
	timeout_base(const timeout_base &) = delete;
	timeout_base &operator=(const timeout_base &) = delete;

	/*
	 * Sets the timeout to expire in `after`. If it is set already, it is moved. Its own
	 * callable may call this too. Returns EINVAL if the timeout is not added, EPERM on a thread
	 * other than the loop's, or ERANGE.
	 */
	std::error_code set(delay after) noexcept
	{
		return error(timerhub_timeout_set(loop_, this, of_loop(after.ns())));
	}

	/*
	 * Sets the timeout to expire at a point on the loop's clock. If it is set already, it is
	 * moved. Returns EINVAL if the timeout is not added, EPERM on a thread other than the
	 * loop's, or ERANGE.
	 */
	std::error_code set_at(timerhub_cpp::deadline at) noexcept
	{
		return error(timerhub_timeout_set_at(loop_, this, of_loop(at.ns())));
	}

	/*
	 * Stops the timeout, so that it does not expire. It stays added. *ret_was_set, which may be
	 * NULL, tells whether it was set.
	 */
	std::error_code stop(bool *ret_was_set = nullptr) noexcept
	{
		const int result = timerhub_timeout_stop(loop_, this);

		if (result >= 0 && ret_was_set)
			*ret_was_set = result > 0;
		return error(result);
	}

	/* Returns true if the timeout is set. When its callable is called, it no longer is. */
	bool is_set() const noexcept
	{
		return timerhub_timeout_is_set(this) > 0;
	}

	/* Returns the timeout's deadline, or time_point::max() if it is not set. */
	time_point expires() const noexcept
	{
		return time_point(from_ns(timerhub_timeout_deadline(this)));
	}

	/* Returns true if the timeout is added to a loop. Closing the loop removes it. */
	bool is_added() const noexcept
	{
		return owner != 0;
	}

	/*
	 * Returns the C object for the calls of timerhub_loop.h. Do not add or remove it by those.
	 */
	timerhub_timeout *native() noexcept
	{
		return this;
	}

      protected:
	timeout_base() noexcept : timerhub_timeout()
	{
	}

	~timeout_base() = default;

	std::error_code add_to(const loop &on, timerhub_timeout_fn *fn) noexcept
	{
		loop_ = on.native();
		return error(timerhub_timeout_add(loop_, this, fn));
	}

	/*
	 * Removes the timeout in a destructor, unless its loop was closed before. If it cannot be
	 * removed, this ends the program, because the loop would use freed memory later.
	 */
	void remove_for_good() noexcept
	{
		if (is_added() && timerhub_timeout_remove(loop_, this) < 0)
			std::terminate();
	}

	timerhub_loop *loop_ = nullptr; /* the loop to which the timeout was added */
};

} // namespace detail

/*
 * A timeout of a loop, usually a member of a session or a request, with a callable that takes no
 * argument. The destructor removes the timeout from the loop. A timeout cannot be copied or moved,
 * and never allocates.
 *
 * Only the loop's thread may use and destroy it. If another thread destroys a timeout that is
 * added, the destructor calls std::terminate(), because the loop would use freed memory later. A
 * locked loop allows it to any thread, and so does a forked child that has not adopted the loop.
 *
 * timeout<> has 48 bytes and takes any small callable (see is_small_v), such as a lambda that
 * captures `this`. timeout<Callable> has room for a callable of any size.
 *
 * The callable may destroy the object that has the timeout as a member, even if the loop and the
 * hub are members of that object too. The callable itself lives until it returns.
 */
template <class Callable = void> class timeout final : public detail::timeout_base
{
	static_assert(std::is_invocable_v<Callable &>, "a callable takes no argument");
	static_assert(std::is_nothrow_move_constructible_v<Callable>,
	              "a callable is moved out while it runs, and must not throw then");

      public:
	timeout() noexcept = default;

	~timeout()
	{
		this->remove_for_good();
		drop();
	}

	/*
	 * Adds the timeout to a loop. It is not set yet. Returns EEXIST if it is added already,
	 * EAGAIN if the loop is full, EPERM on a thread other than the loop's, and EINVAL for a
	 * null function pointer or a loop that is not open. If the callable's constructor throws an
	 * exception, the exception leaves add(), and the timeout is not added.
	 */
	template <class From> [[nodiscard]] std::error_code add(const loop &on, From &&callable)
	{
		if (this->is_added())
			return error(-EEXIST);
		drop();
		callable_.emplace(std::forward<From>(callable));
		const std::error_code result =
			detail::is_callable(*callable_) ? this->add_to(on, call) : error(-EINVAL);

		if (result)
			drop();
		return result;
	}

	/*
	 * Removes the timeout from its loop and destroys the callable. If the callable is running,
	 * it is destroyed when it returns. Returns EINVAL if the timeout is not added, and EPERM on
	 * a thread other than the loop's.
	 */
	std::error_code remove() noexcept
	{
		const int result = timerhub_timeout_remove(this->loop_, this);

		if (!this->is_added())
			drop();
		return error(result);
	}

      private:
	/* Holds the callable on the stack while it runs, so that it may destroy the timeout. */
	class run
	{
	      public:
		/*
		 * This is not inlined, because gcc 14 would warn that home.running_ outlives the
		 * object it points to.
		 */
		[[gnu::noinline]] explicit run(timeout &home) noexcept
		    : callable(std::move(*home.callable_)), home_(&home)
		{
			home.callable_.reset();
			home.running_ = this;
		}

		~run()
		{
			if (!home_)
				return;
			home_->running_ = nullptr;
			home_->callable_.emplace(std::move(callable));
		}

		run(const run &) = delete;
		run &operator=(const run &) = delete;

		/*
		 * Tells the destructor not to put the callable back into the timeout, because the
		 * timeout is being destroyed or gets another callable.
		 */
		void leave() noexcept
		{
			home_ = nullptr;
		}

		Callable callable;

	      private:
		timeout *home_;
	};

	static void call(timerhub_loop *, timerhub_timeout *timeout_at)
	{
		run running(*static_cast<timeout *>(timeout_at));

		static_cast<void>(running.callable());
	}

	/*
	 * Destroys the callable. That must be the last step, because the callable's destructor may
	 * destroy the timeout.
	 */
	void drop() noexcept
	{
		if (running_)
			std::exchange(running_, nullptr)->leave();
		if (!callable_)
			return;
		[[maybe_unused]] const Callable dropped(std::move(*callable_));

		callable_.reset();
	}

	/* The callable. It is empty while the callable runs, and while the timeout is not added. */
	std::optional<Callable> callable_;
	/* The call of the callable that is running, or NULL. */
	run *running_ = nullptr;
};

template <> class timeout<void> final : public detail::timeout_base
{
      public:
	timeout() noexcept = default;

	~timeout()
	{
		remove_for_good();
	}

	/*
	 * Adds the timeout to a loop. It is not set yet. Returns EEXIST if it is added already,
	 * EAGAIN if the loop is full, EPERM on a thread other than the loop's, and EINVAL for a
	 * null function pointer or a loop that is not open.
	 */
	template <class Callable>
	[[nodiscard]] std::error_code add(const loop &on, Callable &&callable) noexcept
	{
		using stored = std::decay_t<Callable>;

		static_assert(is_small_v<stored>,
		              "the callable has more than 8 bytes, a destructor, or is mutable: "
		              "capture only `this`, or use timerhub::timeout<Callable>");
		static_assert(std::is_invocable_v<const stored &>, "a callable takes no argument");
		detail::check_stored<stored, Callable>();
		const stored copy(std::forward<Callable>(callable));

		if (is_added())
			return error(-EEXIST);
		if (!detail::is_callable(copy))
			return error(-EINVAL);
		data_ = detail::pack(copy);
		return add_to(on, call<stored>);
	}

	/*
	 * Removes the timeout from its loop. Its own callable may call this too. Returns EINVAL if
	 * the timeout is not added, and EPERM on a thread other than the loop's.
	 */
	std::error_code remove() noexcept
	{
		return error(timerhub_timeout_remove(loop_, this));
	}

      private:
	template <class Callable> static void call(timerhub_loop *, timerhub_timeout *timeout_at)
	{
		const detail::unpacked<Callable> copy(static_cast<timeout *>(timeout_at)->data_);

		static_cast<void>(copy.get()());
	}

	std::uint64_t data_ = 0; /* the bytes of the small callable */
};

#ifdef __cpp_lib_coroutine
namespace detail
{

/*
 * The awaiter of a sleep on a loop. It is derived from a timeout and lies in the frame of the
 * coroutine, so a sleep allocates nothing. If the frame is destroyed, the awaiter's destructor
 * removes the timeout.
 */
class [[nodiscard]] loop_sleep final : private timeout_base
{
      public:
	loop_sleep(const loop &on, delay after) noexcept : after_(after)
	{
		loop_ = on.native();
	}

	~loop_sleep()
	{
		remove_for_good();
	}

	bool await_ready() const noexcept
	{
		return false;
	}

	/*
	 * Begins the sleep. If the timeout cannot be set, it returns false, so that the coroutine
	 * goes on, and await_resume() returns the error.
	 */
	bool await_suspend(std::coroutine_handle<> sleeper) noexcept
	{
		sleeper_ = sleeper;
		result_ = error(timerhub_timeout_add(loop_, this, call));
		if (!result_)
			result_ = set(after_);
		return !result_;
	}

	std::error_code await_resume() const noexcept
	{
		return result_;
	}

      private:
	/*
	 * Resumes the coroutine. It touches nothing afterwards, because the coroutine may have
	 * destroyed the awaiter, the loop and the hub.
	 */
	static void call(timerhub_loop *, timerhub_timeout *timeout_at)
	{
		static_cast<loop_sleep *>(timeout_at)->sleeper_.resume();
	}

	delay after_;
	std::coroutine_handle<> sleeper_; /* the coroutine that sleeps */
	std::error_code result_;
};

/*
 * The awaiter of a sleep on a queue. Its timer is a one-shot, which has ended when the coroutine is
 * resumed. So there is something to cancel only if the coroutine is destroyed before.
 */
class [[nodiscard]] queue_sleep final
{
      public:
	queue_sleep(const queue &on, delay after) noexcept : queue_(on.native()), after_(after)
	{
	}

	~queue_sleep()
	{
		if (timer_)
			timerhub_cancel(hub_, timer_);
	}

	queue_sleep(const queue_sleep &) = delete;
	queue_sleep &operator=(const queue_sleep &) = delete;

	bool await_ready() const noexcept
	{
		return false;
	}

	/*
	 * Begins the sleep. Arming the timer must be the last step, because from then on another
	 * thread may resume the coroutine and destroy the awaiter. The function is not inlined,
	 * because otherwise the compiler could put its local variables into the frame of the
	 * coroutine, which may be gone by then.
	 */
	[[gnu::noinline]] bool await_suspend(std::coroutine_handle<> sleeper) noexcept
	{
		timerhub_spec spec{};

		spec.size = sizeof(spec);
		spec.expires_ns = after_.ns();
		spec.ptr = this;
		spec.fn = call;
		sleeper_ = sleeper;
		hub_ = timerhub_queue_hub(queue_);
		const int result = timerhub_arm(queue_, &spec, &timer_);

		if (result >= 0)
			return true;
		result_ = error(result);
		return false;
	}

	std::error_code await_resume() const noexcept
	{
		return result_;
	}

      private:
	static void call(const timerhub_event *event)
	{
		auto &self = *static_cast<queue_sleep *>(event->ptr);

		self.timer_ = 0;
		self.sleeper_.resume();
	}

	timerhub_queue *queue_;
	timerhub *hub_ = nullptr; /* the hub of the queue */
	delay after_;
	timerhub_timer timer_ = 0;        /* 0: there is no timer to cancel */
	std::coroutine_handle<> sleeper_; /* the coroutine that sleeps */
	std::error_code result_;
};

#ifdef __cpp_lib_jthread
/*
 * The awaiter of a sleep on a queue that a std::stop_token can end. A stop moves the timer to now,
 * so the coroutine is resumed by a dispatch of the queue in that case too.
 *
 * Three threads can meet here: the one that begins the sleep, one that dispatches, and one that
 * requests the stop. They agree by `state_`, which begins as `beginning`. The last step of
 * await_suspend() changes it to the timer's handle, and only then may a dispatch resume the
 * coroutine. The dispatch first changes it to `over`. If a stop at the same time makes the timer
 * expire again, that expiry finds `over`, and does nothing.
 */
class [[nodiscard]] stoppable_sleep final
{
      public:
	stoppable_sleep(const queue &on, delay after, std::stop_token &&stop) noexcept
	    : queue_(on.native()), after_(after), stop_(std::move(stop))
	{
	}

	/*
	 * Waits until another thread has left the callback. A stop that is requested from now on
	 * finds no timer that it could move.
	 */
	~stoppable_sleep()
	{
		if (timer_)
			timerhub_cancel_sync(hub_, timer_);
	}

	stoppable_sleep(const stoppable_sleep &) = delete;
	stoppable_sleep &operator=(const stoppable_sleep &) = delete;

	bool await_ready() const noexcept
	{
		return false;
	}

	/*
	 * Begins the sleep. It is not inlined, because otherwise the compiler could put its local
	 * variables into the frame of the coroutine, which another thread may destroy before this
	 * function returns.
	 */
	[[gnu::noinline]] bool await_suspend(std::coroutine_handle<> sleeper) noexcept
	{
		timerhub_spec spec{};
		timerhub_timer before = beginning;

		spec.size = sizeof(spec);
		spec.flags = TIMERHUB_KEEP; /* so that a stop, and call(), can always move it */
		spec.expires_ns = after_.ns();
		spec.ptr = this;
		spec.fn = call;
		sleeper_ = sleeper;
		hub_ = timerhub_queue_hub(queue_);
		on_stop_.emplace(stop_, end{ *this });
		result_ = error(timerhub_arm(queue_, &spec, &timer_));
		return !result_ &&
		       state_.compare_exchange_strong(before, timer_, std::memory_order_acq_rel);
	}

	std::error_code await_resume() const noexcept
	{
		return stop_.stop_requested() ? error(-ECANCELED) : result_;
	}

      private:
	/* These values of state_ are the handle of no timer. */
	static constexpr timerhub_timer beginning = 0;
	static constexpr timerhub_timer over = UINT64_MAX;

	/* The function that a request to stop calls. */
	struct end {
		stoppable_sleep &self;

		/*
		 * Ends the sleep by moving its timer to now. If await_suspend() has not finished
		 * yet, this stores `over` instead, and await_suspend() then does not sleep. If the
		 * sleep is over, it does nothing.
		 */
		void operator()() const noexcept
		{
			timerhub_timer before = beginning;

			if (!self.state_.compare_exchange_strong(before, over,
			                                         std::memory_order_acq_rel) &&
			    before != over)
				timerhub_rearm(self.hub_, before, 0, 0);
		}
	};

	/*
	 * Resumes the coroutine. If await_suspend() has not returned yet, the coroutine must not be
	 * resumed, so the timer is made to expire once more.
	 */
	static void call(const timerhub_event *event)
	{
		auto &self = *static_cast<stoppable_sleep *>(event->ptr);
		timerhub_timer before = event->timer;

		if (self.state_.compare_exchange_strong(before, over, std::memory_order_acq_rel))
			self.sleeper_.resume();
		else if (before == beginning)
			timerhub_rearm(self.hub_, event->timer, 0, 0);
	}

	timerhub_queue *queue_;
	timerhub *hub_ = nullptr; /* the hub of the queue */
	delay after_;
	std::stop_token stop_;
	timerhub_timer timer_ = 0;        /* 0: no timer was armed */
	std::coroutine_handle<> sleeper_; /* the coroutine that sleeps */
	std::error_code result_;
	std::atomic<timerhub_timer> state_{ beginning }; /* beginning, timer_, or over */
	/*
	 * This is the last member, so that it is destroyed first. Its destructor waits for a stop
	 * that is using the other members.
	 */
	std::optional<std::stop_callback<end>> on_stop_;
};
#endif

} // namespace detail

/*
 * Lets a coroutine sleep: `co_await` on the result suspends it, and a turn of the loop resumes it
 * when `after` has passed. If `after` is 0, that is the next turn. While the coroutine sleeps, the
 * loop's thread may destroy it, which cancels the sleep. Nothing is allocated. Await a sleep only
 * once.
 *
 * co_await returns an empty error after the sleep. If it could not sleep, it returns the error of
 * timerhub_timeout_add() or timerhub_timeout_set() at once: EPERM on a thread other than the
 * loop's, EAGAIN if the loop is full, ERANGE, or EINVAL if the loop is not open. If the loop is
 * closed during the sleep, the coroutine is never resumed, and may be destroyed.
 */
inline detail::loop_sleep sleep_for(const loop &on, delay after) noexcept
{
	return detail::loop_sleep(on, after);
}

/*
 * Lets a coroutine sleep: `co_await` on the result suspends it, and a thread that dispatches the
 * queue resumes it when `after` has passed. Any thread may begin a sleep. Nothing is allocated.
 * Await a sleep only once.
 *
 * While the coroutine sleeps, destroying it cancels the sleep. That is allowed only if no other
 * thread can resume it meanwhile: on the one thread that dispatches, or while none does. Otherwise
 * end the sleep by a std::stop_token. Destroy the coroutine before the hub is closed. If the queue
 * is closed during the sleep, the coroutine is never resumed.
 *
 * co_await returns an empty error after the sleep. If it could not sleep, it returns the error of
 * timerhub_arm() at once: EAGAIN, ERANGE, EOWNERDEAD, or EINVAL if the queue is not open.
 */
inline detail::queue_sleep sleep_for(const queue &on, delay after) noexcept
{
	return detail::queue_sleep(on, after);
}

#ifdef __cpp_lib_jthread
/*
 * Lets a coroutine sleep like sleep_for() without a token, until `after` has passed or any thread
 * requests a stop. In both cases a thread that dispatches the queue resumes it. After a stop,
 * co_await returns ECANCELED. If the stop was requested before the sleep begins, the coroutine does
 * not sleep, and co_await returns ECANCELED at once.
 */
inline detail::stoppable_sleep sleep_for(const queue &on, delay after,
                                         std::stop_token stop) noexcept
{
	return detail::stoppable_sleep(on, after, std::move(stop));
}
#endif
#endif

} // namespace timerhub_cpp

/*
 * The names that programs use, such as timerhub::hub. They are members of a struct and not of a
 * namespace, because timerhub.h has a struct of this name. The program never makes an object of it,
 * but gets pointers to it from calls such as timerhub_open().
 */
struct timerhub {
	using clock = timerhub_cpp::clock;
	using time_point = timerhub_cpp::time_point;
	using delay = timerhub_cpp::delay;
	using deadline = timerhub_cpp::deadline;
	using expiry = timerhub_cpp::expiry;
	using hub = timerhub_cpp::hub;
	using queue = timerhub_cpp::queue;
	using timer = timerhub_cpp::timer;
	using loop = timerhub_cpp::loop;
	using hub_stats = timerhub_cpp::hub_stats;
	using loop_stats = timerhub_cpp::loop_stats;
	using relay_stats = timerhub_cpp::relay_stats;
	using store_stats = timerhub_cpp::store_stats;
	using store_put = timerhub_cpp::store_put;

	template <class Callable = void> using timeout = timerhub_cpp::timeout<Callable>;

	template <class Callable>
	static constexpr bool is_small_v = timerhub_cpp::is_small_v<Callable>;

	/* Turns the result of a C call into an error, which is empty if the call has not failed. */
	static std::error_code error(int result) noexcept
	{
		return timerhub_cpp::error(result);
	}

#ifdef __cpp_lib_coroutine
	/*
	 * Returns what a coroutine awaits to sleep on a loop or on a queue. A std::stop_token can
	 * end a sleep on a queue. timerhub_cpp::sleep_for() says more.
	 */
	static timerhub_cpp::detail::loop_sleep sleep_for(const loop &on,
	                                                  timerhub_cpp::delay after) noexcept
	{
		return timerhub_cpp::sleep_for(on, after);
	}

	static timerhub_cpp::detail::queue_sleep sleep_for(const queue &on,
	                                                   timerhub_cpp::delay after) noexcept
	{
		return timerhub_cpp::sleep_for(on, after);
	}

#ifdef __cpp_lib_jthread
	static timerhub_cpp::detail::stoppable_sleep sleep_for(const queue &on,
	                                                       timerhub_cpp::delay after,
	                                                       std::stop_token stop) noexcept
	{
		return timerhub_cpp::sleep_for(on, after, std::move(stop));
	}
#endif
#endif

	timerhub() = delete;
	~timerhub() = delete;
};

#endif
