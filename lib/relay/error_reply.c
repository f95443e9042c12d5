/* SPDX-License-Identifier: MIT */
/*
 * Finds what an error reply of a server means, by the words that it begins with. The table has the
 * order of Redis's source. An error inside a function begins with the words of the command that has
 * failed there.
 */
#include "relay/error_reply.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *begin; /* the first characters of the error's text */
	struct error_reply answer;
} answers[] = {
	/*
	 * The server is not a master any more, is still loading its data, or has too few replicas.
	 */
	{ "READONLY", { -EROFS, ERROR_REPLY_LATER } },
	{ "LOADING", { -EROFS, ERROR_REPLY_LATER } },
	{ "MASTERDOWN", { -EROFS, ERROR_REPLY_LATER } },
	{ "NOREPLICAS", { -EROFS, ERROR_REPLY_LATER } },
	{ "UNBLOCKED", { -EROFS, ERROR_REPLY_LATER } },
	/* The server is busy with a script of another program. */
	{ "BUSY ", { -EROFS, ERROR_REPLY_LATER } },
	/*
	 * Somebody has deleted the queue or our Redis functions. The next connect creates them
	 * again.
	 */
	{ "NOGROUP", { -EROFS, ERROR_REPLY_LATER } },
	{ "ERR Function not found", { -EROFS, ERROR_REPLY_LATER } },
	{ "OOM", { -ENOSPC, ERROR_REPLY_REFUSAL } },
	{ "MISCONF", { -EIO, ERROR_REPLY_REFUSAL } },
	{ "WRONGTYPE", { -EBADMSG, ERROR_REPLY_REFUSAL } },
	{ "NOAUTH", { -EACCES, ERROR_REPLY_REFUSAL } },
	{ "WRONGPASS", { -EACCES, ERROR_REPLY_REFUSAL } },
	{ "NOPERM", { -EACCES, ERROR_REPLY_REFUSAL } },
	/*
	 * The user lacks the right to a command that our functions call, to a key, or to a channel.
	 */
	{ "ERR The user executing the script", { -EACCES, ERROR_REPLY_REFUSAL } },
	{ "DENIED", { -EACCES, ERROR_REPLY_REFUSAL } }, /* protected mode */
	{ "ERR AUTH", { -EACCES, ERROR_REPLY_REFUSAL } },
	{ "ERR max number of clients", { -EMFILE, ERROR_REPLY_LATER } },
	{ "ERR DB index", { -EINVAL, ERROR_REPLY_REFUSAL } },
	/*
	 * The cluster has moved the slot of the queue's keys to another node, is just moving it, or
	 * has no master for it at present.
	 */
	{ "MOVED", { -EROFS, ERROR_REPLY_LATER } },
	{ "ASK ", { -EROFS, ERROR_REPLY_LATER } },
	{ "TRYAGAIN", { -EROFS, ERROR_REPLY_LATER } },
	{ "CLUSTERDOWN", { -EROFS, ERROR_REPLY_LATER } },
	{ "CROSSSLOT", { -EOPNOTSUPP, ERROR_REPLY_REFUSAL } }, /* keys in several hash slots */
	{ "ERR This instance has cluster support disabled", { -EOPNOTSUPP, ERROR_REPLY_REFUSAL } },
	{ "ERR unknown command", { -EOPNOTSUPP, ERROR_REPLY_REFUSAL } }, /* before Redis 7.0 */
};

static _Thread_local struct {
	int error;
	char words[200];
} noted;

void error_reply_note(int error, const char *words)
{
	noted.error = error;
	(void)snprintf(noted.words, sizeof(noted.words), "%.199s", words);
}

const char *error_reply_words(int error)
{
	return error == noted.error ? noted.words : "";
}

/* Returns whether a user must see the server's words, because the errno does not say enough. */
static bool says_more(const char *text)
{
	static const char *const begins[] = { "NOPERM", "ERR The user", "BUSY ", "MOVED ", "ASK " };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(text, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static struct error_reply find_answer(const char *text)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (strncmp(text, answers[i].begin, strlen(answers[i].begin)) == 0)
			return answers[i].answer;
	return (struct error_reply){ -EPROTO, ERROR_REPLY_FOREIGN };
}

struct error_reply error_reply_of(const char *text)
{
	struct error_reply answer = find_answer(text);

	noted.error = 0;
	if (answer.kind == ERROR_REPLY_FOREIGN || says_more(text))
		error_reply_note(answer.error, text);
	return answer;
}

bool error_reply_is_final(int error)
{
	return error == -EACCES || error == -EOPNOTSUPP || error == -EINVAL || error == -EBADMSG ||
	       error == -ENOMEM || error == -EPROTO || error == -EEXIST || error == -E2BIG;
}
