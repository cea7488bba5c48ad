import { type Architecture, type Standing, unknownStanding } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { SpaceNumbers } from '../calls/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import { bytesKnown, executeOnly, isOwnPage, type KnownCode, pageBytes } from '../target/index.js';
import { codeBytes } from './breakpoints.js';

/** The most address spaces that are remembered. A kernel that runs thousands of processes reuses their page tables. */
const mostSpaces = 1024;

/** In how many stops the paging registers of a hart that does not page are read once. */
const bareStops = 16;
const none: readonly string[] = [];

/** The code at a place where the target stopped. */
export interface Found {
  readonly pc: Addr;
  code: Uint8Array | undefined;
  readonly standing: Standing;
}

interface HitChecksOptions extends KnownCode {
  readonly session: Session;
  readonly arch: Architecture;
  readonly spaces?: SpaceNumbers | undefined;
  /** Programs that run in other address spaces than this one. */
  readonly others?: readonly unknown[] | undefined;
}

/**
 * Which hits belong to the program. To a machine's stub a breakpoint is a virtual address in every address
 * space, and other programs have other code there. So at each stop the code there must be the program's: 16 bytes at
 * the pc, and most of the page around them. The page is read once per address space, and again after foreign code was
 * found in it.
 */
export class HitChecks {
  readonly #options: HitChecksOptions;
  /** Pages known to be the program's, by the space and mode: `privilege:root`. */
  readonly #pages = new Map<string, Set<bigint>>();
  /** Code that differs from the ELF's in a page of the program: the program has changed it. */
  readonly #changed = new Map<string, Uint8Array>();
  readonly #code = new Map<bigint, Uint8Array | undefined>();
  readonly #spaces: SpaceNumbers;
  /** The mode that the program runs in, as first found. */
  #runsAs: Standing['privilege'];
  /** The program runs without paging, as far as is known: there are no other address spaces. */
  #isBare = false;
  #bareStops = 0;
  /** At this stop it was not asked whether the hart still does not page. */
  #skipped = false;
  #standing: Standing = unknownStanding;

  /** Undefined if there is one address space only: a process. */
  static for(options: HitChecksOptions): HitChecks | undefined {
    return isProcess(options.session.features) ? undefined : new HitChecks(options);
  }

  private constructor(options: HitChecksOptions) {
    this.#options = options;
    this.#spaces = options.spaces ?? new SpaceNumbers();
  }

  /**
   * What must be read with the next stop's registers; undefined if that is all of them. Those with the mode and the
   * address space of a hart that does not page are read once in {@link bareStops} stops: each costs a packet.
   */
  ask(): readonly string[] | undefined {
    const { session, arch, others } = this.#options;
    this.#skipped = this.#isBare && !others?.length && ++this.#bareStops % bareStops !== 0;
    if (!session.features.registerBlock) return undefined;
    return (!this.#skipped && arch.privilege?.registers) || none;
  }

  /** The program runs in user mode, in a kernel that is not the program. */
  get inUserMode(): boolean {
    return this.#runsAs === 'user';
  }

  /** The mode and address space of the stopped hart, from the answers to {@link ask}. */
  standing(registers: RegisterReader): Standing {
    if (!this.#skipped) this.#standing = this.#options.arch.privilege?.standing(registers) ?? unknownStanding;
    return this.#standing;
  }

  /** The number of a program's address space; 0 in a kernel, which is mapped in all of them. */
  space({ privilege, root }: Standing): number {
    return privilege === 'user' && root !== undefined ? this.#spaces.of(root) : 0;
  }

  /** Whose hit it is; `again` if all registers must be read first. May read memory. */
  async whose(found: Found, hart: string | undefined): Promise<'own' | 'foreign' | 'again'> {
    const { privilege, root } = found.standing;
    const start = found.pc & -BigInt(pageBytes);
    const pages = this.#pagesOf(`${privilege}:${root}`);
    const same = this.#isSame(found);
    if (same !== undefined && !(same && pages.has(start))) {
      this.#isBare = false;
      if (this.#skipped) return 'again';
      const { session, code } = this.#options;
      if (!((await isOwnPage(session.memory(hart), code, found.pc)) ?? same)) {
        // Another program may have taken the place of ours.
        pages.clear();
        return 'foreign';
      }
      pages.add(start);
      if (!same && found.code) this.#changed.set(placeOf(found), found.code);
    } else if (same === undefined && isUser(privilege) !== isUser(this.#runsAs ?? privilege)) {
      return 'foreign';
    }
    this.#runsAs ??= privilege;
    this.#isBare = root === undefined && privilege !== 'user';
    return 'own';
  }

  /**
   * Whether the program's code is at a pc. Undefined if nothing can be compared: where rsptrace has its own
   * code, where code changes, and where it is execute-only and page tables are not known.
   */
  #isSame(found: Found): boolean | undefined {
    const { code, pc } = found;
    const known = this.#known(pc);
    if (!known || this.#options.codeChanges || !code) return undefined;
    const expected = (this.#changed.size > 0 && this.#changed.get(placeOf(found))) || known;
    const length = Math.min(code.length, expected.length);
    return Buffer.compare(code.subarray(0, length), expected.subarray(0, length)) === 0;
  }

  /** The ELF's code at a pc. */
  #known(pc: Addr): Uint8Array | undefined {
    if (!this.#code.has(pc)) this.#code.set(pc, bytesKnown(this.#options.code, pc, codeBytes));
    return this.#code.get(pc);
  }

  #pagesOf(key: string): Set<bigint> {
    let pages = this.#pages.get(key);
    if (!pages) {
      if (this.#pages.size >= mostSpaces) {
        this.#pages.clear();
        this.#changed.clear();
      }
      pages = new Set();
      this.#pages.set(key, pages);
    }
    return pages;
  }

  /** Reads the code at a pc; fewer bytes if the next page is not mapped. */
  async read(pc: Addr, hart: string | undefined): Promise<Uint8Array | undefined> {
    const memory = this.#options.session.memory(hart);
    const left = pageBytes - Number(pc % BigInt(pageBytes));
    const bytes = (await memory.read(pc, codeBytes)) ?? (left < codeBytes ? await memory.read(pc, left) : undefined);
    const { session, arch } = this.#options;
    return bytes ?? executeOnly(session, arch, { address: pc, length: Math.min(left, codeBytes), hart });
  }
}

/** A kernel may have its firmware in the same ELF, so it runs in two modes. */
function isUser(privilege: Standing['privilege']): boolean {
  return privilege === 'user';
}

function placeOf({ pc, standing: { privilege, root } }: Found): string {
  return `${privilege}:${root}:${pc}`;
}
