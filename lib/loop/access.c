/* SPDX-License-Identifier: MIT */
/*
 * Decides whether the calling thread may use a loop (access.h). timerhub_loop_adopt() is here too.
 * By this call another thread, or a forked child, makes a loop its own.
 */
#include "loop/access.h"

#include "base/thread.h"

void loop_show_thread(struct timerhub_loop *loop)
{

	u32_store_release(&loop->cell->clock, thread_clock());
}

int loop_check_stranger(struct timerhub_loop *loop)
{
	uint64_t refused;

	if (loop->is_locked || !loop_alive(loop))
		return 0;
	/*
	 * Relaxed is enough, because the number is only shown. If two threads are refused at once,
	 * the board may show the smaller number for a while.
	 */
	refused = u64_fetch_add_relaxed(&loop->refused, 1) + 1;
	if (loop->board)
		u64_store_relaxed(&loop->board->loop.refused, refused);
	return -EPERM;
}

int loop_check_alive(struct timerhub_loop *loop)
{
	int result = loop ? fork_check_result(&loop->fork_check) : -EINVAL;

	return result < 0 ? result : loop_check(loop);
}

int loop_check_idle(struct timerhub_loop *loop)
{
	int result = loop_check_alive(loop);

	return result == 0 && loop->front.turning ? -EBUSY : result;
}

/*
 * Adopts a forked child's copy of a loop, which shares its timerfd and its counter board with the
 * parent. The copy gets a new board now, and a timerfd in the next timerhub_loop_fd().
 */
static int loop_adopt_copy(struct timerhub_loop *loop)
{
	int result;

	if (loop->wake.hub) /* the hub's owner thread exists only in the parent */
		return -EOWNERDEAD;
	if (loop->front.turning && loop->turn_thread == thread_self())
		return -EBUSY;
	result = loop_renew_board(loop);
	if (result < 0)
		return result;
	fork_check_renew(&loop->fork_check);
	wake_leave_fd(&loop->wake);
	/*
	 * The thread that was inside timerhub_loop_turn() at the fork does not exist in this child.
	 */
	loop->front.turning = 0;
	loop->due_ns = UINT64_MAX;
	loop_bind(loop);
	return timerhub_loop_settle(loop, NULL); /* schedule what such a turn had not yet */
}

int timerhub_loop_adopt(struct timerhub_loop *loop)
{
	if (!loop)
		return -EINVAL;
	if (!loop_alive(loop))
		return loop_adopt_copy(loop);
	if (loop->is_locked)
		return 0;
	if (loop->front.turning)
		return -EBUSY;
	loop_bind(loop);
	return 0;
}
