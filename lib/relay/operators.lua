
-- SPDX-License-Identifier: MIT
-- The second half of the library timerhub.lua: functions of operators, which show a queue, stop it
-- for a while and mend it. The build appends it to the first half, whose local functions it uses.

-- Pauses the queue: relays then move no task into the stream. Each call also lets some untaken
-- tasks of the stream wait again. The reply is 0 and the next call's cursor, '' at the end.
-- Keys: `due`, `task`, `ready`, `state`.
-- Arguments: optionally `cursor`, `until`, `holder`, `epoch`.
local function pause(keys, args)
    local due_key, task, ready, state = keys[1], keys[2], keys[3], keys[4]
    local cursor = args[1] ~= '' and args[1] or nil
    if cursor and not find(cursor, '^%d+%-%d+$') then
        return {EINVAL}
    end
    local conf, _, fenced, version = settings(state), look_by_of(state, args[3])
    local late = refusal_of_late(now_us(), args[2], args[3], args[4], fenced, version)
    if late then
        return late
    end
    redis_call('ZCARD', due_key)
    redis_call('HLEN', task)
    local last = last_delivered(ready)
    redis_call('HSET', state, 'paused', 1)
    if not last then
        return {0, ''}
    end
    local from = cursor and is_below(last, cursor) and cursor or last
    local count = math.max(1, math.min(CHUNK, math.floor(LOOK_BYTES / math.max(1, conf.data_max))))
    local entries = redis_call('XRANGE', ready, '(' .. from, '+', 'COUNT', count)
    for _, found in ipairs(entries) do
        local id, due, attempts, data = entry_fields(found)
        local stage, _, put_us, entry, _, every =
            parse(id and redis_call('HGET', task, id) or nil)
        if attempts and stage == 'r' and entry == found[1] then
            put_off(due_key, task, ready, id, put_us, entry, due, attempts - 1, data, every)
        end
    end
    return {0, #entries == count and entries[count][1] or ''}
end

-- Ends a pause, and wakes relays for the tasks that are due.
-- Keys: `state`, `seats`.
-- Arguments: optionally `until`, `holder`, `epoch`.
local function resume(keys, args)
    local state, seats, now = keys[1], keys[2], now_us()
    local look_by, fenced, version = look_by_of(state, args[2])
    local late = refusal_of_late(now, args[1], args[2], args[3], fenced, version)
    if late then
        return late
    end
    local found = find_seats(look_by, state, seats, now, now)
    redis_call('HDEL', state, 'paused')
    ring(state, seats, found)
    return {0}
end

-- Returns whether the id `a` is behind `b` among ids of one due time. Redis compares bytes, but
-- Lua's own comparison follows the server's locale.
local function is_behind(a, b)
    for at = 1, #a do
        local one, other = byte(a, at), byte(b, at) or -1
        if one ~= other then
            return one > other
        end
    end
    return false
end

-- Returns the rank of the first task in the key `due` that comes after (due, id).
local function rank_behind(due_key, due, id)
    local rank = redis_call('ZRANK', due_key, id)
    if rank and redis_call('ZSCORE', due_key, id) == due then
        return rank + 1
    end
    local low, high = redis_call('ZCOUNT', due_key, '-inf', '(' .. due),
        redis_call('ZCOUNT', due_key, '-inf', due)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if is_behind(redis_call('ZRANGE', due_key, middle, middle)[1], id) then
            high = middle
        else
            low = middle + 1
        end
    end
    return low
end

-- Adds the eight values of a task to a reply.
local function add_row(reply, row)
    for _, value in ipairs(row) do
        reply[#reply + 1] = value
    end
end

-- Adds the tasks of the key `due` that come after the cursor to a reply. Returns the next cursor,
-- or nil at the end.
local function each_waiting(q, cursor, count, reply)
    local due, id = match(cursor, '^([^:]*):(.*)$')
    local rank = due ~= '' and rank_behind(q.due, due, id) or 0
    local heads, bytes = redis_call('ZRANGE', q.due, rank, rank + count - 1, 'WITHSCORES'), 0
    for index = 1, #heads, 2 do
        local record = redis_call('HGET', q.task, heads[index]) or nil
        local stage, attempts, put_us, data, _, every = parse(record)
        cursor, bytes = heads[index + 1] .. ':' .. heads[index], bytes + #(record or '')
        if stage == 'w' then
            add_row(reply, {heads[index], '', reply_of(tonumber(heads[index + 1])),
                tonumber(put_us), tonumber(attempts), tonumber(match(every or '0', '^%d+')), #data, 0})
        end
        if bytes >= LOOK_BYTES then
            return 'd' .. cursor
        end
    end
    return #heads == 2 * count and 'd' .. cursor or nil
end

-- Adds entries of the stream to a reply. Returns the entry at which to go on, or nil at the end.
local function each_entry(q, entries, count, pending, reply)
    for index, found in ipairs(entries) do
        local id, due, attempts, data, every = entry_fields(found)
        local holder, since = '', nil
        if pending then
            holder, since = pending[index][2], pending[index].since
        elseif attempts then
            -- Nobody has taken the entry yet, but `attempts` counts its delivery already.
            local _, _, put_us = parse(redis_call('HGET', q.task, id) or nil)
            since, attempts = tonumber(put_us or match(found[1], '^%d+') .. '000'), attempts - 1
        end
        if attempts then
            add_row(reply, {id, holder, tonumber(due), since, attempts,
                tonumber(match(every or '0', '^%d+')), #data, 0})
        end
    end
    return #entries == count and entries[count][1] or nil
end

-- Adds the tasks that consumers have taken to a reply. Returns the entry at which to go on, or nil
-- at the end.
local function each_taken(q, cursor, count, reply)
    local pending, entries = {}, {}
    if not last_delivered(q.ready) then
        return nil
    end
    local all = redis_call('XPENDING', q.ready, GROUP, cursor == '' and '-' or '(' .. cursor, '+',
        count)
    local now = now_us()
    for _, one in ipairs(all) do
        local found = read_entry(q.ready, one[1])
        if found then
            one.since = now - one[3] * 1000
            pending[#pending + 1], entries[#entries + 1] = one, found
        end
    end
    each_entry(q, entries, -1, pending, reply)
    return #all == count and all[count][1] or nil
end

-- Returns the fields of an entry of the key `dead`, as text: `id`, `due`, `n`, `why`, `data` and, of
-- a periodic task, `every`. Returns nil if another program has written the entry.
local function parked_fields(entry)
    local fields = entry[2]
    local every = match(fields[12] or '', '^[1-9]%d*$')
    if fields[1] == 'id' and fields[9] == 'data' and #fields == (every and 12 or 10) then
        return fields[2], fields[4], fields[6], fields[8], fields[10], every
    end
end

-- Adds the parked tasks to a reply. Returns the entry at which to go on, or nil at the end.
local function each_parked(q, cursor, count, reply)
    local entries = redis_call('XRANGE', q.dead, cursor == '' and '-' or '(' .. cursor, '+',
        'COUNT', count)
    for _, found in ipairs(entries) do
        local id, due, attempts, why, data, every = parked_fields(found)
        if id then
            local reason = match(why, '^park:(%d+)$') or '4294967295'
            add_row(reply, {id, '', tonumber(due) or 0, tonumber(match(found[1], '^%d+')) * 1000,
                tonumber(attempts) or 0, tonumber(every or 0), #data, tonumber(reason)})
        end
    end
    return #entries == count and entries[count][1] or nil
end

-- Lists the tasks of one state. The reply is 0, the cursor for the next call ('' at the end), and
-- for each task its id, holder, due time (-1: never), since when it is in this state, attempts,
-- interval, bytes of data, and the reason for which it was parked. Waiting tasks come from the
-- stream, then from `due`, and then from what has entered the stream meanwhile, so that no task is
-- missed because it moves on between two calls.
-- Keys: `due`, `task`, `ready`, `dead`, `state`.
-- Arguments: `which` (waiting, taken or parked), `cursor`, `count`.
local function each(keys, args)
    local q = {due = keys[1], task = keys[2], ready = keys[3], dead = keys[4], state = keys[5]}
    local which, cursor, count = args[1], args[2] or '', whole(args[3])
    if not count or count < 1 or count > 1000 then
        return {EINVAL}
    end
    local conf, reply, next_one = settings(q.state), {0, ''}, nil
    if conf.version and conf.version > LAYOUT then
        return {EOPNOTSUPP}
    end
    local few = math.min(count, math.max(1, math.floor(LOOK_BYTES / math.max(1, conf.data_max))))
    if which == 'taken' and find(cursor, '^[%d%-]*$') then
        next_one = each_taken(q, cursor, few, reply)
    elseif which == 'parked' and find(cursor, '^[%d%-]*$') then
        next_one = each_parked(q, cursor, few, reply)
    elseif which == 'waiting' and find(cursor, '^d[^:]*:') then
        local entered, rest = match(cursor, '^d([^:]*):(.*)$')
        next_one = each_waiting(q, rest, count, reply)
        next_one = next_one and 'd' .. entered .. ':' .. sub(next_one, 2) or 's' .. entered
    elseif which == 'waiting' and find(cursor, '^[rs]?[%d%-]*$') then
        local stage, entry = match(cursor, '^([rs]?)(.*)$')
        local from = entry ~= '' and entry or last_delivered(q.ready)
        local entries = from and redis_call('XRANGE', q.ready, '(' .. from, '+', 'COUNT', few) or {}
        next_one = each_entry(q, entries, few, nil, reply)
        if next_one then
            next_one = (stage == 's' and 's' or 'r') .. next_one
        elseif stage ~= 's' then
            local last = #entries > 0 and entries[#entries][1] or from or '0-0'
            next_one = 'd' .. last .. '::'
        end
    else
        return {EINVAL}
    end
    reply[2] = next_one or ''
    return reply
end

-- Returns for how long the first undelivered task in the stream has been due.
local function lag_of(ready, now)
    local last = last_delivered(ready)
    local first = last and redis_call('XRANGE', ready, '(' .. last, '+', 'COUNT', 1)[1]
    local _, due = entry_fields(first)
    return due and math.max(0, now - (tonumber(due) or now)) or 0
end

-- Returns for how long the first waiting task (outside the stream) has been due.
local function overdue_of(due, now)
    local first = tonumber(redis_call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or nil)
    return first and math.max(0, now - first) or 0
end

-- Adds the histogram of lateness to a reply. Each bucket with tasks has two values: its name, such
-- as late:20, and its number of tasks.
local function say_lateness(state, say)
    local names = {}
    for bucket = 0, BUCKETS - 1 do
        names[bucket + 1] = 'late:' .. bucket
    end
    local values = redis_call('HMGET', state, unpack(names))
    for index, name in ipairs(names) do
        if values[index] then
            say(name, values[index])
        end
    end
end

-- Shows the queue's counters and settings, as alternating names and values.
-- Keys: all keys of the queue.
local function stat(keys)
    local q = names(keys)
    local reply = {0}
    local function say(name, value)
        reply[#reply + 1] = name
        reply[#reply + 1] = tostring(value)
    end
    local tasks, due = redis_call('HLEN', q.task), redis_call('ZCARD', q.due)
    local now = now_us()
    say('now', text(now))
    say('tasks', tasks)
    say('waiting', due)
    local _, taken = last_delivered(q.ready)
    say('ready', redis_call('XLEN', q.ready))
    say('taken', taken or 0)
    say('lag', text(lag_of(q.ready, now)))
    say('overdue', text(overdue_of(q.due, now)))
    say('parked', redis_call('XLEN', q.dead))
    say('past', redis_call('ZCARD', q.past))
    say('relays', redis_call('ZCARD', q.seats))
    local conf = settings(q.state)
    say('paused', conf.paused and 1 or 0)
    for _, setting in ipairs(DEFAULTS) do
        say(setting.name, text(conf[setting.name]))
    end
    local counters = {'look_by', 'sweep_at', 'promoted', 'leases_over', 'parked_ever',
        'dead_cut', 'orphans', 'swept'}
    local values = redis_call('HMGET', q.state, unpack(counters))
    for index, name in ipairs(counters) do
        say(name, values[index] or '0')
    end
    say_lateness(q.state, say)
    for rank, relay in ipairs(redis_call('ZRANGE', q.seats, 0, 99)) do
        local info = redis_call('HGET', q.state, 'relay:' .. relay)
        say('relay:' .. relay, (rank - 1) .. ' ' .. (info or '0 '))
    end
    return reply
end

-- Lists up to `count` waiting tasks, up to about LOOK_BYTES of data. The reply has for each its id,
-- due time (-1: never), attempts, time of the put, and bytes of data.
-- Keys: `due`, `task`.
-- Arguments: `from`, `count`.
local function list(keys, args)
    local from, count = whole(args[1]), whole(args[2])
    if not from or not count or count < 1 or count > 1000 then
        return {EINVAL}
    end
    local heads = redis_call('ZRANGE', keys[1], args[1], text(from + count - 1), 'WITHSCORES')
    local reply, bytes = {0}, 0
    for index = 1, #heads, 2 do
        if bytes >= LOOK_BYTES then
            break
        end
        local record = redis_call('HGET', keys[2], heads[index]) or nil
        local stage, attempts, put_us, data = parse(record)
        local is_ours = stage == 'w'
        bytes = bytes + #(data or record or '')
        reply[#reply + 1] = heads[index]
        reply[#reply + 1] = reply_of(tonumber(heads[index + 1]))
        reply[#reply + 1] = is_ours and tonumber(attempts) or -1
        reply[#reply + 1] = is_ours and tonumber(put_us) or -1
        reply[#reply + 1] = is_ours and #data or -1
    end
    return reply
end

-- Shows one task: its stage, due time, attempts, time of the put, data, and entry in the stream.
-- Keys: `due`, `task`, `ready`.
-- Argument: `id`.
local function peek(keys, args)
    if not is_id(args[1]) then
        return {EINVAL}
    end
    local stage, attempts, put_us, rest = parse(redis_call('HGET', keys[2], args[1]) or nil)
    if not stage then
        return {ENOENT}
    end
    if stage == 'w' then
        local due = tonumber(redis_call('ZSCORE', keys[1], args[1]) or nil) or math.huge
        return {0, 'waiting', reply_of(due), tonumber(attempts), tonumber(put_us), rest, ''}
    end
    local _, due, _, data = entry_fields(read_entry(keys[3], rest))
    local where = find_entry(keys[3], rest)
    return {0, where, tonumber(due) or -1, tonumber(attempts), tonumber(put_us), data or '', rest}
end

-- Puts a parked task into the queue again, due now. The periods of a periodic task begin anew.
-- Keys: `dead`, `due`, `task`, `state`, `seats`, `past`.
-- Arguments: `entry`, optionally `until`, `holder`, `epoch`.
local function revive(keys, args)
    local dead, due_key, task, state = keys[1], keys[2], keys[3], keys[4]
    local seats, past = keys[5], keys[6]
    if not args[1] or not find(args[1], '^%d+%-%d+$') then
        return {EINVAL}
    end
    local found = redis_call('XRANGE', dead, args[1], args[1])[1]
    if not found then
        return {ENOENT}
    end
    local id, _, _, _, data, every = parked_fields(found)
    if not is_new_id(id) then
        return {EINVAL}
    end
    redis_call('ZCARD', past)
    local now, look_by, fenced, version = now_us(), look_by_of(state, args[3])
    local late = refusal_of_late(now, args[2], args[3], args[4], fenced, version)
    if late then
        return late
    end
    local result = insert({due_key, task, state, seats}, id, now, '', data, now, look_by, nil,
        every)
    if result[1] == 0 then
        redis_call('XDEL', dead, args[1])
        redis_call('ZREM', past, id)
        if every then
            note_periodic(state, version)
        end
    end
    return result
end

-- ---- repair: keys that other programs or an eviction have damaged ----

-- Repairs the record of a task. If it cannot be read, it goes to the key `dead`. If the task waits
-- but is not in the key `due`, it is added there. If the task's entry was deleted, the record is
-- deleted too.
local function repair_record(q, conf, now, sum, id, record)
    local stage, _, put_us, entry = parse(record)
    if not stage then
        if type(bury(q.dead, conf.dead_max, id, 0, 0, 'record', record)) ~= 'table' then
            redis_call('ZREM', q.due, id)
            redis_call('HDEL', q.task, id)
            sum.removed = sum.removed + 1
        end
    elseif stage == 'w' then
        if not redis_call('ZSCORE', q.due, id) then
            redis_call('ZADD', q.due, text(now), id)
            sum.restored = sum.restored + 1
        end
    elseif not read_entry(q.ready, entry) then -- the entry was deleted by hand
        redis_call('XACK', q.ready, GROUP, entry)
        finish(q.task, q.past, id, put_us, conf.past_us, now)
        sum.removed = sum.removed + 1
    end
end

-- Removes an id of the key `due` if it has no record of a waiting task.
local function repair_due(q, conf, sum, id, due)
    local record = redis_call('HGET', q.task, id) or nil
    local stage = parse(record)
    if stage == 'w' or (record and not stage) then
        return -- leave an unreadable record, which `dead` has refused
    end
    if stage == 'r' or
        type(bury(q.dead, conf.dead_max, id, due, 0, 'record', '')) ~= 'table' then
        redis_call('ZREM', q.due, id)
        sum.removed = sum.removed + 1
    end
end

-- Repairs an entry of the stream. If its task has no record, one is written. The entry is deleted
-- if another program has written it, or if it is not its task's latest.
local function repair_entry(q, conf, sum, found)
    local entry, fields = found[1], found[2]
    local id, _, attempts, _, every = entry_fields(found)
    local record = attempts and redis_call('HGET', q.task, id) or nil
    local stage, _, _, current = parse(record)
    if stage == 'r' and current == entry then
        return
    end
    if attempts and not record and find_entry(q.ready, entry) ~= 'finished' then
        local put_us = match(entry, '^%d+') .. '000'
        redis_call('HSET', q.task, id, record_of('r', text(attempts), put_us, entry, every))
        sum.restored = sum.restored + 1
        return
    end
    if not attempts and type(bury(q.dead, conf.dead_max, '', '0', 0, 'entry',
        table.concat(fields, ' '))) == 'table' then
        return
    end
    acknowledge(q.ready, entry)
    sum.removed = sum.removed + 1
end

-- Repairs some records and entries, from a cursor on. The reply is 0, the stage and cursor for the
-- next call, and how many tasks were put back and removed.
-- Keys: `due`, `task`, `ready`, `dead`, `past`, `state`, `seats`.
-- Arguments: `stage`, `cursor`.
local function repair(keys, args)
    local q = {due = keys[1], task = keys[2], ready = keys[3], dead = keys[4], past = keys[5],
        state = keys[6], seats = keys[7]}
    local stage, cursor = args[1], args[2]
    local scan, skip = match(cursor or '', '^(%d+)%+?(%d*)$')
    local is_scan = (stage == 'task' or stage == 'due') and whole(scan) and whole('0' .. skip)
    if not is_scan and not (stage == 'ready' and find(cursor or 'x', '^%(?%d*%-?%d*$')) then
        return {EINVAL}
    end
    local now, conf, sum = now_us(), settings(q.state), {restored = 0, removed = 0}
    if conf.version and conf.version > LAYOUT then
        return {EOPNOTSUPP}
    end
    local found = find_seats((look_by_of(q.state)), q.state, q.seats, now, now)
    redis_call('ZCARD', q.seats)
    redis_call('ZCARD', q.past)
    redis_call('ZCARD', q.due)
    redis_call('HLEN', q.task)
    redis_call('XLEN', q.ready)
    local after, chunk = nil, chunk_of(conf)
    if is_scan then
        local scanned = redis_call(stage == 'task' and 'HSCAN' or 'ZSCAN', q[stage], scan,
            'COUNT', chunk)
        -- A scan returns all of a small key, so the cursor also has how many of them to skip.
        local first = tonumber('0' .. skip)
        local last = math.min(#scanned[2], 2 * (first + chunk))
        for index = 2 * first + 1, last, 2 do
            if stage == 'task' then
                repair_record(q, conf, now, sum, scanned[2][index], scanned[2][index + 1])
            else
                repair_due(q, conf, sum, scanned[2][index], scanned[2][index + 1])
            end
        end
        after = scanned[1]
        if last < #scanned[2] then
            after = scan .. '+' .. text(first + chunk - sum.removed)
        elseif after == '0' then
            stage, after = unpack(stage == 'task' and {'due', '0'} or {'ready', ''})
        end
    else
        local entries = redis_call('XRANGE', q.ready, cursor == '' and '-' or cursor, '+', 'COUNT',
            chunk)
        for _, entry in ipairs(entries) do
            repair_entry(q, conf, sum, entry)
        end
        stage, after = 'end', ''
        if #entries == chunk then
            stage, after = 'ready', '(' .. entries[chunk][1]
        end
    end
    if sum.restored > 0 then
        ring(q.state, q.seats, found)
    end
    return {0, stage, after, sum.restored, sum.removed}
end

register('pause', 'allow-oom', {'due', 'task', 'ready', 'state'}, pause)
register('resume', 'allow-oom', {'state', 'seats'}, resume)
register('revive', 'allow-oom', {'dead', 'due', 'task', 'state', 'seats', 'past'}, revive)
register('repair', 'allow-oom', {'due', 'task', 'ready', 'dead', 'past', 'state', 'seats'}, repair)
register('stat', 'no-writes', ALL, stat)
register('each', 'no-writes', {'due', 'task', 'ready', 'dead', 'state'}, each)
register('list', 'no-writes', {'due', 'task'}, list)
register('peek', 'no-writes', {'due', 'task', 'ready'}, peek)
