import type { Architecture } from '../../../arch/index.js';
import type { Addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import type { MemoryRequest } from '../../../calls/index.js';
import type { DebugInfo } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import { SourceFrames, type StackOptions, Stacks, StackWindow } from '../../../target/unwind/index.js';
import { isLibraryFile } from '../../../text/index.js';
import type { StackEntry } from '../../../trace/index.js';
import { languageCrates } from '../../own-futures.js';
import type { TracerContext } from '../kind.js';

/** What a tracer of instants is made from. */
export type InstantContext = Pick<TracerContext, 'elf' | 'arch' | 'debug' | 'output'> &
  Partial<Pick<TracerContext, 'spaces'>>;

/**
 * Who called: among the functions inlined at a return address the innermost of the program's own code. Else that of a
 * library, and of the language at last.
 */
export class Callers {
  readonly #sources: SourceFrames;
  readonly #known = new AddressMap<StackEntry>();

  constructor({ elf, debug }: Pick<InstantContext, 'elf' | 'debug'>) {
    this.#sources = new SourceFrames(elf, debug);
  }

  /** Without a return address nobody is named. */
  at(returnAddress: Addr | undefined): StackEntry {
    if (returnAddress === undefined) return unknown;
    const known = this.#known.get(returnAddress);
    if (known) return known;
    const found = actingFunction(this.#sources.entriesOf({ pc: returnAddress, exact: false }));
    this.#known.set(returnAddress, found);
    return found;
  }
}

const unknown: StackEntry = { function: undefined, file: undefined, line: undefined };

/**
 * Who acts at a place, of the functions that are inlined into each other there, innermost first. `fetch_add` is
 * everywhere, so the interesting function is its caller.
 */
export function actingFunction(inlined: readonly StackEntry[]): StackEntry {
  const own = inlined.find((entry) => !isOfLanguage(entry) && (entry.file === undefined || !isLibraryFile(entry.file)));
  return own ?? inlined.find((entry) => !isOfLanguage(entry)) ?? inlined[0] ?? unknown;
}

/** A method on a type of the language is the program's if its trait is: `<alloc::vec::Vec as app::Wake>::wake_all`. */
function isOfLanguage({ function: name = '' }: StackEntry): boolean {
  const [, crate = '', trait = crate] = /^<?&?(?:mut )?(\w+)(?:.* as (\w+))?/.exec(name) ?? [];
  return languageCrates.has(crate) && languageCrates.has(trait);
}

/** Stacks at hits: one piece of stack is read with the hit's other reads, and walked while the guest runs again. */
export class Backtraces {
  readonly #stacks: Stacks;
  readonly #sources: SourceFrames;
  readonly #options: StackOptions;

  /** Inlined functions do not count as frames for `options.depth`. */
  constructor(elf: ElfFile, arch: Architecture, debug: DebugInfo, options: StackOptions) {
    this.#stacks = new Stacks(elf, arch, debug);
    this.#sources = new SourceFrames(elf, debug);
    this.#options = options;
  }

  request(registers: RegisterReader): MemoryRequest | undefined {
    return this.#stacks.firstBytes(registers);
  }

  /** Innermost first. A stack that reaches past what was read ends there. */
  read(registers: RegisterReader, bytes: Uint8Array | undefined): StackEntry[] {
    const window = new StackWindow();
    const first = this.#stacks.firstBytes(registers);
    if (first && bytes) window.add(first.address, bytes);
    const { frames } = this.#stacks.walk(registers, window, this.#options);
    return frames.flatMap((frame) => this.#sources.entriesOf(frame));
  }
}
