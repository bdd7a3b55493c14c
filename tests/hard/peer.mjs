// A second writer that locks and writes as OpenChrome does: npm proper-lockfile and write-file-atomic
// with its options. Adds one to `peer` in a task's meta.json, again and again; prints what was acknowledged.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const [, , modules, folder, name, countText] = process.argv;
const require = createRequire(path.join(modules, 'package.json'));
const lockfile = require('proper-lockfile');
const writeFileAtomic = require('write-file-atomic');

const target = path.join(folder, '.lock');
const meta = path.join(folder, 'meta.json');
const retries = { retries: 100, factor: 1, minTimeout: 100, maxTimeout: 100 };

let done = 0;
let refused = 0;
let longestMs = 0;
for (let number = 0; number < Number(countText); number += 1) {
  if (!fs.existsSync(target)) fs.writeFileSync(target, '{}', { flag: 'a' });
  const began = Date.now();
  let release;
  try {
    release = await lockfile.lock(target, { stale: 10_000, retries });
  } catch (error) {
    if (error.code !== 'ELOCKED') throw error;
    refused += 1;
    continue;
  }
  longestMs = Math.max(longestMs, Date.now() - began);
  const raw = JSON.parse(fs.readFileSync(meta, 'utf8'));
  raw[name] = (raw[name] ?? 0) + 1;
  await writeFileAtomic(meta, JSON.stringify(raw, null, 2));
  await release();
  done += 1;
}
console.log(JSON.stringify({ done, refused, longestMs }));
