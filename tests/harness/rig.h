/* SPDX-License-Identifier: MIT */
/*
 * Opens hubs for test programs, through the public header only, with the sleeper that the
 * environment names.
 *
 * TIMERHUB_TEST_SLEEPER      sleeper of every hub: uring, poll or auto (the default)
 * TIMERHUB_TEST_OBSERVABLE   if this variable is set, every hub is observable
 */
#ifndef TESTS_RIG_H
#define TESTS_RIG_H

#include <timerhub.h>

#include <errno.h>

#include "harness.h"
#include "process_usage.h"
#include "uring_allowed.h"

#define SPEC(...) ((struct timerhub_spec){ .size = sizeof(struct timerhub_spec), __VA_ARGS__ })

/*
 * Calls tests_begin(). If the sleeper that the environment names is not available, rigs_begin()
 * ends the program as skipped.
 */
void rigs_begin(const char *name, int argc, char **argv);

enum timerhub_sleeper sleeper_asked(void);

/* A hub with one queue, as the functions of rig.h open it. */
struct rig {
	struct timerhub *hub;
	struct timerhub_queue *queue;
};

/*
 * Calls timerhub_open(). If the machine grants no io_uring for the hub, hub_open() skips the test.
 */
int hub_open(struct timerhub **ret_hub, const struct timerhub_config *config);
struct rig rig_open(uint32_t timers_max);
/* rig_open_config() sets the config's size and sleeper itself */
struct rig rig_open_config(struct timerhub_config config);
struct rig rig_manual(uint32_t timers_max);
void rig_close(struct rig *rig);

struct timerhub_queue *queue_open(struct timerhub *hub);
timerhub_timer arm(struct timerhub_queue *queue, struct timerhub_spec spec);
timerhub_timer arm_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data);
timerhub_timer arm_at(struct timerhub_queue *queue, uint64_t expires_ns, uint64_t data);

/* Advances a manual hub to `now_ns`, and returns the time that the hub announces. */
uint64_t advance(struct timerhub *hub, uint64_t now_ns);
/*
 * Arms `count` timers of a manual hub. Then advances the hub by a microsecond, and all these timers
 * expire.
 */
void arm_and_expire(struct rig *rig, uint64_t *now_ns, unsigned count);
/* Takes one event of the queue, which must come within the time ARRIVES. */
struct timerhub_event take_one(struct timerhub_queue *queue);
/* Drains at most `max` events, 64 or fewer. Returns the result of timerhub_drain(). */
int take_up_to(struct timerhub_queue *queue, unsigned max);
/* Drains all events of the queue, and returns the number of events. */
unsigned drain_all(struct timerhub_queue *queue);
void expect_empty(struct timerhub_queue *queue);

/*
 * Each of these functions fails the test. no_callback() is for a timer that must not expire.
 * no_timer() is for a walk that must show no timer.
 */
void no_callback(const struct timerhub_event *event);
int no_timer(const struct timerhub_event *timer, uint64_t interval_ns, void *context);

struct timerhub_stats stats_of(struct timerhub *hub);
/*
 * Waits until the owner has no work left and sleeps. If the process has several owner threads, all
 * that have the default name must sleep.
 */
void owner_settles(struct timerhub *hub);
/*
 * Waits until the owner sleeps, and until it has stayed asleep for a while. Returns the counters of
 * the hub.
 */
struct timerhub_stats stats_settled(struct timerhub *hub);

#endif
