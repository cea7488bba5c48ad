// Stops that wait for their turn behind records: random programs against a tracer that is told everything at once.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { architectureNamed } from '../../src/arch/index.js';
import { type Addr, addr } from '../../src/base/addr.js';
import {
  CallTracer,
  type EarlierRecords,
  EventOutput,
  type Hit,
  nothingRead,
  QueuedStops,
  type Tracer,
} from '../../src/calls/index.js';
import type { CallKind } from '../../src/calls/kinds.js';
import { stackNumber } from '../../src/calls/open-call.js';
import { type FunctionProbe, FunctionTracer } from '../../src/probes/index.js';
import type { TraceEvent } from '../../src/trace/index.js';

const arch = architectureNamed('riscv:rv64');
assert(arch);
const riscv64 = arch;

/** Calls of these are records; those of the others stop the target. */
const recorded = new Set(['a', 'b']);
const probes = ['a', 'b', 'c', 'd'].map((name, i): FunctionProbe => {
  const address = addr(0x8000_0000n + BigInt(i) * 0x100n);
  const ref = { key: i, name, instance: name, address, file: undefined, line: undefined };
  const place = { address, ref, size: 0x100, aliases: [], arguments: [], result: undefined };
  return { ...place, stackArguments: false, scratchIsFree: false };
});
const returnAddresses = [0x9000_0000n, 0x9000_0010n, 0x9000_0020n].map(addr);

interface OpenCall {
  readonly probe: FunctionProbe;
  readonly returnAddress: Addr;
  readonly stackPointer: bigint;
}

/** Records that wait; the present one, if none does. */
class Waiting implements EarlierRecords {
  readonly #all: (() => void)[] = [];
  readonly #waits: boolean;
  /** How often the target had to stand for them. */
  held = 0;

  constructor(waits: boolean) {
    this.#waits = waits;
  }

  get areDigested(): boolean {
    return this.#all.length === 0;
  }

  queue(tell: () => void): void {
    this.#all.push(tell);
    if (!this.#waits) this.digest(1);
  }

  digest(most: number): void {
    for (const tell of this.#all.splice(0, most)) tell();
  }

  digestAll(): void {
    this.held++;
    this.digest(this.#all.length);
  }
}

/** A target with a breakpoint at each function that stops, and at the return addresses that a tracer asks for. */
class Target {
  readonly events: string[] = [];
  readonly inserted = new Set<Addr>();
  readonly waiting: Waiting;
  stops = 0;
  missed = 0;
  readonly #calls: CallTracer;
  readonly #tracer: Tracer;
  readonly #stacks: readonly [OpenCall[], OpenCall[]] = [[], []];
  #time = 0;

  constructor(waits: boolean, more: readonly CallKind[] = []) {
    this.waiting = new Waiting(waits);
    const event = (event: TraceEvent): void => void this.events.push(textOf(event));
    const output = new EventOutput({ begin() {}, hart() {}, flush() {}, end() {}, event });
    const functions = new FunctionTracer({ probes, excluded: [], unmatched: [] }, output, { loops: () => false });
    this.#calls = new CallTracer(riscv64, output, [functions, ...more]);
    this.#tracer = waits ? new QueuedStops(this.#calls, this.waiting) : this.#calls;
  }

  call(hart: 0 | 1, which: number, site: number, room: number): void {
    const stack = this.#stacks[hart];
    if (stack.length > 12) return;
    const probe = probes[which % probes.length] as FunctionProbe;
    const returnAddress = returnAddresses[site % returnAddresses.length] as Addr;
    const top = stack.at(-1)?.stackPointer ?? 0x7000_0000n + BigInt(hart) * 0x100_0000n;
    const call = { probe, returnAddress, stackPointer: top - BigInt(16 * (1 + room)) };
    stack.push(call);
    const { stackPointer } = call;
    if (!recorded.has(probe.ref.name)) this.#stop(hart, probe.address, stackPointer, returnAddress);
    else {
      const at = this.#moment(hart, probe.address);
      this.waiting.queue(() =>
        this.#calls.entered(
          at,
          { returnAddress, stackPointer: stackNumber(stackPointer), seesReturn: true, isCall: true },
          nothingRead,
        ),
      );
    }
  }

  returns(hart: 0 | 1): void {
    const call = this.#stacks[hart].pop();
    if (!call) return;
    const { probe, returnAddress, stackPointer } = call;
    if (recorded.has(probe.ref.name)) {
      const at = this.#moment(hart, returnAddress);
      this.waiting.queue(() => this.#calls.returned(at, stackNumber(stackPointer), nothingRead));
    } else if (!this.inserted.has(returnAddress)) this.missed++;
    if (this.inserted.has(returnAddress)) this.#stop(hart, returnAddress, stackPointer, 0n);
  }

  /** Leaves calls without returns, as longjmp does. */
  unwind(hart: 0 | 1, calls: number): void {
    this.#stacks[hart].splice(-calls);
  }

  end(): void {
    for (const hart of [0, 1] as const) for (let i = 0; i < 20; i++) this.returns(hart);
    this.waiting.digest(Number.POSITIVE_INFINITY);
    // A stop is needed to take breakpoints out.
    this.call(0, 2, 0, 0);
    this.returns(0);
    this.#calls.finish();
  }

  #moment(hart: number, pc: Addr) {
    return { hart, pc, registers: { register: () => undefined }, time: ++this.#time };
  }

  #stop(hart: number, pc: Addr, stackPointer: bigint, ra: bigint): void {
    this.stops++;
    const register = (name: string): bigint | undefined => (name === 'ra' ? ra : undefined);
    const hit: Hit = { ...this.#moment(hart, pc), stackPointer, registers: { register } };
    const visit = this.#tracer.visit(hit);
    let step = visit.next();
    while (!step.done) step = visit.next(step.value.map(({ length }) => new Uint8Array(length)));
    const { watch, unwatch } = step.value;
    for (const address of watch) this.inserted.add(address);
    for (const address of unwatch) this.inserted.delete(address);
    this.#tracer.digest();
  }
}

function textOf(event: TraceEvent): string {
  if (event.type !== 'call-begin' && event.type !== 'call-end' && event.type !== 'call-lost') return event.type;
  const { type, hart, depth, function: fn } = event;
  return `${type} ${fn.name} by ${hart} at depth ${depth}`;
}

type Step = readonly ['call' | 'return' | 'unwind' | 'digest', 0 | 1, number, number, number];

const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom('call', 'call', 'return', 'return', 'unwind', 'digest'),
  fc.constantFrom<0 | 1>(0, 1),
  fc.nat(3),
  fc.nat(2),
  fc.nat(3),
);

function run(target: Target, steps: readonly Step[]): void {
  for (const [what, hart, one, two, three] of steps) {
    if (what === 'call') target.call(hart, one, two, three);
    else if (what === 'return') target.returns(hart);
    else if (what === 'unwind') target.unwind(hart, 1 + (one % 2));
    else target.waiting.digest(one);
  }
  target.end();
}

t.test('the same events come out, each return has its breakpoint, and no more stay', (t) => {
  let queued = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const [direct, waits] = [new Target(false), new Target(true)];
      run(direct, steps);
      run(waits, steps);
      assert.deepEqual(waits.events, direct.events);
      assert.equal(waits.missed, 0);
      assert.equal(waits.waiting.held, 0, 'the target never stood for records');
      for (const address of waits.inserted) assert.ok(direct.inserted.has(address), 'it may still be awaited');
      queued += waits.stops;
    }),
    { numRuns: 500, seed: 20_261_126 },
  );
  t.ok(queued > 1000, `${queued} stops`);
  t.end();
});

t.test('a call that returns while it waits takes its breakpoint with it', (t) => {
  const target = new Target(true);
  target.call(0, 0, 0, 0);
  target.call(0, 2, 1, 0);
  t.same([...target.inserted], [returnAddresses[1]]);
  target.returns(0);
  t.same([...target.inserted], []);
  t.same(target.events, []);
  t.end();
});

t.test('a kind whose reads depend on open calls has the records before its stop digested', (t) => {
  const unknown: CallKind = {
    isAt: (pc) => pc === probes[2]?.address,
    entryReads: () => [],
    begin: () => undefined,
    returning() {},
  };
  const target = new Target(true, [unknown]);
  target.call(0, 0, 0, 0);
  target.call(0, 3, 0, 0);
  t.equal(target.waiting.held, 0);
  t.same(target.events, []);
  target.call(0, 2, 0, 0);
  t.equal(target.waiting.held, 1);
  t.same(
    target.events,
    ['a', 'd', 'c'].map((name, depth) => `call-begin ${name} by 0 at depth ${depth}`),
  );
  t.end();
});
