/* SPDX-License-Identifier: MIT */
/* A plugin with a static copy of the library, of which it shows the program only these names. */
#include <timerhub.h>

#define EXPORTED __attribute__((visibility("default")))

extern EXPORTED int (*const plugin_dispatch)(struct timerhub_queue *queue, unsigned max);
extern EXPORTED int (*const plugin_cancel_sync)(struct timerhub *hub, timerhub_timer timer);

int (*const plugin_dispatch)(struct timerhub_queue *queue, unsigned max) = timerhub_dispatch;
int (*const plugin_cancel_sync)(struct timerhub *hub, timerhub_timer timer) = timerhub_cancel_sync;
