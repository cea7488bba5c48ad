// Whether `tasks` shows the tasks that a program says it has, at many moments, for programs in several build profiles.
//
//   cargo build --profile dev|release|lto|size      in this folder, with CARGO_TARGET_DIR=../../.cache/coverage
//   npx tsx scripts/coverage/live.ts [--looks N] [NAME...]
//
// A row for each program that is there; NAME: a part of a row's name.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { compare, nativeBook, Watched } from '../../test/support/task-book.js';

const { values, positionals } = parseArgs({
  options: { looks: { type: 'string', default: '20' } },
  allowPositionals: true,
});
const folder = join(import.meta.dirname, '../../.cache/coverage');
const programs = [
  ['live_tokio', 'ct'],
  ['live_tokio', 'mt'],
  ['live_tokio', 'local'],
  ['live_smol', '1'],
  ['live_smol', '3'],
  ['live_axum', ''],
] as const;

console.log('program, profile: tasks at each look | looks at which the list and the tasks are the same');
for (const profile of ['debug', 'release', 'lto', 'size']) {
  for (const [name, mode] of programs) {
    const elf = join(folder, profile, name);
    const title = `${name} ${mode}`.trim();
    const isWanted = positionals.length === 0 || positionals.some((part) => `${title} ${profile}`.includes(part));
    if (existsSync(elf) && isWanted) await look(`${title}, ${profile}`, elf, mode);
  }
}

async function look(title: string, elf: string, mode: string): Promise<void> {
  const server = spawn('gdbserver', ['--once', '127.0.0.1:0', elf, mode]);
  const port = await new Promise<string>((resolve) => {
    let text = '';
    server.stderr.on('data', (bytes) => {
      text += bytes;
      const found = /Listening on port (\d+)/.exec(text)?.[1];
      if (found) resolve(found);
    });
  });
  const watched = await Watched.at(`127.0.0.1:${port}`, elf);
  const run = async (ms: number): Promise<void> => {
    const resumed = watched.session.resume();
    await sleep(ms);
    await watched.session.interrupt();
    await resumed;
  };
  await run(1000);
  const counts: number[] = [];
  const wrong = new Map<string, number>();
  let right = 0;
  for (let i = 0; i < Number(values.looks); i++) {
    await run(1 + ((i * 7) % 10));
    const book = await nativeBook(watched);
    const found = await watched.tasks();
    const all = compare(found, book, `${elf.split('/').at(-1)}.rs`);
    if (all.length === 0) right++;
    for (const each of new Set(all)) wrong.set(each, (wrong.get(each) ?? 0) + 1);
    counts.push(found.tasks.length);
  }
  console.log(`${title}: ${Math.min(...counts)} to ${Math.max(...counts)} | ${right} of ${counts.length}`);
  for (const [text, times] of wrong) console.log(`  ${times} x ${text}`);
  server.kill('SIGKILL');
  watched.session.close();
}
