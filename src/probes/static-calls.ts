import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { madeOnce } from '../base/made-once.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { type NamedFunction, namedFunctions } from './function-names.js';

/** What one function's code calls. */
interface Calls {
  /** Functions that its instructions name: direct calls, and jumps to other functions. */
  readonly direct: ReadonlySet<Addr>;
  /** It calls through registers or memory, too, or its code cannot be read: there may be others. */
  readonly isOpen: boolean;
}

const unknown: Calls = { direct: new Set(), isOpen: true };

/** Who calls whom, as far as the code of a program says. The architecture must be prepared. */
export class StaticCalls {
  readonly #elf: ElfFile;
  readonly #arch: Architecture;
  readonly #functions = new Map<Addr, NamedFunction>();
  readonly #known = new Map<Addr, Calls>();

  constructor({ elf, arch, debug }: { elf: ElfFile; arch: Architecture; debug: DebugInfo | undefined }) {
    this.#elf = elf;
    this.#arch = arch;
    for (const one of namedFunctions(elf, debug)) {
      const before = this.#functions.get(one.address);
      if (before === undefined || (before.size === 0 && one.size > 0)) this.#functions.set(one.address, one);
    }
  }

  functions(): Iterable<NamedFunction> {
    return this.#functions.values();
  }

  of(address: Addr): Calls {
    return madeOnce(this.#known, address, () => this.#read(address));
  }

  /** These functions, and what they call, that many levels deep: 1 is they alone. */
  below(roots: readonly Addr[], levels: number): ReadonlyMap<Addr, NamedFunction> {
    const found = new Map<Addr, NamedFunction>();
    let next = new Set(roots);
    for (let level = 1; level <= levels && next.size > 0; level++) {
      const callees = new Set<Addr>();
      for (const address of next) {
        const one = this.#functions.get(address);
        if (one === undefined || found.has(address)) continue;
        found.set(address, one);
        for (const callee of this.of(address).direct) callees.add(callee);
      }
      next = callees;
    }
    return found;
  }

  #read(address: Addr): Calls {
    const one = this.#functions.get(address);
    const code = one && one.size > 0 ? this.#elf.bytesAt(address, one.size) : undefined;
    const steps = code && this.#arch.codeFlow?.steps(code, address);
    if (one === undefined || steps === undefined) return unknown;
    const direct = new Set<Addr>();
    const end = addOffset(address, one.size);
    let isOpen = false;
    for (const { kind, target } of steps) {
      const leaves = target !== undefined && (target < address || target >= end);
      if (kind === 'call' && target === undefined) isOpen = true;
      else if (target !== undefined && (kind === 'call' || leaves)) direct.add(target);
    }
    return { direct, isOpen };
  }
}
