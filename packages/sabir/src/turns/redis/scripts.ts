/**
 * The steps of a turn, each of which happens as a whole or not at all. Whoever writes proves it with
 * the turn's token in the same step. Every step can be said again after a drop: the second time it
 * finds that it was done. The time is Redis's own, since gateways' clocks differ.
 */
import type { Link } from './client.ts';

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/** What is known of a turn, in this order; see `readInfo`. */
const INFO = `redis.call('HMGET', KEYS[1], 'session', 'chat', 'request', 'message', 'started', 'last',
  'lease', 'endedAt', 'outcome', 'progress', 'answered', 'user')`;

/**
 * Whether the turn at KEYS[1] is this writer's, and its lease has not run out; what was asked for
 * before it ran out (isInTime) may be late, as long as nobody else has taken the turn. One that is not
 * there though nobody can have taken it was lost by Redis.
 */
const HOLD = `
${NOW}
local held = redis.call('HMGET', KEYS[1], 'token', 'outcome', 'lease', 'last', 'bytes')
if not held[1] and ARGV[2] == '1' then return 'GONE' end
if held[1] ~= ARGV[1] then return 'FENCED' end
if not held[2] and ARGV[2] == '0' and now >= tonumber(held[3]) then return 'FENCED' end
`;

function define(name: string, source: string) {
  return { name, source, sha: undefined as string | undefined };
}

/** KEYS: candidate's turn, new turn, chat, request. The new turn may be the candidate: it was named before it began. */
export const BEGIN = define(
  'begin',
  `
local turnId, candidate, token = ARGV[1], ARGV[2], ARGV[3]
local leaseMs, liveMs, dedupeMs = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
${NOW}
local known = redis.call('GET', KEYS[4])
local holder = redis.call('HGET', KEYS[2], 'token')
if known == turnId and holder == token then return {'begun', now} end
if known and known ~= candidate then return {'other', known} end
if known then
  local info = ${INFO}
  if info[1] and not info[9] then
    if now < tonumber(info[7]) then return {'existing', now, info} end
    return {'orphan'}
  end
  local isGood = ARGV[13] == '1' or redis.call('HGET', KEYS[1], 'good') == '1'
  if info[1] and isGood and now < info[8] + dedupeMs then return {'existing', now, info} end
  if info[1] and known == turnId then return {'existing', now, info} end
end
if holder and holder ~= token then return {'taken'} end
redis.call('HSET', KEYS[2], 'session', ARGV[7], 'chat', ARGV[8], 'request', ARGV[9],
  'message', ARGV[10], 'origin', ARGV[11], 'inbox', ARGV[12], 'started', now, 'last', 0,
  'bytes', 0, 'mark', 0, 'token', token, 'lease', now + leaseMs, 'user', ARGV[15])
redis.call('PEXPIRE', KEYS[2], liveMs)
redis.call('ZADD', KEYS[3], time[1] * 1000000 + time[2], turnId)
redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -101)
redis.call('PEXPIRE', KEYS[3], liveMs)
redis.call('SET', KEYS[4], turnId, 'PX', liveMs)
redis.call('PUBLISH', ARGV[14], turnId)
return {'begun', now}
`,
);

/** KEYS: turn. Takes a turn back that nobody was told of. */
export const CALL_OFF = define(
  'call-off',
  `
if redis.call('HGET', KEYS[1], 'token') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`,
);

/** KEYS: turn, readers. A reader also says that it is there, until when. */
export const LOOK = define(
  'look',
  `
${NOW}
local info = ${INFO}
if ARGV[1] ~= '' and info[1] then
  redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return {now, info}
`,
);

/** KEYS: readers. Whether anybody but this process reads. */
export const OTHERS = define(
  'others',
  `
${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
local count = redis.call('ZCARD', KEYS[1])
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then count = count - 1 end
return count
`,
);

/** How many arguments each turn of an APPEND has. */
const APPEND_ARGS = 14;
/** An append makes a lease longer of which less than this is left; most deltas do not. */
export const LEASE_LEFT = 0.75;

/**
 * KEYS: turn, chunks; of as many turns as append in the same tick. The lease is made longer when some
 * of it has gone by, and all the more when it has run out while Redis was away: what follows is the
 * same writer's. Which write was the last one is kept: one that is said again finds itself. Tells of
 * each turn how far it is where it is not as far as expected.
 */
export const APPEND = define(
  'append',
  `
${NOW}
local function append(turn, chunks, at)
  local held = redis.call('HMGET', turn, 'token', 'outcome', 'last', 'bytes', 'lease', 'write')
  if not held[1] and ARGV[at + 2] == '1' then return 'GONE' end
  if held[1] ~= ARGV[at + 1] or held[2] then return 'FENCED' end
  if held[6] == ARGV[at + 13] then return 'OK' end
  local lease = tonumber(held[5])
  if ARGV[at + 2] == '0' and now >= lease then return 'FENCED' end
  if lease - now < ${LEASE_LEFT} * ARGV[at + 9] then lease = now + ARGV[at + 9] end
  local last = tonumber(held[3])
  if last ~= tonumber(ARGV[at + 3]) then return last end
  local bytes = tonumber(held[4]) + ARGV[at + 6]
  if ARGV[at + 7] ~= '' and bytes > tonumber(ARGV[at + 7]) then return 'TOO LARGE' end
  redis.call('XADD', chunks, ARGV[at + 4] .. '-0', 'b', ARGV[at + 5])
  redis.call('HSET', turn, 'last', ARGV[at + 4], 'bytes', bytes, 'mark', ARGV[at + 8],
    'lease', lease, 'write', ARGV[at + 13])
  if ARGV[at + 14] ~= '' then redis.call('HSET', turn, 'progress', ARGV[at + 14]) end
  if ARGV[at + 10] ~= '' then
    redis.call('PEXPIRE', chunks, ARGV[at + 10])
    redis.call('PEXPIRE', turn, ARGV[at + 10])
  end
  local told = ARGV[at + 12] == '1' and ARGV[at + 4] .. ' ' .. ARGV[at + 5] or ARGV[at + 4]
  redis.call('PUBLISH', ARGV[at + 11], told)
  return 'OK'
end
local replies = {}
for one = 1, #KEYS / 2 do
  replies[one] = append(KEYS[2 * one - 1], KEYS[2 * one], (one - 1) * ${APPEND_ARGS})
end
return replies
`,
);

/** KEYS: turn, chunks, commands, chat, request. Tells how many commands there are. */
export const RENEW = define(
  'renew',
  `
${HOLD}
if held[2] then return 'FENCED' end
redis.call('HSET', KEYS[1], 'lease', now + ARGV[3])
for at = 1, 5 do redis.call('PEXPIRE', KEYS[at], ARGV[4]) end
return redis.call('LLEN', KEYS[3])
`,
);

/** KEYS: turn. Gives it up: whoever is next need not wait. One that was given up belongs to nobody. */
export const RELEASE = define(
  'release',
  `
if redis.call('HGET', KEYS[1], 'token') == '' then return 'OK' end
${HOLD}
if held[2] then return 'FENCED' end
redis.call('HSET', KEYS[1], 'lease', 0, 'token', '')
return 'OK'
`,
);

/**
 * KEYS: turn, chunks, commands, chat, request. Tells its bytes, and its commands; or how far
 * it is, if that is less than was written.
 */
export const CLOSE = define(
  'close',
  `
${HOLD}
if not held[2] then
  if tonumber(held[4]) < tonumber(ARGV[7]) then return tonumber(held[4]) end
  redis.call('HSET', KEYS[1], 'outcome', ARGV[3], 'good', ARGV[4], 'endedAt', now)
  redis.call('HDEL', KEYS[1], 'origin')
  for at = 1, 3 do redis.call('PEXPIRE', KEYS[at], ARGV[5]) end
  for at = 4, 5 do
    if redis.call('PTTL', KEYS[at]) < tonumber(ARGV[5]) then
      redis.call('PEXPIRE', KEYS[at], ARGV[5])
    end
  end
  redis.call('PUBLISH', ARGV[6], 'e' .. held[4])
end
return {tonumber(held[5]), redis.call('LRANGE', KEYS[3], 0, -1)}
`,
);

/**
 * KEYS: turn, commands. Of those with the same name the first is taken: of the answers to a question, of a message
 * that is sent again, and of a stop that is said again.
 */
export const COMMAND = define(
  'command',
  `
${NOW}
local turn = redis.call('HMGET', KEYS[1], 'session', 'outcome', 'lease', 'inbox')
if not turn[1] or turn[2] then return 'OVER' end
if ARGV[6] == '1' and now >= tonumber(turn[3]) then return 'ORPHAN' end
local first = redis.call('HGET', KEYS[1], ARGV[1])
if first == ARGV[2] then return 'OK' end
if first then return 'ANSWERED' end
if ARGV[8] ~= '' then
  if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[8]) then return 'FULL' end
  local steered = tonumber(redis.call('HGET', KEYS[1], 'steered') or 0) + tonumber(ARGV[9])
  if steered > tonumber(ARGV[10]) then return 'FULL' end
  redis.call('HSET', KEYS[1], 'steered', steered)
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if ARGV[7] ~= '' then
  local answered = redis.call('HGET', KEYS[1], 'answered') or ''
  redis.call('HSET', KEYS[1], 'answered', answered .. ARGV[7])
end
redis.call('RPUSH', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('PUBLISH', turn[4], ARGV[5])
return 'OK'
`,
);

/**
 * KEYS: turn, chunks. A turn whose writer has gone gets another. While nobody can tell whether it has (isQuiet),
 * only one that was given up does: its lease is 0.
 */
export const SEIZE = define(
  'seize',
  `
${NOW}
local turn = redis.call('HMGET', KEYS[1], 'session', 'outcome', 'lease', 'token')
if not turn[1] or turn[2] then return 'OVER' end
if turn[4] ~= ARGV[1] then
  if now < tonumber(turn[3]) then return 'HELD' end
  if ARGV[5] == '1' and turn[3] ~= '0' then return 'QUIET' end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'lease', now + ARGV[2], 'inbox', ARGV[3], 'write', 0)
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
return {now, ${INFO}, redis.call('HMGET', KEYS[1], 'origin', 'mark')}
`,
);

/** KEYS: live turns. Somebody should look at this one: after so long, or at once where no time is said. */
export const LOOK_AT = define(
  'look-at',
  `
${NOW}
redis.call('ZADD', KEYS[1], ARGV[2] == '' and 0 or now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`,
);

/** KEYS: live turns. Those that somebody should look at. */
export const DUE = define(
  'due',
  `
${NOW}
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
`,
);

/** KEYS: ended turns, their bytes. Tells which are too many. */
export const RETAIN = define(
  'retain',
  `
local most, keepMs = tonumber(ARGV[3]), tonumber(ARGV[4])
${NOW}
local function forget(member)
  redis.call('ZREM', KEYS[1], member)
  redis.call('DECRBY', KEYS[2], string.match(member, '%d+$'))
end
local member = ARGV[1] .. ' ' .. ARGV[2]
local micros = time[1] * 1000000 + time[2]
if redis.call('ZADD', KEYS[1], micros, member) == 1 then redis.call('INCRBY', KEYS[2], ARGV[2]) end
local due = micros - keepMs * 1000
for _, old in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', due, 'LIMIT', 0, 100)) do
  forget(old)
end
local forgotten = {}
while tonumber(redis.call('GET', KEYS[2])) > most do
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
  if not oldest then break end
  forget(oldest)
  table.insert(forgotten, string.match(oldest, '^%S+'))
end
redis.call('PEXPIRE', KEYS[1], keepMs + 60000)
redis.call('PEXPIRE', KEYS[2], keepMs + 60000)
return forgotten
`,
);

/** KEYS: turn, chunks, commands, readers. Nobody is told of it any more; who reads it reads on. */
export const FORGET = define(
  'forget',
  `
if redis.call('EXISTS', KEYS[1], KEYS[4]) < 2 then return redis.call('UNLINK', unpack(KEYS)) end
redis.call('HSET', KEYS[1], 'endedAt', 0)
for at = 1, 4 do redis.call('PEXPIRE', KEYS[at], ARGV[1]) end
return 0
`,
);

/** KEYS: note. One more of it; more than a few were never asked for. */
export const NOTE = define(
  'note',
  `
redis.call('RPUSH', KEYS[1], 1)
redis.call('LTRIM', KEYS[1], 0, 19)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`,
);

export type Script = ReturnType<typeof define>;

const SCRIPTS = [
  BEGIN,
  CALL_OFF,
  LOOK,
  OTHERS,
  APPEND,
  RENEW,
  RELEASE,
  CLOSE,
  COMMAND,
  SEIZE,
  LOOK_AT,
  DUE,
  RETAIN,
  FORGET,
  NOTE,
];

/** Once known, nothing is waited for: commands go out in the order they are given. */
async function nameScripts(): Promise<void> {
  for (const script of SCRIPTS) script.sha ??= await digest(script.source);
}

/** A server that was restarted knows no scripts any more: it is told this one again. */
export async function runScript(
  link: Link,
  script: Script,
  keys: string[],
  args: (string | number)[],
): Promise<unknown> {
  if (script.sha === undefined) await nameScripts();
  const key = keys[0] as string;
  const command = ['EVALSHA', script.sha as string, `${keys.length}`];
  for (const name of keys) command.push(name);
  for (const arg of args) command.push(typeof arg === 'string' ? arg : `${arg}`);
  try {
    return await link.send(key, command);
  } catch (error) {
    if (!String((error as Error)?.message).startsWith('NOSCRIPT')) throw error;
    return link.send(key, ['EVAL', script.source, ...command.slice(2)]);
  }
}

async function digest(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
