// What is drained waits as it was read, however the memory under it is used again: every byte of a run says which piece it came from.
import fc from 'fast-check';
import t from 'tap';
import { Backlog } from '../../src/inject/backlog.js';

const slot = 64;

t.test('a run keeps its bytes until it was looked at', async () => {
  const piece = fc.record({
    kind: fc.constant('piece' as const),
    slots: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 900, max: 3000 })),
    cuts: fc.array(fc.nat(100), { maxLength: 3 }),
  });
  const look = fc.record({ kind: fc.constant('look' as const), slots: fc.integer({ min: 1, max: 4000 }) });
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, look), { maxLength: 60 }), (steps) => {
      const backlog = new Backlog();
      const wanted: number[] = [];
      let number = 0;
      for (const step of [...steps, { kind: 'look' as const, slots: Number.POSITIVE_INFINITY }]) {
        if (step.kind === 'piece') {
          number = (number + 1) & 0xff;
          const bytes = backlog.open(step.slots * slot).fill(number);
          const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
          const cuts = step.cuts.map((percent) => Math.floor((percent * step.slots) / 100) * slot);
          const edges = [0, ...cuts, bytes.length].sort((a, b) => a - b);
          for (let i = 1; i < edges.length; i++) {
            const [start, end] = [edges[i - 1] as number, edges[i] as number];
            if (start === end) continue;
            backlog.add(view, start, end);
            wanted.push(...new Array((end - start) / slot).fill(number));
          }
          backlog.close(bytes);
          continue;
        }
        let left = step.slots;
        for (let run = backlog.first; run && left > 0; run = backlog.first) {
          const { view, start, end } = run;
          const slots = Math.min(left, (end - start) / slot);
          for (let at = start; at < start + slots * slot; at += slot) {
            const number = wanted.shift();
            if (view.getUint8(at) !== number || view.getUint8(at + slot - 1) !== number) return false;
          }
          left -= slots;
          backlog.advance(run, slots * slot);
        }
        if (backlog.bytes !== wanted.length * slot) return false;
      }
      return wanted.length === 0 && backlog.first === undefined;
    }),
  );
});

t.test('memory is used again', async (t) => {
  const backlog = new Backlog();
  const once = () => {
    const bytes = backlog.open(1 << 20);
    const view = new DataView(bytes.buffer);
    backlog.add(view, 0, 512);
    backlog.add(view, 512, 1 << 20);
    backlog.close(bytes);
    return bytes.buffer;
  };
  const lookAtAll = () => {
    for (let run = backlog.first; run; run = backlog.first) backlog.advance(run, run.end - run.start);
  };
  const first = once();
  t.not(once(), first, 'not while something waits in it');
  lookAtAll();
  t.equal(backlog.bytes, 0);
  const again = new Set([once(), once()]);
  t.ok(again.has(first));
  lookAtAll();
});
