// Futures that are dropped before they are ready, in a program that counts its own: by a timeout, in a select!, with their task.
// In the release build most drops are inlined, and only what follows shows them.

import { readFileSync } from 'node:fs';
import t from 'tap';
import { rsptrace } from '../support/command.js';
import { usually } from '../support/long.js';
import { pollsProgram } from '../support/native.js';
import { recorded } from '../support/native-trace.js';

interface Row {
  readonly future: string;
  readonly polls: number;
  readonly ready: number;
  readonly pending: number;
  readonly at_least: boolean;
  readonly cancelled: number;
  readonly cancelled_at_least: boolean;
}

interface Line {
  readonly type: string;
  readonly name: string;
  readonly address: string;
  readonly detail?: string;
}

for (const build of ['cancels-o0', 'cancels-o3'] as const) {
  // Each build and each runtime once.
  for (const threads of usually(['ct', 'mt'], (one) => one === 'mt' && build === 'cancels-o3')) {
    t.test(`${build} ${threads}`, async (t) => {
      const elf = pollsProgram(t, build);
      const made = await recorded<{ readonly futures: readonly Row[] }>(t, [elf, threads], []);
      const { stdout: printed, file: trace } = made;
      const { futures } = made.output;
      const isDebug = build.endsWith('o0');
      const seen = new Map<string, Row>();
      for (const [, name = '', begun, dropped] of printed.matchAll(/^(\w+) begun=(\d+) dropped=(\d+)$/gm)) {
        const [row, ...others] = futures.filter(({ future }) => future === `cancels_program::${name}`);
        t.equal(others.length, 0);
        if (!row) throw new Error(`${name} has no row`);
        seen.set(name, row);
        t.equal(row.at_least, false, `${name}: every poll is seen`);
        if (isDebug) t.equal(row.cancelled_at_least, false, `${name}: every drop is seen`);
        if (!row.cancelled_at_least) t.equal(row.cancelled, Number(dropped), `${name}: dropped`);
        else t.ok(row.cancelled <= Number(dropped), `${name}: ${row.cancelled} of ${dropped} dropped`);
        t.equal(row.ready, Number(begun) - Number(dropped), `${name}: ready`);
        const pending = row.polls - row.ready;
        if (isDebug) t.equal(row.pending, pending, `${name}: pending`);
        else t.ok(row.pending <= pending && row.pending >= 0.5 * pending, `${name}: ${row.pending} of ${pending}`);
      }
      t.equal(seen.size, 5, printed);
      // What the losers and the aborted tasks held is known in both builds.
      const dropped = (name: string) => Number(new RegExp(`^${name} .*dropped=(\\d+)`, 'm').exec(printed)?.[1]);
      t.equal(seen.get('leaf')?.cancelled, dropped('leaf'), 'leaf');
      t.equal(seen.get('loser')?.cancelled, dropped('loser'), 'loser');
      t.ok((seen.get('slow')?.cancelled ?? 0) >= 10, 'those of the ten tasks');
      t.equal(seen.get('server')?.pending, (seen.get('server')?.polls ?? 0) - 1, 'server');
      const tasks = futures.filter(({ future }) => future.startsWith('cancels_program::run::'));
      t.equal(
        tasks.reduce((sum, { cancelled }) => sum + cancelled, 0),
        10,
        'each task is dropped once',
      );

      const converted = await rsptrace('convert', trace, '-o', `${elf}.jsonl`).ended;
      t.equal(converted.status, 0, converted.stderr);
      const lines = readFileSync(`${elf}.jsonl`, 'utf8').trim().split('\n');
      const events = lines.map((line) => JSON.parse(line) as Line).filter(({ type }) => type === 'cancelled');
      t.equal(
        events.length,
        futures.reduce((sum, { cancelled }) => sum + cancelled, 0),
        'an instant each',
      );
      const implied = events.filter(({ detail = '' }) =>
        /, before (another|the Future)|dropped.* before /.test(detail),
      );
      if (isDebug) t.same(implied, [], 'each drop was seen itself');
      else t.ok(implied.length > 0, 'some are told by what follows');
    });
  }
}
