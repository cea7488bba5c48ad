import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { retry, type Session } from '../rsp/index.js';
import { type ChangedCode, interruptedInside } from './interrupted.js';
import { leavePatches, redirect, runOutOfPatches } from './leave-patches.js';
import type { Patch, Patched } from './place-site.js';
import type { Piece, Write } from './ring.js';
import type { Site } from './sites.js';
import { readCode, same, writeChecked } from './transfers.js';

/**
 * The jumps at the entries of probed functions, and at the exits of some. Knows which are installed, which are still
 * deferred, and which are impossible.
 */
export class Patches<T extends Patched = Site> {
  readonly #session: Session;
  readonly #arch: Architecture;
  readonly #logger: Logger;
  readonly #chained: boolean;
  #planted: readonly Patch<T>[] = [];
  /** Of the planted ones; undefined when these have changed. */
  #sites: readonly T[] | undefined;
  #stays = false;
  #waiting: readonly Patch<T>[];
  #changed: readonly T[] = [];

  constructor(session: Session, arch: Architecture, all: readonly Patch<T>[], logger: Logger, chained = false) {
    this.#chained = chained;
    this.#session = session;
    this.#arch = arch;
    this.#logger = logger;
    this.#waiting = all;
  }

  get planted(): readonly T[] {
    this.#sites ??= sitesOf(this.#planted);
    return this.#sites;
  }

  /** What was there before the patches. */
  get originals(): readonly Write[] {
    return this.#planted.map(({ address, original }) => ({ address, bytes: original }));
  }

  /** Where they are. */
  get pieces(): readonly Piece[] {
    return piecesOf(this.#planted);
  }

  /**
   * How many functions are deferred to a later stop, because interrupted code would resume in the middle of their
   * bytes.
   */
  get waiting(): number {
    return sitesOf(this.#waiting).length;
  }

  /** Functions whose code in the target differs from the ELF. They are left alone. */
  get changed(): readonly T[] {
    return this.#changed;
  }

  /**
   * Patches the functions that can be patched at this stop, each with all its exits. Left out are those where
   * `holdsStop` reports a breakpoint. Functions that interrupted code would resume in are deferred. A timer faster than
   * a stop could interrupt the same code for ever. So the others do not wait.
   * @returns the sites that were patched now
   * @throws RsptraceError `PATCH_REFUSED`; then nothing is patched
   */
  async plant(holdsStop: (piece: Piece) => boolean): Promise<readonly T[]> {
    const pieces = this.#waiting.map(({ address, original }) => codeAt(address, original));
    await leavePatches(this.#session, this.#arch, pieces, placesOf(this.#waiting));
    const inside = await interruptedInside(this.#session, this.#arch, pieces, { chained: this.#chained });
    const blocked = new Set<T>();
    for (const patch of this.#waiting)
      if (inside.has(patch.address) || partsWithoutProbe(patch).some(holdsStop)) blocked.add(patch.site);
    const free = this.#waiting.filter(({ site }) => !blocked.has(site));
    this.#waiting = this.#waiting.filter(({ site }) => blocked.has(site));
    const now = await readCode(this.#session, piecesOf(free, 'original'));
    const changed = new Set<T>();
    for (const [i, { site, original }] of free.entries()) if (!same(now[i], original)) changed.add(site);
    const patches = free.filter(({ site }) => !changed.has(site));
    this.#changed = [...this.#changed, ...changed];
    const writes = patches.map(({ address, bytes }) => ({ address, bytes }));
    this.#planted = [...this.#planted, ...patches];
    this.#sites = undefined;
    const failed = await writeChecked(this.#session, writes).catch(async (thrown: unknown) => {
      // The answer was lost, so some of these patches may be installed.
      if (this.#session.state.kind === 'idle') await this.remove();
      throw thrown;
    });
    if (failed) {
      await this.remove();
      throw new RsptraceError('PATCH_REFUSED', `the code at ${hex(failed.address)} cannot be patched`, {
        hint: 'is it in ROM or flash? --engine stop uses breakpoints instead',
      });
    }
    await redirect(this.#session, this.#arch, placesOf(patches));
    if (this.#logger.isLevelEnabled('trace')) this.#trace(patches, blocked, changed);
    return sitesOf(patches);
  }

  #trace(inserted: readonly Patch<T>[], blocked: ReadonlySet<T>, changed: ReadonlySet<T>): void {
    for (const { site, address, part, bytes, original } of inserted) {
      const bytesNow = { bytes: bytesToHex(bytes), instead_of: bytesToHex(original) };
      this.#logger.trace({ probe: site.plan.name, address: hex(address), part, ...bytesNow }, 'patch inserted');
    }
    for (const { plan } of blocked) this.#logger.trace({ probe: plan.name }, 'patch waits: its bytes are interrupted');
    for (const { plan } of changed) this.#logger.trace({ probe: plan.name }, 'no patch: the code there has changed');
  }

  /** Some patches could not be removed: what they lead to must stay. */
  get stays(): boolean {
    return this.#stays;
  }

  /**
   * Removes all patches at a stop, even over a wire that loses packets. The target may have ended meanwhile.
   * @returns functions that were left alone: the target had changed their code, or it could not be seen
   */
  async remove(): Promise<readonly T[]> {
    this.#waiting = [];
    const foreign = await retry(this.#session, () => this.#takeOut(this.#planted));
    this.#planted = [];
    this.#sites = undefined;
    return foreign;
  }

  async #takeOut(patches: readonly Patch<T>[]): Promise<readonly T[]> {
    const session = this.#session;
    const jumps = patches.map(({ address, bytes }) => codeAt(address, bytes));
    const doubtful = await runOutOfPatches(session, this.#arch, jumps, this.#chained);
    if (session.state.kind !== 'idle') return [];
    const now = await readCode(session, piecesOf(patches));
    const writes: Write[] = [];
    const foreign = new Set<T>();
    const unseen = new Set<T>();
    for (const [i, { site, address, bytes, original }] of patches.entries()) {
      const found = now[i];
      if (found && same(found, bytes)) {
        if (doubtful.has(address)) {
          this.#stays = true;
          this.#logger.warn({ function: site.plan.name }, 'interrupted in its patch: left as it is');
        } else writes.push({ address, bytes: original });
      } else if (!found) unseen.add(site);
      else if (!same(found, original)) foreign.add(site);
    }
    if (await writeChecked(session, writes)) {
      this.#stays = true;
      this.#logger.warn(
        {},
        'the target did not take back all of its code: some functions keep their jumps to trampolines',
      );
    }
    for (const { plan } of foreign)
      this.#logger.warn({ function: plan.name }, 'its code was changed by the target: left as it is');
    if (unseen.size > 0) {
      this.#stays = true;
      this.#logger.warn(
        { functions: unseen.size },
        'the target does not stand where its code can be seen: functions keep their jumps to trampolines, which do no harm',
      );
    }
    return [...foreign, ...unseen];
  }
}

function bytesToHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** The bytes of a patch in which a breakpoint cannot be that of its own probe. */
function partsWithoutProbe({ part, address, bytes, site }: Patch<Patched>): Piece[] {
  const before = part === 'inside' ? Math.min(Number(site.plan.address - address), bytes.length) : 0;
  switch (part) {
    case 'entry':
      return [];
    case 'exit':
      return [{ address, length: bytes.length }];
    case 'inside':
      return [
        { address, length: before },
        { address: addOffset(address, before + 1), length: Math.max(0, bytes.length - before - 1) },
      ];
  }
}

/** Places behind the beginnings of their patches: where a hart there goes on. */
function placesOf(patches: readonly Patch<Patched>[]): ReadonlyMap<bigint, Addr> {
  return new Map(
    patches.flatMap(({ site: { plan }, address, goesOn }) =>
      goesOn === undefined || address === plan.address ? [] : [[plan.address, goesOn] as const],
    ),
  );
}

function sitesOf<T extends Patched>(patches: readonly Patch<T>[]): T[] {
  return [...new Set(patches.map(({ site }) => site))];
}

function piecesOf(patches: readonly Patch<Patched>[], side: 'bytes' | 'original' = 'bytes'): Piece[] {
  return patches.map((patch) => ({ address: patch.address, length: patch[side].length }));
}

function codeAt(address: Addr, code: Uint8Array): ChangedCode {
  return { address, length: code.length, code };
}
