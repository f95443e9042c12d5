/* SPDX-License-Identifier: MIT */
/*
 * A target of libFuzzer that makes sequences of calls. The input's bytes stand for calls of a
 * manual hub. The target makes each call through the model of ../unit/hub_model.h, which checks the
 * result. After the last call the target advances the hub to the last time of its clock. It then
 * checks that each timer that is due has been delivered.
 */
#include "hub_model.h"
#include "input.h"

/*
 * The first byte of a call has the kind of call and the number of the queue. Two bits say what the
 * time argument means. The bit CALL_OTHER chooses a variant of the call. With CALL_OTHER an arm has
 * TIMERHUB_KEEP. With CALL_OTHER, AFTER, CANCEL_MANY and REOPEN call another function.
 */
#define CALL_WHAT 15
#define CALL_ABSOLUTE 16 /* the call's time is a point in time, not a delay */
#define CALL_FROM_NOW 32 /* with CALL_ABSOLUTE: the input's time is added to the present time */
#define CALL_NEVER 32    /* without CALL_ABSOLUTE: the delay is NEVER */
#define CALL_OTHER 64
#define CALL_QUEUE 128

enum {
	ARM,
	ARM_MORE, /* arm one timer, with an interval and a slack from the input */
	AFTER,
	ARM_MANY,
	REARM,
	CANCEL,
	CANCEL_MANY,
	ADVANCE_BY,
	ADVANCE_TO,
	FOLLOW,
	DRAIN,
	WAIT,
	DISPATCH,
	READ_FD,
	REOPEN,
	STATS,
};

static uint64_t input_expires(struct input *input, const struct model *model, uint8_t call,
                              uint32_t *ret_flags)
{
	*ret_flags = (call & CALL_ABSOLUTE) != 0 ? TIMERHUB_ABSOLUTE : 0;
	if (*ret_flags == 0)
		return (call & CALL_NEVER) != 0 ? MODEL_NEVER : input_ns(input);
	return ((call & CALL_FROM_NOW) != 0 ? model->now_ns : 0) + input_ns(input);
}

/* Returns the handle of a live timer, the handle of an ended timer, or an arbitrary number. */
static timerhub_timer input_handle(struct input *input, const struct model *model)
{
	uint8_t byte = input_byte(input);

	if (byte == 255)
		return input_word(input);
	if (byte >= 192)
		return model->stale[byte % MODEL_STALE];
	return model->timers[byte % model->capacity].handle;
}

static struct timerhub_spec input_spec(struct input *input, struct model *model, uint8_t call)
{
	struct timerhub_spec spec = model_spec(model);

	spec.expires_ns = input_expires(input, model, call, &spec.flags);
	if ((call & CALL_WHAT) != ARM) {
		spec.interval_ns = input_ns(input);
		spec.slack_ns = input_ns(input);
	}
	if ((call & CALL_OTHER) != 0)
		spec.flags |= TIMERHUB_KEEP;
	return spec;
}

static void call_arm_many(struct input *input, struct model *model, uint8_t call, unsigned queue)
{
	struct timerhub_spec specs[MODEL_BATCH];
	unsigned count = input_byte(input) % (MODEL_BATCH + 1);

	for (unsigned i = 0; i < count; i++)
		specs[i] = input_spec(input, model, call);
	model_arm_many(model, queue, specs, count);
}

static void call_many(struct input *input, struct model *model, uint8_t call)
{
	timerhub_timer handles[MODEL_BATCH];
	unsigned count = input_byte(input) % (MODEL_BATCH + 1);
	uint64_t expires_ns;
	uint32_t flags;

	for (unsigned i = 0; i < count; i++)
		handles[i] = input_handle(input, model);
	if ((call & CALL_OTHER) == 0) {
		model_cancel_many(model, handles, count);
		return;
	}
	expires_ns = input_expires(input, model, call, &flags);
	model_rearm_many(model, handles, count, expires_ns, flags);
}

static void call_rearm(struct input *input, struct model *model, uint8_t call)
{
	timerhub_timer handle = input_handle(input, model);
	uint32_t flags;
	uint64_t expires_ns = input_expires(input, model, call, &flags);

	model_rearm(model, handle, expires_ns, flags);
}

static void call_arm(struct input *input, struct model *model, uint8_t call, unsigned queue)
{
	struct timerhub_spec spec = input_spec(input, model, call);

	model_arm(model, queue, &spec);
}

static void call_take(struct input *input, struct model *model, uint8_t call, unsigned queue)
{
	enum model_taking taking = (enum model_taking)((call & CALL_WHAT) - DRAIN);

	model_take(model, queue, taking, 1 + input_byte(input) % MODEL_TIMERS_MAX);
}

static void make_call(struct input *input, struct model *model)
{
	uint8_t call = input_byte(input);
	unsigned queue = (call & CALL_QUEUE) != 0;

	switch (call & CALL_WHAT) {
	case ARM:
	case ARM_MORE:
		call_arm(input, model, call, queue);
		break;
	case AFTER:
		if ((call & CALL_OTHER) != 0)
			model_call(model, queue, input_ns(input));
		else
			model_after(model, queue, input_ns(input));
		break;
	case ARM_MANY:
		call_arm_many(input, model, call, queue);
		break;
	case REARM:
		call_rearm(input, model, call);
		break;
	case CANCEL:
		model_cancel(model, input_handle(input, model));
		break;
	case CANCEL_MANY: /* with CALL_OTHER, the call is timerhub_rearm_many() */
		call_many(input, model, call);
		break;
	case ADVANCE_BY:
		model_advance(model, model->now_ns + input_ns(input));
		break;
	case ADVANCE_TO:
		model_advance(model, input_ns(input));
		break;
	case FOLLOW:
		model_follow(model, input_byte(input) % 8);
		break;
	case DRAIN:
	case WAIT:
	case DISPATCH:
		call_take(input, model, call, queue);
		break;
	case READ_FD:
		model_read_fd(model, queue);
		break;
	case REOPEN:
		if ((call & CALL_OTHER) != 0)
			model_stop_queue(model, queue);
		else
			model_reopen_queue(model, queue);
		break;
	case STATS:
		model_verify_stats(model);
		model_verify_each(model);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct input input = { bytes, count };
	struct model model;

	model_open(&model, 1 + input_byte(&input) % MODEL_TIMERS_MAX, 0);
	while (input.left > 0) {
		expect_context("call, left", bytes[count - input.left], input.left);
		make_call(&input, &model);
		model_verify_fds(&model);
	}
	model_advance(&model, MODEL_NOW_MAX_NS);
	for (unsigned i = 0; i < MODEL_QUEUES; i++)
		model_take(&model, i, MODEL_DRAIN, MODEL_TIMERS_MAX);
	model_verify_each(&model);
	model_close(&model);
	return 0;
}
