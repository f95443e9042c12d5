/* SPDX-License-Identifier: MIT */
/* The hook that test_point() calls. Only builds for tests have it. See lib/base/test_point.h. */
#include "base/test_point.h"

void (*test_point_hook)(enum test_point point);
