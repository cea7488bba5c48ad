import type { FrameState } from '../../src/arch/frames/frame-state.js';
import type { FrameModel } from '../../src/arch/index.js';
import type { CallFrames } from '../../src/dwarf/index.js';
import type { ElfFile } from '../../src/elf/index.js';

export interface Agreement {
  /** Functions and instructions that were compared. */
  readonly functions: number;
  readonly instructions: number;
  readonly agree: number;
  readonly confidence: Readonly<Record<string, { readonly agree: number; readonly differ: number }>>;
  readonly causes: Readonly<Record<string, { readonly count: number; readonly examples: readonly string[] }>>;
}

export function compare(options: {
  readonly cfi: CallFrames;
  readonly model: FrameModel;
  readonly elf: ElfFile;
}): Agreement;
export type { FrameState };
