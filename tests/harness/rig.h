/* SPDX-License-Identifier: MIT */
/*
 * Hubs for test programs, through the public header only, with the sleeper that the environment
 * names.
 *
 * TIMERHUB_TEST_SLEEPER     uring, poll or auto (default): the sleeper of every hub opened here
 * If TIMERHUB_TEST_OBSERVABLE is set, every hub opened here is observable.
 */
#ifndef TESTS_RIG_H
#define TESTS_RIG_H

#include <timerhub.h>

#include <errno.h>

#include "harness.h"
#include "process.h"
#include "uring_allowed.h"

#define SPEC(...) ((struct timerhub_spec){ .size = sizeof(struct timerhub_spec), __VA_ARGS__ })

/* Calls tests_begin(). If the requested sleeper is not available, the program ends as skipped. */
void rigs_begin(const char *name, int argc, char **argv);

enum timerhub_sleeper sleeper_asked(void);

/* A hub with one queue. */
struct rig {
	struct timerhub *hub;
	struct timerhub_queue *queue;
};

/* Calls timerhub_open(). If the machine has no ring left for this hub, the test is skipped. */
int hub_open(struct timerhub **ret_hub, const struct timerhub_config *config);
struct rig rig_open(uint32_t timers_max);
struct rig rig_open_config(struct timerhub_config config); /* sets size and sleeper itself */
struct rig rig_manual(uint32_t timers_max);
void rig_close(struct rig *rig);

struct timerhub_queue *queue_open(struct timerhub *hub);
timerhub_timer arm(struct timerhub_queue *queue, struct timerhub_spec spec);
timerhub_timer arm_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data);
timerhub_timer arm_at(struct timerhub_queue *queue, uint64_t expires_ns, uint64_t data);

/* Advances a manual hub and returns its next instant. */
uint64_t advance(struct timerhub *hub, uint64_t now_ns);
/* Arms `count` timers of a manual hub, and advances by a microsecond, at which all have expired. */
void arm_and_expire(struct rig *rig, uint64_t *now_ns, unsigned count);
/* Takes one event, which must come within ARRIVES. */
struct timerhub_event take_one(struct timerhub_queue *queue);
/* Drains at most `max` events, 64 or fewer, and returns the result. */
int take_up_to(struct timerhub_queue *queue, unsigned max);
/* Drains all events, and returns their number. */
unsigned drain_all(struct timerhub_queue *queue);
void expect_empty(struct timerhub_queue *queue);

/*
 * Both functions fail the test when they are called. The first is for a timer whose callback must
 * not run, the second for a walk that must show no timer.
 */
void no_callback(const struct timerhub_event *event);
int no_timer(const struct timerhub_event *timer, uint64_t interval_ns, void *context);

struct timerhub_stats stats_of(struct timerhub *hub);
/*
 * Waits until the owner has no work left and sleeps. Every owner of the process must come to rest,
 * except owners with other names.
 */
void owner_settles(struct timerhub *hub);
/* Waits until the owner has settled and stays asleep for a while. Returns the counters. */
struct timerhub_stats stats_settled(struct timerhub *hub);

#endif
