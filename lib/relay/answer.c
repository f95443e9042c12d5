/* SPDX-License-Identifier: MIT */
/*
 * See answer.h. In the order of the server's source where it gives them. An error within a function
 * begins with the words of the command that failed. Tested by tests/relay/test_parts.c.
 */
#include "relay/answer.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *begin; /* of the error's text */
	struct answer answer;
} answers[] = {
	/* The server is no master now, or has lost its replicas. */
	{ "READONLY", { -EROFS, ANSWER_LATER } },
	{ "LOADING", { -EROFS, ANSWER_LATER } },
	{ "MASTERDOWN", { -EROFS, ANSWER_LATER } },
	{ "NOREPLICAS", { -EROFS, ANSWER_LATER } },
	{ "UNBLOCKED", { -EROFS, ANSWER_LATER } },
	/* Another program's script runs for too long. */
	{ "BUSY ", { -EROFS, ANSWER_LATER } },
	/* Wiped, or restored from before the queue was made: a new connection makes it again. */
	{ "NOGROUP", { -EROFS, ANSWER_LATER } },
	{ "ERR Function not found", { -EROFS, ANSWER_LATER } },
	{ "OOM", { -ENOSPC, ANSWER_REFUSAL } },
	{ "MISCONF", { -EIO, ANSWER_REFUSAL } },
	{ "WRONGTYPE", { -EBADMSG, ANSWER_REFUSAL } },
	{ "NOAUTH", { -EACCES, ANSWER_REFUSAL } },
	{ "WRONGPASS", { -EACCES, ANSWER_REFUSAL } },
	{ "NOPERM", { -EACCES, ANSWER_REFUSAL } },
	{ "ERR AUTH", { -EACCES, ANSWER_REFUSAL } },
	{ "ERR max number of clients", { -EMFILE, ANSWER_LATER } },
	{ "ERR DB index", { -EINVAL, ANSWER_REFUSAL } },
	/* A cluster, or a server before 7.0. */
	{ "MOVED", { -EOPNOTSUPP, ANSWER_REFUSAL } },
	{ "ASK ", { -EOPNOTSUPP, ANSWER_REFUSAL } },
	{ "TRYAGAIN", { -EOPNOTSUPP, ANSWER_REFUSAL } },
	{ "CROSSSLOT", { -EOPNOTSUPP, ANSWER_REFUSAL } },
	{ "CLUSTERDOWN", { -EOPNOTSUPP, ANSWER_REFUSAL } },
	{ "ERR unknown command", { -EOPNOTSUPP, ANSWER_REFUSAL } },
};

struct answer answer_of(const char *text)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (strncmp(text, answers[i].begin, strlen(answers[i].begin)) == 0)
			return answers[i].answer;
	return (struct answer){ -EPROTO, ANSWER_FOREIGN };
}

bool answer_is_final(int error)
{
	return error == -EACCES || error == -EOPNOTSUPP || error == -EINVAL || error == -EBADMSG ||
	       error == -ENOMEM || error == -EPROTO || error == -EEXIST || error == -E2BIG;
}
