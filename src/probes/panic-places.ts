import type { Architecture, FlowStep, FrameAt, FunctionFrames } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { madeOnce } from '../base/made-once.js';
import { type DebugInfo, demangle } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { CodeMap } from '../target/unwind/index.js';
import { calledBy, FlowGraph } from './flow-graph.js';
import { entryPlan, type ReadPlan } from './read-plan.js';

/** Rust's functions that panic, and the handler that a program has. None of them returns. */
const panics = new RegExp(
  [
    'core::panicking::',
    'core::(option|result)::(unwrap|expect)_failed',
    'core::slice::.*_fail',
    'core::str::slice_error_fail',
    'core::cell::panic_',
    'alloc::.*(handle_alloc_error|capacity_overflow|handle_error)',
    'std::panicking::begin_panic',
    '(.*::)?rust_begin_unwind$',
  ]
    .map((path) => `^${path}`)
    .join('|'),
);

/** Of a mangled name: spares demangling all others. */
const mayPanic = /panic|_fail|handle_|overflow|begin_unwind/;

/** The addresses of the functions that a program's panics begin with, as the ELF counts. */
function panicFunctions(elf: ElfFile): Addr[] {
  const found = [...elf.symbols].filter(({ type, name }) => type === 'function' && isPanic(name, elf));
  return [...new Set(found.map(({ address }) => address))];
}

/** Whether one of them is there, by its symbol. */
export function panicsAt(elf: ElfFile, address: Addr): boolean {
  return isPanic(elf.symbols.at(address)?.name ?? '', elf);
}

function isPanic(symbol: string, { budget }: ElfFile): boolean {
  return mayPanic.test(symbol) && panics.test(demangle(symbol, budget));
}

/** More functions than any panic goes through. */
const deepest = 16;

/**
 * A few functions that every panic comes by, as the ELF counts: often the panic handler alone. A breakpoint at each
 * function that panics would slow QEMU, which looks through all breakpoints at each jump to an address in a register.
 *
 * A function is left out if its code surely leads to another one of them, and if its caller is still known there. A
 * function that never returns need not keep who called it: then only its entry will do. Call `prepare` of the
 * architecture first.
 */
export function panicPlaces(program: {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  readonly debug: DebugInfo | undefined;
}): Addr[] {
  const all = panicFunctions(program.elf);
  const ways = new PanicWays(program, new Set(all));
  return all.filter((address) => !ways.leadOn(address));
}

/** Where functions that panic lead to. */
class PanicWays {
  readonly #elf: ElfFile;
  readonly #arch: Architecture;
  readonly #panics: ReadonlySet<Addr>;
  readonly #code: CodeMap;
  readonly #known = new Map<Addr, boolean>();
  /** Those that are being asked, the first one first. */
  readonly #asked: Addr[] = [];

  constructor({ elf, arch, debug }: Parameters<typeof panicPlaces>[0], all: ReadonlySet<Addr>) {
    this.#elf = elf;
    this.#arch = arch;
    this.#panics = all;
    this.#code = CodeMap.of(elf, debug);
  }

  /** Whether every way through a function surely comes by another one that panics, with the caller known there. */
  leadOn(address: Addr): boolean {
    return madeOnce(this.#known, address, () => {
      this.#asked.push(address);
      const leads = this.#asked.length <= deepest && this.#leads(address);
      this.#asked.pop();
      return leads;
    });
  }

  #leads(address: Addr): boolean {
    const [elf, arch] = [this.#elf, this.#arch];
    const low = elf.codes.toCode(address);
    const code = this.#code.functionAt(low);
    if (!arch.frames?.code || code?.low !== low) return false;
    const ranges = code.ranges.map(({ start, bytes }) => ({ low: start, high: addOffset(start, bytes.length) }));
    const graph = FlowGraph.of(ranges, { elf, arch, neverReturns: (target) => this.#panics.has(target) });
    if (!graph) return false;
    const frames = arch.frames.code.analyse(code.ranges);
    const reached = graph.steps.flatMap((_, node) => (graph.isReached(node) ? [node] : []));
    const ends = reached.filter((node) => graph.next[node]?.length === 0 || graph.leaves.has(node));
    const leading = graph.reachable(ends, graph.before, () => false);
    return reached.every((node) => leading.has(node)) && ends.every((node) => this.#comesBy(graph, node, frames));
  }

  /** Whether a function's last instruction calls one that panics, or jumps there. */
  #comesBy({ steps }: FlowGraph, node: number, frames: FunctionFrames): boolean {
    const step = steps[node] as FlowStep;
    const { kind, address, length } = step;
    const target = kind === 'call' || kind === 'jump' ? calledBy(step, this.#elf) : undefined;
    if (target === undefined) return false;
    if (kind === 'call' && !isCallerKnown(frames.behindCall(addOffset(address, length)))) return false;
    // Functions that lead to each other would all be left out.
    if (this.#asked.includes(target)) return false;
    return this.leadOn(target) || this.#panics.has(target);
  }
}

function isCallerKnown(frame: FrameAt | undefined): boolean {
  if (frame?.kind !== 'row' || frame.confidence !== 'sure') return false;
  const { registers, returnAddress, interrupted } = frame.row;
  return !interrupted && registers.get(returnAddress)?.kind === 'saved';
}

/**
 * The functions that `std::panic::catch_unwind` calls when it has caught something, from its surrounding function.
 * All deeper calls on this stack have been unwound. The first one calls the second, or the second replaces it if it
 * is inlined. Names are those of symbols, legacy and v0, up to Rust 1.84 and from there on.
 */
const catches: readonly { readonly symbol: RegExp; readonly name: string }[] = [
  { symbol: /3std9panicking(3try|12catch_unwind)7cleanup/, name: 'std::panicking::catch_unwind::cleanup' },
  { symbol: /__rust_panic_cleanup$/, name: '__rust_panic_cleanup' },
];

/**
 * Where polls that panic can be distinguished from lost polls; none in a program that does not unwind. Read is only the
 * fact that it was called, and where the stack is.
 */
export function catchPlans(elf: ElfFile): ReadPlan[] {
  const found = new Map<bigint, ReadPlan>();
  for (const { name: symbol, address, size } of elf.symbols) {
    const known = catches.find((each) => each.symbol.test(symbol));
    if (!known || size === 0 || found.has(address)) continue;
    found.set(address, entryPlan({ address, codeSize: size, name: known.name }));
  }
  return [...found.values()];
}
