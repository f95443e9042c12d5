/* SPDX-License-Identifier: MIT */
/*
 * Defines the hook that test_point() calls. Only builds for tests have the hook. See
 * lib/base/test_point.h.
 */
#include "base/test_point.h"

void (*test_point_hook)(enum test_point point);
