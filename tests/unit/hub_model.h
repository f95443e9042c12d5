/* SPDX-License-Identifier: MIT */
/*
 * A model of the whole manual hub: an array of timers that is searched from end to end. Each call
 * below makes the same call on the hub through the public header, and checks it against the array.
 * test_hub_model.c chooses the calls by dice, ../fuzz/fuzz_operations.c by given bytes.
 */
#ifndef TESTS_HUB_MODEL_H
#define TESTS_HUB_MODEL_H

#include <timerhub.h>

#include "harness.h"

#define MODEL_TIMERS_MAX 64
#define MODEL_QUEUES 2
#define MODEL_STALE 16
#define MODEL_NEVER UINT64_MAX
#define MODEL_LAST_NS ((UINT64_C(1) << 63) - 128) /* the latest deadline */
#define MODEL_NOW_MAX_NS (UINT64_C(1) << 62)      /* the largest value of the clock */

/* A kept timer is MODEL_IDLE after its delivery. */
enum model_state { MODEL_GONE, MODEL_ARMED, MODEL_PENDING, MODEL_IDLE };

struct model_timer {
	enum model_state state;
	timerhub_timer handle;
	uint64_t data, interval_ns, slack_ns;
	uint64_t deadline_ns; /* MODEL_NEVER or at most MODEL_LAST_NS */
	unsigned queue;
	uint64_t expired_by; /* MODEL_PENDING: number of the advance that expired it */
	bool has_fn;
	bool kept;
	bool loose; /* re-armed before delivery: its event may keep the older position */
};

struct model {
	struct timerhub *hub;
	struct timerhub_queue *queues[MODEL_QUEUES];
	bool fd_was_read[MODEL_QUEUES]; /* by the caller, since the last drain */
	bool stopped[MODEL_QUEUES];
	struct model_timer timers[MODEL_TIMERS_MAX];
	unsigned capacity;
	uint64_t advances;
	uint64_t now_ns, next_ns;          /* argument and result of the last advance */
	bool must_wake, may_wake;          /* whether the wake fd must or may be readable now */
	uint64_t serial;                   /* data of the last timer */
	timerhub_timer stale[MODEL_STALE]; /* handles of ended timers */
	unsigned stale_count;              /* number of handles recorded so far */
	uint64_t armed, cancelled, delivered, overruns;
};

/* The call by which the caller takes events. */
enum model_taking { MODEL_DRAIN, MODEL_WAIT, MODEL_DISPATCH };

/* `capacity` is from 1 to MODEL_TIMERS_MAX. `flags` are added to TIMERHUB_MANUAL. */
void model_open(struct model *model, unsigned capacity, uint32_t flags);
void model_close(struct model *model);

/* Returns a spec for the next timer with size, data and fn. The caller sets the times. */
struct timerhub_spec model_spec(struct model *model);
void model_arm(struct model *model, unsigned queue, const struct timerhub_spec *spec);
void model_after(struct model *model, unsigned queue, uint64_t delay_ns);
void model_call(struct model *model, unsigned queue, uint64_t delay_ns);
/* `count` is at most MODEL_BATCH. */
#define MODEL_BATCH 8
void model_arm_many(struct model *model, unsigned queue, const struct timerhub_spec *specs,
                    unsigned count);

/* The handle may be live, stale or invalid. */
void model_rearm(struct model *model, timerhub_timer handle, uint64_t expires_ns, uint32_t flags);
void model_rearm_many(struct model *model, const timerhub_timer *handles, unsigned count,
                      uint64_t expires_ns, uint32_t flags);
void model_cancel(struct model *model, timerhub_timer handle);
void model_cancel_many(struct model *model, const timerhub_timer *handles, unsigned count);

/* No wait on the queue blocks until it is opened again. */
void model_stop_queue(struct model *model, unsigned queue);
/* Close a queue, and open another in its place. */
void model_reopen_queue(struct model *model, unsigned queue);

/* The hub must refuse a time in the past. The call ignores a time beyond MODEL_NOW_MAX_NS. */
void model_advance(struct model *model, uint64_t to_ns);
/*
 * Law 8: advance to the announced time, `steps` times. Each advance must expire a timer or find a
 * timer that has moved.
 */
void model_follow(struct model *model, unsigned steps);

/* Read the queue's fd. A caller may do this at any time. */
void model_read_fd(struct model *model, unsigned queue);
/* `max` is at least 1. */
void model_take(struct model *model, unsigned queue, enum model_taking taking, unsigned max);

/*
 * Call model_verify_fds() after every call of the model. model_verify_stats() compares the counters
 * at any time.
 */
void model_verify_fds(const struct model *model);
void model_verify_stats(const struct model *model);
/* Compare a walk over all timers with the array. */
void model_verify_each(struct model *model);

#endif
