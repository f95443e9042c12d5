#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests that bad input, keys of the wrong type and a full Redis cause an error and have no effect.

Usage: functions_errors_test.py TIMERHUB_LUA OTHER_ORDER

OTHER_ORDER is the library other_order.c, by which the server orders strings as in many locales.

The test calls every function for every state of a task while one key of the queue has another type.
The reply must be an error, and no key may change, unless the function does not use the key in this
state.
"""

import re
import sys

from functions_test import QUEUE, QUEUE_KEY
from queue_client import KEYS
from redis_server import RedisError, Server, expect, library

ARGUMENTS = {
    "put": ["new", "0", "", "data"],
    "puts": ["", "", "new", "0", "", "data", "", "",
             "next", "1", "", "", "", ""],
    "cancel": ["task"], "move": ["task", "0", ""],
    "done": ["task", None], "retry": ["task", "0", None],
    "park": ["task", None, "7"], "forget": ["nobody"], "pause": [], "resume": [],
    "each": ["waiting", "", "10"],
    "touch": ["task", None], "fence": ["4-a", "2", str(2**50)],
    "look": ["relay", 128, 10**7, 10**5, ""],
    "leave": ["relay"],
    "stat": [], "list": [0, 10], "peek": ["task"], "revive": None, "create": [],
    "repair": ["task", "0"],
}
STATES = ("none", "waiting", "never", "undelivered", "taken", "finished", "exhausted")
WAITS, STREAM = "none waiting never", "none undelivered taken finished exhausted"
# (function, key) -> the states in which the function does not use the key.
UNUSED = {
    ("put", "seats"): "waiting", ("puts", "seats"): "waiting",
    ("cancel", "due"): STREAM, ("cancel", "ready"): WAITS,
    ("cancel", "past"): "none taken exhausted",
    ("move", "due"): "none taken finished exhausted", ("move", "ready"): WAITS,
    ("move", "past"): " ".join(STATES), ("move", "seats"): "none waiting",
    ("done", "due"): " ".join(STATES), ("done", "ready"): WAITS, ("done", "past"): WAITS,
    ("touch", "ready"): WAITS,
    ("retry", "due"): WAITS + " undelivered finished exhausted", ("retry", "ready"): WAITS,
    ("retry", "state"): "undelivered finished", ("retry", "past"): WAITS + " undelivered finished",
    ("retry", "seats"): WAITS + " undelivered finished",
    ("retry", "dead"): WAITS + " undelivered taken finished",
    ("park", "due"): " ".join(STATES), ("park", "ready"): WAITS, ("park", "past"): WAITS,
    ("park", "dead"): WAITS,
    ("look", "dead"): " ".join(STATES), ("stat", "seen"): " ".join(STATES),
    ("list", "task"): STREAM, ("peek", "due"): STREAM, ("peek", "ready"): WAITS,
    ("revive", "seats"): "waiting", ("repair", "dead"): " ".join(STATES),
    ("forget", "state"): " ".join(STATES), ("resume", "seats"): "waiting",
    ("each", "due"): " ".join(STATES),
    ("each", "task"): WAITS + " taken finished exhausted", ("each", "dead"): " ".join(STATES),
}


def call(redis, name, *arguments):
    keys = [QUEUE + key for key in KEYS[name].split()]
    return redis("FCALL", "timerhub_" + name, len(keys), *keys, *arguments)


def fails(redis, words, name, *arguments):
    try:
        expect(False, name, arguments, call(redis, name, *arguments))
    except RedisError as error:
        # In Redis 7.0 the text of a function's error begins with the place of the error.
        expect(words in str(error), name, arguments, error)


def refused(redis, *call_and_words):
    """The call must fail, and change nothing."""
    before = picture(redis)
    fails(redis, *call_and_words)
    expect(picture(redis) == before, *call_and_words, "was refused and had effect")


def look(redis, batch=128):
    return call(redis, "look", "relay", batch, 10**7, 10**5, "")


def look_and_sweep(redis):
    redis("HSET", QUEUE + "state", "sweep_at", 1)
    return look(redis)


def promote_all(redis):
    while look(redis)[1]:
        pass


def read_all(redis):
    reply = redis("XREADGROUP", "GROUP", "timerhub", "c", "STREAMS", QUEUE + "ready", ">")
    return [entry for entry, _ in reply[0][1]] if reply else []


def bring_about(redis, state):
    """Makes a queue with one dead task, a seat, an id in past, and a task in the given state."""
    redis("FLUSHALL")
    call(redis, "create", "attempts_max", 1)
    call(redis, "put", "buried", "0", "", "data")
    look(redis)
    read_all(redis)
    call(redis, "retry", "buried", 0, entry_of(redis, "buried"))
    call(redis, "create", "attempts_max", 1 if state == "exhausted" else 0)
    redis("ZADD", QUEUE + "past", 10**15, "outdated")
    redis("ZADD", QUEUE + "seats", 0.5, "other")
    if state == "none":
        return
    call(redis, "put", "task", "never" if state == "never" else "0", "", "data")
    if state in ("waiting", "never"):
        return
    look(redis)
    redis("HSET", QUEUE + "state", "sweep_at", 1)
    if state == "undelivered":
        return
    entry = read_all(redis)[0]
    if state == "finished":
        redis("XACK", QUEUE + "ready", "timerhub", entry)
    if state == "exhausted":
        redis("XCLAIM", QUEUE + "ready", "timerhub", "c", 0, entry, "IDLE", 10**9, "JUSTID")


def picture(redis):
    """Returns all keys and values, except the fields that a read of a consumer group changes by
    itself."""
    return {key: redis("DUMP", key) for key in sorted(redis("KEYS", "*"))}


def entry_of(redis, name):
    """Returns the id of the task's entry in the stream, or 9-9 if it has none."""
    record = redis("HGET", QUEUE + "task", name) or b"9-9"
    return record.rsplit(b":", 1)[-1] if record[:1] == b"r" else b"9-9"


def arguments_of(redis, name):
    if name in ("done", "retry", "park", "touch"):
        return [entry_of(redis, "task") if word is None else word for word in ARGUMENTS[name]]
    if ARGUMENTS[name] is None:
        dead = redis("XRANGE", QUEUE + "dead", "-", "+")
        return [dead[0][0]] if dead else ["1-1"]
    return ARGUMENTS[name]


def check_wrong_type(redis, name, state, key):
    bring_about(redis, state)
    arguments = arguments_of(redis, name)
    redis("DEL", QUEUE + key)
    redis("SET", QUEUE + key, "another program's")
    before = picture(redis)
    try:
        answer = call(redis, name, *arguments)
    except RedisError as error:
        expect("WRONGTYPE" in str(error), name, state, key, error)
        expect(picture(redis) == before, name, "on", state, "with a wrong", key, "had effect")
        return 1
    expect(redis("GET", QUEUE + key) == b"another program's", name, state, key, "overwritten")
    expect(state in UNUSED.get((name, key), "").split(), name, "on", state, "ignored a wrong", key)
    if key != "dead":
        bring_about(redis, state)
        wanted = call(redis, name, *arguments_of(redis, name))
        expect(answer[0] == wanted[0], name, state, key, answer, wanted)
    return 0


def check_wrong_types(redis):
    errors = sum(check_wrong_type(redis, name, state, key)
                 for name in KEYS for state in STATES for key in KEYS[name].split())
    expect(errors > 300, "only", errors, "errors met")
    print(f"wrong types: {errors} errors, none of which changed anything")


def check_dead_of_wrong_type(redis):
    """If the key dead cannot be written to, no task may be lost, and no later task may be held
    up."""
    bring_about(redis, "exhausted")
    redis("DEL", QUEUE + "dead")
    redis("SET", QUEUE + "dead", "x")
    redis("ZADD", QUEUE + "due", 1, "poison")
    redis("HSET", QUEUE + "task", "poison", "unreadable")
    call(redis, "put", "behind", "0", "", "data")
    answer = look(redis)
    expect(answer[1] == 1 and answer[8] == 1 and answer[9] == 0, "look past a wrong dead", answer)
    expect(redis("HGET", QUEUE + "task", "poison") == b"unreadable", "the poison's record is lost")
    expect(redis("ZSCORE", QUEUE + "due", "poison") == b"inf", "the poison is due again")
    ids = {entry[1][1] for entry in redis("XRANGE", QUEUE + "ready", "-", "+")}
    expect(ids == {b"task", b"behind"}, "in the stream:", ids)


def check_full(redis):
    """If Redis is over maxmemory, a put must be refused and change nothing. All other calls must
    work."""
    bring_about(redis, "waiting")
    redis("CONFIG", "SET", "maxmemory", 1)
    refused(redis, "OOM ", "put", "new", "0", "", "data")
    expect(look(redis)[1] == 1, "look on a full Redis")
    read_all(redis)
    expect(call(redis, "retry", "task", 0, entry_of(redis, "task"))[0] == 0,
           "retry on a full Redis")
    expect(call(redis, "cancel", "task")[0] == 0, "cancel on a full Redis")
    redis("CONFIG", "SET", "maxmemory", 0)


def check_no_channel(redis, user):
    """Redis 7 gives a new user no channel. A change that has to ring for this user must be refused
    before its first effect."""
    redis("ACL", "SETUSER", "mute", "reset", "on", "nopass", "~*", "+@all", "resetchannels")
    user("AUTH", "mute", "")
    for state, name in (("none", "put"), ("none", "puts"), ("waiting", "move"),
                        ("undelivered", "move"), ("taken", "retry"), ("none", "revive"),
                        ("waiting", "repair")):
        bring_about(redis, state)
        redis("HSET", QUEUE + "state", "look_by", 2 * 10**15)
        refused(user, "NOPERM ", name, *arguments_of(redis, name))
    expect(call(user, "put", "later", 3 * 10**15, "a", "")[0] == 0, "a put that need not ring")


def check_exhausted_stream(redis):
    """If another program has used up the ids of the stream, a look must return an error, and the
    tasks must wait."""
    bring_about(redis, "waiting")
    last = f"{2**64 - 1}-{2**64 - 1}"
    redis("XADD", QUEUE + "ready", last, "foreign", "entry")
    fails(redis, "exhausted", "look", *ARGUMENTS["look"])
    expect(redis("ZCARD", QUEUE + "due") == 1, "the task has gone")
    expect(call(redis, "cancel", "task")[0] == 0, "cancel")
    bring_about(redis, "exhausted")
    call(redis, "create", "attempts_max", 0)
    redis("XADD", QUEUE + "ready", last, "foreign", "entry")
    fails(redis, "exhausted", "look", *ARGUMENTS["look"])
    expect(call(redis, "peek", "task")[1] == b"taken", "the task is lost")
    # The stream has room for two more ids, so a call of timerhub_look moves only two of the twenty
    # tasks.
    bring_about(redis, "none")
    redis("ZREM", QUEUE + "seats", "other")
    for number in range(20):
        call(redis, "put", f"many-{number}", "0", "", "")
    redis("XADD", QUEUE + "ready", f"{2**64 - 1}-{2**64 - 3}", "foreign", "entry")
    answer = look(redis, 20)
    expect((answer[1], answer[3], answer[5]) == (2, 0, 0), "look with two ids left:", answer)
    expect(redis("ZCARD", QUEUE + "due") == 18, "waiting")


def check_bad_keys(redis):
    bring_about(redis, "waiting")
    before = picture(redis)
    for name, parts in KEYS.items():
        keys = [QUEUE + key for key in parts.split()]
        for given in ([], keys[:-1], ["model"], ["{}"], ["{a}b"], ["{a b}"], [QUEUE]):
            answer = redis("FCALL", "timerhub_" + name, len(given), *given, "task", 0, "", "")
            expect(answer == [-22], name, "with the keys", given, answer)
    expect(picture(redis) == before, "bad keys have changed something")
    # A call with additional keys must work, because a later version of the library may send more
    # keys.
    keys = [QUEUE + key for key in KEYS["cancel"].split()]
    expect(redis("FCALL", "timerhub_cancel", 6, *keys, "more", "task") == [0], "one key more")
    expect(redis("FCALL", "timerhub_stat", 1, QUEUE_KEY)[3:5] == [b"tasks", b"0"], "one key")


def check_bad_arguments(redis):
    bring_about(redis, "waiting")
    before = picture(redis)
    expect(redis("FCALL_RO", "timerhub_version", 0) == [0, 4], "the version")
    for name, arguments in (
            ("put", []), ("put", ["id"]), ("put", ["id", "1", ""]), ("put", ["id", "-1", "", ""]),
            ("put", ["id", "1.5", "", ""]), ("put", ["id", "", "", ""]),
            ("put", ["id", "1", "x", ""]), ("put", ["", "1", "", ""]),
            ("put", ["i" * 65, "1", "", ""]), ("put", ["a\0b", "1", "", ""]), ("puts", []),
            ("puts", ["", "", "id", "1", "", "", ""]),
            ("puts", ["", ""] + ["id", "1", "", "", "", ""] * 129), ("cancel", []),
            ("cancel", [""]), ("move", ["task"]), ("move", ["task", "1", "r"]),
            ("done", []), ("done", ["task"]), ("done", ["task", ""]), ("retry", ["task", "0"]),
            ("touch", ["task"]), ("fence", ["4-a"]), ("fence", ["4-a", "x", "1"]),
            ("put", ["id", "1", "", "", "", "4-a", "1", "short"]),
            ("retry", ["task"]), ("retry", ["", "0"]), ("retry", ["task", "-1"]), ("look", []),
            ("list", []),
            ("look", ["relay", 0, 1, 1]), ("look", ["relay", 1001, 1, 1]), ("list", [0, 1001]),
            ("look", ["relay", 1, "x", 1]), ("look", ["r" * 65, 1, 1, 1]), ("peek", []),
            ("revive", []), ("revive", ["-"])):
        answer = call(redis, name, *arguments)
        expect(answer == [-22], name, arguments, answer)
    bounds = [b"tasks_max", 1, 1073741824]
    for arguments, named in ((["tasks_max"], bounds), (["tasks_max", 0], bounds),
                             (["what", 1], [b"what"]),
                             (["tasks_max", 5, "data_max", 1048577], [b"data_max", 0, 1048576])):
        reply = call(redis, "create", *arguments)
        expect(reply == [-22, *named] and picture(redis) == before, "create", arguments, reply)
    expect(call(redis, "create", "shards", 2) == [-17], "another number of shards")
    expect(call(redis, "create", "until", 1, "data_max", 1)[0] == -62, "a late create")
    expect(call(redis, "put", "id", "9" * 40, "", "")[0] == -34, "beyond 2^53")
    expect(call(redis, "put", "id", "1", "", "", "x")[0] == -62, "an until that is no time")
    expect(picture(redis) == before, "bad arguments have changed something")


def check_bounded_work(redis, monitor):
    """A sweep, by which timerhub_look ends leases, must read no data of taken tasks: the test calls
    each of its commands again and adds up the sizes of the replies. A sweep and stat must not call
    XPENDING without a range, because Redis then visits all consumers."""
    redis("FLUSHALL")
    call(redis, "create", "data_max", 1 << 20)
    for number in range(100):
        call(redis, "put", f"big-{number}", "0", "", "x" * (1 << 18))
    while look(redis)[5]:
        pass
    expect(len(read_all(redis)) == 100, "tasks taken")
    monitor("MONITOR")
    look_and_sweep(redis)
    call(redis, "stat")
    redis("PING")
    sizes = {}
    for line in iter(monitor.receive, None):
        words = re.findall(rb'"((?:[^"\\]|\\.)*)"', line)
        if words == [b"PING"]:
            break
        expect(words[0] != b"XPENDING" or len(words) > 3, "a summary:", words)
        if b" lua]" in line and b"readonly" in redis("COMMAND", "INFO", words[0])[0][2]:
            sizes[words[0]] = sizes.get(words[0], 0) + len(str(redis(*words)))
    expect(b"XRANGE" in sizes and sum(sizes.values()) < 1 << 18, "a look reads", sizes)
    redis("FLUSHALL")


def check_foreign(redis):
    """Entries that other programs write or delete must hold up no task, and must be counted."""
    bring_about(redis, "waiting")
    expect(call(redis, "put", "buried", "0", "", "") == [-114], "a parked id put again at once")
    redis("ZADD", QUEUE + "due", 1, "poison")
    redis("HSET", QUEUE + "task", "poison", "unreadable")
    expect(look_and_sweep(redis)[1] == 1, "look past what cannot be read")
    expect(redis("HEXISTS", QUEUE + "task", "poison") == 0, "the record is left")
    # Add an entry that has timerhub's fields, no record, and a lease that is over.
    entry = redis("XADD", QUEUE + "ready", "*", "id", "x", "due", 1, "n", 1, "data", "kept")
    read_all(redis)
    redis("XCLAIM", QUEUE + "ready", "timerhub", "c", 0, entry, "IDLE", 10**9, "JUSTID")
    look_and_sweep(redis)
    dead = redis("XRANGE", QUEUE + "dead", "-", "+")
    expect([fields[7] for _, fields in dead] == [b"attempts", b"record", b"record"], "dead", dead)
    expect(dead[2][1][9] == b"kept", "the data is lost")
    expect(redis("HGET", QUEUE + "state", "orphans") == b"2", "orphans")
    # Another program deletes an entry while a consumer has the entry's task.
    entry = redis("XRANGE", QUEUE + "ready", "-", "+")[0][0]
    redis("XDEL", QUEUE + "ready", entry)
    expect(call(redis, "retry", "task", 0, entry_of(redis, "task")) == [-2],
           "retry of what was deleted")


def check_dead_cut(redis):
    """What dead_max cuts off is counted. Redis cuts by whole nodes of the stream."""
    bring_about(redis, "none")
    call(redis, "create", "dead_max", 10)
    for number in range(300):
        call(redis, "put", f"cut-{number}", "0", "", "data")
    while redis("ZCARD", QUEUE + "due") > 0:
        look_and_sweep(redis)
    read_all(redis)
    for number in range(300):
        name = f"cut-{number}"
        expect(call(redis, "park", name, entry_of(redis, name), 7)[0] == 0, "park", name)
    left = redis("XLEN", QUEUE + "dead")
    cut = int(redis("HGET", QUEUE + "state", "dead_cut") or 0)
    expect(left < 300 and left + cut == 1 + 300, "parked tasks left, and cut", left, cut)
    stat = call(redis, "stat")
    expect(int(stat[stat.index(b"dead_cut") + 1]) == cut, "dead_cut of stat", stat)


def check_wiped(redis):
    """If the queue or its stream was deleted, the next look must make it again."""
    bring_about(redis, "taken")
    redis("DEL", QUEUE + "ready")
    call(redis, "put", "new", "0", "", "")
    look_and_sweep(redis)
    look_and_sweep(redis)
    # A relay that stays behind another's seat has no promise to wait for.
    redis("ZADD", QUEUE + "seats", 5, "relay", 0.1, "first")
    redis("DEL", QUEUE + "state")
    answer = look_and_sweep(redis)
    expect((answer[0], answer[3]) == (0, 1) and answer[2] > 0, "look without a promise", answer)
    redis("ZREM", QUEUE + "seats", "first")
    expect(len(read_all(redis)) == 1, "no group after the stream was deleted")
    redis("FLUSHALL")
    look(redis)
    expect(read_all(redis) == [], "no group after FLUSHALL")
    expect(redis("HGET", QUEUE + "state", "version") == b"2", "no version after FLUSHALL")
    # A parked periodic task is left of the queue before. Only layout 3 has its record.
    redis("XADD", QUEUE + "dead", "9-9", "id", "p", "due", 1, "n", 1, "why", "attempts", "data", "",
          "every", 1000)
    expect(call(redis, "revive", "9-9")[0] == 0, "revive of a periodic task")
    expect(redis("HGET", QUEUE + "state", "version") == b"3", "version after a periodic task")
    redis("FLUSHALL")
    redis("SET", QUEUE + "past", "x")
    refused(redis, "WRONGTYPE", "look", *ARGUMENTS["look"])  # no queue is made without a look


def repair(redis):
    stage, cursor, restored, removed = b"task", b"0", 0, 0
    for _ in range(1000):
        code, stage, cursor, back, gone = call(redis, "repair", stage, cursor)
        restored, removed = restored + back, removed + gone
        expect(code == 0, "repair", code)
        if stage == b"end":
            return restored, removed
    expect(False, "repair does not end")
    return None


def agrees(redis):
    records = dict(zip(*[iter(redis("HGETALL", QUEUE + "task"))] * 2))
    waiting = {name for name, record in records.items() if record[:1] == b"w"}
    entries = {(fields[1], entry) for entry, fields in redis("XRANGE", QUEUE + "ready", "-", "+")}
    return waiting == set(redis("ZRANGE", QUEUE + "due", 0, -1)) and entries == {
        (name, record.rsplit(b":", 1)[1]) for name, record in records.items()
        if record[:1] == b"r"} and len(records) == len(waiting) + len(entries)


def check_repair(redis):
    """repair must correct every disagreement of the keys, and must not change a sound queue."""
    for state in STATES:
        bring_about(redis, state)
        before = picture(redis)
        expect(repair(redis) == (0, 0) and picture(redis) == before, "a sound queue", state)
    bring_about(redis, "none")
    for number in range(300):
        call(redis, "put", f"kept-{number}", "never" if number % 2 else "0", "", "data")
    promote_all(redis)
    read = redis("XREADGROUP", "GROUP", "timerhub", "c", "COUNT", 20, "STREAMS", QUEUE + "ready",
                 ">")
    taken = [entry for entry, _ in read[0][1]]
    redis("XACK", QUEUE + "ready", "timerhub", taken[0])
    redis("XDEL", QUEUE + "ready", taken[0], taken[1])  # by hand, which leaves the records
    redis("HDEL", QUEUE + "task", *(fields[1] for _, fields in read[0][1][2:5]))
    redis("ZREM", QUEUE + "due", "kept-1", "kept-3")  # tasks that would never become due
    redis("ZADD", QUEUE + "due", "+inf", "nothing", "+inf", read[0][1][6][1][1])
    redis("HSET", QUEUE + "task", "unreadable", "x")
    redis("ZADD", QUEUE + "due", "+inf", "unreadable")
    redis("XADD", QUEUE + "ready", "*", "foreign", "entry")
    redis("XADD", QUEUE + "ready", "*", "id", read[0][1][7][1][1], "due", 1, "n", 1, "data", "")
    expect(not agrees(redis), "nothing was damaged")
    expect(repair(redis) == (5, 7), "repaired")
    expect(agrees(redis), "the keys disagree")
    expect(call(redis, "peek", "kept-1")[1] == b"waiting", "a task that waits is lost")
    expect(redis("HLEN", QUEUE + "task") == 298, "records")
    expect(redis("XPENDING", QUEUE + "ready", "timerhub")[0] == 18, "pending")
    expect(repair(redis) == (0, 0), "repaired again")
    # More ids than a step repairs, in a key that a scan returns as a whole.
    bring_about(redis, "none")
    for number in range(20):
        redis("ZADD", QUEUE + "due", "+inf", f"nothing-{number}")
    expect(repair(redis) == (0, 20) and agrees(redis), "ids without a record")
    # Repair an entry that another program has added and a consumer has read. Repeat this test after
    # the consumer group was destroyed.
    bring_about(redis, "none")
    redis("XADD", QUEUE + "ready", "*", "foreign", "entry")
    read_all(redis)
    expect(repair(redis) == (0, 1), "a foreign entry")
    expect(redis("XPENDING", QUEUE + "ready", "timerhub")[0] == 0, "pending")
    bring_about(redis, "taken")
    redis("XADD", QUEUE + "ready", "*", "foreign", "entry")
    redis("XDEL", QUEUE + "ready", redis("XRANGE", QUEUE + "ready", "-", "+")[0][0])
    redis("XGROUP", "DESTROY", QUEUE + "ready", "timerhub")
    expect(repair(redis) == (0, 2), "without a group")
    # If Redis refuses new entries in the key `dead`, the repair must change nothing.
    bring_about(redis, "none")
    redis("DEL", QUEUE + "dead")
    redis("SET", QUEUE + "dead", "x")
    redis("HSET", QUEUE + "task", "unreadable", "x")
    redis("ZADD", QUEUE + "due", "+inf", "unreadable", "+inf", "nothing")
    redis("XADD", QUEUE + "ready", "*", "foreign", "entry")
    before = picture(redis)
    expect(repair(redis) == (0, 0) and picture(redis) == before, "repaired without dead")
    # Give the records' key a wrong type. repair uses this key only in the middle of its work.
    bring_about(redis, "none")
    redis("XADD", QUEUE + "ready", "*", "foreign", "entry")
    redis("XADD", QUEUE + "ready", "*", "id", "x", "due", 1, "n", 1, "data", "")
    redis("SET", QUEUE + "task", "x")
    refused(redis, "WRONGTYPE", "repair", "ready", "")
    # A task that repair has put back is due now, and a relay must be woken.
    bring_about(redis, "never")
    redis("ZREM", QUEUE + "due", "task")
    redis("HSET", QUEUE + "state", "look_by", 2 * 10**15)
    expect(repair(redis) == (1, 0), "put back")
    expect(redis("ZSCORE", QUEUE + "due", "task") == redis("HGET", QUEUE + "state", "look_by"),
           "no relay is told")
    for arguments in ([], ["task"], ["task", "x"], ["what", "0"], ["ready", "x"], ["ready"]):
        expect(call(redis, "repair", *arguments) == [-22], "repair", arguments)


def check_bytes(redis):
    """What list, each, pause and repair read must be bounded in bytes too."""
    bring_about(redis, "none")
    call(redis, "create", "data_max", 1048576)
    for number in range(4):
        call(redis, "put", f"big-{number}", "never", "", "x" * 600000)
        call(redis, "put", f"due-{number}", "0", "", "x" * 600000)
    expect(len(call(redis, "list", 0, 1000)) == 1 + 2 * 5, "list reads too many bytes")
    expect(len(call(redis, "each", "waiting", "d0-0::", 1000)) == 2 + 2 * 8, "each, due")
    expect(call(redis, "repair", "task", "0")[1] == b"task", "repair reads too many records")
    promote_all(redis)
    first = redis("XRANGE", QUEUE + "ready", "-", "+")[0][0]
    expect(call(redis, "repair", "ready", "")[1:3] == [b"ready", b"(" + first],
           "repair reads too many bytes")
    check_steps(redis)
    for number in range(4):
        call(redis, "move", f"big-{number}", "0", "")
    promote_all(redis)
    # As after a restart: a scan reads a small hash as a whole.
    redis("RESTORE", QUEUE + "task", 0, redis("DUMP", QUEUE + "task"), "REPLACE")
    check_steps(redis)
    expect(len(call(redis, "each", "waiting", "", 1000)) == 2 + 8, "each reads too many bytes")
    expect(call(redis, "pause")[1] == first, "pause reads too many bytes")
    expect(agrees(redis), "a sound queue")


def check_steps(redis):
    """A step of repair must read the data of at most one record or one entry."""
    stage, cursor = b"task", b"0"
    while stage != b"end":
        redis("CONFIG", "RESETSTAT")
        _, stage, cursor, *changed = call(redis, "repair", stage, cursor)
        counts = dict(re.findall(r"cmdstat_(hget|xrange):calls=(\d+)",
                                 redis("INFO", "commandstats").decode()))
        expect(all(int(count) <= 1 for count in counts.values()), "repair reads", counts)
        expect(changed == [0, 0], "a sound queue")


def check_dead_seats(redis):
    """A put must try a few relays, however many have died."""
    redis("FLUSHALL")
    for number in range(20):
        redis("ZADD", QUEUE + "seats", number, f"dead-{number}")
    expect(call(redis, "put", "task", "0", "", "")[0] == 0, "put")
    expect(redis("ZCARD", QUEUE + "seats") == 20 - 8, "seats that a put has not tried")


def check_each_between_changes(redis):
    """`each` lists tasks in steps. If the last task of a step is cancelled before the next step,
    every other task must still be listed once, also among tasks of the same time."""
    bring_about(redis, "none")
    expect(redis("EVAL", "return 'B' > 'a'", 0) == 1, "OTHER_ORDER is not loaded")
    names = sorted(b"%c-%d" % (65 + number % 2 * 32, number) for number in range(16))
    for name in reversed(names):
        call(redis, "put", name, 10**15 * 5, "a", "")
    told, cursor = [], ""
    while True:
        answer = call(redis, "each", "waiting", cursor, 2)
        cursor = answer[1]
        told += answer[2::8]
        if cursor == b"":
            break
        if len(answer) > 2:
            expect(call(redis, "cancel", told[-1]) == [0], "cancel")
    expect(told == names, "told:", told)


def check_consumers(redis, path):
    """Consumers that have not read for a long time must be forgotten, unless they hold an entry."""
    text = library(path).replace("CONSUMER_IDLE_MS, CONSUMERS_EVERY_US = 86400000,",
                                 "CONSUMER_IDLE_MS, CONSUMERS_EVERY_US = -1,")
    redis("FUNCTION", "LOAD", "REPLACE", text)
    bring_about(redis, "taken")
    redis("XGROUP", "CREATECONSUMER", QUEUE + "ready", "timerhub", "idle")
    look(redis)
    names = [one[1] for one in redis("XINFO", "CONSUMERS", QUEUE + "ready", "timerhub")]
    expect(names == [b"c"], "consumers left:", names)
    # timerhub_look sweeps idle consumers only once in an hour. A second call of timerhub_look must
    # not remove the idle consumer.
    redis("XGROUP", "CREATECONSUMER", QUEUE + "ready", "timerhub", "idle")
    look_and_sweep(redis)
    expect(len(redis("XINFO", "CONSUMERS", QUEUE + "ready", "timerhub")) == 2, "asked again")


def main(arguments):
    with Server(environment={"LD_PRELOAD": arguments[2]}) as server:
        redis = server.client()
        redis("FUNCTION", "LOAD", "REPLACE", library(arguments[1]))
        check_wrong_types(redis)
        check_dead_of_wrong_type(redis)
        check_full(redis)
        check_no_channel(redis, server.client())
        check_exhausted_stream(redis)
        check_bad_arguments(redis)
        check_bad_keys(redis)
        check_bounded_work(redis, server.client())
        check_foreign(redis)
        check_dead_cut(redis)
        check_wiped(redis)
        check_bytes(redis)
        check_dead_seats(redis)
        check_repair(redis)
        check_each_between_changes(redis)
        check_consumers(redis, arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
