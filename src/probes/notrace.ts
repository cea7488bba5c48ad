import type { Architecture } from '../arch/index.js';
import { type Addr, hex } from '../base/addr.js';
import { CallFrames } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';

/** Functions that are entered or left in another way than by a call and a return. */
const byName: readonly { readonly name: RegExp; readonly reason: string }[] = [
  { name: /\.cold(\.\d+)?$/, reason: 'the cold part of a function: jumped to, not called' },
  { name: /^OUTLINED_FUNCTION_\d+$/, reason: 'outlined code: called with another return register' },
  { name: /^(_?mcount|__fentry__)$/, reason: "a profiler's hook: called before a function has a frame" },
];

/**
 * What crti.o and crtbegin.o add to every program of a C compiler. Nothing says the size of this code, so each call
 * would stop the target.
 */
const startUp =
  /^(_init|_fini|frame_dummy|(de)?register_tm_clones|__do_global_[cd]tors_aux|call_weak_fn|load_gp|_dl_relocate_static_pie)$/;

/** Why a function is probed only if its own name is asked for; undefined if globs may match it, too. */
export function leftToNames(symbol: string | undefined, size: number): string | undefined {
  if (size > 0 || symbol === undefined || !startUp.test(symbol)) return undefined;
  return "start-up code of the C compiler's, which a glob does not match: name it to have it probed";
}

/**
 * Sections whose code Linux itself forbids to probe (include/linux/compiler_types.h, `noinstr`;
 * asm-generic/kprobes.h).
 */
const forbiddenSections = new Set(['.entry.text', '.noinstr.text', '.kprobes.text']);

/** The memory that trampolines are written to. */
const ownSection = '.rsptrace';

/** Larger code than this is not analysed. */
const mostCode = 0x1_0000;

/** Why a function must never be probed; undefined if it may be. The architecture must be prepared. */
export class NoTrace {
  readonly #elf: ElfFile;
  readonly #arch: Architecture;
  #frames: CallFrames | undefined;

  constructor(elf: ElfFile, arch: Architecture) {
    this.#elf = elf;
    this.#arch = arch;
  }

  /** Its entries may be traced all the same, where the user insists. */
  maySeeEntry(address: Addr): boolean {
    return this.#sectionAt(address)?.name !== ownSection;
  }

  /** `symbol`: as the symbol table spells it. */
  reason(symbol: string | undefined, address: Addr, size: number): string | undefined {
    if (address === this.#elf.entry) return 'the entry point of the program: it has no caller, and no stack yet';
    const irregular = [...byName, ...(this.#arch.irregularFunctions ?? [])];
    const named = symbol === undefined ? undefined : irregular.find(({ name }) => name.test(symbol));
    if (named) return named.reason;
    const section = this.#sectionAt(address);
    if (section?.name === ownSection) return `code in ${ownSection}, where trampolines are written over it`;
    if (section) return `code in ${section.name}, which the kernel itself does not let anybody probe`;
    return this.#signalReturn(address) ?? this.#entryReason(address, size);
  }

  #sectionAt(address: Addr): { readonly name: string } | undefined {
    return this.#elf.sections.find(
      (one) =>
        address >= one.address &&
        address < one.address + BigInt(one.size) &&
        (forbiddenSections.has(one.name) || one.name === ownSection),
    );
  }

  /** A handler of signals returns to it: what its caller would have left is the interrupted program's. */
  #signalReturn(address: Addr): string | undefined {
    this.#frames ??= CallFrames.load(this.#elf);
    const { linux } = this.#arch;
    const begins = linux?.signalReturns?.some((code) => {
      const own = this.#elf.bytesAt(address, code.length);
      return own !== undefined && Buffer.compare(own, code) === 0;
    });
    if (!begins && this.#frames.rowAt(address)?.interrupted !== true) return undefined;
    return 'it ends the handling of a signal or a trap: entered by a return, not by a call';
  }

  /**
   * A handler that the hardware enters has no return address at the usual place. Without `frames` it is not
   * recognised.
   */
  #entryReason(address: Addr, size: number): string | undefined {
    const bytes = size === 0 ? undefined : this.#elf.bytesAt(address, Math.min(size, mostCode));
    if (bytes === undefined) return size === 0 ? undefined : `the ELF has no code at ${hex(address)}`;
    const { frames } = this.#arch;
    // To follow a function's code takes long.
    if (!frames?.code?.mayReturnFromTrap(bytes)) return undefined;
    const frame = frames.code.analyse([{ start: address, bytes }]).at(address);
    if (frame?.kind === 'bottom') return 'it makes its own stack: entered by a reset or a jump, not by a call';
    if (frame?.kind === 'row' && frame.row.interrupted) return 'a trap handler: entered by the hardware, not by a call';
    return undefined;
  }
}
