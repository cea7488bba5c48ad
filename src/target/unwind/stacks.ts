import type { Architecture } from '../../arch/index.js';
import { type Addr, addOffset, addr, distance } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import type { MemoryReader, RegisterReader } from '../../base/memory-reader.js';
import type { DebugInfo } from '../../dwarf/index.js';
import type { ElfFile } from '../../elf/index.js';
import { CodeImage, CodeImages } from './code-image.js';
import type { End, Frame, Hooked, UnwinderName } from './frame.js';
import { LeftCode } from './left-code.js';
import { RegisterFile } from './registers.js';
import { PAGE, pageOf, StackWindow } from './stack-window.js';
import { Walk } from './walk.js';

export interface Stack {
  /** The innermost first. */
  readonly frames: readonly Frame[];
  readonly end: End;
}

/** A piece of a hart's memory. */
export interface StackPiece {
  readonly address: Addr;
  readonly bytes: Uint8Array;
}

export interface StackOptions {
  /** One of the three alone; by default the best one for each frame. */
  readonly unwinder?: UnwinderName | 'auto';
  /** The most frames; 64 by default. */
  readonly depth?: number;
  /** Where a tracer has replaced return addresses. */
  readonly hooked?: Hooked;
  /** Stack that was read together with the registers. If it is enough, nothing more is read. */
  readonly ahead?: StackPiece | undefined;
}

/** The bytes of stack in the first read. Frames of async code are large: a poll often has 2 KiB. */
const FIRST = 8192;
/** Stacks whose end is kept. */
const mostEnds = 1024;
/** Below the stack pointer a leaf function may use bytes without moving it (the red zone of AMD64's ABI, 128 bytes). */
const BELOW = 128;

/** Walks stacks of one program. It keeps its knowledge of the code from one stack to the next. */
export class Stacks {
  /** The program. */
  readonly elf: ElfFile;
  readonly #arch: Architecture;
  readonly #file: RegisterFile;
  readonly #images: CodeImages;
  readonly #left: LeftCode;
  /** Where stacks end that were read: the next page is unreadable. */
  readonly #ends = new Set<Addr>();

  /**
   * The architecture must be prepared. `libraries` have their load addresses. Throws `ELF_DAMAGED`,
   * `ARCH_UNSUPPORTED`.
   */
  constructor(elf: ElfFile, arch: Architecture, debug?: DebugInfo, libraries: readonly ElfFile[] = []) {
    this.elf = elf;
    this.#arch = arch;
    const { frames } = arch;
    if (!frames) {
      throw new RsptraceError('ARCH_UNSUPPORTED', `stacks on ${arch.name} cannot be walked: its frames are not known`);
    }
    this.#file = new RegisterFile(arch, frames);
    this.#images = new CodeImages(
      CodeImage.program(elf, frames, debug),
      libraries.map((library) => CodeImage.library(library, frames)),
    );
    this.#left = new LeftCode(frames, this.#images);
  }

  /** Registers beyond the integer ones that should be read at a stop: CSRs that show where a trap came from. */
  get specialRegisters(): readonly string[] {
    return this.#file.specialNames;
  }

  /** Whether code of the program or its libraries lies there. */
  isCode(address: bigint): boolean {
    return this.#images.at(address, 0) !== undefined;
  }

  /** Bytes of the program's code or of its libraries, out of their files. */
  codeAt(address: Addr, length: number): Uint8Array | undefined {
    return this.#images.at(address, 0)?.elf.bytesAt(address, length);
  }

  /** The piece of stack that most walks need: read it together with the other reads of a hit. */
  firstBytes(registers: RegisterReader): { readonly address: Addr; readonly length: number } | undefined {
    const sp = registers.register(this.#arch.sp);
    if (sp === undefined) return undefined;
    const address = addr(sp - BigInt(BELOW));
    // By offset: the addresses may wrap around where a hart has no stack yet.
    const toNext = PAGE - distance(pageOf(address), address);
    for (let length = toNext; length < FIRST; length += PAGE)
      if (this.#ends.has(addOffset(address, length))) return { address, length };
    return { address, length: FIRST };
  }

  /** Walks within memory that was read already; beyond it the stack counts as unreadable. */
  walk(registers: RegisterReader, window: StackWindow, options: StackOptions = {}): Stack {
    const walk = this.#begin(registers, options);
    for (let need = walk?.run(window); need !== undefined; need = walk?.run(window)) window.addHole(need);
    return stackOf(walk);
  }

  /** Walks, and reads what it needs: in one read for most stacks. */
  async unwind(registers: RegisterReader, memory: MemoryReader, options: StackOptions = {}): Promise<Stack> {
    const walk = this.#begin(registers, options);
    const window = new StackWindow();
    const { ahead } = options;
    if (ahead !== undefined) window.add(ahead.address, ahead.bytes);
    if (ahead === undefined || walk?.run(window) !== undefined) {
      const first = this.firstBytes(registers);
      const bytes = first && (await memory.read(first.address, first.length));
      if (first !== undefined && bytes !== undefined) window.add(first.address, bytes);
    }
    for (let need = walk?.run(window); need !== undefined; need = walk?.run(window)) {
      await this.#fetch(memory, window, need);
    }
    return stackOf(walk);
  }

  /** Adds the page of an address, and the next one; if they cannot be read as a whole, the word alone. */
  async #fetch(memory: MemoryReader, window: StackWindow, need: Addr): Promise<void> {
    const page = pageOf(need);
    const both = await memory.read(page, 2 * PAGE);
    const pages = both ?? (await memory.read(page, PAGE));
    if (pages !== undefined) window.add(page, pages);
    if (!both && pages && this.#ends.size < mostEnds) this.#ends.add(addOffset(page, PAGE));
    if (window.word(need) !== undefined) return;
    const word = await memory.read(need, 8);
    if (word !== undefined) window.add(need, word);
    if (window.word(need) === undefined) window.addHole(need);
  }

  #begin(registers: RegisterReader, options: StackOptions): Walk | undefined {
    const pc = registers.register(this.#arch.pc);
    if (pc === undefined) return undefined;
    const { unwinder = 'auto', depth = 64, hooked = () => undefined } = options;
    const context = { file: this.#file, images: this.#images, unwinder, depth, hooked, left: this.#left };
    return new Walk(context, pc, this.#file.read(registers));
  }
}

function stackOf(walk: Walk | undefined): Stack {
  const end: End = walk?.end ?? { reason: 'no-unwinder', complete: false };
  return { frames: walk?.frames ?? [], end };
}
