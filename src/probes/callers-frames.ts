import type { Architecture, CallersFrame } from '../arch/index.js';
import type { CodeAddress, ElfFile } from '../elf/index.js';
import type { FunctionCode } from '../target/unwind/index.js';

const found = new WeakMap<ElfFile, Map<CodeAddress, CallersFrame>>();

/**
 * What a function's code does with the frame of its caller. Several questions ask that, and its code is followed once.
 * Undefined where no code can be followed.
 */
export function callersFrameOf(elf: ElfFile, arch: Architecture, code: FunctionCode): CallersFrame | undefined {
  const known = found.get(elf) ?? new Map<CodeAddress, CallersFrame>();
  found.set(elf, known);
  const frame = known.get(code.low) ?? arch.frames?.code?.analyse(code.ranges).callersFrame();
  if (frame) known.set(code.low, frame);
  return frame;
}
