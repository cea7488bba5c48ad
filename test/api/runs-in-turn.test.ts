// Runs of one target, one after the other: each goes on where the one before has left it. The kernel counts its calls itself.
import { execFileSync } from 'node:child_process';
import t, { type Test } from 'tap';
import { type AttachOptions, launch } from '../../src/index.js';
import { lateKernel } from '../support/tiny-kernels.js';

const duration = '60s';

/** `others`: a function that is called once when the last page table is in use gets the name of Linux' own. */
async function kernel(t: Test, work: number, engine: NonNullable<AttachOptions['engine']>) {
  const { elf, command } = lateKernel(t, { early: 1, work, others: 1 });
  execFileSync('riscv64-linux-gnu-objcopy', ['--redefine-sym', 'other0=rest_init', elf]);
  let printed = '';
  const onConsole = (text: Uint8Array): void => {
    printed += Buffer.from(text).toString('latin1');
  };
  const target = await launch({ elf, command, engine, onConsole });
  t.teardown(() => target[Symbol.asyncDispose]());
  return { target, counted: () => Number(/(\d+)\s*$/.exec(printed)?.[1]) };
}

t.test('a hit at which a run ends is not the first of the next one', async (t) => {
  const { target, counted } = await kernel(t, 9, 'stop');
  let stopper = new AbortController();
  let wants = false;
  const work = target.probe('fn:work', { stop: true }, () => wants && stopper.abort());
  for (const calls of [0, 1]) {
    t.match(await target.run({ until: 'work', duration }), { end: 'until' });
    t.equal(work.hits, calls, 'the place of --until is passed by the next run');
  }
  wants = true;
  for (const calls of [2, 3]) {
    stopper = new AbortController();
    t.match(await target.run({ signal: stopper.signal, duration }), { end: 'interrupted' });
    t.equal(work.hits, calls, 'a handler has ended it');
  }
  wants = false;
  const ends = new Set<string>();
  while (!ends.has('guest-ended')) ends.add((await target.run({ maxEvents: 5, duration })).end);
  t.strictSame([...ends], ['max-events', 'guest-ended']);
  t.strictSame([work.hits, counted()], [9, 9]);
  t.ok(target.elf.budget.used.work < 0.1, 'what a run reads of the ELF is no burden for the next one');
});

t.test('a kernel that has turned to its last page table has trampolines in each run', async (t) => {
  const { target } = await kernel(t, 200_000_000, 'target');
  target.probe('fn:work');
  // A run ends where the hart stands by chance, also at the first instruction of what was written.
  for (let run = 0; run < 8; run++) {
    const { end, gaps, records, refusal } = await target.run({ maxEvents: 20, duration });
    t.strictSame({ end, refusal }, { end: 'max-events', refusal: undefined });
    t.ok(records >= 20, `${records} records`);
    t.ok(gaps.length <= 1, 'the boot alone is not recorded');
  }
});
