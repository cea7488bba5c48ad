import type { Architecture, EntryValues, FunctionFrames } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { madeOnce } from '../base/made-once.js';
import type { UnwindRow } from '../base/unwind-row.js';
import { CallFrames, type DebugInfo, type Die, DW_AT, rangesOf } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { CodeMap } from '../target/unwind/index.js';
import { FlowGraph } from './flow-graph.js';

/** Why a place is not used in a function whose jumps are not all known, see {@link FunctionGraphs.isClosed}. */
export const mayLeadAnywhere = 'a jump of the function around it may lead anywhere';

/** The stack pointer that a function will return with, by one register at some instruction. */
export interface FramePlace {
  readonly register: string;
  readonly offset: number;
}

/** A value by one register at some instruction. */
export interface KeptPlace extends FramePlace {
  /** The offset is added to the word so many bytes behind what the register points to, and not to the register. */
  readonly through?: number | undefined;
}

/** The control flow of functions, and where their frames are. Keeps what it has found. */
export class FunctionGraphs {
  readonly #debug: DebugInfo;
  readonly #arch: Architecture;
  readonly #graphs = new Map<number, FlowGraph | undefined>();
  readonly #never = new Map<bigint, boolean>();
  readonly #closed = new Map<FlowGraph, boolean>();
  readonly #numbers: ReadonlyMap<string, number>;
  readonly #values = new Map<number, EntryValues | undefined>();
  #frames: CallFrames | undefined;
  readonly #byCode = new Map<number, FunctionFrames>();

  constructor(debug: DebugInfo, arch: Architecture) {
    this.#debug = debug;
    this.#arch = arch;
    const numbers = Array.from({ length: arch.frames?.registerCount ?? 0 }, (_, number) => number);
    this.#numbers = new Map(numbers.map((number) => [arch.dwarfRegister(number) ?? '', number]));
  }

  /** Undefined if the code of this function cannot be followed. */
  of(host: Die): FlowGraph | undefined {
    if (this.#graphs.has(host.offset)) return this.#graphs.get(host.offset);
    const { elf } = this.#debug;
    const neverReturns = (target: Addr): boolean => this.neverReturns(target);
    const graph = FlowGraph.of(codeOf(host), { elf, arch: this.#arch, neverReturns });
    this.#graphs.set(host.offset, graph);
    return graph;
  }

  /**
   * What a register held at the function's entry, by registers at another instruction, the preferred one first. The
   * code itself says it, because debug info may lose what the code still needs.
   */
  kept(host: Die, register: string, at: Addr): readonly KeptPlace[] {
    const number = this.#numbers.get(register);
    const values = number === undefined ? undefined : this.#valuesIn(host);
    return (values?.at(at, number ?? 0) ?? []).flatMap((held) => {
      const name = this.#arch.dwarfRegister(held.register);
      return name === undefined ? [] : [{ ...held, register: name }];
    });
  }

  #valuesIn(host: Die): EntryValues | undefined {
    if (this.#values.has(host.offset)) return this.#values.get(host.offset);
    const { elf } = this.#debug;
    const graph = this.of(host);
    const ranges = codeOf(host).flatMap(({ low, high }) => {
      const bytes = elf.bytesAt(low, Number(high - low));
      return bytes ? [{ start: low, bytes }] : [];
    });
    const values = graph && this.#arch.frames?.code?.follow(ranges, graph);
    this.#values.set(host.offset, values);
    return values;
  }

  /** By call frame information; where a linker has left that out, as kernels' do, by what the code surely does. */
  frameAt(at: Addr): FramePlace | undefined {
    this.#frames ??= CallFrames.load(this.#debug.elf);
    const cfa = (this.#frames.rowAt(at) ?? this.#rowByCode(at))?.cfa;
    if (cfa?.kind !== 'register') return undefined;
    const register = this.#arch.dwarfRegister(cfa.register);
    return register === undefined ? undefined : { register, offset: cfa.offset };
  }

  #rowByCode(at: Addr): UnwindRow | undefined {
    const { elf } = this.#debug;
    const code = CodeMap.of(elf, this.#debug).functionAt(elf.codes.toCode(at));
    if (!code) return undefined;
    const frames = this.#byCode.get(code.low) ?? this.#arch.frames?.code?.analyse(code.ranges);
    if (frames) this.#byCode.set(code.low, frames);
    const found = frames?.at(at);
    return found?.kind === 'row' && found.confidence === 'sure' ? found.row : undefined;
  }

  /**
   * Whether it is known where all jumps of a function lead. A jump through a register without a table surely leaves
   * the function if its frame is gone there.
   */
  isClosed(graph: FlowGraph): boolean {
    return madeOnce(this.#closed, graph, () => this.#isClosed(graph));
  }

  #isClosed(graph: FlowGraph): boolean {
    const jumps = graph.untabled.map((node) => graph.steps[node]?.address as Addr);
    const start = graph.steps[0] && this.frameAt(graph.steps[0].address);
    if (jumps.length === 0) return true;
    const isEntryFrame = (at: Addr): boolean => {
      const frame = this.frameAt(at);
      return frame !== undefined && frame.register === start?.register && frame.offset === start.offset;
    };
    return graph.steps.some(({ address }) => !isEntryFrame(address)) && jumps.every(isEntryFrame);
  }

  /** See {@link neverReturns}. */
  neverReturns(target: Addr): boolean {
    return madeOnce(this.#never, target, () => neverReturns(this.#debug.elf, this.#debug, target));
  }
}

/** Whether a function surely never returns, as its debug info or its name says. */
export function neverReturns({ symbols }: ElfFile, debug: DebugInfo | undefined, address: Addr): boolean {
  const die = debug?.functionAt(address)?.die;
  const isDeclared = die && (die.flag(DW_AT.noreturn) || die.follow(DW_AT.specification)?.flag(DW_AT.noreturn));
  return isDeclared || neverReturn.test(symbols.at(address)?.name ?? '');
}

export function codeOf(host: Die): { readonly low: Addr; readonly high: Addr }[] {
  const { codes } = host.unit;
  return rangesOf(host).map(({ low, high }) => ({ low: codes.fromCode(low), high: codes.fromCode(high) }));
}

/** Symbols of libraries' functions, which are often without debug info. A program's own may have such a name, too. */
const neverReturn =
  /4core9panicking|^_Unwind_Resume\b|^(?:_R.*_7___rustc17)?rust_begin_unwind$|5alloc5alloc18handle_alloc_error|3std7process5abort|^abort$/;
