#!lua name=timerhub
-- SPDX-License-Identifier: MIT
-- Keeps delayed tasks in Redis: a library of Redis functions for the protocol of timerhub-relay(5).
--
-- A queue is eight keys with one hash tag. A caller names all keys of a function in their order, or
-- only {QUEUE}. Every reply begins with 0 or a negative errno. Times are whole microseconds of
-- Redis's clock since 1970, which a double holds exactly until 2255. The work of each function is
-- bounded, however many tasks there are. The functions of operators are in operators.lua.
--
-- If a function fails in the middle, Redis keeps what it has done until then. So each function makes
-- all checks before its first change, and also reads its keys first, because a read fails if a key
-- has the wrong type.
--
-- A look is a call of timerhub_look, by which a relay moves due tasks into the stream of ready
-- tasks. A bell is a message that asks for an earlier look. tests/relay compares the functions with
-- a model.

-- Each version of this file has names of its own, so that clients of several versions can use one
-- queue side by side: they load it with the library's name timerhub4 and the prefix timerhub4_. As
-- it stands here, with plain names, it is the contract for other languages, which only grows.
local VERSION = 4
local PREFIX = 'timerhub_'
-- The latest layout of the keys that this file can read. Layout 2 added the records of stage `c`,
-- and layout 3 those of periodic tasks, `p` and `q`. A queue has layout 2 until a periodic task is
-- put.
local LAYOUT, LAYOUT_PERIODIC = 3, 3
local LAYOUT_FIRST = 2
local CALL = 8  -- bytes of the argument `call` of a put
local GROUP = 'timerhub'

local ENOENT, EAGAIN, EBUSY, EEXIST, EINVAL = -2, -11, -16, -17, -22
local ERANGE, ETIME, EMSGSIZE, EOPNOTSUPP, EALREADY, ESTALE = -34, -62, -90, -95, -114, -116

local ID_MAX = 64
local LAST_US = 9007199254740991  -- 2^53 - 1
local PUT_OFF_US = 15000000  -- largest failover delay, without rank times grace
local CHUNK = 16  -- most records or entries that a look or repair reads at a time
local LOOK_BYTES = 1048576
local FORGET_PAST, FORGET_SEEN, SWEEP, ACKED = 1000, 16, 512, 256  -- bounds of one timerhub_look
local CONSUMER_IDLE_MS, CONSUMERS_EVERY_US = 86400000, 3600000000
local SEATS_RUNG = 8
local OVERDUE_US = 1000000  -- if a promised look is overdue by more than this, the relays are dead
local PUTS = 128  -- largest number of tasks of one timerhub_puts
local BUCKETS = 64  -- number of buckets in the histogram of lateness

-- While Redis loads a library, Lua has no global variables, but strings already have their methods.
-- So the first call of a function copies these globals, which are also faster as locals.
local function globals()
    return redis.call, redis.pcall, tonumber, type
end

local redis_call, redis_pcall, tonumber, type
local byte, find, format, match, sub = ('').byte, ('').find, ('').format, ('').match, ('').sub

local DEFAULTS = {
    {name = 'tasks_max', value = 1048576, least = 1, most = 1073741824},
    {name = 'data_max', value = 65536, least = 0, most = 1048576},
    {name = 'attempts_max', value = 25, least = 0, most = 1000000},
    {name = 'lease_us', value = 30000000, least = 1000, most = 31536000000000},
    {name = 'past_us', value = 60000000, least = 0, most = 31536000000000},
    {name = 'dead_max', value = 10000, least = 0, most = 1073741824},
    {name = 'shards', value = 1, least = 1, most = 64},
    {name = 'shard', value = 0, least = 0, most = 63},
}

local DEFAULT = {} -- default value of each setting, by name
local SETTINGS = {'version', 'paused'} -- fields that settings() reads: these two, then all settings
for index = 1, #DEFAULTS do
    DEFAULT[DEFAULTS[index].name] = DEFAULTS[index].value
    SETTINGS[index + 2] = DEFAULTS[index].name
end

local function now_us()
    local time = redis_call('TIME')
    return time[1] * 1000000 + time[2] -- arithmetic converts text faster than tonumber()
end

-- Returns a whole number as text. Lua's tostring() and `..` lose digits of large numbers. Redis
-- would print a number that is an argument of redis.call with all digits, but that takes twice as
-- long.
local function text(number)
    return format('%d', number)
end

-- Returns a due time as the text of a sorted set's score. It is infinite if the task is due only
-- after a move, and text() cannot convert infinity.
local function score_of(due)
    return due == math.huge and '+inf' or text(due)
end

local function whole(word)
    if word and #word <= 16 and find(word, '^%d+$') then
        return tonumber(word)
    end
end

local function is_id(id)
    return id and #id >= 1 and #id <= ID_MAX
end

-- Returns whether a new task may have this id. A zero byte would end the id in C.
local function is_new_id(id)
    return is_id(id) and not find(id, '%z')
end

-- Returns the fields of a task's record, as text: stage, attempts, time of the put, `rest`, call
-- and `every`; nil if the record is damaged.
--
-- A task that waits has the stage `w`, and its data in `rest`. One that is in the stream has the
-- stage `r`, and its entry's id in `rest`. A record that begins with `c` also waits; it was never
-- in the stream, and has the number of the call that put it. Records of periodic tasks begin with
-- `p` and `q` instead of `w` and `r`, and have `every`: the interval, and after a retry, which
-- gives the task another due time, an @ and the time of its period.
local function parse(record)
    record = record or ''
    local put_us, at = match(record, '^c(%d+):()')
    if put_us and #record >= at + CALL - 1 then
        return 'w', '0', put_us, sub(record, at + CALL), sub(record, at, at + CALL - 1)
    end
    local stage, attempts, put, rest = match(record, '^([wr])(%d+):(%d+):()')
    if stage then
        return stage, attempts, put, sub(record, rest)
    end
    local every
    stage, attempts, put, every, rest = match(record, '^([pq])(%d+):(%d+):([%d@]+):()')
    if stage then
        return stage == 'p' and 'w' or 'r', attempts, put, sub(record, rest), nil, every
    end
end

-- Returns a task's record with these fields. `attempts` and `put` are text; `every` is nil if the
-- task is not periodic.
local function record_of(stage, attempts, put, rest, every)
    if every then
        return (stage == 'w' and 'p' or 'q') .. attempts .. ':' .. put .. ':' .. every .. ':' .. rest
    end
    return stage .. attempts .. ':' .. put .. ':' .. rest
end

-- Returns the number of attempts plus one, as text. Most attempts are the first, for which a
-- constant saves the 0.2 us of format().
local function next_attempt(attempts)
    return attempts == '0' and '1' or text(attempts + 1)
end

local function settings(state)
    local values = redis_call('HMGET', state, unpack(SETTINGS))
    local found = {version = tonumber(values[1] or nil), paused = values[2] and true}
    for index, setting in ipairs(DEFAULTS) do
        found[setting.name] = tonumber(values[index + 2] or setting.value) or setting.value
    end
    return found
end

-- Returns the due time for the argument `when`, which is a delay, or with the flag `a` a time.
-- Returns nil if it is not a number, and false if the due time is out of range.
local function due_of(when, flags, now)
    if when == 'never' then
        return math.huge
    end
    if not when or not find(when, '^%d+$') then
        return nil
    end
    local due = tonumber(when)
    if flags == '' or not find(flags, 'a', 1, true) then
        due = now + due
    end
    return due <= LAST_US and due
end

-- Returns a due time as a reply shows it, where -1 means never.
local function reply_of(due)
    return due == math.huge and -1 or due
end

-- ---- ring: wake relays for a task that is due before the promised call of timerhub_look ----

-- Returns the prefix that the names of all keys and channels of the queue have.
local function prefix(state)
    return sub(state, 1, -6)
end

-- Prepares ring() for a task that is due at `due`. Returns nil if a relay has promised to look in
-- time (look_by). Otherwise returns the relays to wake, in their order, and `at`, the time by which
-- one must look. That is never before now, because a promise of a past time counts as broken. If
-- look_by is absent, no relay has promised anything. If it is long past, the relays that promised
-- are dead or hang; then `at` is now and `dead` is true. ring() must not fail, so its keys are read
-- here, and here the user's right to the channels is checked, which Redis 7 gives to no new user.
local function find_seats(look_by, state, seats, due, now)
    local promised, at = tonumber(look_by or nil) or math.huge, due > now and due or now
    local dead = now > promised + OVERDUE_US
    if dead then
        at = now
    elseif at >= promised then
        return nil
    end
    local relays = redis_call('ZRANGE', seats, 0, SEATS_RUNG - 1)
    local bell = prefix(state) .. 'bell'
    if not redis.acl_check_cmd('PUBLISH', bell, '') then
        error({err = 'NOPERM this user may not publish to the channel ' .. bell})
    end
    return {at = at, relays = relays, dead = dead}
end

-- Returns, as text, look_by, the fence of a holder (the field with his name) and the layout's
-- version.
local function look_by_of(state, holder)
    local told = redis_call('HMGET', state, 'look_by', holder or '', 'version')
    return told[1], told[2], told[3]
end

-- Publishes a bell, which asks for a look at `due`, to the relays `found`, until two have received
-- it. A relay that is not subscribed has lost its connection, so its registration in `seats` is
-- removed. Returns how many relays have received the bell.
local function ring_seats(state, seats, found, due)
    local place = 0
    for _, relay in ipairs(found) do
        local bell = prefix(state) .. 'bell:' .. relay
        if redis_call('PUBLISH', bell, text(due) .. ' ' .. place) > 0 then
            place = place + 1
        else
            redis_call('ZREM', seats, relay)
        end
        if place == 2 then
            break
        end
    end
    return place
end

-- Wakes relays, so that one looks at found.at. If the promised look is long overdue (found.dead),
-- wakes all relays, because the first ones may hang: their bells arrive, and they do not look. Then
-- look_by stays as it is, so that the next look finds the promise broken.
local function ring(state, seats, found)
    if not found then
        return
    end
    if not found.dead then
        redis_call('HSET', state, 'look_by', text(found.at))
    end
    if ring_seats(state, seats, found.relays, found.at) == 0 or found.dead then
        redis_call('PUBLISH', prefix(state) .. 'bell', text(found.at))
    end
end

-- ---- entries of the stream of ready tasks ----

-- Returns whether the entry id `a` is below `b`. An entry id is a pair of numbers, which may have
-- more digits than a double holds. Lua compares texts by the server's locale, but all locales have
-- the digits in one order.
local function is_below(a, b)
    local a_ms, a_seq = match(a, '^0*(%d-)%-0*(%d-)$')
    local b_ms, b_seq = match(b, '^0*(%d-)%-0*(%d-)$')
    if a_ms ~= b_ms then
        return #a_ms < #b_ms or (#a_ms == #b_ms and a_ms < b_ms)
    end
    return #a_seq < #b_seq or (#a_seq == #b_seq and a_seq < b_seq)
end

-- Returns the id of the last entry that was delivered to a consumer, and how many entries are
-- pending, or nil if the consumer group does not exist. XPENDING without a range would count them
-- too, but visits all consumers.
local function last_delivered(ready)
    if redis_call('EXISTS', ready) == 0 then
        return nil
    end
    for _, group in ipairs(redis_call('XINFO', 'GROUPS', ready)) do
        if group[2] == GROUP then
            return group[8], group[6]
        end
    end
end

-- Returns the first pending entry of a range: its id, consumer, idle time and deliveries.
local function pending_of(ready, from, to)
    return redis_call('XPENDING', ready, GROUP, from, to or from, 1)[1]
end

-- Returns whether an entry is 'undelivered', 'taken' or 'finished'. It is finished if a consumer
-- has acknowledged it by a plain XACK.
local function find_entry(ready, entry)
    local last = last_delivered(ready)
    if last and pending_of(ready, entry) then
        return 'taken'
    end
    if last and not is_below(last, entry) then
        return 'finished'
    end
    return 'undelivered'
end

-- Returns the fields `id`, `due` (as text), `n`, `data` and, of a periodic task, `every` of an
-- entry. Returns nil if there is no entry, or if another program has written it.
local function entry_fields(entry)
    local fields = entry and entry[2]
    if fields and (#fields == 8 or (#fields == 10 and fields[9] == 'every')) and
        fields[1] == 'id' and fields[3] == 'due' and fields[5] == 'n' and fields[7] == 'data' then
        return fields[2], fields[4], tonumber(fields[6]), fields[8], fields[10]
    end
end

local function read_entry(ready, entry)
    return redis_call('XRANGE', ready, entry, entry)[1]
end

-- Adds an entry to the stream of ready tasks. `attempts` is text. Returns the entry's id, or an
-- error, which is a table.
local function add_entry(ready, id, due, attempts, data, every)
    if every then
        return redis_pcall('XADD', ready, '*', 'id', id, 'due', due, 'n', attempts, 'data', data,
            'every', every)
    end
    return redis_pcall('XADD', ready, '*', 'id', id, 'due', due, 'n', attempts, 'data', data)
end

-- Adds an entry to the key `dead`, the stream of parked tasks. That may cut off its oldest entries,
-- which are counted. `every` is nil if the task is not periodic. Returns an error, which is a
-- table, if Redis refuses the entry.
local function bury(dead, most, id, due, attempts, why, data, every)
    local before = redis_pcall('XLEN', dead)
    local fields = {'id', id, 'due', due, 'n', text(attempts), 'why', why, 'data', data}
    if every then
        fields[11], fields[12] = 'every', match(every, '^%d+')
    end
    local added = redis_pcall('XADD', dead, 'MAXLEN', '~', text(most), '*', unpack(fields))
    if type(added) ~= 'table' then
        local cut = before + 1 - redis_call('XLEN', dead)
        if cut > 0 then
            redis_call('HINCRBY', prefix(dead .. ' ') .. 'state', 'dead_cut', cut)
        end
    end
    return added
end

local function acknowledge(ready, entry)
    redis_call('XACK', ready, GROUP, entry)
    redis_call('XDEL', ready, entry)
end

-- Removes a task that has ended. The arguments behind `now` are the command that withdraws the
-- task. The queue refuses further puts of this id until past_us after the put, so that a client can
-- repeat a put whose reply was lost. The key `past` has these ids. If a key has the wrong type,
-- changes nothing and returns the error, a table.
local function finish(task, past, id, put, past_us, now, ...)
    local refused_until = put + past_us
    local noted = refused_until > now and redis_pcall('ZADD', past, text(refused_until), id)
    if type(noted) == 'table' then
        return noted
    end
    local withdrawn = ... and redis_pcall(...)
    if type(withdrawn) == 'table' then
        redis_call('ZREM', past, id)
        return withdrawn
    end
    redis_call('HDEL', task, id)
end

-- Returns past_us, and as text the fence of a holder and the layout's version.
local function past_us_of(state, holder)
    local told = redis_call('HMGET', state, 'past_us', holder or '', 'version')
    return told[1] or DEFAULT.past_us, told[2], told[3]
end

-- Returns 0, and the stage, put time, `rest` and `every` of a task's record, or an error. If
-- `delivery` is not nil, it must be the id of the entry of the task's latest delivery.
local function find_task(task, id, delivery)
    if not is_id(id) or delivery == '' then
        return EINVAL
    end
    local record = redis_call('HGET', task, id) or nil
    if delivery and record then
        local put_us, entry = match(record, '^r%d+:(%d+):(.*)$')
        if entry == delivery then
            return 0, 'r', put_us, entry
        end
    end
    local stage, _, put_us, rest, _, every = parse(record)
    if not stage then
        return ENOENT
    end
    if delivery and not (stage == 'r' and rest == delivery) then
        return ESTALE
    end
    return 0, stage, put_us, rest, every
end

-- ---- the life that a change belongs to ----

-- Returns the reply that refuses to find or change a task: `code`, or -EOPNOTSUPP if the keys have
-- a later layout, which this file cannot read.
local function refuse(state, code)
    local version = redis_call('HGET', state, 'version')
    return {(tonumber(version or nil) or 0) > LAYOUT and EOPNOTSUPP or code}
end

-- Returns whether a holder's name is valid. The name becomes a field of `state`, so it begins as no
-- other field does.
local function is_holder(holder)
    return is_id(holder) and find(holder, '^%d+%-') ~= nil
end

-- Returns nil if a change may be made, or the reply that refuses it. `limit` is the time at which
-- the caller gives up: a command that arrives later must change nothing. `holder` is the caller's
-- name, and `fence` the smallest epoch of this holder that is not refused (timerhub_fence).
-- `version` is that of the keys' layout.
local function refusal_of_late(now, limit, holder, epoch, fence, version)
    if version and tonumber(version) > LAYOUT then
        return {EOPNOTSUPP}
    end
    if holder and not is_holder(holder) then
        return {EINVAL}
    end
    if limit and limit ~= '' and now > (tonumber(limit) or -1) then
        return {ETIME, now}
    end
    if fence and (tonumber(epoch) or -1) < tonumber(fence) then
        return {ETIME, now, 1}
    end
end

-- Refuses from now on the changes of a holder's earlier epochs, which may still be on their way.
-- The fence is forgotten at `limit`, when the last of their callers has given up.
-- Keys: `state`, `seen`.
-- Arguments: `holder`, `epoch`, `until`.
local function fence(keys, args)
    local state, seen, holder = keys[1], keys[2], args[1]
    local epoch, limit = whole(args[2]), whole(args[3])
    if not is_holder(holder) or not epoch or not limit then
        return {EINVAL}
    end
    local now = now_us()
    local was = tonumber(redis_call('HGET', state, holder) or nil) or 0
    redis_call('ZADD', seen, 'GT', text(limit), 'fence:' .. holder)
    redis_call('HSET', state, holder, text(math.max(was, epoch)))
    return {0, now}
end

-- ---- functions of producers ----

-- Returns the record of a new task. `stamp` is the time now as text.
local function new_record(stamp, call, data, every)
    if every then
        return record_of('w', '0', stamp, data, every)
    end
    return call and 'c' .. stamp .. ':' .. call .. data or record_of('w', '0', stamp, data)
end

-- Inserts a task. With an `r` in `flags` it may also replace a task that waits. If the waiting task
-- was put by this very call, whose reply was lost, the reply is 0.
local function insert(keys, id, due, flags, data, now, look_by, call, every)
    local due_key, task, state, seats = keys[1], keys[2], keys[3], keys[4]
    local found = find_seats(look_by, state, seats, due, now)
    local value = new_record(text(now), call, data, every)
    if redis_call('HSETNX', task, id, value) == 0 then
        local stage, _, _, _, by = parse(redis_call('HGET', task, id) or nil)
        if call and by == call then
            return {0, reply_of(tonumber(redis_call('ZSCORE', due_key, id) or nil) or due), now}
        end
        if not find(flags, 'r', 1, true) or stage ~= 'w' then
            return {EEXIST}
        end
        redis_call('ZADD', due_key, score_of(due), id)
        redis_call('HSET', task, id, value)
    else
        local added = redis_pcall('ZADD', due_key, score_of(due), id)
        if type(added) == 'table' then
            redis_call('HDEL', task, id)
            return added
        end
    end
    ring(state, seats, found)
    return {0, reply_of(due), now}
end

-- Checks the arguments of a put. Returns 0, the due time, and the interval of a periodic task as
-- text, or an error.
local function read_put(id, when, flags, data, call, now)
    if not is_new_id(id) or not data or (call and #call ~= CALL) then
        return EINVAL
    end
    local every
    if flags ~= '' then
        local letters, interval = match(flags, '^([adr]*)e?(%d*)$')
        if not letters or (interval ~= '') ~= (find(flags, 'e', 1, true) ~= nil) then
            return EINVAL
        end
        every = interval ~= '' and interval or nil
        if every and not (whole(every) and tonumber(every) >= 1) then
            return ERANGE
        end
    end
    local due = due_of(when, flags, now)
    if not due then
        return due == nil and EINVAL or ERANGE
    end
    return 0, due, every
end

-- Notes that the queue has periodic tasks, whose records programs of layout 2 cannot read.
local function note_periodic(state, version)
    if (tonumber(version or nil) or 0) < LAYOUT_PERIODIC then
        redis_call('HSET', state, 'version', LAYOUT_PERIODIC)
    end
end

-- Returns tasks_max and data_max, and as text look_by, the fence of a holder and the layout's
-- version.
local function limits_of(state, holder)
    local told = redis_call('HMGET', state, 'tasks_max', 'data_max', 'look_by', holder or '',
        'version')
    return told[1] or DEFAULT.tasks_max, (told[2] or DEFAULT.data_max) + 0, told[3], told[4],
        told[5]
end

-- Returns how many tasks still fit in the queue, and how many ids are in `past`. Ids there that
-- have expired since the last look are subtracted only if there is no room for `count` tasks
-- otherwise.
local function room_of(task, past, tasks_max, count, now)
    local past_count = redis_call('ZCARD', past)
    local room = tasks_max - past_count - redis_call('HLEN', task)
    if room < count and past_count > 0 then
        room = room + redis_call('ZCOUNT', past, '-inf', text(now))
    end
    return room, past_count
end

-- Returns 0 if a put may be made, or the error. `room` is the number of tasks that still fit in the
-- queue. If the id's task has ended, puts of the id are refused until `refused_until`, a time as
-- text. The flag `r` allows them. With the flag `d` the put is sent again, and `r` does not count:
-- the first sending may have put the task that has ended. The second value is true if the put needs
-- no room because it takes the place that the id has in `past`.
local function refusal_of(room, data_max, refused_until, is_known, flags, data, now)
    local is_past = refused_until and tonumber(refused_until) > now
    if is_past and (not find(flags, 'r', 1, true) or find(flags, 'd', 1, true)) then
        return EALREADY
    end
    if #data > data_max then
        return EMSGSIZE
    end
    if room <= 0 and not is_past and not (is_known and find(flags, 'r', 1, true)) then
        return is_known and EEXIST or EAGAIN
    end
    return 0, is_past
end

-- Puts a task. `call` has CALL bytes, which no other put of this id has.
-- Keys: `due`, `task`, `state`, `seats`, `past`.
-- Arguments: `id`, `when`, `flags`, `data`, optionally `until`, `holder`, `epoch`, `call`.
local function put(keys, args)
    local id, flags, data, holder, call = args[1], args[3], args[4], args[6], args[8]
    local now = now_us()
    local result, due, every = read_put(id, args[2], flags, data, call, now)
    if result ~= 0 then
        return {result}
    end
    local tasks_max, data_max, look_by, fenced, version = limits_of(keys[3], holder)
    local late = refusal_of_late(now, args[5], holder, args[7], fenced, version)
    if late then
        return late
    end
    local room, past_count = room_of(keys[2], keys[5], tasks_max, 1, now)
    local known = room <= 0 and redis_call('HGET', keys[2], id)
    if known and call and select(5, parse(known)) == call then
        room, known = 1, nil
    end
    local refused_until = past_count > 0 and redis_call('ZSCORE', keys[5], id)
    result = refusal_of(room, data_max, refused_until, known, flags, data, now)
    if result ~= 0 then
        return {result}
    end
    if every then
        note_periodic(keys[3], version)
    end
    local reply = insert(keys, id, due, flags, data, now, look_by, call, every)
    if refused_until and reply[1] == 0 then
        redis_call('ZREM', keys[5], id)
    end
    return reply
end

-- Puts several tasks, at most PUTS. Each key is read and written once for all of them. The reply is
-- 0, the time now, and for each task a result code and a due time.
-- Keys: `due`, `task`, `state`, `seats`, `past`.
-- Arguments: `holder`, `epoch`, and for each put `id`, `when`, `flags`, `data`, `until`, `call`.
local function puts(keys, args)
    if #args < 8 or #args % 6 ~= 2 or #args > 6 * PUTS + 2 then
        return {EINVAL}
    end
    local now, holder, epoch = now_us(), args[1] ~= '' and args[1] or nil, args[2]
    local tasks_max, data_max, look_by, fenced, version = limits_of(keys[3], holder)
    local late = refusal_of_late(now, nil, holder, epoch, fenced, version)
    if late then
        return late
    end
    local ids = {}
    for index = 3, #args, 6 do
        ids[#ids + 1] = args[index]
    end
    local room, past_count = room_of(keys[2], keys[5], tasks_max, #ids, now)
    local records = redis_call('HMGET', keys[2], unpack(ids))
    local refused = past_count > 0 and redis_call('ZMSCORE', keys[5], unpack(ids)) or {}
    local reply, scores, values, size, anew = {0, now}, {}, {}, 0, {}
    local has_periodic, written, earliest, stamp = false, {}, math.huge, text(now)
    for index, id in ipairs(ids) do
        local at, own = 6 * index - 3, written[id]
        local record = own and values[own] or records[index]
        local flags, data, limit = args[at + 2], args[at + 3], args[at + 4]
        local call = args[at + 5] ~= '' and args[at + 5] or nil
        local result, due, every = read_put(id, args[at + 1], flags, data, call, now)
        local refused_until, is_past, stage, by, _ = not own and refused[index]
        if record then
            stage, _, _, _, by = parse(record)
        end
        local is_ours = call and by == call
        if result == 0 and limit ~= '' and now > (tonumber(limit) or -1) then
            result = ETIME
        elseif result == 0 then
            result, is_past = refusal_of(is_ours and 1 or room, data_max, refused_until,
                not is_ours and record, flags, data, now)
        end
        if is_ours then
            local score = own and scores[own - 1] or redis_call('ZSCORE', keys[1], id)
            due = tonumber(score or nil) or due
        end
        if result == 0 and record and not is_ours and
            (not find(flags, 'r', 1, true) or stage ~= 'w') then
            result = EEXIST
        end
        if result == 0 and not is_ours then
            local value = new_record(stamp, call, data, every)
            has_periodic = has_periodic or every
            anew[#anew + 1] = refused_until and id or nil
            scores[size + 1], scores[size + 2] = score_of(due), id
            values[size + 1], values[size + 2] = id, value
            size, written[id] = size + 2, size + 2
            room = (record or is_past) and room or room - 1
            earliest = due < earliest and due or earliest
        end
        reply[2 * index + 1] = result
        reply[2 * index + 2] = result == 0 and reply_of(due) or 0
    end
    if size > 0 then
        local found = find_seats(look_by, keys[3], keys[4], earliest, now)
        -- ZADD comes before HSET, because ZADD can fail on a key of the wrong type. HSET cannot
        -- fail, because the earlier HMGET has read the key of HSET.
        if has_periodic then
            note_periodic(keys[3], version)
        end
        redis_call('ZADD', keys[1], unpack(scores))
        redis_call('HSET', keys[2], unpack(values))
        if #anew > 0 then
            redis_call('ZREM', keys[5], unpack(anew))
        end
        ring(keys[3], keys[4], found)
    end
    return reply
end

-- Cancels a task that no consumer has taken.
-- Keys: `due`, `task`, `ready`, `state`, `past`.
-- Arguments: `id`, optionally `until`, `holder`, `epoch`.
local function cancel(keys, args)
    local due_key, task, ready, state, past = keys[1], keys[2], keys[3], keys[4], keys[5]
    local id = args[1]
    local result, stage, put_us, entry = find_task(task, id)
    if result ~= 0 then
        return refuse(state, result)
    end
    local now, past_us, fenced, version = now_us(), past_us_of(state, args[3])
    local late = refusal_of_late(now, args[2], args[3], args[4], fenced, version)
    if late then
        return late
    end
    local command, key, member = 'ZREM', due_key, id
    if stage == 'r' then
        local where = find_entry(ready, entry)
        if where == 'taken' then
            return {EBUSY}
        end
        command, key, member = 'XDEL', ready, entry
        result = where == 'finished' and ENOENT or 0
    end
    return finish(task, past, id, put_us, past_us, now, command, key, member) or {result}
end

-- Returns 0, and the attempts and data of an entry that was not delivered yet, or the error if it
-- was delivered or is missing.
local function find_undelivered(ready, entry)
    local where = find_entry(ready, entry)
    if where == 'taken' then
        return EBUSY
    end
    local _, _, attempts, data = entry_fields(read_entry(ready, entry))
    if where == 'finished' or not attempts then
        return ENOENT
    end
    return 0, attempts, data
end

-- Changes a task's due time.
-- Keys: `due`, `task`, `ready`, `state`, `past`, `seats`.
-- Arguments: `id`, `when`, `flags`, optionally `until`, `holder`, `epoch`.
local function move(keys, args)
    local due_key, task, ready, state, seats = keys[1], keys[2], keys[3], keys[4], keys[6]
    local id, when, flags = args[1], args[2], args[3]
    if not flags or find(flags, '[^a]') then
        return {EINVAL}
    end
    local now = now_us()
    local due = due_of(when, flags, now)
    if not due then
        return {due == nil and EINVAL or ERANGE}
    end
    local result, stage, put_us, entry, every = find_task(task, id)
    if result ~= 0 then
        return refuse(state, result)
    end
    every = every and match(every, '^%d+')
    local look_by, fenced, version = look_by_of(state, args[5])
    local late = refusal_of_late(now, args[4], args[5], args[6], fenced, version)
    if late then
        return late
    end
    local found = find_seats(look_by, state, seats, due, now)
    if stage == 'r' then
        local attempts, data
        result, attempts, data = find_undelivered(ready, entry)
        if result ~= 0 then
            return {result}
        end
        redis_call('ZADD', due_key, score_of(due), id)
        redis_call('HSET', task, id, record_of('w', text(attempts - 1), put_us, data, every))
        redis_call('XDEL', ready, entry)
    else
        redis_call('ZADD', due_key, score_of(due), id)
        if every then -- the new time begins the periods anew
            local _, attempts, _, data = parse(redis_call('HGET', task, id))
            redis_call('HSET', task, id, record_of('w', attempts, put_us, data, every))
        end
    end
    ring(state, seats, found)
    return {0, reply_of(due), now}
end

-- ---- functions of consumers ----

-- Makes a periodic task wait for its next period, with 0 attempts. `entry` is that of the task's
-- latest delivery. `periods` is the number of periods that this delivery ends. If it is nil, the
-- delivery ends all periods that have begun.
local function begin_period(keys, id, put_us, entry, every, periods, now)
    local due_key, task, ready, state = keys[1], keys[2], keys[3], keys[4]
    local seats = keys[6] or prefix(state) .. 'seats'
    local _, was_due, _, data = entry_fields(read_entry(ready, entry))
    local interval, base = match(every, '^(%d+)@?(%d*)$')
    base = tonumber(base ~= '' and base or was_due or nil)
    if not data or not base then
        return {ENOENT}
    end
    interval = tonumber(interval)
    periods = periods and periods >= 1 and periods or
        math.max(1, 1 + math.floor((now - base) / interval))
    local due = base + periods * interval
    if due > LAST_US then
        due = math.huge
    end
    local found = find_seats((look_by_of(state)), state, seats, due, now)
    redis_call('ZADD', due_key, score_of(due), id)
    redis_call('HSET', task, id, record_of('w', '0', put_us, data, match(every, '^%d+')))
    acknowledge(ready, entry)
    ring(state, seats, found)
    return {0, reply_of(due), now}
end

-- Ends a task that is done, or the present period of a periodic task.
-- Keys: `due`, `task`, `ready`, `state`, `past`, optionally `seats`.
-- Arguments: `id`, `entry`, optionally `until`, `holder`, `epoch`, `periods`.
local function done(keys, args)
    local task, ready, state, past = keys[2], keys[3], keys[4], keys[5]
    local id = args[1]
    local result, _, put_us, entry, every = find_task(task, id, args[2] or '')
    if result ~= 0 then
        return refuse(state, result)
    end
    local now, past_us, fenced, version = now_us(), past_us_of(state, args[4])
    local late = refusal_of_late(now, args[3], args[4], args[5], fenced, version)
    if late then
        return late
    end
    if every then
        return begin_period(keys, id, put_us, entry, every, whole(args[6]), now)
    end
    local refusal = finish(task, past, id, put_us, past_us, now, 'XACK', ready, GROUP, entry)
    if refusal then
        return refusal
    end
    redis_call('XDEL', ready, entry)
    return {0}
end

-- Returns the largest entry id below `entry`.
local function id_below(entry)
    local ms, seq = match(entry, '^(%d+)%-(%d+)$')
    if seq == '0' then
        return text(ms - 1) .. '-18446744073709551615'
    end
    return ms .. '-' .. text(seq - 1)
end

-- Gives back an entry that was delivered but that no caller has seen, with its due time and
-- attempts. If entries behind it are still undelivered, the group is set back by this one entry, so
-- that it keeps its place; nobody can be blocked in a read then. Otherwise it is added anew at the
-- end of the stream. That is its place if nothing is behind it, and a blocked reader gets it at
-- once. Returns nil, or the error with which Redis refuses the entry.
local function give_back(task, ready, id, put_us, entry, due, attempts, data, every)
    local last = last_delivered(ready)
    local behind = redis_call('XRANGE', ready, '(' .. entry, '+', 'COUNT', 1)[1]
    if behind and is_below(last, behind[1]) then
        redis_call('XACK', ready, GROUP, entry)
        redis_call('XGROUP', 'SETID', ready, GROUP, id_below(entry))
        return nil
    end
    local again = add_entry(ready, id, due, text(attempts), data, every)
    if type(again) == 'table' then
        return again
    end
    redis_call('HSET', task, id, record_of('r', text(attempts), put_us, again, every))
    acknowledge(ready, entry)
end

-- Makes a task that is in the stream wait again, with its due time, because the queue is paused.
local function put_off(due_key, task, ready, id, put_us, entry, due, attempts, data, every)
    redis_call('ZADD', due_key, due, id)
    redis_call('HSET', task, id, record_of('w', text(attempts), put_us, data, every))
    acknowledge(ready, entry)
end

-- Returns `every` after a retry. The due time then changes, so `every` keeps the period's time.
local function every_after_retry(every, was_due)
    return every and (find(every, '@', 1, true) and every or every .. '@' .. was_due)
end

-- Moves a taken task to the key `dead`. `keys` begins like the keys of retry and park. Returns nil,
-- or the error with which Redis refuses the entry, and then nothing has changed.
local function set_down(keys, dead, conf, now, id, put_us, entry, due, attempts, why, data, every)
    local buried = bury(dead, conf.dead_max, id, due, attempts, why, data, every)
    if type(buried) == 'table' then
        return buried
    end
    redis_call('HINCRBY', keys[4], 'parked_ever', 1)
    finish(keys[2], keys[5], id, put_us, conf.past_us, now)
    acknowledge(keys[3], entry)
end

-- Gives a taken task back to the queue, to be due again after a delay. If `untaken` is 1, no caller
-- has seen the task: see give_back().
-- Keys: `due`, `task`, `ready`, `state`, `past`, `seats`, `dead`.
-- Arguments: `id`, `delay`, `entry`, optionally `until`, `holder`, `epoch`, `untaken`.
local function retry(keys, args)
    local due_key, task, ready, state, past = keys[1], keys[2], keys[3], keys[4], keys[5]
    local seats, dead, id = keys[6], keys[7], args[1]
    local now = now_us()
    local due = due_of(args[2], '', now)
    if not due then
        return {due == nil and EINVAL or ERANGE}
    end
    local result, _, put_us, entry, every = find_task(task, id, args[3] or '')
    if result ~= 0 then
        return refuse(state, result)
    end
    if find_entry(ready, entry) ~= 'taken' then
        return {ENOENT}
    end
    local look_by, fenced, version = look_by_of(state, args[5])
    local late = refusal_of_late(now, args[4], args[5], args[6], fenced, version)
    if late then
        return late
    end
    local _, was_due, attempts, data = entry_fields(read_entry(ready, entry))
    if not attempts then
        return {ENOENT}
    end
    local conf, found = settings(state), find_seats(look_by, state, seats, due, now)
    redis_call('ZCARD', past)
    if args[7] == '1' then
        if conf.paused then
            put_off(due_key, task, ready, id, put_us, entry, was_due, attempts - 1, data, every)
            return {0, tonumber(was_due), now, 0}
        end
        return give_back(task, ready, id, put_us, entry, was_due, attempts, data, every) or
            {0, tonumber(was_due), now, 0}
    end
    if conf.attempts_max > 0 and attempts >= conf.attempts_max then
        return set_down(keys, dead, conf, now, id, put_us, entry, was_due, attempts, 'attempts',
            data, every) or {0, -1, now, 1}
    end
    redis_call('ZADD', due_key, score_of(due), id)
    redis_call('HSET', task, id, record_of('w', text(attempts), put_us, data,
        every_after_retry(every, was_due)))
    acknowledge(ready, entry)
    ring(state, seats, found)
    return {0, reply_of(due), now, 0}
end

-- Parks a taken task: it is not delivered any more until an operator revives it.
-- Keys: `due`, `task`, `ready`, `state`, `past`, `dead`.
-- Arguments: `id`, `entry`, `reason`, optionally `until`, `holder`, `epoch`.
local function park(keys, args)
    local task, ready, state, past, dead = keys[2], keys[3], keys[4], keys[5], keys[6]
    local id, reason = args[1], whole(args[3])
    if not reason then
        return {EINVAL}
    end
    local result, _, put_us, entry, every = find_task(task, id, args[2] or '')
    if result ~= 0 then
        return refuse(state, result)
    end
    local now, _, fenced, version = now_us(), look_by_of(state, args[5])
    local late = refusal_of_late(now, args[4], args[5], args[6], fenced, version)
    if late then
        return late
    end
    local _, due, attempts, data = entry_fields(read_entry(ready, entry))
    if not attempts then
        return {ENOENT}
    end
    redis_call('ZCARD', past)
    return set_down(keys, dead, settings(state), now, id, put_us, entry, due, attempts,
        'park:' .. text(reason), data, every) or {0, now}
end

-- Begins the lease of a delivery again.
-- Keys: `task`, `ready`, `state`.
-- Arguments: `id`, `entry`, optionally `until`, `holder`, `epoch`.
local function touch(keys, args)
    local task, ready, state = keys[1], keys[2], keys[3]
    local result, _, _, entry = find_task(task, args[1], args[2] or '')
    if result ~= 0 then
        return refuse(state, result)
    end
    local now, _, fenced, version = now_us(), past_us_of(state, args[4])
    local late = refusal_of_late(now, args[3], args[4], args[5], fenced, version)
    if late then
        return late
    end
    local pending = last_delivered(ready) and pending_of(ready, entry)
    if not pending then
        return {ESTALE}
    end
    redis_call('XCLAIM', ready, GROUP, pending[2], 0, entry, 'JUSTID')
    return {0, now}
end

-- ---- timerhub_look: moves due tasks and ends leases ----

-- Returns the keys `due`, `task`, `ready`, `dead`, `past`, `state`, `seats` and `seen` in a table
-- by name.
local function names(keys)
    return {due = keys[1], task = keys[2], ready = keys[3], dead = keys[4], past = keys[5],
        state = keys[6], seats = keys[7], seen = keys[8]}
end

-- Creates the queue if it does not exist, or was deleted.
local function begin(ready, state, conf)
    if not conf.version then
        redis_pcall('XGROUP', 'CREATE', ready, GROUP, '0', 'MKSTREAM')
        redis_call('HSET', state, 'version', LAYOUT_FIRST)
    end
end

-- Removes from `past` the ids, and from `seen` the relays and fences, whose time has passed, a
-- bounded number at a time. Returns whether more ids in `past` are left.
local function forget(q, now)
    local count = redis_call('ZCOUNT', q.past, '-inf', text(now))
    if count > 0 then
        redis_call('ZREMRANGEBYRANK', q.past, 0, math.min(count, FORGET_PAST) - 1)
    end
    local relays = redis_call('ZRANGEBYSCORE', q.seen, '-inf', text(now), 'LIMIT', 0, FORGET_SEEN)
    for _, relay in ipairs(relays) do
        redis_call('ZREM', q.seen, relay)
        redis_call('ZREM', q.seats, relay)
        redis_call('HDEL', q.state, match(relay, '^fence:(.*)') or 'relay:' .. relay)
    end
    return count > FORGET_PAST
end

-- Removes an id of the key `due` that has no record of a waiting task. Another program has added
-- it, and it would block the ids behind it. Unless the id's task is in the stream, its record goes
-- to the key `dead`. If Redis refuses that, the record stays, with a due time of never.
local function set_aside(q, conf, id, due, record, stage)
    redis_call('HINCRBY', q.state, 'orphans', 1)
    if stage == 'r' then
        redis_call('ZREM', q.due, id)
        return
    end
    local buried = bury(q.dead, conf.dead_max, id, due, 0, 'record', record or '')
    if record and type(buried) == 'table' then
        redis_call('ZADD', q.due, '+inf', id)
        return
    end
    redis_call('ZREM', q.due, id)
    redis_call('HDEL', q.task, id)
end

-- Counts how late a task was. Bucket i counts from 2^i ns up to, but not including, 2^(i+1) ns;
-- bucket 0 also counts 0.
local function note_late(sum, late_us)
    local _, exponent = math.frexp(late_us * 1000)
    local bucket = exponent > 1 and exponent - 1 or 0
    sum.total = sum.total + late_us
    sum.most = late_us > sum.most and late_us or sum.most
    sum.buckets[bucket] = (sum.buckets[bucket] or 0) + 1
    sum.lowest, sum.highest = math.min(bucket, sum.lowest), math.max(bucket, sum.highest)
end

-- Moves the due tasks heads[from] to heads[last] into the stream. `heads` has their ids and due
-- times in turn, as text. Returns how many bytes of data they have. If Redis refuses an entry,
-- sum.refusal becomes the error.
local function promote_chunk(q, conf, now, sum, heads, from, last)
    local ids, values, size, bytes = {}, {}, 0, 0
    for index = from, last, 2 do
        ids[#ids + 1] = heads[index]
    end
    local records = redis_call('HMGET', q.task, unpack(ids))
    for index, id in ipairs(ids) do
        local due, record = heads[from + 2 * index - 1], records[index] or nil
        local stage, attempts, put_us, data, _, every = parse(record)
        if stage == 'w' then
            attempts = next_attempt(attempts)
            local entry = add_entry(q.ready, id, due, attempts, data, every)
            if type(entry) == 'table' then
                sum.refusal = entry
                break
            end
            values[size + 1], values[size + 2] = id,
                record_of('r', attempts, put_us, entry, every)
            size, bytes = size + 2, bytes + #data
            note_late(sum, math.max(0, math.min(now - due, now - put_us)))
        else
            set_aside(q, conf, id, due, record, stage)
        end
    end
    if size > 0 then
        redis_call('HSET', q.task, unpack(values))
        -- The moved tasks are the first elements of `due`, because set_aside() has removed the
        -- others between them.
        redis_call('ZREMRANGEBYRANK', q.due, 0, size / 2 - 1)
    end
    sum.moved = sum.moved + size / 2
    return bytes
end

-- Returns how many records or entries to read at a time, so that their data has about LOOK_BYTES.
local function chunk_of(conf)
    return math.max(1, math.min(CHUNK, math.floor(LOOK_BYTES / math.max(1, conf.data_max))))
end

-- Moves up to `batch` due tasks into the stream, but stops after the chunk with which their data
-- reaches LOOK_BYTES. Returns whether more tasks may be due.
local function promote(q, conf, now, batch, sum)
    local heads = redis_call('ZRANGEBYSCORE', q.due, '-inf', text(now), 'WITHSCORES', 'LIMIT', 0,
        batch)
    local bytes, chunk = 0, chunk_of(conf)
    for from = 1, #heads, 2 * chunk do
        bytes = bytes + promote_chunk(q, conf, now, sum, heads, from,
            math.min(from + 2 * chunk - 1, #heads))
        if sum.refusal then
            return false
        end
        if bytes >= LOOK_BYTES then
            return true
        end
    end
    return #heads == 2 * batch
end

-- ---- leases that have ended, and entries that a plain XACK has left ----

-- Handles an entry whose lease has ended: adds its task to the stream once more, or if it has had
-- attempts_max attempts, to the key `dead`. If Redis refuses the latter, it goes to the stream all
-- the same. An entry that is not its task's latest goes to `dead` only. Returns whether the old
-- entry can be deleted.
local function give_again(q, conf, now, sum, entry, id, due, attempts, data, every)
    local stage, _, put_us, current = parse(redis_call('HGET', q.task, id) or nil)
    if stage ~= 'r' or current ~= entry then
        redis_call('HINCRBY', q.state, 'orphans', 1)
        return type(bury(q.dead, conf.dead_max, id, due, attempts, 'record', data,
            every)) ~= 'table'
    end
    if conf.attempts_max > 0 and attempts >= conf.attempts_max and type(bury(q.dead,
        conf.dead_max, id, due, attempts, 'attempts', data, every)) ~= 'table' then
        finish(q.task, q.past, id, put_us, conf.past_us, now)
        sum.dead = sum.dead + 1
        return true
    end
    if conf.paused then
        put_off(q.due, q.task, q.ready, id, put_us, entry, due, attempts, data, every)
        sum.again = sum.again + 1
        return true
    end
    local again = add_entry(q.ready, id, due, text(attempts + 1), data, every)
    if type(again) == 'table' then
        sum.refusal = again
        return false
    end
    redis_call('HSET', q.task, id, record_of('r', text(attempts + 1), put_us, again, every))
    sum.again = sum.again + 1
    return true
end

local function end_lease(q, conf, now, sum, entry)
    local found = read_entry(q.ready, entry)
    local id, due, attempts, data, every = entry_fields(found)
    local useless = true
    if attempts then
        useless = give_again(q, conf, now, sum, entry, id, due, attempts, data, every)
    elseif found then
        -- Another program has written the entry. It goes to the key `dead`, so that its author can
        -- find it there.
        local fields = table.concat(found[2], ' ')
        useless = type(bury(q.dead, conf.dead_max, '', '0', 0, 'entry', fields)) ~= 'table'
        redis_call('HINCRBY', q.state, 'orphans', 1)
    end
    if useless then
        acknowledge(q.ready, entry)
    end
    return data and #data or 0
end

-- Ends the expired leases of pending entries, from the entry at which the last look stopped. Every
-- pending entry is checked, because consumers extend leases, so that an earlier entry's lease may
-- end after a later one's. Returns the entry from which to continue, or nil at the end.
local function sweep_pending(q, conf, now, sum, from)
    local lease_ms, bytes = math.ceil(conf.lease_us / 1000), 0
    local pending = redis_call('XPENDING', q.ready, GROUP, from, '+', SWEEP)
    for _, one in ipairs(pending) do
        if one[3] == 0 and tonumber(match(one[1], '^%d+')) * 1000 > now then
            -- The clock was set back after the entry was delivered, and its lease would last longer
            -- by as much. So begin it anew.
            redis_call('XCLAIM', q.ready, GROUP, one[2], 0, one[1], 'JUSTID')
        end
        if one[3] >= lease_ms and not sum.refusal then
            bytes = bytes + end_lease(q, conf, now, sum, one[1])
            if bytes >= LOOK_BYTES then
                return not sum.refusal and '(' .. one[1] or nil
            end
        end
    end
    return #pending == SWEEP and not sum.refusal and '(' .. pending[SWEEP][1] or nil
end

-- Deletes the entries and records that a plain XACK has left, up to the first pending entry.
-- Pending entries are not read, because XRANGE copies their data. Returns whether there may be more
-- to delete.
local function sweep_acked(q, conf, now, sum)
    local last = last_delivered(q.ready)
    local first = pending_of(q.ready, '-', '+')
    local upto, chunk, bytes, seen = first and '(' .. first[1] or '+', chunk_of(conf), 0, 0
    while last and seen < ACKED and bytes < LOOK_BYTES do
        local count = math.min(chunk, ACKED - seen)
        local entries = redis_call('XRANGE', q.ready, '-', upto, 'COUNT', count)
        for _, entry in ipairs(entries) do
            if is_below(last, entry[1]) then
                return false
            end
            local id, _, _, data = entry_fields(entry)
            local stage, _, put_us, current = parse(id and redis_call('HGET', q.task, id) or nil)
            if stage == 'r' and current == entry[1] then
                finish(q.task, q.past, id, put_us, conf.past_us, now)
            end
            redis_call('XDEL', q.ready, entry[1])
            sum.swept = sum.swept + 1
            seen, bytes = seen + 1, bytes + (data and #data or 0)
        end
        if #entries < count then
            return false
        end
    end
    return last ~= nil
end

-- Deletes the consumers of the group that have been idle for a day. One that has pending entries
-- stays, because XGROUP DELCONSUMER would lose them.
local function sweep_consumers(q, now)
    local next_at = tonumber(redis_call('HGET', q.state, 'consumers_at') or nil)
    if next_at and next_at > now and next_at <= now + CONSUMERS_EVERY_US then
        return
    end
    redis_call('HSET', q.state, 'consumers_at', text(now + CONSUMERS_EVERY_US))
    for _, one in ipairs(redis_call('XINFO', 'CONSUMERS', q.ready, GROUP)) do
        if one[4] == 0 and one[6] > CONSUMER_IDLE_MS then
            redis_call('XGROUP', 'DELCONSUMER', q.ready, GROUP, one[2])
        end
    end
end

-- Sweeps the stream: ends leases, and deletes acknowledged entries and idle consumers. Returns the
-- time of the next sweep, or nil if none is needed before another task is moved into the stream.
local function sweep(q, conf, now, sum, sweep_at, from)
    if not last_delivered(q.ready) then
        redis_pcall('XGROUP', 'CREATE', q.ready, GROUP, '0', 'MKSTREAM')
    end
    local go_on = sweep_pending(q, conf, now, sum, from or '-')
    if go_on then
        redis_call('HSET', q.state, 'sweep_from', go_on)
        return now
    end
    if from then
        redis_call('HDEL', q.state, 'sweep_from')
    end
    if sweep_acked(q, conf, now, sum) then
        return now
    end
    sweep_consumers(q, now)
    return redis_call('XLEN', q.ready) > 0 and now + math.ceil(conf.lease_us / 8) or nil
end

-- ---- seats: the registered relays and their ranks ----

-- Returns the score with which a new relay is added to the key `seats`. It depends on the queue's
-- name, so that different queues have different first relays.
local function own_order(q, relay)
    return tonumber(sub(redis.sha1hex(q.state .. relay), 1, 8), 16) / 4294967296
end

local function ladder(rank, grace)
    return math.min(grace * 2 ^ math.min(rank - 1, 40), PUT_OFF_US + rank * grace)
end

-- Registers the calling relay in the key `seats`, unless it is there already, and returns its rank.
-- look_by is the time at which a relay has promised to look. If look_by is absent, has passed by
-- one grace, or lies further ahead than the horizon, the promise is broken. Then the scores of all
-- lower ranks grow by 1, which soon puts these relays behind the caller.
local function sit(q, now, look_by, relay, horizon, grace)
    local rank = redis_call('ZRANK', q.seats, relay)
    if not rank then
        redis_call('ZADD', q.seats, format('%.17g', own_order(q, relay)), relay)
        rank = redis_call('ZRANK', q.seats, relay)
    end
    local broken = not look_by or now >= look_by + grace or look_by > now + horizon
    if rank > 0 and broken then
        for _, other in ipairs(redis_call('ZRANGE', q.seats, 0, rank - 1)) do
            redis_call('ZINCRBY', q.seats, 1, other)
        end
        rank = redis_call('ZRANK', q.seats, relay)
    end
    return rank
end

-- Notes in the key `seen` that a relay is alive, for four times its longest sleep. The note is
-- renewed when half of that time has passed. Each renewal also stores the relay's argument `info`,
-- and so does a look that has moved tasks, because it writes to Redis anyway.
local function be_seen(q, now, relay, rank, horizon, grace, info, seen_until, moved)
    local life = 4 * (horizon + PUT_OFF_US + rank * grace)
    local renewed = not seen_until or seen_until - now < life / 2 or seen_until - now > life
    if renewed then
        redis_call('ZADD', q.seen, text(now + life), relay)
    end
    if renewed or moved > 0 then
        redis_call('HSET', q.state, 'relay:' .. relay, text(now) .. ' ' .. info)
    end
end

-- Returns how long a relay must wait until its next look. The relay of rank 0 stores the time of
-- that look in look_by. Each other relay waits beyond look_by, and longer than the rank before it.
local function promise(q, now, rank, look_by, sweep_at, horizon, grace, paused)
    if rank > 0 then
        local steps = ladder(rank, grace)
        return math.max(0, math.min(look_by or now, now + horizon) + steps - now)
    end
    local head = not paused and redis_call('ZRANGE', q.due, 0, 0, 'WITHSCORES')[2]
    local first = math.min(tonumber(head or nil) or math.huge, now + horizon, sweep_at or math.huge)
    first = math.max(first, now)
    if first ~= look_by then
        redis_call('HSET', q.state, 'look_by', text(first))
    end
    return first - now
end

-- Reads all keys of a look, so that one of the wrong type fails before anything has changed.
-- Returns the length of the stream.
local function check_types(q)
    redis_call('ZCARD', q.due)
    redis_call('HLEN', q.task)
    redis_call('ZCARD', q.seats)
    redis_call('ZCARD', q.past)
    return redis_call('XLEN', q.ready)
end

local function count_up(q, sum)
    local counters = {promoted = sum.moved, leases_over = sum.again, parked_ever = sum.dead,
        swept = sum.swept}
    for _, name in ipairs({'promoted', 'leases_over', 'parked_ever', 'swept'}) do
        if counters[name] > 0 then
            redis_call('HINCRBY', q.state, name, counters[name])
        end
    end
    for bucket = sum.lowest, sum.highest do
        if sum.buckets[bucket] then
            redis_call('HINCRBY', q.state, 'late:' .. bucket, sum.buckets[bucket])
        end
    end
end

local function set_sweep(q, was, sweep_at)
    if sweep_at and sweep_at ~= was then
        redis_call('HSET', q.state, 'sweep_at', text(sweep_at))
    elseif was and not sweep_at then
        redis_call('HDEL', q.state, 'sweep_at')
    end
end

-- Moves due tasks into the stream, and sweeps the stream if it is time to. Returns when to sweep
-- next, and whether more tasks may be due.
local function work(q, conf, now, batch, sum, length, sweep_at, from)
    local more = not conf.paused and promote(q, conf, now, batch, sum)
    local next_at = sweep_at
    if sweep_at and (now >= sweep_at or sweep_at > now + conf.lease_us) then
        next_at = sweep(q, conf, now, sum, sweep_at, from)
    elseif not sweep_at and (sum.moved > 0 or length > 0) then
        next_at = now + math.ceil(conf.lease_us / 8)
    end
    set_sweep(q, sweep_at, next_at)
    count_up(q, sum)
    return next_at, more
end

-- Polls the queue: moves due tasks into the stream, and ends leases.
-- Keys: all keys of the queue.
-- Arguments: `relay`, `batch`, `horizon`, `grace`, `info`.
local function look(keys, args)
    local q, relay = names(keys), args[1]
    local batch, horizon, grace = whole(args[2]), whole(args[3]), whole(args[4])
    if not is_id(relay) or not batch or batch < 1 or batch > 1000 or not horizon or
        not grace or horizon < 1 or grace < 1 then
        return {EINVAL}
    end
    local now, conf = now_us(), settings(q.state)
    if conf.version and conf.version > LAYOUT then
        return {EOPNOTSUPP}
    end
    local length = check_types(q)
    local seen_until = tonumber(redis_call('ZSCORE', q.seen, relay) or nil)
    local told = redis_call('HMGET', q.state, 'sweep_at', 'sweep_from')
    local sum = {moved = 0, again = 0, dead = 0, swept = 0, total = 0, most = 0, buckets = {},
        lowest = BUCKETS, highest = -1}
    begin(q.ready, q.state, conf)
    local outdated = forget(q, now)
    local sweep_at, more = work(q, conf, now, batch, sum, length, tonumber(told[1] or nil),
        told[2] or nil)
    if sum.refusal and sum.moved + sum.again == 0 then
        return sum.refusal
    end
    local look_by = tonumber(redis_call('HGET', q.state, 'look_by') or nil)
    local rank = sit(q, now, look_by, relay, horizon, grace)
    be_seen(q, now, relay, rank, horizon, grace, args[5] or '', seen_until, sum.moved)
    local wait = promise(q, now, rank, look_by, sweep_at, horizon, grace, conf.paused)
    more = rank == 0 and (more or outdated or (sweep_at or math.huge) <= now)
    local reply = {0, sum.moved, wait, rank, now, more and 1 or 0, sum.total, sum.most, sum.again,
        sum.dead}
    for bucket = sum.lowest, sum.highest do
        if sum.buckets[bucket] then
            reply[#reply + 1] = bucket
            reply[#reply + 1] = sum.buckets[bucket]
        end
    end
    return reply
end

-- Removes the registration of a relay.
-- Keys: `seats`, `seen`, `state`.
-- Argument: `relay`.
local function leave(keys, args)
    local seats, seen, state, relay = keys[1], keys[2], keys[3], args[1]
    local rank = relay and redis_call('ZRANK', seats, relay)
    redis_call('ZCARD', seen)
    local look_by = tonumber(redis_call('HGET', state, 'look_by') or nil)
    if not rank then
        return {ENOENT}
    end
    redis_call('ZREM', seats, relay)
    redis_call('ZREM', seen, relay)
    redis_call('HDEL', state, 'relay:' .. relay)
    if rank < 2 and look_by then
        ring_seats(state, seats, redis_call('ZRANGE', seats, 0, SEATS_RUNG - 1), look_by)
    end
    return {0}
end

-- Removes a consumer that ends, unless entries are delivered to it.
-- Keys: `ready`, `state`.
-- Argument: `consumer`.
local function forget_consumer(keys, args)
    local ready, consumer = keys[1], args[1]
    if not consumer or consumer == '' then
        return {EINVAL}
    end
    if not last_delivered(ready) then
        return {ENOENT}
    end
    if redis_call('XPENDING', ready, GROUP, '-', '+', 1, consumer)[1] then
        return {EBUSY}
    end
    redis_call('XGROUP', 'DELCONSUMER', ready, GROUP, consumer)
    return {0}
end

-- ---- the queue's settings ----

-- Returns the settings that the array `args` has as alternating names and values, in a table. If a
-- name or value is not valid, returns nil and an error.
local function wanted_settings(args)
    local known, wanted = {}, {}
    for _, setting in ipairs(DEFAULTS) do
        known[setting.name] = setting
    end
    for index = 1, #args, 2 do
        local name, value = args[index], whole(args[index + 1])
        local setting = known[name]
        if not setting then
            return nil, {EINVAL, name}
        end
        if not value or value < setting.least or value > setting.most then
            return nil, {EINVAL, name, setting.least, setting.most}
        end
        wanted[name] = value
    end
    return wanted
end

-- Creates the queue if it does not exist, and changes the named settings. The reply is -EEXIST if
-- `shards` or `shard` would change, which they never may.
-- Keys: `ready`, `state`.
-- Arguments: optionally the word `until` and the time `until`, then pairs of a setting's name and
-- value.
local function create(keys, args)
    local ready, state = keys[1], keys[2]
    if args[1] == 'until' then
        local late = refusal_of_late(now_us(), args[2] or '')
        if late then
            return late
        end
        args = {unpack(args, 3)}
    end
    local wanted, refusal = wanted_settings(args)
    local conf = settings(state)
    if not wanted then
        return refusal
    end
    if conf.version and conf.version > LAYOUT then
        return {EOPNOTSUPP}
    end
    for _, name in ipairs({'shards', 'shard'}) do
        local stored = tonumber(redis_call('HGET', state, name) or nil)
        if stored and wanted[name] and wanted[name] ~= stored then
            return {EEXIST}
        end
        wanted[name] = wanted[name] or stored or conf[name]
    end
    if not last_delivered(ready) then
        redis_call('XGROUP', 'CREATE', ready, GROUP, '0', 'MKSTREAM')
    end
    -- This writes on each connect, so that a WAIT also covers what earlier connections of this
    -- client have changed.
    redis_call('HSET', state, 'version', conf.version or LAYOUT_FIRST)
    for name, value in pairs(wanted) do
        redis_call('HSET', state, name, text(value))
    end
    local reply = {0, conf.version and 0 or 1, now_us()}
    conf = settings(state)
    for _, setting in ipairs(DEFAULTS) do
        reply[#reply + 1] = setting.name
        reply[#reply + 1] = conf[setting.name]
    end
    return reply
end

local function version()
    return {0, VERSION}
end

-- Returns the keys of a function, or nil if they are wrong. The caller gives each key, or only the
-- queue's name in braces.
local function keys_of(keys, parts)
    if #keys >= #parts then
        return keys
    end
    if #keys ~= 1 or not find(keys[1], '^{[%w_.-]+}$') then
        return nil
    end
    local all = {}
    for index, part in ipairs(parts) do
        all[index] = 'timerhub:' .. keys[1] .. ':' .. part
    end
    return all
end

local function register(name, flag, parts, callback)
    redis.register_function{function_name = PREFIX .. name, flags = {flag},
        callback = function(keys, args)
            if not redis_call then
                redis_call, redis_pcall, tonumber, type = globals()
            end
            keys = keys_of(keys, parts)
            return keys and callback(keys, args) or {EINVAL}
        end}
end

local ALL = {'due', 'task', 'ready', 'dead', 'past', 'state', 'seats', 'seen'}

-- Functions with the flag allow-oom work even if Redis's memory is full, because they free memory
-- or need little. Of those that write, only timerhub_put and timerhub_puts lack the flag.
register('put', nil, {'due', 'task', 'state', 'seats', 'past'}, put)
register('puts', nil, {'due', 'task', 'state', 'seats', 'past'}, puts)
register('cancel', 'allow-oom', {'due', 'task', 'ready', 'state', 'past'}, cancel)
register('move', 'allow-oom', {'due', 'task', 'ready', 'state', 'past', 'seats'}, move)
register('done', 'allow-oom', {'due', 'task', 'ready', 'state', 'past'}, done)
register('retry', 'allow-oom', {'due', 'task', 'ready', 'state', 'past', 'seats', 'dead'}, retry)
register('park', 'allow-oom', {'due', 'task', 'ready', 'state', 'past', 'dead'}, park)
register('touch', 'allow-oom', {'task', 'ready', 'state'}, touch)
register('fence', 'allow-oom', {'state', 'seen'}, fence)
register('look', 'allow-oom', ALL, look)
register('leave', 'allow-oom', {'seats', 'seen', 'state'}, leave)
register('forget', 'allow-oom', {'ready', 'state'}, forget_consumer)
register('create', 'allow-oom', {'ready', 'state'}, create)
register('version', 'no-writes', {}, version)
