import { basename } from 'node:path';
import type { FutureSet, FutureType } from '../../async/futures/index.js';
import { addr, hex } from '../../base/addr.js';
import { type DebugInfo, type Die, DW_TAG } from '../../dwarf/index.js';
import type { ElfFile } from '../../elf/index.js';
import type { SampledFrame } from '../../trace/index.js';
import { type Frame, SourceFrames } from '../unwind/index.js';

/** A function of a stack, and what it is as a poll. */
interface Named {
  readonly frame: SampledFrame;
  /** Undefined if it polls no Future. */
  readonly poll: SampledFrame | undefined;
}

/** Frames by their names: samples of one function are one, wherever in it the hart was. */
export class SampledFrames {
  readonly #sources: SourceFrames;
  readonly #debug: DebugInfo | undefined;
  readonly #futures: FutureSet | undefined;
  readonly #known = new Map<string, SampledFrame>();
  /** By pc: a program is sampled at the same places again and again. */
  readonly #at = new Map<bigint, readonly Named[]>();
  /** By the offset of an inlined copy of a poll function. */
  #inlined: ReadonlyMap<number, FutureType> | undefined;

  /** `futures`: for a profile by what is awaited. */
  constructor(elf: ElfFile, debug: DebugInfo | undefined, futures: FutureSet | undefined) {
    this.#sources = new SourceFrames(elf, debug);
    this.#debug = debug;
    this.#futures = futures;
  }

  /** All functions of a stack, the innermost first, with those that are inlined. */
  of(frames: readonly Frame[]): SampledFrame[] {
    return frames.flatMap((frame) => this.#functionsAt(frame).map((named) => named.frame));
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
    const functions = frames.flatMap((frame) => this.#functionsAt(frame));
    const innermost = functions.findIndex(({ poll }) => poll !== undefined);
    if (innermost < 0) return undefined;
    const inside = functions.slice(0, innermost).map(({ frame }) => frame);
    return [...inside, ...functions.flatMap(({ poll }) => poll ?? [])];
  }

  #functionsAt(frame: Frame): readonly Named[] {
    const known = this.#at.get(frame.pc);
    if (known !== undefined) return known;
    const made = this.#sources.functionsOf(frame).map(({ function: name, file, die }) => {
      const future = die && !frame.image?.isLibrary ? this.#futureOf(die, frame) : undefined;
      return {
        frame: this.#frame(name ?? unnamed(frame), name === undefined ? undefined : file),
        poll: future && this.#frame(`poll ${future.future}`, future.file),
      };
    });
    // A library may be loaded there later.
    if (frame.image !== undefined) this.#at.set(frame.pc, made);
    return made;
  }

  /** The Future whose poll function this is, or an inlined copy of it. */
  #futureOf(die: Die, { pc, exact }: Frame): FutureType | undefined {
    if (this.#futures === undefined) return undefined;
    if (die.tag === DW_TAG.inlined_subroutine) {
      this.#inlined ??= inlinedPolls(this.#futures);
      return this.#inlined.get(die.offset);
    }
    const around = this.#debug?.functionAt(exact ? pc : addr(pc - 1n));
    return around && this.#futures.byPollAddress(around.low);
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

function inlinedPolls({ all }: FutureSet): ReadonlyMap<number, FutureType> {
  return new Map(all.flatMap((future) => future.inlined.map(({ die }) => [die.offset, future] as const)));
}
