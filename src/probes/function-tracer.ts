import { hex } from '../base/addr.js';
import { AddressMap } from '../base/address-map.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { formatValue, type Shape, valueOfBytes } from '../dwarf/index.js';
import type { ArgumentValue, GuestNanos, ThreadRef } from '../trace/index.js';
import { bytesIn, type ValuePlace } from './argument-places.js';
import type { OpenCall } from './call-stacks.js';
import type { Call, CallKind, CallSite, EventOutput, Moment, TracedCall } from './call-tracer.js';
import { holds } from './predicate.js';
import type { FunctionProbe, FunctionProbes } from './resolve-functions.js';
import type { MemoryRequest } from './stop-engine.js';
import type { ThreadsByStack } from './threads-by-stack.js';

export interface FunctionOptions {
  /** Calls nested in so many traced functions are not told of. */
  readonly maxDepth?: number;
  /** Tell arguments and results. */
  readonly values?: boolean;
  /** Tell whose calls they are. */
  readonly threads?: ThreadsByStack | undefined;
}

/** What {@link CallTracer} keeps of an open call. */
interface TracedFunction extends TracedCall {
  readonly probe: FunctionProbe;
  readonly began: GuestNanos;
  /** Calls of functions around it. */
  readonly nested: number;
  readonly hart: number;
  readonly thread: ThreadRef | undefined;
  /** Until the begin is told. */
  values: readonly ArgumentValue[];
  /** What is known of its return, until that is told. */
  exit: { readonly hart: number; readonly result: string | undefined } | undefined;
}

type FunctionCall = OpenCall<TracedCall> & { readonly payload: TracedFunction };

const none: readonly never[] = [];

/** Turns hits at functions and at their return addresses into call events. Registers alone tell the values: nothing is read. */
export class FunctionTracer implements CallKind {
  readonly #probes = new AddressMap<FunctionProbe>();
  readonly #output: EventOutput;
  readonly #maxDepth: number;
  readonly #values: boolean;
  readonly #threads: ThreadsByStack | undefined;
  readonly #texts = new ValueTexts();

  constructor({ probes }: FunctionProbes, output: EventOutput, options: FunctionOptions = {}) {
    this.#output = output;
    this.#maxDepth = options.maxDepth ?? Number.POSITIVE_INFINITY;
    this.#values = options.values ?? true;
    this.#threads = options.threads;
    for (const probe of probes) this.#probes.set(probe.address, probe);
  }

  entryReads({ pc }: Moment): readonly MemoryRequest[] | undefined {
    return this.#probes.get(pc) ? none : undefined;
  }

  begin({ pc, hart, time, registers }: Moment, site: CallSite): TracedFunction | undefined {
    const probe = this.#probes.get(pc);
    if (!probe || (!site.isCall && isLoop(probe, site))) return undefined;
    if (probe.when && !holds(probe.when, registers)) return undefined;
    const nested = functionsAround(site.around);
    if (nested >= this.#maxDepth) return undefined;
    const values = this.#values ? this.#arguments(probe, registers) : none;
    const thread = this.#threads?.of(site.stackPointer);
    return { kind: this, probe, began: this.#output.at(time), nested, hart, thread, values, exit: undefined };
  }

  isSame(one: TracedCall, other: TracedCall): boolean {
    return (one as TracedFunction).probe === (other as TracedFunction).probe;
  }

  #arguments(probe: FunctionProbe, registers: RegisterReader): ArgumentValue[] {
    const values: ArgumentValue[] = [];
    for (const { name, shape, where } of probe.arguments) {
      const value = this.#texts.text(where, shape, registers);
      if (value !== undefined) values.push({ name, value });
    }
    return values;
  }

  began(call: FunctionCall): void {
    const { payload, depth } = call;
    const { hart, thread, probe, values } = payload;
    payload.values = none;
    const { time } = this.#output;
    this.#output.emit({ type: 'call-begin', time, hart, thread, function: probe.ref, depth, arguments: values });
  }

  exitReads(): readonly MemoryRequest[] {
    return none;
  }

  returning({ payload }: FunctionCall, { hart, registers }: Moment): void {
    const { result } = payload.probe;
    const told = this.#values && result ? this.#texts.text(result.where, result.shape, registers) : undefined;
    payload.exit = { hart, result: told };
  }

  ended({ payload, depth }: FunctionCall): void {
    const { probe, thread, began, exit } = payload;
    if (!exit) return;
    const { hart, result } = exit;
    const { time } = this.#output;
    const end = { type: 'call-end', time, hart, thread, function: probe.ref, depth, began } as const;
    this.#output.emit(result === undefined ? end : { ...end, result });
  }

  lost({ payload, depth }: FunctionCall, hart: number): void {
    const { probe, thread, began } = payload;
    const { time } = this.#output;
    this.#output.emit({ type: 'call-lost', time, hart, thread, function: probe.ref, depth, began });
  }
}

/**
 * A function whose first instruction is the head of a loop comes by its own entry again without being called: same frame, same
 * caller. So does one that calls itself as the last thing it does, which compilers turn into the same jump.
 */
function isLoop(probe: FunctionProbe, { around, returnAddress, stackPointer }: CallSite): boolean {
  return (
    around !== undefined &&
    isFunction(around.payload) &&
    around.payload.probe === probe &&
    around.returnAddress === returnAddress &&
    around.stackPointer === stackPointer
  );
}

function functionsAround(around: Call | undefined): number {
  for (let at = around; at; at = at.parent) if (isFunction(at.payload)) return at.payload.nested + 1;
  return 0;
}

function isFunction(call: TracedCall): call is TracedFunction {
  return call.kind instanceof FunctionTracer;
}

/** How many values of one place are kept as texts. */
const mostTexts = 4096;

/** Values as texts. The same values come again and again in one register, so their texts are kept. */
class ValueTexts {
  readonly #known = new Map<ValuePlace, Map<bigint, string | undefined>>();

  text(where: ValuePlace, shape: Shape | undefined, registers: RegisterReader): string | undefined {
    const [part, more] = where.kind === 'registers' ? where.parts : [];
    const word = part?.register === undefined || more ? undefined : registers.register(part.register);
    if (word === undefined) return valueText(where, shape, registers);
    let known = this.#known.get(where);
    if (!known) {
      known = new Map();
      this.#known.set(where, known);
    }
    let text = known.get(word);
    if (text === undefined) {
      text = valueText(where, shape, registers);
      if (known.size >= mostTexts) known.clear();
      known.set(word, text);
    }
    return text;
  }
}

/** A value as Rust would print it, an address for what lies in memory, a word in hex without a type; undefined where it is not known. */
function valueText(where: ValuePlace, shape: Shape | undefined, registers: RegisterReader): string | undefined {
  switch (where.kind) {
    case 'unavailable':
      return undefined;
    case 'pointer': {
      const address = registers.register(where.register);
      return address === undefined ? undefined : hex(address);
    }
    case 'registers': {
      const size = shape === undefined ? 8 : (shape.size ?? 0);
      const bytes = size === 0 ? undefined : bytesIn(where, size, registers);
      if (bytes === undefined) return undefined;
      if (shape !== undefined) return formatValue(valueOfBytes(shape, bytes));
      return hex(new DataView(bytes.buffer).getBigUint64(0, true));
    }
  }
}
