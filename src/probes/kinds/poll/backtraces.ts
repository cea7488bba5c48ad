import type { Architecture } from '../../../arch/index.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import type { MemoryRequest } from '../../../calls/index.js';
import type { DebugInfo } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import { SourceFrames, type StackOptions, Stacks, StackWindow } from '../../../target/unwind/index.js';
import type { StackEntry } from '../../../trace/index.js';

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
    return frames.flatMap((frame) =>
      this.#sources.of(frame).map(({ function: name, file, line }) => ({ function: name, file, line })),
    );
  }
}
