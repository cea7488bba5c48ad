import type { Architecture, Leaving } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { type CodeAddress, type ElfFile, importSlots, KeptAnswers } from '../elf/index.js';
import { CodeMap, type FunctionCode } from '../target/unwind/index.js';
import { callersFrameOf } from './changed-signatures.js';

/**
 * Imported functions that are documented to depend on who calls them (dlsym(3): RTLD_NEXT; dlopen(3)), to return
 * again to where they were called from (setjmp(3), getcontext(3), vfork(2)), or to be given it (gcc's -pg and
 * -finstrument-functions).
 */
const dependsOnCaller =
  /^(dlv?sym|dlm?open|_*(sig)?setjmp|[gs]etcontext|swapcontext|v?fork|_?mcount|__fentry__|__cyg_profile_func_(enter|exit))$/;

/**
 * Those that list the frames around them: a hooked return stands among these as a frame without a name. In every
 * program of Rust the standard library has one, for panics.
 */
const listsFrames = /^(backtrace|_Unwind_Backtrace)$/;

const nothing: Leaving = { jumps: [], calls: [], jumpsThrough: [], callsThrough: [] };

/** Which functions notice that their return address was replaced. */
export class ReturnReaders {
  readonly #elf: ElfFile;
  readonly #arch: Architecture;
  readonly #answers: KeptAnswers;
  #code: CodeMap | undefined;
  readonly #slots: ReadonlyMap<CodeAddress, string>;
  readonly #lister: string | undefined;

  constructor(elf: ElfFile, arch: Architecture) {
    this.#elf = elf;
    this.#arch = arch;
    this.#answers = new KeptAnswers(elf, 'returns');
    this.#slots = importSlots(elf);
    const isRust = elf.symbols.named('rust_eh_personality').length > 0;
    const lists = isRust ? /^backtrace$/ : listsFrames;
    this.#lister = [...this.#slots.values()].find((name) => lists.test(name));
  }

  /** Keeps what was found, for the next start. */
  keep(): void {
    this.#answers.keep();
  }

  /** Why the return of the function there must not be hooked, in words for the user. */
  objection(address: Addr): string | undefined {
    const low = this.#elf.codes.toCode(address);
    const why = this.#look(low);
    // A handler of signals may do so at any place.
    return why ?? (this.#lister && `the program lists the frames of its own stack (${this.#lister})`);
  }

  /** What looks at the return address of a function: its own code, or what it jumps to in place of a return. */
  #look(low: CodeAddress): string | undefined {
    return this.#answers.of(low, undefined, () => this.#lookAnew(low));
  }

  #lookAnew(low: CodeAddress): string | undefined {
    const stub = this.#named([low], dependsOnCaller);
    if (stub !== undefined) return `${stub} reads its return address`;
    const own = this.#functionAt(low);
    if (own && this.#readsReturn(own)) return 'it reads its own return address';
    const { jumps, jumpsThrough, calls, callsThrough } = this.#leavingOf(low);
    const named = this.#named([...jumpsThrough, ...jumps], dependsOnCaller);
    if (named !== undefined) return `it jumps to ${named}, which reads its return address`;
    const profiler = this.#named([...callsThrough, ...calls], /^(_?mcount|__fentry__)$/);
    if (profiler !== undefined) return `${profiler} reads its return address`;
    return jumps.some((to) => this.#look(to) !== undefined)
      ? 'it jumps to code that reads its return address'
      : undefined;
  }

  #readsReturn(code: FunctionCode): boolean {
    const { references } = this.#arch;
    const may = code.ranges.some(({ bytes }, part) => part > 0 || references?.mayReadReturn?.(bytes) !== false);
    return may && callersFrameOf(this.#elf, this.#arch, code)?.readsReturn === true;
  }

  get #map(): CodeMap {
    this.#code ??= CodeMap.of(this.#elf, undefined);
    return this.#code;
  }

  #functionAt(low: CodeAddress): FunctionCode | undefined {
    const found = this.#map.functionAt(low);
    return found?.low === low ? found : undefined;
  }

  /** The name of the first imported function among words, or places from which a stub jumps through one. */
  #named(places: readonly CodeAddress[], names: RegExp): string | undefined {
    for (const place of places) {
      const name = this.#slots.get(place) ?? this.#slots.get(this.#stubAt(place));
      if (name !== undefined && names.test(name)) return name;
    }
    return undefined;
  }

  /** The word that a stub of a few bytes jumps through. A stub may have a symbol, or none. */
  #stubAt(place: CodeAddress): CodeAddress {
    if (!this.#map.isCode(place)) return Number.NaN;
    const bytes = this.#elf.bytesAt(this.#elf.codes.fromCode(place), 16);
    return (bytes && this.#arch.references?.leave(bytes, place).jumpsThrough[0]) ?? Number.NaN;
  }

  #leavingOf(low: CodeAddress): Leaving {
    const { references } = this.#arch;
    const parts = (this.#functionAt(low)?.ranges ?? []).map(
      ({ start, bytes }) => references?.leave(bytes, this.#elf.codes.toCode(start)) ?? nothing,
    );
    const all = (of: (one: Leaving) => readonly number[]): number[] => [...new Set(parts.flatMap(of))];
    return {
      jumps: all(({ jumps }) => jumps),
      calls: all(({ calls }) => calls),
      jumpsThrough: all(({ jumpsThrough }) => jumpsThrough),
      callsThrough: all(({ callsThrough }) => callsThrough),
    };
  }
}
