// Threads on small stacks side by side, at which harts take turns in the middle of calls: against a model that knows which stack is which.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { architectureNamed } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { CallTracer, EventOutput, nothingRead } from '../../src/calls/index.js';
import { stackNumber } from '../../src/calls/open-call.js';
import { type FunctionProbe, FunctionTracer } from '../../src/probes/index.js';
import { type CallEvent, FunctionSummary, type TraceEvent } from '../../src/trace/index.js';
import { contradiction } from '../support/table-rows.js';

const arch = architectureNamed('riscv:rv64');
assert(arch);
const stackBytes = 4096;
const harts = 3;

const probes = ['a', 'b', 'c', 'd'].map((name, i): FunctionProbe => {
  const address = addr(0x8000_0000n + BigInt(i) * 0x100n);
  const ref = { key: i, name, instance: name, address, file: undefined, line: undefined };
  const place = { address, ref, size: 0x100, aliases: [], arguments: [], result: undefined };
  return { ...place, stackArguments: false, scratchIsFree: false };
});

/** What one call did, whatever is told of it. */
interface TrueCall {
  readonly probe: FunctionProbe;
  readonly begin: number;
  readonly around: TrueCall | undefined;
  end: number | undefined;
  returnAddress: bigint;
  stackPointer: bigint;
}

interface Program {
  /** Bytes of a stack that are used at most. */
  readonly deepest: number;
  readonly unwinds: boolean;
  readonly numbers: readonly number[];
  readonly threads: number;
}

class Machine {
  readonly calls: TrueCall[] = [];
  readonly events: CallEvent[] = [];
  readonly summary = new FunctionSummary();
  readonly #tracer: CallTracer;
  readonly #threads: TrueCall[][];
  /** Which thread each hart runs. */
  readonly #running: (number | undefined)[];
  readonly #program: Program;
  #time = 0;

  constructor(program: Program) {
    this.#program = program;
    const output = new EventOutput({
      begin() {},
      hart() {},
      flush() {},
      end() {},
      event: (event) => this.#tell(event),
    });
    assert(arch);
    const kind = new FunctionTracer({ probes, excluded: [], unmatched: [] }, output, { values: false });
    this.#tracer = new CallTracer(arch, output, [kind]);
    this.#threads = Array.from({ length: program.threads }, () => []);
    this.#running = Array.from({ length: harts }, (_, hart) => (hart < program.threads ? hart : undefined));
  }

  run(): this {
    for (const number of this.#program.numbers) this.#step(number);
    return this;
  }

  finish(): this {
    this.#tracer.finish();
    return this;
  }

  /** Calls that began in the last part, and what is told to be around them. */
  parents(from: number): { readonly told: number; readonly right: number } {
    const begun = new Map(this.events.flatMap((event) => (event.type === 'call-begin' ? [[event.time, event]] : [])));
    const late = this.calls.filter((call) => call.begin >= from);
    const right = late.filter(({ begin, around }) => begun.get(begin as never)?.around?.time === around?.begin);
    return { told: late.length, right: right.length };
  }

  #step(number: number): void {
    this.#time++;
    const hart = number % harts;
    const action = Math.floor(number / 8) % 16;
    const thread = this.#running[hart];
    if (thread === undefined || action < 4) {
      const other = Math.floor(number / 128) % this.#program.threads;
      if (!this.#running.includes(other)) this.#running[hart] = other;
      return;
    }
    const stack = this.#threads[thread] as TrueCall[];
    const inner = stack.at(-1);
    const top = 0x8040_0000n + BigInt((thread + 1) * stackBytes);
    const stackPointer = (inner?.stackPointer ?? top) - BigInt(16 * (1 + (Math.floor(number / 512) % 20)));
    if (!inner || (action < 9 && top - stackPointer < BigInt(this.#program.deepest))) {
      this.#call(hart, stack, stackPointer, Math.floor(number / 512) % 5);
    } else if (action < 15 || stack.length < 2 || !this.#program.unwinds) {
      stack.pop();
      inner.end = this.#time;
      const { returnAddress } = inner;
      this.#tracer.returned(this.#moment(hart, returnAddress), stackNumber(inner.stackPointer), nothingRead);
    } else stack.length -= 1 + (number % (stack.length - 1));
  }

  #call(hart: number, stack: TrueCall[], stackPointer: bigint, site: number): void {
    const probe = probes[site % probes.length] as FunctionProbe;
    const returnAddress = 0x8000_1000n + BigInt(site * 4);
    const begin = this.#time;
    const call: TrueCall = { probe, begin, around: stack.at(-1), end: undefined, returnAddress, stackPointer };
    stack.push(call);
    this.calls.push(call);
    const at = this.#moment(hart, probe.address);
    this.#tracer.entered(
      at,
      { returnAddress: addr(returnAddress), stackPointer: stackNumber(stackPointer), seesReturn: true, isCall: true },
      nothingRead,
    );
  }

  #moment(hart: number, pc: bigint) {
    return { hart, pc: addr(pc), registers: { register: () => undefined }, time: this.#time };
  }

  #tell(event: TraceEvent): void {
    this.events.push(event as CallEvent);
    this.summary.event(event);
    for (const row of this.summary.rows()) assert.equal(contradiction(row), undefined);
  }
}

const machines = (program: Partial<Program>) =>
  fc.record<Program>({
    deepest: fc.constant(program.deepest ?? 2500),
    unwinds: fc.constant(program.unwinds ?? false),
    threads: fc.integer({ min: 1, max: 7 }),
    numbers: fc.array(fc.nat(1_000_000), { minLength: 50, maxLength: 400 }),
  });

/** Each call that returned ends once, when it did. */
function endsAreTrue({ calls, events }: Machine): void {
  const key = (name: string, begin: number, end: number): string => `${name} ${begin}-${end}`;
  assert.deepEqual(
    events.flatMap((e) => (e.type === 'call-end' ? [key(e.function.name, e.began, e.time)] : [])).sort(),
    calls.flatMap((call) => (call.end ? [key(call.probe.ref.name, call.begin, call.end)] : [])).sort(),
  );
}

function tableIsTrue({ calls, summary }: Machine): void {
  const rows = new Map(summary.rows().map((row) => [row.function, row]));
  for (const { ref } of probes) {
    const own = calls.filter((call) => call.probe.ref === ref);
    const times = own.flatMap(({ begin, end }) => (end === undefined ? [] : [end - begin]));
    const sum = times.reduce((total, time) => total + time, 0);
    const { calls: called = 0, lost = 0, avg_ns: average = 0, max_ns: longest = 0 } = rows.get(ref.name) ?? {};
    assert.deepEqual([called, lost], [own.length, own.length - times.length]);
    assert.deepEqual([average, longest], [Math.round(sum / Math.max(1, times.length)), Math.max(0, ...times)]);
  }
}

t.test('every return ends its call, on whichever hart, and nothing is lost before the end', async () => {
  fc.assert(
    fc.property(machines({}), (program) => {
      const machine = new Machine(program).run();
      endsAreTrue(machine);
      assert.equal(machine.events.filter(({ type }) => type === 'call-lost').length, 0);
      tableIsTrue(machine.finish());
    }),
    { seed: 13, numRuns: 150 },
  );
});

t.test('with calls that never return among them, and stacks that are used up to their ends', async () => {
  fc.assert(
    fc.property(machines({ deepest: 4096, unwinds: true }), (program) => {
      const machine = new Machine(program).run().finish();
      endsAreTrue(machine);
      tableIsTrue(machine);
    }),
    { seed: 14, numRuns: 150 },
  );
});

t.test('where stacks end is learned: what is around a call comes to be right', async (t) => {
  const rates = [1, 2, 3, 4, 5].map((seed) => {
    const numbers = fc.sample(fc.nat(1_000_000), { seed, numRuns: 20_000 });
    const machine = new Machine({ deepest: 4096, unwinds: false, threads: 7, numbers }).run();
    const { told, right } = machine.parents(15_000);
    return right / told;
  });
  t.ok(
    rates.every((rate) => rate === 1),
    `right in the last quarter: ${rates.join(' ')}`,
  );
});
