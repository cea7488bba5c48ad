import { type Addr, addOffset } from '../../base/addr.js';
import { Label } from './code-buffer.js';
import type { Displaced, DisplacedInside } from './displaced.js';
import { put, take } from './frame-notes.js';
import { type FramedCode, hookFrameSize, type LoadStore, slotsOf, type TrampolineFrame } from './framed-code.js';
import type { ProbeCode } from './probe-code.js';
import { type Condition, type Counter, checkRecord, type RecordContents } from './record-parts.js';
import { controlBlock, type RingGeometry } from './ring-contract.js';
import type { EndTrampoline, EntryTrampoline, ExitTrampoline, InnerTrampoline } from './trampolines.js';

/**
 * What trampolines are made of on an architecture with loads and stores, where each instruction that they need has the
 * same meaning. They save every register that they use, because compilers keep values in temporaries across calls of
 * functions that are known not to change them.
 */
export interface TrampolineParts<Code extends FramedCode> extends LoadStore {
  readonly create: (at: Addr, frame: TrampolineFrame) => Code;
  /** Where the return address lies in a hook frame of so many bytes, and where a kept word does. */
  readonly returnOffset: (bytes: number) => number;
  readonly keptOffset: (index: number) => number;
  /** What conditions use besides the first two; and counters. */
  readonly forConditions: readonly number[];
  readonly forCounters: (counters: readonly Counter[]) => readonly number[];
  /** Makes the state that of the function's first instruction, where control comes by the patch itself. */
  readonly atEntry?: (code: Code, displaced: Displaced) => void;
  /** Jumps to `otherwise` where it does not hold. */
  readonly check: (code: Code, condition: Condition, otherwise: Label) => void;
  readonly countUp: (code: Code, counter: Counter) => void;
  /** Claims a slot. */
  readonly claim: (code: Code, ring: RingGeometry, labels: ClaimLabels) => void;
  /** Gives a reservation up. */
  readonly release: (code: Code) => void;
  /** Waits for room, and comes back behind itself, or 4 bytes further where there is none. */
  readonly waitForRoom: (code: Code, wait: Addr) => void;
  readonly fillRecord: (code: Code, record: RecordContents) => void;
  /** A hop has saved the first temporary in so much stack, and is left where it goes on behind its jump. */
  readonly hop: {
    readonly frame: number;
    readonly back: (displaced: Partial<Displaced>) => number;
    readonly begin: (code: Code) => void;
    readonly end: (code: Code) => void;
  };
  /** The register whose value a jump into the middle of a function has overwritten, by its name. */
  readonly lostInside?: (displaced: DisplacedInside) => number | undefined;
}

const mostKept = 4;

/** The largest sizes of a slot and of a segment. */
const mostShifts = { slotShift: 11, segmentShift: 48 } as const;

/** Places in the code of a claim that its rare ways lead to. */
export class ClaimLabels {
  readonly again = new Label();
  readonly moved = new Label();
  readonly full = new Label();
}

/** The trampolines of an architecture, out of its parts. */
export function trampolinesOf<Code extends FramedCode>(
  parts: TrampolineParts<Code>,
): Pick<ProbeCode, 'entry' | 'exit' | 'end' | 'inner' | 'hookedReturnOffset' | 'hookFrameBytes'> {
  const skeleton = new Skeleton(parts);
  return {
    entry: (trampoline) => skeleton.entry(trampoline),
    exit: (trampoline) => skeleton.exit(trampoline),
    end: (trampoline) => skeleton.end(trampoline),
    inner: (trampoline) => skeleton.inner(trampoline),
    hookedReturnOffset: (kept, nesting) => parts.returnOffset(hookFrameSize(kept, nesting)),
    hookFrameBytes: hookFrameSize,
  };
}

class Skeleton<Code extends FramedCode> {
  readonly #parts: TrampolineParts<Code>;

  constructor(parts: TrampolineParts<Code>) {
    this.#parts = parts;
  }

  entry(trampoline: EntryTrampoline): Uint8Array {
    const { temporaries, stackPointer, forConditions, hop, atEntry, check, countUp } = this.#parts;
    const [t0, t1] = temporaries;
    checkEntry(trampoline);
    const { at, displaced, hook, nesting, counters, via, when } = trampoline;
    const isFar = displaced.kind === 'far';
    /** Bytes of stack that are already in use, and that the hop frees later. */
    const hopped = via === 'patch' ? 0 : hop.frame;
    const own = isFar || hopped !== 0 ? [t1] : [t1, t0];
    const first = when.length > 0 ? [...own, ...forConditions] : own;
    const { others, extra } = this.#others(trampoline, first);
    const { saved, size } = slotsOf(temporaries, extra);
    const hookSize = hook === undefined ? 0 : hookFrameSize(hook.keep.length, nesting !== undefined);
    const frame = { saved, frame: size, kept: 0, depth: size + hookSize, lost: isFar ? t0 : undefined };
    const code = this.#parts.create(at, frame);
    const [skip, dropped, resume] = [new Label(), new Label(), new Label()];

    if (hopped === 0) atEntry?.(code, displaced);
    code.moveStack(hopped - frame.depth);
    if (hopped !== 0 && hook !== undefined) {
      // The hop has saved it where the hook frame will be.
      code.load(t0, stackPointer, frame.depth - hop.frame);
      code.save([t0]);
    }
    code.save(first);
    code.hasSaved(frame, [t0, ...first]);
    for (const condition of when) check(code, condition, skip);
    code.hasSaved(frame, [t0, ...first, ...others]);
    code.save(others);
    let rarely = (): void => {};
    if (counters.length > 0) for (const counter of counters) countUp(code, counter);
    else rarely = this.#record(code, trampoline, dropped);

    const unhooked = (given: number): void => {
      code.bind(dropped);
      code.restore(others);
      code.bind(skip);
      code.restore(first);
      code.moveStack(given - hopped);
    };
    if (hook === undefined) unhooked(size);
    else {
      code.restore([...others, ...first]);
      code.moveStack(size - hopped);
    }
    code.bind(resume);
    if (via === 'patch') code.raw(displaced.relocate(code.here));
    else code.jumpFar(addOffset(via.hop, hop.back(displaced)), t0);
    if (hook !== undefined) {
      unhooked(frame.depth);
      code.jump(resume);
    }
    rarely();
    return code.finish();
  }

  /** What an entry saves besides the first ones; whether the last temporaries are among them. */
  #others(
    { outerCopy, extents = [], counters }: EntryTrampoline,
    first: readonly number[],
  ): { readonly others: readonly number[]; readonly extra: boolean } {
    const [, , t2, t3, ...last] = this.#parts.temporaries;
    const copies = outerCopy !== undefined || extents.length > 0;
    const used = copies ? [t2, t3, ...last] : [t2, t3];
    const all = counters.length > 0 ? this.#parts.forCounters(counters) : used;
    return {
      others: all.filter((register) => !first.includes(register)),
      extra: copies || all.some((register) => last.includes(register)),
    };
  }

  /** Makes the record and the hook. Returns what makes the code that runs rarely. */
  #record(code: Code, trampoline: EntryTrampoline, dropped: Label): () => void {
    const { temporaries, fillRecord } = this.#parts;
    const { ring, fields, nesting, hook, outerCopy, extents } = trampoline;
    code.loadAddress(temporaries[0], ring.control);
    const claimed = this.#claim(code, ring);
    fillRecord(code, { ring, fields, outerCopy, extents });
    if (nesting !== undefined && hook !== undefined) this.#openOuter(code, trampoline);
    if (hook !== undefined) this.#pushHook(code, hook);
    return () => this.#claimRarely(code, ring, claimed, dropped);
  }

  #pushHook(code: Code, { keep, exit }: NonNullable<EntryTrampoline['hook']>): void {
    const { temporaries, stackPointer, registerNamed, keptOffset } = this.#parts;
    for (const [index, name] of keep.entries()) {
      const value = code.original(registerNamed(name), temporaries[3]);
      code.store(value, stackPointer, code.frame.frame + keptOffset(index));
    }
    this.#hookReturn(code, exit, code.frame.frame, code.frame.depth - code.frame.frame);
  }

  /** The return address goes into the hook frame of so many bytes. */
  #hookReturn(code: Code, exit: Addr, frame: number, bytes: number): void {
    const { link, stackPointer, returnOffset } = this.#parts;
    code.store(link, stackPointer, frame + returnOffset(bytes));
    code.loadAddress(link, exit);
  }

  /**
   * `outer` is 0 while the pair changes, so that an interrupt's handler never sees one poll's Future with another's
   * plan.
   */
  #openOuter(code: Code, { ring, nesting, hook }: EntryTrampoline): void {
    if (nesting === undefined || hook === undefined) return;
    const { temporaries, stackPointer, zero, registerNamed, keptOffset } = this.#parts;
    const [t0, , , t3] = temporaries;
    const before = code.frame.frame + keptOffset(hook.keep.length);
    code.loadAddress(t0, ring.control);
    code.load(t3, t0, controlBlock.outer);
    code.store(t3, stackPointer, before);
    code.load(t3, t0, controlBlock.outerPlan);
    code.store(t3, stackPointer, before + 8);
    code.store(zero, t0, controlBlock.outer);
    code.loadAddress(t3, nesting.plan);
    code.store(t3, t0, controlBlock.outerPlan);
    code.store(code.original(registerNamed(nesting.self), t3), t0, controlBlock.outer);
  }

  /** Restores the poll that was open before this call; a record of the exit refers to that poll. */
  #closeOuter(code: Code): void {
    const { temporaries, stackPointer, zero, keptOffset } = this.#parts;
    const [t0, , , t3] = temporaries;
    const before = code.frame.frame + keptOffset(code.frame.kept);
    code.store(zero, t0, controlBlock.outer);
    code.load(t3, stackPointer, before + 8);
    code.store(t3, t0, controlBlock.outerPlan);
    code.load(t3, stackPointer, before);
    code.store(t3, t0, controlBlock.outer);
  }

  exit({ at, ring, fields, extents = [], keep, nesting }: ExitTrampoline): Uint8Array {
    const { temporaries, link, returnOffset, create } = this.#parts;
    const { saved, size } = slotsOf(temporaries, extents.length > 0);
    const bytes = hookFrameSize(keep.length, nesting);
    const all = new Map([...saved, [link, size + returnOffset(bytes)] as const]);
    const code = create(at, { saved: all, frame: size, kept: keep.length, depth: size + bytes, lost: undefined });
    return this.#recordAndReturn(code, { ring, fields, outerCopy: undefined, extents }, nesting);
  }

  /** Writes a record, restores all registers that were saved, the link too if it was, and returns. */
  #recordAndReturn(code: Code, record: RecordContents, nesting: boolean): Uint8Array {
    const { temporaries, link, returnBy, fillRecord } = this.#parts;
    const { ring, extents = [] } = record;
    const { saved, frame, depth } = code.frame;
    checkRecord(record, mostShifts);
    const dropped = new Label();
    const used = temporaries.slice(0, extents.length > 0 ? 6 : 4);
    code.moveStack(-frame);
    code.save(used);
    code.loadAddress(temporaries[0], ring.control);
    if (nesting) this.#closeOuter(code);
    const claimed = this.#claim(code, ring);
    fillRecord(code, record);
    code.bind(dropped);
    code.restore(saved.has(link) ? [...used, link] : used);
    code.moveStack(depth);
    code.emit(returnBy(link));
    this.#claimRarely(code, ring, claimed, dropped);
    return code.finish();
  }

  end({ at, ring, fields, extents = [], end, exit, hopped }: EndTrampoline): Uint8Array {
    const { temporaries, create, hop } = this.#parts;
    const { saved, size } = slotsOf(temporaries, extents.length > 0);
    const code = create(at, { saved, frame: size, kept: 0, depth: size, lost: undefined });
    if (hopped) hop.end(code);
    code.raw(end.before(code.here));
    if (end.tail === undefined)
      return this.#recordAndReturn(code, { ring, fields, outerCopy: undefined, extents }, false);
    if (exit === undefined) throw new RangeError('A tail jump needs a hook');
    const bytes = hookFrameSize(0, false);
    code.moveStack(-bytes);
    this.#hookReturn(code, exit, 0, bytes);
    code.raw(end.leave(code.here));
    return code.finish();
  }

  #claim(code: Code, ring: RingGeometry): ClaimLabels {
    const labels = new ClaimLabels();
    code.bind(labels.again);
    this.#parts.claim(code, ring, labels);
    return labels;
  }

  /** What a claim makes rarely goes behind all else, and leads to `dropped` where there is no room. */
  #claimRarely(code: Code, { wait }: RingGeometry, { again, moved, full }: ClaimLabels, dropped: Label): void {
    code.bind(moved);
    this.#parts.release(code);
    code.jump(again);
    code.bind(full);
    this.#parts.waitForRoom(code, wait);
    code.jump(again);
    code.jump(dropped);
  }

  /** Inside a function. Its taken words lie where a hooked call's kept words would be. */
  inner(trampoline: InnerTrampoline): ReturnType<ProbeCode['inner']> {
    const { temporaries, stackPointer, create, fillRecord, keptOffset, lostInside, hop } = this.#parts;
    const { at, ring, fields, displaced, notes, taken, noted, via } = trampoline;
    const record = { ring, fields, outerCopy: undefined };
    checkRecord(record, mostShifts);
    const { saved, size } = slotsOf(temporaries, false);
    const depth = size + hookFrameSize(taken.length, false);
    const code = create(at, { saved, frame: size, kept: taken.length, depth, lost: lostInside?.(displaced) });
    const dropped = new Label();
    const [t0] = temporaries;
    const used = temporaries.slice(0, 4);
    if (via !== 'patch') hop.end(code);
    code.raw(displaced.before(code.here));
    const place = Number(code.here - at);
    code.moveStack(-depth);
    code.save(used);
    for (const [index, note] of taken.entries()) {
      take(code, note, notes);
      code.store(t0, stackPointer, size + keptOffset(index));
    }
    code.loadAddress(t0, ring.control);
    const claimed = this.#claim(code, ring);
    fillRecord(code, record);
    code.bind(dropped);
    for (const note of noted) put(code, note, notes);
    code.restore(used);
    code.moveStack(depth);
    if (via === 'patch') code.raw(displaced.relocate(code.here));
    else {
      hop.begin(code);
      code.jumpFar(addOffset(via.hop, hop.back(displaced)), t0);
    }
    this.#claimRarely(code, ring, claimed, dropped);
    return { code: code.finish(), place };
  }
}

function checkEntry(trampoline: EntryTrampoline): void {
  const { displaced, hook, nesting, outerCopy, counters, via } = trampoline;
  checkRecord(trampoline, mostShifts);
  if (via !== 'patch' && displaced.kind === 'far') throw new RangeError('A far patch comes through no hop');
  if (nesting !== undefined && hook === undefined) throw new RangeError('Nesting needs a hook');
  if (counters.length > 0 && (hook !== undefined || outerCopy !== undefined || trampoline.fields.length > 0))
    throw new RangeError('A probe that counts makes no record and has no hook');
  if (hook !== undefined && displaced.hookRefused !== undefined)
    throw new RangeError(`No hook: ${displaced.hookRefused}`);
  if (hook !== undefined && hook.keep.length > mostKept) throw new RangeError(`At most ${mostKept} registers are kept`);
}
