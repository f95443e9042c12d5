/* SPDX-License-Identifier: MIT */
/*
 * The whole hub, moved by hand, through the public header alone, beside an array of timers that is
 * searched from end to end. Each call below is made of the hub, and must do there what the array
 * says. Who calls chooses: test_hub_model.c by dice, ../fuzz/fuzz_operations.c by given bytes.
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
#define MODEL_NOW_MAX_NS (UINT64_C(1) << 62)      /* advance no further */

/* MODEL_IDLE: kept and delivered. */
enum model_state { MODEL_GONE, MODEL_ARMED, MODEL_PENDING, MODEL_IDLE };

struct model_timer {
	enum model_state state;
	timerhub_timer handle;
	uint64_t data, interval_ns, slack_ns;
	uint64_t deadline_ns; /* MODEL_NEVER or at most MODEL_LAST_NS */
	unsigned queue;
	uint64_t expired_by; /* MODEL_PENDING: by the how manieth advance */
	bool has_fn;
	bool kept;
	bool loose; /* re-armed while undelivered: may come at an older place */
};

struct model {
	struct timerhub *hub;
	struct timerhub_queue *queues[MODEL_QUEUES];
	bool fd_was_read[MODEL_QUEUES]; /* by the caller, since it was last drained */
	bool stopped[MODEL_QUEUES];
	struct model_timer timers[MODEL_TIMERS_MAX];
	unsigned capacity;
	uint64_t advances;
	uint64_t now_ns, next_ns;          /* what advance was last given and told */
	bool must_wake, may_wake;          /* since then: what the wake fd has to say */
	uint64_t serial;                   /* data of the last timer */
	timerhub_timer stale[MODEL_STALE]; /* handles of timers that are no more */
	unsigned stale_count;              /* how many there have been */
	uint64_t armed, cancelled, delivered, overruns;
};

/* How events are taken. */
enum model_taking { MODEL_DRAIN, MODEL_WAIT, MODEL_DISPATCH };

/* `capacity` from 1 to MODEL_TIMERS_MAX; `flags` of the hub beside TIMERHUB_MANUAL. */
void model_open(struct model *model, unsigned capacity, uint32_t flags);
void model_close(struct model *model);

/* What fits into the spec of the next timer: size, data, fn; its times are the caller's. */
struct timerhub_spec model_spec(struct model *model);
void model_arm(struct model *model, unsigned queue, const struct timerhub_spec *spec);
void model_after(struct model *model, unsigned queue, uint64_t delay_ns);
void model_call(struct model *model, unsigned queue, uint64_t delay_ns);
/* At most MODEL_BATCH. */
#define MODEL_BATCH 8
void model_arm_many(struct model *model, unsigned queue, const struct timerhub_spec *specs,
                    unsigned count);

/* Handles of any kind will do. */
void model_rearm(struct model *model, timerhub_timer handle, uint64_t expires_ns, uint32_t flags);
void model_rearm_many(struct model *model, const timerhub_timer *handles, unsigned count,
                      uint64_t expires_ns, uint32_t flags);
void model_cancel(struct model *model, timerhub_timer handle);
void model_cancel_many(struct model *model, const timerhub_timer *handles, unsigned count);

/* No wait on the queue blocks until it is opened again. */
void model_stop_queue(struct model *model, unsigned queue);
/* Close a queue, and open another in its place. */
void model_reopen_queue(struct model *model, unsigned queue);

/* To any instant: one that is past is refused, one beyond MODEL_NOW_MAX_NS not tried. */
void model_advance(struct model *model, uint64_t to_ns);
/* Law 8: told when to come, come so many times; each is for an expiry, or a timer moved later. */
void model_follow(struct model *model, unsigned steps);

/* Read the queue's fd, as a caller may. */
void model_read_fd(struct model *model, unsigned queue);
/* `max` at least 1. */
void model_take(struct model *model, unsigned queue, enum model_taking taking, unsigned max);

/* After every call: what the fds say; and whenever one likes, what the counters say. */
void model_verify_fds(const struct model *model);
void model_verify_stats(const struct model *model);
/* And what the walk over all timers shows. */
void model_verify_each(struct model *model);

#endif
