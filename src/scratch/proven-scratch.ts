import { isRefusal, type Refusal } from '../base/errors.js';
import { beginPrivacyProof, type PrivacyProof } from './prove-private.js';
import type { Scratch } from './scratch.js';
import { shareThroughRam } from './shared-memory.js';
import { type Known, type ScratchRequest, unusable } from './source.js';
import { findScratch } from './sources.js';

/** Memory that may have another user is watched for this time, in milliseconds: the target must not write to it. */
const proofMs = 100;
/** Where two runs are to be alike it is watched for so many hits, because the host's time differs. */
const proofHits = 100;

/** Memory for trampolines and the ring. It is found once, however often it is too early to use it. */
export class ProvenScratch {
  #found: Scratch | undefined;
  #proof: { readonly scratch: Scratch; readonly isOver: () => boolean; readonly proof: PrivacyProof } | undefined;
  readonly #isRepeatable: boolean;
  #proved = false;
  readonly #known: Known = {};

  /** `isRepeatable`: two runs are to be alike. */
  constructor(isRepeatable = false) {
    this.#isRepeatable = isRepeatable;
  }

  /**
   * At a stop: the memory, or undefined if it is too early. Memory that may have another user first holds a pattern
   * for a while.
   * @throws RsptraceError `SCRATCH_UNUSABLE` if something else writes to what the user named
   */
  async take(request: ScratchRequest): Promise<Scratch | Refusal | undefined> {
    if (this.#found === undefined) {
      const found = await findScratch({ ...request, known: this.#known });
      if (isRefusal(found)) return 'later' in found && found.later ? undefined : found;
      this.#found = found;
    }
    const scratch = this.#found;
    if (scratch.owned || this.#proved) return this.#shared(scratch, request);
    if (!this.#proof) {
      const proof = await beginPrivacyProof(scratch, request.session, request.ram);
      this.#proof = { scratch, isOver: this.#isRepeatable ? afterHits() : afterTime(), proof };
    }
    if (!this.#proof.isOver()) return undefined;
    const { proof } = this.#proof;
    this.#proof = undefined;
    const wrong = await proof.end();
    this.#proved = wrong === undefined;
    if (wrong === undefined) return this.#shared(scratch, request);
    await scratch.release();
    const why = `${scratch.source} cannot be used: ${wrong}`;
    if (request.given !== undefined || request.top) throw unusable(why);
    return { refused: why };
  }

  /** The memory, read past the wire if that is possible. */
  async #shared(scratch: Scratch, { ram, session }: ScratchRequest): Promise<Scratch> {
    this.#found = ram === undefined ? scratch : await shareThroughRam(scratch, ram, session);
    return this.#found;
  }

  /** Memory is found, and is watched before it is used. No page table changes that. */
  get isPending(): boolean {
    return this.#proof !== undefined;
  }

  /** The target runs another program. */
  forget(): void {
    this.#found = undefined;
    this.#proof = undefined;
    this.#proved = false;
    delete this.#known.top;
  }

  /** The recording ends: removes a pattern that is still there. The target is stopped. */
  async giveUp(): Promise<void> {
    if (!this.#proof) return;
    await this.#proof.proof.end();
    await this.#proof.scratch.release();
  }
}

function afterTime(): () => boolean {
  const until = performance.now() + proofMs;
  return () => performance.now() >= until;
}

/** It is asked at every hit. */
function afterHits(): () => boolean {
  let left = proofHits;
  return () => --left <= 0;
}
