/* SPDX-License-Identifier: MIT */
/*
 * A switch from one stack to another pushes the callee-saved registers, and pops those that the
 * other stack has. The compiler saves the other registers around the call.
 */
#include "coroutine.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "detect_asan.h"

#ifdef WITH_ASAN
#include <sanitizer/common_interface_defs.h>

/*
 * For uses of a frame after its return, AddressSanitizer gives each coroutine a second stack, kept
 * if it never ends: after some thousands of seeds the kernel refuses a fork(). So this is off.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_stack_use_after_return=0";
}
#endif

/* Saves the registers, stores the stack pointer, continues at `new_pointer`. */
void coroutine_switch_stacks(void **ret_old, void *new_pointer);

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl coroutine_switch_stacks\n"
        ".type coroutine_switch_stacks, @function\n"
        "coroutine_switch_stacks:\n"
        "	pushq %rbp\n"
        "	pushq %rbx\n"
        "	pushq %r12\n"
        "	pushq %r13\n"
        "	pushq %r14\n"
        "	pushq %r15\n"
        "	movq %rsp, (%rdi)\n"
        "	movq %rsi, %rsp\n"
        "	popq %r15\n"
        "	popq %r14\n"
        "	popq %r13\n"
        "	popq %r12\n"
        "	popq %rbx\n"
        "	popq %rbp\n"
        "	ret\n"
        ".size coroutine_switch_stacks, . - coroutine_switch_stacks\n");

/* six registers, where to continue, and a word that aligns the stack as after a call */
#define FRAME_WORDS 8
#define FRAME_ENTRY 6
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl coroutine_switch_stacks\n"
        ".type coroutine_switch_stacks, %function\n"
        "coroutine_switch_stacks:\n"
        "	sub sp, sp, #160\n"
        "	stp x19, x20, [sp]\n"
        "	stp x21, x22, [sp, #16]\n"
        "	stp x23, x24, [sp, #32]\n"
        "	stp x25, x26, [sp, #48]\n"
        "	stp x27, x28, [sp, #64]\n"
        "	stp x29, x30, [sp, #80]\n"
        "	stp d8, d9, [sp, #96]\n"
        "	stp d10, d11, [sp, #112]\n"
        "	stp d12, d13, [sp, #128]\n"
        "	stp d14, d15, [sp, #144]\n"
        "	mov x9, sp\n"
        "	str x9, [x0]\n"
        "	mov sp, x1\n"
        "	ldp x19, x20, [sp]\n"
        "	ldp x21, x22, [sp, #16]\n"
        "	ldp x23, x24, [sp, #32]\n"
        "	ldp x25, x26, [sp, #48]\n"
        "	ldp x27, x28, [sp, #64]\n"
        "	ldp x29, x30, [sp, #80]\n"
        "	ldp d8, d9, [sp, #96]\n"
        "	ldp d10, d11, [sp, #112]\n"
        "	ldp d12, d13, [sp, #128]\n"
        "	ldp d14, d15, [sp, #144]\n"
        "	add sp, sp, #160\n"
        "	ret\n"
        ".size coroutine_switch_stacks, . - coroutine_switch_stacks\n");

#define FRAME_WORDS 20
#define FRAME_ENTRY 11
#else
#error "no coroutines for this processor yet"
#endif

void coroutine_init(struct coroutine *coroutine, void *stack, size_t stack_bytes,
                    void (*entry)(void))
{
	uint64_t *frame = (uint64_t *)(void *)((char *)stack + stack_bytes) - FRAME_WORDS;

#ifdef WITH_ASAN
	/* an earlier coroutine may have ended inside functions, with poisoned frames */
	ASAN_UNPOISON_MEMORY_REGION(stack, stack_bytes);
#endif
	memset(frame, 0, FRAME_WORDS * sizeof(*frame));
	frame[FRAME_ENTRY] = (uint64_t)(uintptr_t)entry;
	*coroutine = (struct coroutine){ .stack_pointer = frame,
		                         .stack = stack,
		                         .stack_bytes = stack_bytes };
}

void coroutine_init_thread(struct coroutine *coroutine)
{
	pthread_attr_t attributes;

	*coroutine = (struct coroutine){ .stack = NULL };
	/* the bounds of the thread's own stack, which AddressSanitizer needs at each switch */
	if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
		(void)pthread_attr_getstack(&attributes, &coroutine->stack,
		                            &coroutine->stack_bytes);
		(void)pthread_attr_destroy(&attributes);
	}
}

void coroutine_entered(struct coroutine *self)
{
#ifdef WITH_ASAN
	__sanitizer_finish_switch_fiber(self->fake_stack, NULL, NULL);
#else
	(void)self;
#endif
}

void coroutine_switch(struct coroutine *from, struct coroutine *to)
{
#ifdef WITH_ASAN
	__sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#endif
	coroutine_switch_stacks(&from->stack_pointer, to->stack_pointer);
	coroutine_entered(from);
}
