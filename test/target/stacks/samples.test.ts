// When samples are named: places without a name wait for others, and nothing is lost or changes its place.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import type { ElfFile } from '../../../src/elf/index.js';
import { type HartLook, Samples } from '../../../src/target/stacks/index.js';
import type { Frame } from '../../../src/target/unwind/index.js';
import type { GuestNanos, Sample } from '../../../src/trace/index.js';

/** Frames that are named by their pc, at the first call. */
class Names {
  readonly known = new Set<bigint>();

  of(frames: readonly Frame[]) {
    return frames.map(({ pc }) => {
      this.known.add(pc);
      return this.mark(`f${pc}`);
    });
  }

  areNamed(frames: readonly Frame[]): boolean {
    return frames.every(({ pc }) => this.known.has(pc));
  }

  awaited(): undefined {}

  mark(name: string) {
    return { name, instance: name, address: undefined, file: undefined, line: undefined };
  }
}

const frame = (pc: number) => ({ pc: addr(BigInt(pc)) }) as unknown as Frame;
const program = {} as unknown as ElfFile;
const look = (pc: number): HartLook => ({
  program,
  hart: { id: '1', name: undefined } as unknown as HartLook['hart'],
  ...{ pc: BigInt(pc), privilege: 'user', root: undefined, isIdle: false, firmware: undefined, other: undefined },
  stack: { frames: [frame(pc)], end: { reason: 'entry', complete: true } } as unknown as HartLook['stack'],
});
const wishes = { depth: 9, mode: 'all', idle: false, awaited: false, by: undefined } as const;

t.test('samples wait for names together, in their order', async (t) => {
  const names = new Names();
  const emitted: Sample[] = [];
  const samples = new Samples(names, { event: (sample) => emitted.push(sample) }, 1, wishes);
  const take = (...pcs: number[]): void => {
    for (const pc of pcs) samples.take(look(pc), 0, 0 as GuestNanos);
  };
  const told = (): string => emitted.map(({ stack }) => stack[0]?.name).join(' ');
  take(1, 2);
  samples.emitNamed();
  t.equal(told(), '', 'a new place waits');
  samples.emit();
  t.equal(told(), 'f1 f2');
  take(2, 3, 1);
  samples.emitNamed();
  t.equal(told(), 'f1 f2 f2', 'what is behind it waits too');
  take(...Array.from({ length: 1000 }, () => 4));
  samples.emitNamed();
  t.equal(emitted.length, 1005, 'but not more than a thousand');
  t.equal(told().slice(0, 20), 'f1 f2 f2 f3 f1 f4 f4');
  t.equal(samples.counts.samples, 1005);
});

t.test('stacks that end early count from when a hart has run the program', async (t) => {
  const samples = new Samples(new Names(), { event: () => {} }, 1, wishes);
  const end = { reason: 'outside-code', complete: false };
  const ended = (image: object | undefined): HartLook => {
    const stack = { frames: [{ ...frame(1), image }], end } as unknown as HartLook['stack'];
    return { ...look(1), stack };
  };
  const [inFirmware, inProgram] = [ended(undefined), ended({})];
  const counts: number[] = [];
  for (const [one, hart] of [
    [inFirmware, 0],
    [inFirmware, 1],
    [inProgram, 0],
    [inFirmware, 0],
    [inFirmware, 1],
  ] as const) {
    samples.take(one, hart, 0 as GuestNanos);
    counts.push(samples.counts.incomplete);
  }
  t.same(counts, [0, 0, 1, 2, 2]);
  t.equal(samples.counts.samples, 5);
});
