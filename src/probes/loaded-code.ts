// What of a kernel runs where it is loaded, although it is linked elsewhere.
import type { Architecture, FlowStep } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { madeOnce } from '../base/made-once.js';
import type { CodeAddress, ElfFile } from '../elf/index.js';
import { CodeMap, type FunctionCode } from '../target/unwind/index.js';
import { callersFrameOf } from './changed-signatures.js';
import { FlowGraph } from './flow-graph.js';

/** A hart's state in bits: its stack pointer has a value; it has set a page table. Firmware starts it with neither. */
type State = number;
const [STACK, TABLE] = [1, 2] as const;

interface Followed {
  readonly code: FunctionCode;
  readonly graph: FlowGraph;
  readonly nodes: ReadonlyMap<bigint, number>;
  /** The instructions that set a page table. */
  readonly sets: ReadonlySet<bigint>;
}

/**
 * The functions that a hart may run where they are loaded, by the address at which each begins. Firmware may start a
 * hart anywhere, but there:
 *
 * - the stack pointer has no value. So a way on which it is used first is none, and that leaves few places to start at;
 * - the page table has still to be set. So a place that leads to no instruction which does is none;
 * - jumps, branches and calls lead from code that is loaded to such code, also when the table is set. It is left by a
 *   jump through a register, or by a return to an address that was changed.
 */
export function runAsLoaded(elf: ElfFile, arch: Architecture, starts: Iterable<Addr>): ReadonlySet<CodeAddress> {
  const text = new LoadedText(elf, arch);
  const found = new Set<CodeAddress>();
  for (const start of starts) {
    if (!text.mayStartAt(start)) continue;
    const hart = new LateHart(text, start);
    if (hart.setsTable) for (const low of hart.passed) found.add(low);
  }
  return found;
}

/** The code of a kernel, a function at a time. */
class LoadedText {
  readonly #elf: ElfFile;
  readonly #arch: Architecture;
  readonly #map: CodeMap;
  readonly #known = new Map<CodeAddress, Followed | undefined>();

  constructor(elf: ElfFile, arch: Architecture) {
    this.#elf = elf;
    this.#arch = arch;
    this.#map = CodeMap.of(elf, undefined);
  }

  /** A quick answer for most functions, which make their frame first. */
  mayStartAt(address: Addr): boolean {
    const bytes = this.#map.isCode(this.#elf.codes.toCode(address)) ? this.#elf.bytesAt(address, 4) : undefined;
    return bytes !== undefined && this.#arch.codeFlow?.steps(bytes, address)[0]?.stack !== 'uses';
  }

  at(address: Addr): Followed | undefined {
    const code = this.#map.functionAt(this.#elf.codes.toCode(address));
    if (code && !this.#known.has(code.low)) this.#known.set(code.low, this.#follow(code));
    return code && this.#known.get(code.low);
  }

  /** It returns elsewhere than it was called from. */
  changesReturn({ code }: Followed): boolean {
    return callersFrameOf(this.#elf, this.#arch, code)?.readsReturn === true;
  }

  #follow(code: FunctionCode): Followed | undefined {
    const { codeFlow, addressSpaces } = this.#arch;
    const sets = new Set<bigint>();
    const ranges = code.ranges.map(({ start, bytes }) => {
      for (const end of addressSpaces?.tableChanges(bytes) ?? []) sets.add(addOffset(start, end));
      const last = codeFlow?.steps(bytes, start).at(-1);
      // Data may lie behind code.
      return { low: start, high: last ? addOffset(last.address, last.length) : start };
    });
    const facts = { elf: this.#elf, arch: this.#arch, neverReturns: () => false };
    const graph = FlowGraph.of(ranges, facts);
    return graph && { code, graph, nodes: new Map(graph.steps.map(({ address }, node) => [address, node])), sets };
  }
}

/** A call: a way of it goes on where it returns in some state. */
interface Called {
  readonly to: Addr;
  /** The ways that were gone. */
  readonly seen: Set<string>;
  readonly returns: Set<State>;
  /** Who goes on where it returns, and behind which instruction. */
  readonly callers: { readonly call: Called; readonly behind: Addr }[];
}

/** One that starts somewhere, and all ways that it may take. */
class LateHart {
  readonly #text: LoadedText;
  /** The functions of which it runs something. */
  readonly passed = new Set<CodeAddress>();
  setsTable = false;
  readonly #calls = new Map<string, Called>();
  /** The ways that are still to be gone. */
  readonly #open: { readonly call: Called; readonly at: Addr; readonly state: State }[] = [];

  constructor(text: LoadedText, start: Addr) {
    this.#text = text;
    this.#called(start, 0);
    for (let way = this.#open.pop(); way; way = this.#open.pop()) this.#go(way);
  }

  /** A call to a place in a state, which is followed once. */
  #called(to: Addr, state: State): Called {
    return madeOnce(this.#calls, `${to} ${state}`, () => {
      const call = { to, seen: new Set<string>(), returns: new Set<State>(), callers: [] };
      this.#open.push({ call, at: to, state });
      return call;
    });
  }

  #go({ call, at, state }: { readonly call: Called; readonly at: Addr; readonly state: State }): void {
    const way = `${at} ${state}`;
    if (call.seen.has(way)) return;
    call.seen.add(way);
    const found = this.#text.at(at);
    const node = found?.nodes.get(at);
    const now = found && node !== undefined ? this.#after(found, node, state) : undefined;
    if (!found || node === undefined || now === undefined) return;
    const { kind, target, address, length } = found.graph.steps[node] as FlowStep;
    if (kind === 'return') this.#return(call, now);
    else if (kind === 'call' && target !== undefined) {
      const [callee, behind] = [this.#called(target, now), addOffset(address, length)];
      callee.callers.push({ call, behind });
      for (const after of callee.returns) this.#open.push({ call, at: behind, state: after });
    } else for (const to of this.#ways(found, node, now)) this.#open.push({ call, at: to, state: now });
  }

  #return(callee: Called, state: State): void {
    const code = (state & TABLE) === 0 ? undefined : this.#text.at(callee.to);
    if (callee.returns.has(state) || (code && this.#text.changesReturn(code))) return;
    callee.returns.add(state);
    for (const { call, behind } of callee.callers) this.#open.push({ call, at: behind, state });
  }

  /** The state behind an instruction; undefined where no hart comes by. */
  #after({ graph, code, sets }: Followed, node: number, state: State): State | undefined {
    const { address, length, stack } = graph.steps[node] as FlowStep;
    if (stack === 'uses' && (state & STACK) === 0) return undefined;
    this.passed.add(code.low);
    const setsTable = sets.has(address + BigInt(length));
    this.setsTable ||= setsTable;
    return state | (stack === 'sets' ? STACK : 0) | (setsTable ? TABLE : 0);
  }

  #ways({ graph: { steps, next } }: Followed, node: number, state: State): readonly Addr[] {
    const { kind, target, address, length } = steps[node] as FlowStep;
    const behind = addOffset(address, length);
    switch (kind) {
      case 'end':
        return [];
      case 'jump':
      case 'branch':
        return [...(target === undefined ? [] : [target]), ...(kind === 'branch' ? [behind] : [])];
      case 'indirect': {
        const cases = (next[node] ?? []).flatMap((one) => steps[one]?.address ?? []);
        const isLeft = cases.length > 0 || (state & TABLE) !== 0;
        return isLeft ? cases : steps.flatMap(({ names }) => names ?? []);
      }
      default:
        return [behind];
    }
  }
}
