/* SPDX-License-Identifier: MIT */
/* Implements access.h, and gives a loop to another thread or to a forked child. */
#include "loop/access.h"

int loop_check_stranger(struct timerhub_loop *loop)
{
	uint64_t refused;

	if (loop->is_locked || !loop_alive(loop))
		return 0;
	/* Relaxed: the number is only shown. Threads that are refused at once may store it late. */
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
 * Makes a child's copy of a loop its own. The timerfd and the board are shared with the parent:
 * this call makes a new board, and the next timerhub_loop_fd() a new timerfd. A turn that another
 * thread of the parent was in goes on there only, so here it has ended.
 */
static int loop_adopt_copy(struct timerhub_loop *loop)
{
	int result;

	if (loop->wake.hub) /* its owner thread is in the parent */
		return -EOWNERDEAD;
	if (loop->front.turning && loop->turn_thread == thread_self())
		return -EBUSY;
	result = loop_renew_board(loop);
	if (result < 0)
		return result;
	fork_check_renew(&loop->fork_check);
	wake_leave_fd(&loop->wake);
	loop->front.turning = 0;
	loop_bind(loop);
	return timerhub_loop_settle(loop, NULL); /* schedules what an interrupted turn has left */
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
