/* SPDX-License-Identifier: MIT */
/* The library that named.c loads. NAME is the function's name, which the address alone has. */
typedef void function(void);

function *library_function(void);

static void NAME(void)
{
}

/* Returns the function that timerhub-top is to name. */
function *library_function(void)
{
	return NAME;
}
