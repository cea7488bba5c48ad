import type { Addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import {
  type AheadReads,
  type Call,
  type CallKind,
  type CallSite,
  type EventOutput,
  type HitMemory,
  inSameFrame,
  type MemoryRequest,
  type Moment,
  type OpenCall,
  type TracedCall,
} from '../../../calls/index.js';
import type { ArgumentValue } from '../../../trace/index.js';
import type { FunctionProbe } from '../../describer.js';
import { decide, holds } from '../../expressions/comparison.js';
import type { FunctionProbes } from '../../resolve-functions.js';
import { ValueTexts } from '../../value-texts.js';
import { CallEvents, type EventfulCall } from '../call-events.js';

export interface FunctionOptions {
  /** Calls nested in so many traced functions, or more, emit no events. */
  readonly maxDepth?: number | undefined;
  /** Record arguments and results. */
  readonly values?: boolean | undefined;
  /** Whether a function's code jumps to its own first instruction; undefined, or not given: not known. */
  readonly loops?: (probe: FunctionProbe) => boolean | undefined;
}

/** What formats a function's values; nothing if values are not recorded. */
interface Texts {
  readonly arguments: readonly { readonly name: string; readonly texts: ValueTexts }[];
  readonly result: ValueTexts | undefined;
}

/** A probe, and its texts from the first call on: a kernel has tens of thousands of functions, and few are called. */
class Probed {
  readonly probe: FunctionProbe;
  #texts: Texts | undefined;

  constructor(probe: FunctionProbe, values: boolean) {
    this.probe = probe;
    if (!values) this.#texts = noTexts;
  }

  get texts(): Texts {
    this.#texts ??= textsOf(this.probe);
    return this.#texts;
  }
}

/** What {@link CallTracer} keeps about an open call. */
interface TracedFunction extends EventfulCall {
  readonly probe: FunctionProbe;
  readonly result: ValueTexts | undefined;
  /** Calls of functions around it. */
  readonly nested: number;
}

type FunctionCall = OpenCall<TracedCall> & { readonly payload: TracedFunction };

const none: readonly never[] = [];
const noTexts: Texts = { arguments: none, result: undefined };

/**
 * Turns hits at functions and at their return addresses into call events. Memory is read for conditions, and for
 * values that registers lead to.
 */
export class FunctionTracer extends CallEvents implements CallKind {
  readonly #probes = new AddressMap<Probed>();
  readonly #maxDepth: number;
  readonly #jumps: (probe: FunctionProbe) => boolean | undefined;
  readonly ahead: AheadReads = {
    entryReads: (at, memory) => this.moreReads(at, memory),
    mayBegin: ({ pc, registers }, memory) => {
      const { probe } = this.#probes.get(pc) ?? {};
      // Nobody waits for its return.
      if (probe?.insisted !== undefined) return false;
      return !probe?.when || holds(probe.when, registers, memory) || this.#mayLoop(probe);
    },
    exitReads: ({ pc }, { registers }, memory) => this.#missing(this.#probes.get(pc)?.texts.result, registers, memory),
  };

  constructor({ probes }: FunctionProbes, output: EventOutput, options: FunctionOptions = {}) {
    super(output);
    this.#maxDepth = options.maxDepth ?? Number.POSITIVE_INFINITY;
    this.#jumps = options.loops ?? (() => undefined);
    const { values = true } = options;
    for (const probe of probes) this.#probes.set(probe.address, new Probed(probe, values));
  }

  isAt(pc: Addr): boolean {
    return this.#probes.get(pc) !== undefined;
  }

  entryReads({ pc }: Moment): readonly MemoryRequest[] | undefined {
    return this.#probes.get(pc) ? none : undefined;
  }

  moreReads({ pc, registers }: Moment, memory: HitMemory): readonly MemoryRequest[] {
    const known = this.#probes.get(pc);
    if (!known) return none;
    const { when } = known.probe;
    const decided = when ? decide(when, registers, memory) : true;
    if (typeof decided !== 'boolean') return decided;
    return decided ? known.texts.arguments.flatMap(({ texts }) => texts.missing(registers, memory) ?? none) : none;
  }

  begin({ pc, hart, time, registers }: Moment, site: CallSite, memory: HitMemory): TracedFunction | undefined {
    const known = this.#probes.get(pc);
    if (!known) return undefined;
    const { probe } = known;
    if (!site.isCall && this.#isAgain(probe, site) && this.#mayLoop(probe)) return undefined;
    const entryOnly = !site.seesReturn || probe.insisted !== undefined;
    const isLeftOut = probe.when !== undefined && !holds(probe.when, registers, memory);
    // Its next turn is no call either, even if the condition holds then.
    if (isLeftOut && (site.isCall || entryOnly || !this.#mayLoop(probe))) return undefined;
    const nested = functionsAround(site.around);
    if (nested >= this.#maxDepth) return undefined;
    const { arguments: texts, result } = isLeftOut ? noTexts : known.texts;
    const values = texts.length > 0 ? argumentsOf(texts, registers, memory) : none;
    const began = this.output.at(time);
    return {
      kind: this,
      place: pc,
      ref: probe.ref,
      probe,
      result,
      began,
      nested,
      hart,
      values,
      entryOnly,
      isLeftOut,
      exit: undefined,
    };
  }

  /** Asked only if it matters, because the answer needs all of the function's code decoded. */
  #mayLoop(probe: FunctionProbe): boolean {
    return this.#jumps(probe) ?? true;
  }

  /**
   * A function whose first instruction is a loop's head reaches its own entry again without being called: same frame,
   * same caller. So does a function that calls itself as its last action, because compilers turn that into the same
   * jump. If no jump leads there, it was left without a return (longjmp) and called again.
   */
  #isAgain(probe: FunctionProbe, site: CallSite): boolean {
    const open = inSameFrame(this, site)?.payload;
    return open !== undefined && isFunction(open) && open.probe === probe;
  }

  exitReads({ payload }: FunctionCall, { registers }: Moment, memory: HitMemory): readonly MemoryRequest[] {
    return this.#missing(payload.result, registers, memory);
  }

  #missing(result: ValueTexts | undefined, registers: RegisterReader, memory: HitMemory): readonly MemoryRequest[] {
    const missing = result?.missing(registers, memory);
    return missing ? [missing] : none;
  }

  returning({ payload }: FunctionCall, { hart, registers }: Moment, memory: HitMemory): void {
    payload.exit = { hart, result: payload.result?.text(registers, memory) };
  }
}

function textsOf({ arguments: all, result }: FunctionProbe): Texts {
  return {
    arguments: all.map(({ name, where, shape }) => ({ name, texts: new ValueTexts(where, shape) })),
    result: result && new ValueTexts(result.where, result.shape),
  };
}

function argumentsOf(all: Texts['arguments'], registers: RegisterReader, memory: HitMemory): ArgumentValue[] {
  const values: ArgumentValue[] = [];
  for (const { name, texts } of all) {
    const value = texts.text(registers, memory);
    if (value !== undefined) values.push({ name, value });
  }
  return values;
}

function functionsAround(around: Call | undefined): number {
  for (let at = around; at; at = at.parent)
    if (isFunction(at.payload) && !at.payload.isLeftOut) return at.payload.nested + 1;
  return 0;
}

function isFunction(call: TracedCall): call is TracedFunction {
  return call.kind instanceof FunctionTracer;
}
