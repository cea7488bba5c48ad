import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { CallFrames, type DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { CodeMap } from '../target/unwind/index.js';
import { Describer, type FunctionProbe } from './describer.js';
import { neverReturns } from './function-graphs.js';
import type { CodePiece } from './read-plan.js';

/** What the program says about code beyond a function's own instructions. Found on request. */
export interface CodeFacts {
  /** A function begins there that surely takes no argument on the stack. */
  inRegisters(address: Addr): boolean;
  /** Why other code than the function's own may lead into its middle, in words for the user. */
  enteredElsewhere(address: Addr, size: number): string | undefined;
  /** Why an unwinder may enter these bytes of the function there behind the first one, in words for the user. */
  padIn(own: Addr, piece: CodePiece): string | undefined;
  /** It surely never returns, so that its calls have no end to observe. */
  neverReturns(address: Addr): boolean;
  /** Bytes behind a function that are no other's, up to `most`. */
  spaceBehind(address: Addr, size: number, most: number): number;
}

export function codeFacts(elf: ElfFile, arch: Architecture, debug: DebugInfo | undefined): CodeFacts {
  let describer: Describer | undefined;
  let frames: CallFrames | undefined;
  const padsOf = (address: Addr): readonly Addr[] | undefined => {
    frames ??= CallFrames.load(elf);
    return frames.landingPads(address);
  };
  return {
    inRegisters(address) {
      describer ??= new Describer(elf, arch, debug);
      return describer.inRegisters(address);
    },
    enteredElsewhere(address, size) {
      const end = addOffset(address, size);
      for (let next = elf.symbols.above(address); next && next.address < end; next = elf.symbols.above(next.address)) {
        // Labels of the assembler, and marks of what is code and what is data.
        if (next.type !== 'object' && !/^[.$]/.test(next.name)) return `${next.name} lies in the middle of it`;
      }
      return padsOf(address) ? undefined : 'exceptions may come back into it';
    },
    padIn(own, { address, length }) {
      const pad = padsOf(own)?.find((pad) => pad > address && pad < addOffset(address, length));
      return pad && `an exception comes back to byte ${pad - address} of those that a patch would replace`;
    },
    neverReturns: (address) => neverReturns(elf, debug, address),
    spaceBehind(address, size, most) {
      const end = addOffset(address, size);
      const next = elf.symbols.above(addOffset(end, -1));
      const space = next === undefined ? most : Math.min(most, Number(next.address - end));
      // Without symbols the debug info knows where functions begin.
      for (let i = 0; i < space; i++) if (debug?.functionAt(addOffset(end, i)) !== undefined) return i;
      return space;
    },
  };
}

/**
 * Whether a function's code in the ELF jumps to its own first instruction; undefined if that is not known. The
 * architecture must be prepared.
 */
export function loopsToStart(
  elf: ElfFile,
  arch: Architecture,
): (code: Pick<FunctionProbe, 'address' | 'size'>) => boolean | undefined {
  const known = new Map<bigint, boolean | undefined>();
  const find = ({ address, size }: Pick<FunctionProbe, 'address' | 'size'>): boolean | undefined => {
    const isWhole = size > 0;
    const code = isWhole
      ? elf.bytesAt(address, size)
      : CodeMap.of(elf, undefined).functionAt(elf.codes.toCode(address))?.ranges[0]?.bytes;
    const loops = code && arch.probeCode?.loopsToStart(code, address);
    // Where it ends is not known, and what is behind a label in it was not read.
    return isWhole || loops ? loops : undefined;
  };
  return (code) => {
    if (!known.has(code.address)) known.set(code.address, find(code));
    return known.get(code.address);
  };
}
