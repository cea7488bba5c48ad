// Our Chrome JSON in speedscope's own importer: no warning, and frames that aggregate, also where the clock ticks seldom.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import type { TraceEvent } from '../../../../src/trace/index.js';
import { elfPath, qemuArgv } from '../../../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from '../../../support/command.js';
import { cases } from '../../../support/long.js';
import { readWithSpeedscope, type SpeedscopeProfile } from '../../../support/speedscope.js';
import { callStories } from '../../call-stories.js';
import { nanos } from '../../stories.js';
import { write } from '../../written.js';

/** The time in each frame, in nanoseconds, by its name without args; `only` of those with this in their args. */
function totals(profiles: readonly SpeedscopeProfile[], only = ''): Map<string, number> {
  const found = new Map<string, number>();
  for (const profile of profiles) {
    profile.forEachFrame((frame) => {
      if (!frame.name.includes(only)) return;
      const name = frame.name.replace(/ \{".*$/s, '');
      found.set(name, (found.get(name) ?? 0) + frame.getTotalWeight() * 1000);
    });
  }
  return found;
}

t.test('whatever is called, however seldom the clock ticks, and however late', async () => {
  const ticks = fc.constantFrom(1, 100, 100_000);
  const starts = fc.constantFrom(0, 2 ** 42, 2 ** 50);
  await fc.assert(
    fc.asyncProperty(callStories, ticks, starts, async ({ events }, tick, start) => {
      const seen = (time: number) => nanos(start + Math.floor(time / tick) * tick);
      const coarse = events.map((event): TraceEvent => {
        if (event.type === 'gap') return event;
        const time = seen(event.time);
        return 'began' in event ? { ...event, time, began: seen(event.began) } : { ...event, time };
      });
      const names = coarse.flatMap((event) => {
        if (event.type === 'call-begin') return event.function.name;
        return event.type === 'poll-begin' ? event.future.future : [];
      });
      const { profiles, warnings } = await readWithSpeedscope(write('tied.json', coarse).toString());
      // A story may end in the middle of a call; a recording reports those as lost.
      assert.deepEqual(
        warnings.filter((warning) => !/was still open at end of profile/.test(warning)),
        [],
      );
      assert.deepEqual([...totals(profiles).keys()].sort(), [...new Set(names)].sort());
    }),
    { seed: 20_26, numRuns: cases(100) },
  );
});

t.test('a recording of a kernel: each function is one frame, with the time of the table', async (t) => {
  const trace = join(scratchFolder(t), 'all.json');
  const words = [
    'run',
    '--json',
    '-p',
    'fn:**',
    '-p',
    'poll:**',
    '-o',
    trace,
    elfPath('rv-o2'),
    '--',
    ...qemuArgv('rv-o2'),
  ];
  const { status, stdout } = await rsptrace(...words).ended;
  t.equal(status, 0);
  const { functions } = JSON.parse(stdout) as {
    functions: { function: string; total_ns: number; calls: number; lost: number }[];
  };
  const text = readFileSync(trace, 'utf8');
  const { profiles, warnings } = await readWithSpeedscope(text);
  t.same(warnings, []);
  const told = totals(profiles, ' {"function":');
  const wanted = new Map<string, { ns: number; calls: number }>();
  for (const { function: name, total_ns: ns, calls, lost } of functions) {
    // Of a lost call the table has no time; the one that never returns is lost.
    if (lost > 0) continue;
    const so = wanted.get(name) ?? { ns: 0, calls: 0 };
    wanted.set(name, { ns: so.ns + ns, calls: so.calls + calls });
  }
  t.ok(wanted.size > 50);
  // Ties are moved on by picoseconds, some at each end of a call.
  const wrong = [...wanted].filter(([name, { ns, calls }]) => Math.abs((told.get(name) ?? -1) - ns) > 1 + calls * 0.1);
  t.same(wrong, []);
});
