// Probes that truly stop, beside others that do not: with the default engine the one that stops most is switched off, and is said to be.

import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import type { Recording } from '../support/recording.js';
import { elfPath, qemuArgv } from './guests/guests.js';

interface Output extends Recording {
  readonly engines: { readonly switched_off: number; readonly without_stops: number };
}

/** `forget` is shorter than any patch, and called all the time: it stops each time. */
async function run(t: Test, events: string, ...options: string[]): Promise<Output> {
  const probes = ['fn:async_task::**', 'fn:core::mem::forget'].flatMap((probe) => ['-p', probe]);
  const files = ['--json', '-o', join(scratchFolder(t), 'out.pftrace')];
  const words = [
    'run',
    ...files,
    ...probes,
    '--max-events',
    events,
    '-d',
    '60',
    ...options,
    elfPath('rv-asynctask-o0'),
  ];
  return rsptrace(...words, '--', ...qemuArgv('rv-asynctask-o0')).json<Output>();
}

t.test('a probe past the budget is switched off', async (t) => {
  const { stops, engines, probes } = await run(t, '12000');
  t.ok(engines.switched_off > 0, `${engines.switched_off} of ${probes.length} probes switched off at ${stops} stops`);
  t.ok(engines.without_stops > probes.length / 2);
  // On a busy host few come before it is switched off.
  t.ok(stops > 0, `${stops} stops`);
  const off = probes.filter(({ why }) => why?.startsWith('it stopped the target more often than --engine auto allows'));
  t.equal(off.length, engines.switched_off);
  t.ok(
    off.every(({ engine, why }) => engine === 'none' && /its code is shorter than the jump/.test(why ?? '')),
    JSON.stringify(off),
  );
  t.ok(off.some(({ function: name }) => /mem::forget/.test(name)));
});

t.test('--engine mixed keeps it', async (t) => {
  const { stops, engines } = await run(t, '3000', '--engine', 'mixed');
  t.equal(engines.switched_off, 0);
  t.ok(stops > 50, `${stops} stops`);
});
