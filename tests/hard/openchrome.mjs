// A program that keeps tasks as OpenChrome does: npm proper-lockfile and write-file-atomic with its options,
// its JSON form, and its rules for create, update, cancel, finish and reap. It has no browser: the work is made up.
// Orders come as JSON lines, one at a time; each answer is a JSON line, written when the change is on disk.
import crypto from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import readline from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const [, , modules, home, name] = process.argv;
const require = createRequire(path.join(modules, 'package.json'));
const lockfile = require('proper-lockfile');
const writeFileAtomic = require('write-file-atomic');

const ROOT = path.join(home, 'tasks');
const RUNS = path.join(home, 'task-runs');
const LOCK = {
  stale: 10_000,
  update: 5_000,
  retries: { retries: 100, factor: 1, minTimeout: 100, maxTimeout: 100 },
};
const TERMINAL = new Set(['COMPLETED', 'FAILED', 'CANCELLED']);
const ID = /^[0-9a-f]{16}$/;
// Half of a pair, as it is left where a text was cut after 500 UTF-16 units.
const CUT = '😀'.slice(0, 1);

let sequence = 0;

const say = (word) => fs.writeSync(1, `${JSON.stringify(word)}\n`);
const folderOf = (id) => path.join(ROOT, id);
const text = (value) => JSON.stringify(value, null, 2);

function readMeta(folder) {
  try {
    const raw = JSON.parse(fs.readFileSync(path.join(folder, 'meta.json'), 'utf8'));
    return raw !== null && typeof raw === 'object' ? raw : null;
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
}

async function lock(target) {
  if (!fs.existsSync(target)) fs.writeFileSync(target, '{}', { flag: 'a' });
  return lockfile.lock(target, LOCK);
}

// Read, change and replace meta.json under the lock; null when there was nothing to change.
async function update(folder, change, target = path.join(folder, '.lock')) {
  const release = await lock(target);
  try {
    const current = readMeta(folder);
    const next = current === null ? null : change(current);
    if (next !== null) await writeFileAtomic(path.join(folder, 'meta.json'), text(next));
    return next;
  } finally {
    await release();
  }
}

// All tries to get a lock were used up: OpenChrome gives the change up, and so is it here.
async function orRefused(step) {
  try {
    return await step();
  } catch (error) {
    if (error.code !== 'ELOCKED') throw error;
    return 'refused';
  }
}

const live = (change) => (current) => (TERMINAL.has(current.status) ? null : change(current));

function event(id, kind, data) {
  const line = JSON.stringify({ ts: Date.now(), kind, ...(data && { data }) });
  fs.appendFileSync(path.join(folderOf(id), 'events.jsonl'), `${line}\n`);
}

async function create({ kind, status }) {
  const now = Date.now();
  sequence += 1;
  const nonce = `${process.pid}:${now}:${sequence}`;
  const args = { url: 'http://site.test/', note: `cut here ${CUT}`, __task_nonce: nonce };
  const id = crypto.createHash('sha256').update(`${kind}\0${JSON.stringify(args)}\0${now}`).digest('hex').slice(0, 16);
  const counters = {
    ...{ toolCalls: 0, actionCalls: 0, observationCalls: 0, failureCalls: 0 },
    ...{ consecutiveSameTool: 0, observationStreak: 0, failureStreak: 0, sameUrlNavigations: {} },
  };
  const lane = {
    ...{ lane_id: 'lane_0123456789', task_id: id, purpose: `search ${CUT}`, status: 'open', profile: 'scratch' },
    ...{ sessionId: name, workerId: `task:${id}:lane:lane_0123456789`, targetIds: ['T1'] },
    ...{ created_at: now, last_activity_at: now, counters: { toolCalls: 2, failures: 0 } },
  };
  const meta = {
    ...{ task_id: id, kind, status, pid: process.pid, created_at: now, args_summary: args, task_nonce: nonce },
    ...(status === 'RUNNING' && { started_at: now }),
    ...{ owner: { session_id: name, mode: 'stdio' }, phase: 'explore', policy: { maxFailureStreak: 4 }, counters },
    ...{ budget_status: 'ok', recent_events: [], last_activity_at: now, lanes: [lane] },
    ...{ cost_curve: [{ step: 1, p: 0.35000000000000003, delta: -1e-7 }], _mu_state: { totalSteps: 1, lastP: 0.5 } },
    later: { words: ['é', '\u2028', `half ${CUT}`], numbers: [0, -1.5, 1e21, 2 ** 53], none: null, deep: [[{ a: [] }]] },
  };
  fs.mkdirSync(folderOf(id));
  await writeFileAtomic(path.join(folderOf(id), 'meta.json'), text(meta));
  if (status === 'RUNNING') event(id, 'started');
  say({ did: 'create', task: id, meta });
}

async function cancel(id) {
  const next = await update(folderOf(id), live((current) => {
    const now = Date.now();
    const asked = { ...current, cancel_requested_at: now };
    if (current.status === 'RUNNING' && current.kind !== 'browser_task') return asked;
    return { ...asked, status: 'CANCELLED', ended_at: now, last_activity_at: now };
  }));
  if (next === null) return 'late';
  event(id, next.status === 'CANCELLED' ? 'cancelled' : 'cancel_requested');
  return next.status === 'CANCELLED' ? ended(id, next) : 'done';
}

function ended(id, meta) {
  say({ did: 'end', task: id, status: meta.status, ended_at: meta.ended_at });
  return 'done';
}

async function claim(id) {
  const next = await update(folderOf(id), (current) => (current.status !== 'PENDING' ? null
    : { ...current, status: 'RUNNING', started_at: Date.now(), pid: process.pid }));
  if (next !== null) event(id, 'started');
  return next === null ? 'late' : 'done';
}

// The tool's answer as it is stored: its pages stand in a string.
function crawled(count) {
  const pages = Array.from({ length: count }, (_, at) => ({
    ...{ url: `http://site.test/${at}`, title: `"Page" ${at} é`, content: `# ${at}\n\ttext \\ 😀`, depth: at % 3 },
    ...{ links_found: at, engine_used: 'cdp' },
  }));
  const summary = { total_pages: count, succeeded: count, failed: 0, max_depth_reached: 2, duration_ms: 10 };
  return { content: [{ type: 'text', text: text({ summary, pages }) }] };
}

async function finish(id) {
  const folder = folderOf(id);
  const found = readMeta(folder);
  if (found === null || TERMINAL.has(found.status)) return 'late';
  const isCrawl = found.kind === 'crawl';
  if (isCrawl) await writeFileAtomic(path.join(folder, 'result.json'), text(crawled(3)));
  const next = await update(folder, live((current) => {
    const now = Date.now();
    const status = current.cancel_requested_at ? 'CANCELLED' : 'COMPLETED';
    const result = isCrawl && status === 'COMPLETED' ? { result_path: path.join(folder, 'result.json') } : {};
    return { ...current, ...result, status, ended_at: now, last_activity_at: now };
  }));
  if (next === null) return 'late';
  event(id, next.status.toLowerCase());
  return ended(id, next);
}

function alive(pid) {
  if (!Number.isFinite(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

async function reap() {
  const dead = (meta) => meta !== null && !TERMINAL.has(meta.status) && !alive(meta.pid);
  for (const id of fs.readdirSync(ROOT).filter((entry) => ID.test(entry))) {
    if (!dead(readMeta(folderOf(id)))) continue;
    const next = await orRefused(() => update(folderOf(id), (current) => (!dead(current) ? null : {
      ...current,
      status: 'FAILED',
      ended_at: Date.now(),
      error: { message: `orphaned: pid ${current.pid} no longer alive`, code: 'orphaned' },
    })));
    if (next === null || next === 'refused') continue;
    event(id, 'failed', { code: 'orphaned', pid: next.pid });
    say({ did: 'reap', task: id, status: next.status, ended_at: next.ended_at });
  }
}

const addOne = (counts) => ({ ...counts, [name]: (counts?.[name] ?? 0) + 1 });

function laneOf(current) {
  const mine = `lane_${name}`;
  const lanes = current.lanes ?? [];
  const found = lanes.find((lane) => lane.lane_id === mine);
  if (!found) return [...lanes, { lane_id: mine, status: 'open', counters: { toolCalls: 1, failures: 0 } }];
  const counted = { ...found, counters: { ...found.counters, toolCalls: found.counters.toolCalls + 1 } };
  return lanes.map((lane) => (lane === found ? counted : lane));
}

const changes = {
  count: (current) => ({ ...current, counts: addOne(current.counts), total: (current.total ?? 0) + 1 }),
  lane: (current) => ({ ...current, lanes: laneOf(current) }),
  field: (current, at) => ({ ...current, [`x_${name}_${at}`]: { at, words: `a half ${CUT}` } }),
  call: (current) => {
    const counters = { ...current.counters, toolCalls: current.counters.toolCalls + 1 };
    const recent = [...(current.recent_events ?? []), { ts: Date.now(), tool: name, ok: true, summary: CUT }];
    return { ...current, counters, last_tool_name: name, recent_events: recent.slice(-10) };
  },
};

async function act(what, id, at) {
  if (what === 'cancel') return cancel(id);
  if (what === 'claim') return claim(id);
  if (what === 'finish') return finish(id);
  if (what === 'event') {
    event(id, 'log', { by: name, note: `half ${CUT}` });
    return 'done';
  }
  if (what === 'item') {
    const folder = path.join(RUNS, id);
    const next = await update(folder, (run) => ({
      ...run, completed_items: [...run.completed_items, `${name}:${at}`], updated_at: Date.now(),
    }), path.join(folder, 'meta.lock'));
    return next === null ? 'late' : 'done';
  }
  return (await update(folderOf(id), live((current) => changes[what](current, at)))) === null ? 'late' : 'done';
}

async function work({ steps }) {
  for (const [at, [what, id, pauseMs]] of steps.entries()) {
    await sleep(pauseMs);
    const began = Date.now();
    const result = await orRefused(() => (what === 'reap' ? reap() : act(what, id, at)));
    say({ did: what, task: id, at, result: result ?? 'done', ms: Date.now() - began });
  }
}

async function startRun() {
  const id = crypto.randomBytes(8).toString('hex');
  const now = Date.now();
  const run = {
    ...{ run_id: id, status: 'RUNNING', goal: `a goal ${CUT}`, ledger_task_ids: [], completed_items: [] },
    ...{ failed_items: [], created_at: now, updated_at: now, later: { x: [CUT] } },
  };
  fs.mkdirSync(path.join(RUNS, id), { recursive: true });
  await writeFileAtomic(path.join(RUNS, id, 'meta.json'), text(run));
  say({ did: 'run', task: id, meta: run });
}

async function hold({ task }) {
  await lock(path.join(folderOf(task), '.lock'));
  say({ did: 'hold', task });
  await sleep(600_000);
}

const orders = { create, work, hold, reap, run: startRun };
for await (const line of readline.createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  await orders[order.do](order);
  say({ did: 'done' });
}
