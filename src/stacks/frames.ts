import { basename } from 'node:path';
import { type Addr, addr, hex } from '../base/addr.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import type { FutureSet } from '../futures/index.js';
import type { SampledFrame } from '../trace/index.js';
import { type Frame, SourceFrames } from '../unwind/index.js';

/** Frames by their names: samples of one function are one, wherever in it the hart was. */
export class SampledFrames {
  readonly #sources: SourceFrames;
  readonly #debug: DebugInfo | undefined;
  readonly #futures: FutureSet | undefined;
  readonly #known = new Map<string, SampledFrame>();
  /** By pc: a program is sampled at the same places again and again. */
  readonly #at = new Map<bigint, readonly SampledFrame[]>();
  readonly #polls = new Map<Addr, SampledFrame | undefined>();

  /** `futures`: for a profile by what is awaited. */
  constructor(elf: ElfFile, debug: DebugInfo | undefined, futures: FutureSet | undefined) {
    this.#sources = new SourceFrames(elf, debug);
    this.#debug = debug;
    this.#futures = futures;
  }

  /** All functions of a stack, the innermost first, with those that are inlined. */
  of(frames: readonly Frame[]): SampledFrame[] {
    return frames.flatMap((frame) => this.#functionsAt(frame));
  }

  /** Whether all have names already: to find one may take as long as many samples. */
  areNamed(frames: readonly Frame[]): boolean {
    return frames.every(({ pc, image }) => image === undefined || this.#at.has(pc));
  }

  /** A frame that is no function: `[idle]`. */
  mark(text: string): SampledFrame {
    return this.#frame(text, undefined);
  }

  /**
   * The same as an await tree: from the outermost poll on, with nothing of the executor around it, and nothing between
   * the polls. Undefined where no poll is on the stack.
   */
  awaited(frames: readonly Frame[]): SampledFrame[] | undefined {
    const polls = frames.map((frame) => this.#pollAt(frame));
    const innermost = polls.findIndex((poll) => poll !== undefined);
    if (innermost < 0) return undefined;
    const inside = frames.slice(0, innermost).flatMap((frame) => this.#functionsAt(frame));
    return [...inside, ...polls.flatMap((poll) => poll ?? [])];
  }

  #functionsAt(frame: Frame): readonly SampledFrame[] {
    const known = this.#at.get(frame.pc);
    if (known !== undefined) return known;
    const made = this.#sources
      .functionsOf(frame)
      .map(({ function: name, file }) => this.#frame(name ?? unnamed(frame), name === undefined ? undefined : file));
    // A library may be loaded there later.
    if (frame.image !== undefined) this.#at.set(frame.pc, made);
    return made;
  }

  /** The Future whose poll function this is. */
  #pollAt(frame: Frame): SampledFrame | undefined {
    const { pc } = frame;
    if (this.#polls.has(pc)) return this.#polls.get(pc);
    const fn = this.#debug?.functionAt(pc);
    const future = fn && this.#futures?.byPollAddress(fn.low);
    const made = future && this.#frame(`poll ${future.future}`, future.file);
    this.#polls.set(pc, made);
    return made;
  }

  #frame(name: string, file: string | undefined): SampledFrame {
    let frame = this.#known.get(name);
    if (frame === undefined) {
      frame = { name, instance: name, address: undefined, file, line: undefined };
      this.#known.set(name, frame);
    }
    return frame;
  }
}

/** By its page, so that code without symbols is a few frames and not thousands. */
function unnamed({ pc, image }: Frame): string {
  const page = hex(addr(pc & ~0xfffn));
  return image?.isLibrary ? `[${basename(image.elf.path)} ${page}]` : `[unknown ${page}]`;
}
