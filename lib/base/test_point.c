/* SPDX-License-Identifier: MIT */
/* The hook that test_point() calls if the library is built for tests. See test_point.h. */
#include "base/test_point.h"

#ifdef TIMERHUB_TEST_POINTS
void (*test_point_hook)(enum test_point point);
#endif
