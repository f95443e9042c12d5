/* SPDX-License-Identifier: MIT */
/*
 * Opens hubs for test programs, through the public header only, with the sleeper that the
 * environment names.
 *
 * TIMERHUB_TEST_SLEEPER      sleeper of every hub: uring, poll or auto (the default), or
 *                            older_uring: uring on a ring like those of Linux before 6.15. If
 *                            the machine refuses it, the program ends as skipped.
 * TIMERHUB_TEST_OBSERVABLE   if this variable is set, every hub is observable
 */
#ifndef TESTS_RIG_H
#define TESTS_RIG_H

#include <timerhub_loop.h>

#include <errno.h>

#include "harness.h"
#include "process_usage.h"
#include "uring_allowed.h"

#define SPEC(...) ((struct timerhub_spec){ .size = sizeof(struct timerhub_spec), __VA_ARGS__ })

enum timerhub_sleeper sleeper_asked(void);

struct rig {
	struct timerhub *hub;
	struct timerhub_queue *queue;
};

/*
 * Opens a hub with the sleeper that the environment names. Skips the test if the machine does not
 * permit io_uring.
 */
int hub_open(struct timerhub **ret_hub, const struct timerhub_config *config);
struct rig rig_open(uint32_t timers_max);
/* Opens a hub and a queue. The config's size and sleeper are set here. */
struct rig rig_open_config(struct timerhub_config config);
struct rig rig_manual(uint32_t timers_max);
void rig_close(struct rig *rig);

struct timerhub_queue *queue_open(struct timerhub *hub);
timerhub_timer arm(struct timerhub_queue *queue, struct timerhub_spec spec);
timerhub_timer arm_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data);
timerhub_timer arm_at(struct timerhub_queue *queue, uint64_t expires_ns, uint64_t data);

/* Advances a manual hub, and returns the time at which it wants to be advanced again. */
uint64_t advance(struct timerhub *hub, uint64_t now_ns);
/* Arms `count` timers on a manual hub, and advances it by 1 us, so that all of them expire. */
void arm_and_expire(struct rig *rig, uint64_t *now_ns, unsigned count);
/* Takes one event, which must come within ARRIVES. */
struct timerhub_event take_one(struct timerhub_queue *queue);
/* Takes up to `max` events and returns how many. `max` is at most 64. */
int take_up_to(struct timerhub_queue *queue, unsigned max);
/* Takes all events and returns how many they were. */
unsigned drain_all(struct timerhub_queue *queue);
void expect_empty(struct timerhub_queue *queue);

/* Callbacks that do nothing. */
void ignore_event(const struct timerhub_event *event);
void ignore_timeout(struct timerhub_loop *loop, struct timerhub_timeout *timeout);
/* A callback that fails the test if it is called. */
void no_callback(const struct timerhub_event *event);
int no_timer(const struct timerhub_event *timer, uint64_t interval_ns, void *context);

struct timerhub_stats stats_of(struct timerhub *hub);
/*
 * Waits until the owner of the hub sleeps and has no work. If other hubs are open whose owners have
 * the default name, those must sleep too.
 */
void owner_settles(struct timerhub *hub);
/* Waits like owner_settles(), but for a longer rest, and returns the statistics after it. */
struct timerhub_stats stats_settled(struct timerhub *hub);

#endif
