/* SPDX-License-Identifier: MIT */
#include "base/test_point.h"

void (*test_point_hook)(enum test_point point);
