/* SPDX-License-Identifier: MIT */
/* The coroutine type of the tests of sleep_for(). */
#ifndef TESTS_CPP_COROUTINE_HPP
#define TESTS_CPP_COROUTINE_HPP

#include <coroutine>
#include <exception>
#include <utility>

/*
 * A coroutine that begins at once, and whose frame lives until the task is destroyed or destroy()
 * is called. An exception leaves the call that resumed it.
 */
class task
{
      public:
	struct promise_type {
		task get_return_object()
		{
			return task(std::coroutine_handle<promise_type>::from_promise(*this));
		}

		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}

		std::suspend_always final_suspend() noexcept
		{
			return {};
		}

		void return_void()
		{
		}

		void unhandled_exception()
		{
#ifdef __cpp_exceptions
			throw;
#endif
		}
	};

	explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame)
	{
	}

	task(task &&other) noexcept : frame_(std::exchange(other.frame_, nullptr))
	{
	}

	task &operator=(task &&other) = delete;

	~task()
	{
		destroy();
	}

	void destroy() noexcept
	{
		if (frame_)
			std::exchange(frame_, nullptr).destroy();
	}

	bool done() const noexcept
	{
		return frame_.done();
	}

      private:
	std::coroutine_handle<promise_type> frame_;
};

/* A coroutine that nobody holds: its frame ends with it. */
struct detached {
	struct promise_type {
		detached get_return_object()
		{
			return {};
		}

		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}

		std::suspend_never final_suspend() noexcept
		{
			return {};
		}

		void return_void()
		{
		}

		[[noreturn]] void unhandled_exception()
		{
			std::terminate();
		}
	};
};

#endif
