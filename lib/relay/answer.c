/* SPDX-License-Identifier: MIT */
/*
 * See answer.h. The errors that the source of Redis lists are in the same order as there. The text
 * of an error within a function begins with the error of the command that failed. Tested by
 * tests/relay/test_parts.c.
 */
#include "relay/answer.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *begin; /* the first characters of the error's text */
	struct answer answer;
} answers[] = {
	/* The server is no longer a master, or has lost its replicas. */
	{ "READONLY", { -EROFS, ANSWER_LATER } },
	{ "LOADING", { -EROFS, ANSWER_LATER } },
	{ "MASTERDOWN", { -EROFS, ANSWER_LATER } },
	{ "NOREPLICAS", { -EROFS, ANSWER_LATER } },
	{ "UNBLOCKED", { -EROFS, ANSWER_LATER } },
	/* The server is busy with a script of another program. */
	{ "BUSY ", { -EROFS, ANSWER_LATER } },
	/*
	 * The data set was deleted, or restored from a copy that is older than the queue. A new
	 * connection creates the queue again.
	 */
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
	/* The server is a cluster node, or older than 7.0. */
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
