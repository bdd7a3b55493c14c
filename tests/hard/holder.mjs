// Holds the lock of many tasks as OpenChrome does, by npm proper-lockfile where it is given, else by the
// same calls: a folder whose time is moved every 5 s. Prints how many were taken away from it, once asked.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const [, , modules, ...folders] = process.argv;
const BEAT_MS = 5_000;
let lost = 0;

async function byPackage(target) {
  const require = createRequire(path.join(modules, 'package.json'));
  await require('proper-lockfile').lock(target, {
    stale: 2 * BEAT_MS,
    onCompromised: () => { lost += 1; },
  });
}

function byHand(target) {
  const place = `${target}.lock`;
  fs.mkdirSync(place);
  let mine = new Date();
  fs.utimesSync(place, mine, mine);
  const beat = setInterval(() => {
    const found = fs.statSync(place, { throwIfNoEntry: false });
    if (!found || found.mtime.getTime() !== mine.getTime()) {
      lost += 1;
      clearInterval(beat);
      return;
    }
    mine = new Date();
    fs.utimesSync(place, mine, mine);
  }, BEAT_MS);
}

for (const folder of folders) {
  const target = path.join(folder, '.lock');
  fs.writeFileSync(target, '{}');
  if (modules === '-') byHand(target);
  else await byPackage(target);
}
console.log(JSON.stringify({ held: folders.length }));
process.stdin.on('data', () => {
  console.log(JSON.stringify({ lost }));
  process.kill(process.pid, 'SIGKILL');
});
