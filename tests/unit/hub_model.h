/* SPDX-License-Identifier: MIT */
/*
 * A model of a whole manual hub: an array of timers, searched from end to end. Each function makes
 * a call and compares its effect; test_hub_model.c chooses at random.
 */
#ifndef TESTS_HUB_MODEL_H
#define TESTS_HUB_MODEL_H

#include <timerhub.h>

#include "harness.h"

#define MODEL_TIMERS_MAX 64
#define MODEL_QUEUES 2
#define MODEL_STALE 16
#define MODEL_NEVER UINT64_MAX
#define MODEL_LAST_NS ((UINT64_C(1) << 63) - 128) /* the latest deadline that a hub accepts */
#define MODEL_NOW_MAX_NS (UINT64_C(1) << 62)      /* the largest clock value that the model uses */

/* MODEL_IDLE is the state of a kept timer after its delivery. */
enum model_state { MODEL_GONE, MODEL_ARMED, MODEL_PENDING, MODEL_IDLE };

struct model_timer {
	enum model_state state;
	timerhub_timer handle;
	uint64_t data, interval_ns, slack_ns;
	uint64_t deadline_ns; /* the deadline: MODEL_NEVER, or at most MODEL_LAST_NS */
	unsigned queue;
	/* if MODEL_PENDING: number of the advance at which the timer expired */
	uint64_t expired_by;
	bool has_fn;
	bool kept;
	/* re-armed before delivery, so its event may keep the older place */
	bool loose;
};

struct model {
	struct timerhub *hub;
	struct timerhub_queue *queues[MODEL_QUEUES];
	/* true if the caller has read the queue's fd since the last drain */
	bool fd_was_read[MODEL_QUEUES];
	bool stopped[MODEL_QUEUES];
	struct model_timer timers[MODEL_TIMERS_MAX];
	unsigned capacity;
	uint64_t advances;
	/* of the last advance, and what it announced */
	uint64_t now_ns, next_ns;
	/* whether the hub's wake fd must be readable, and whether it may be */
	bool must_wake, may_wake;
	uint64_t serial;                   /* data of the timer armed last */
	timerhub_timer stale[MODEL_STALE]; /* handles of the timers that ended last */
	unsigned stale_count;              /* number of handles ever written to `stale` */
	uint64_t armed, cancelled, delivered, overruns;
};

/* The call by which a caller takes events from a queue. */
enum model_taking { MODEL_DRAIN, MODEL_WAIT, MODEL_DISPATCH };

/* `capacity` is from 1 to MODEL_TIMERS_MAX; `flags` beside TIMERHUB_MANUAL. */
void model_open(struct model *model, unsigned capacity, uint32_t flags);
void model_close(struct model *model);

/* With size, data and fn; the caller fills in the times. */
struct timerhub_spec model_spec(struct model *model);
void model_arm(struct model *model, unsigned queue, const struct timerhub_spec *spec);
void model_after(struct model *model, unsigned queue, uint64_t delay_ns);
void model_call(struct model *model, unsigned queue, uint64_t delay_ns);
/* The largest `count` that model_arm_many() accepts. */
#define MODEL_BATCH 8
void model_arm_many(struct model *model, unsigned queue, const struct timerhub_spec *specs,
                    unsigned count);

/* In the next four functions, a handle may be live, stale or invalid. */
void model_rearm(struct model *model, timerhub_timer handle, uint64_t expires_ns, uint32_t flags);
void model_rearm_many(struct model *model, const timerhub_timer *handles, unsigned count,
                      uint64_t expires_ns, uint32_t flags);
void model_cancel(struct model *model, timerhub_timer handle);
void model_cancel_many(struct model *model, const timerhub_timer *handles, unsigned count);

/* No wait on it blocks until it is opened again. */
void model_stop_queue(struct model *model, unsigned queue);
/* Closes the queue number `queue`, and opens a new queue under this number. */
void model_reopen_queue(struct model *model, unsigned queue);

/* The past is refused; beyond MODEL_NOW_MAX_NS nothing happens. */
void model_advance(struct model *model, uint64_t to_ns);
/* Law 8: `steps` advances, each to the announced time, where a timer must expire or have moved. */
void model_follow(struct model *model, unsigned steps);

/* Reads the queue's fd, as a caller may do at any time. */
void model_read_fd(struct model *model, unsigned queue);
/* And checks them; `max` is at least 1. */
void model_take(struct model *model, unsigned queue, enum model_taking taking, unsigned max);

/* Of hub and queues, after every other call; the counters at any time. */
void model_verify_fds(const struct model *model);
void model_verify_stats(const struct model *model);
/* Compares a walk over all timers of the hub with the array. */
void model_verify_each(struct model *model);

#endif
