import { type Addr, addOffset } from '../../base/addr.js';
import { Label } from '../inject/code-buffer.js';
import type { ProbeCode } from '../inject/probe-code.js';
import {
  checkRecord,
  type HartSource,
  type Nesting,
  type RecordContents,
  type ReturnHook,
} from '../inject/record-parts.js';
import { controlBlock } from '../inject/ring-contract.js';
import type { EndTrampoline, EntryTrampoline, ExitTrampoline } from '../inject/trampolines.js';
import { Assembler, addi, ldr, pop, ret, str, T0, T1, T2, T3, T4, T5, T6 } from './assembler.js';
import { calibration } from './calibration.js';
import { check } from './condition.js';
import { countUp } from './count.js';
import { decode } from './decode.js';
import { disassemble, step } from './disassembly.js';
import { ends } from './exits.js';
import { inner } from './inner.js';
import { endHop, HOP_FRAME, hop, hopBack, patch, patchTarget, unsign } from './patch.js';
import { claim, claimRarely, counter, fillRecord, mostShifts, outerCopySteps } from './record-code.js';
import { floatArguments, LR, SP, ZR } from './registers.js';
import { displace, displaceInside, loopsToStart, patchLengths } from './relocate.js';
import {
  hookFrameSize,
  keptOffset,
  registerNamed,
  slots,
  TrampolineCode,
  type TrampolineFrame,
} from './trampoline-frame.js';
import { wait } from './wait.js';

/**
 * AArch64 trampolines. They save every register that they use, and leave the flags alone, because compilers keep values
 * across calls of functions that are known not to change them. Their stack is drawn in `trampoline-frame.ts`: from sp
 * down, nothing below it.
 */
const MAX_KEPT = 4;
/** If a trampoline's start is in reach, its end is too. */
const LONGEST = 4096;

function entry(trampoline: EntryTrampoline): Uint8Array {
  checkEntry(trampoline);
  const { at, displaced, hook, nesting, outerCopy, extents = [], counters, via, when } = trampoline;
  const copies = outerCopy !== undefined || extents.length > 0;
  const counts = counters.length > 0;
  const { saved, size } = slots(copies || counts);
  const hookSize = hook === undefined ? 0 : hookFrameSize(hook.keep.length, nesting !== undefined);
  const far = displaced.kind === 'far';
  const frame = { saved, frame: size, kept: 0, depth: size + hookSize, lost: far ? T0 : undefined };
  const code = new TrampolineCode(at, frame);
  /** Bytes of stack that are already in use, and that the hop frees later. */
  const hopped = via === 'patch' ? 0 : HOP_FRAME;
  const own = far || hopped !== 0 ? [T1] : [T1, T0];
  const first = when.length > 0 ? [...own, T2] : own;
  const all = counts ? [T2, T3, T4] : copies ? [T2, T3, T4, T5, T6] : [T2, T3];
  const others = all.filter((register) => !first.includes(register));
  const [skip, dropped, resume] = [new Label(), new Label(), new Label()];

  if (hopped === 0) unsign(code, displaced);
  code.moveStack(hopped - frame.depth);
  if (hopped !== 0 && hook !== undefined) {
    // The hop saved x16 where the hook frame will be.
    code.emit(ldr(T0, SP, frame.depth - HOP_FRAME));
    code.save([T0]);
  }
  code.save(first);
  code.frame = onlySaved(frame, [T0, ...first]);
  for (const condition of when) check(code, condition, skip);
  code.frame = onlySaved(frame, [T0, ...first, ...others]);
  code.save(others);
  let rarely = (): void => {};
  if (counts) for (const counter of counters) countUp(code, counter);
  else rarely = record(code, trampoline, dropped);

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
  else code.jumpFar(addOffset(via.hop, hopBack(displaced)), T0);
  if (hook !== undefined) {
    unhooked(frame.depth);
    code.jump(resume);
  }
  rarely();
  return code.finish();
}

/** Makes the record and the hook. Returns what makes the code that runs rarely; without room it jumps to `dropped`. */
function record(
  code: TrampolineCode,
  { ring, fields, hook, nesting, outerCopy, extents = [] }: EntryTrampoline,
  dropped: Label,
): () => void {
  code.loadAddress(T0, ring.control);
  const labels = claim(code, ring);
  fillRecord(code, { ring, fields, outerCopy, extents });
  if (nesting !== undefined && hook !== undefined) openOuter(code, ring.control, nesting, hook);
  if (hook !== undefined) pushHook(code, hook);
  return () => claimRarely(code, ring, labels, dropped);
}

/** The frame while only these registers are saved. */
function onlySaved(frame: TrampolineFrame, stored: readonly number[]): TrampolineFrame {
  return { ...frame, saved: new Map([...frame.saved].filter(([register]) => stored.includes(register))) };
}

function checkEntry(entry: EntryTrampoline): void {
  const { ring, fields, displaced, hook, nesting, outerCopy, extents, counters, via } = entry;
  checkRecord({ ring, fields, outerCopy, extents }, mostShifts);
  if (via !== 'patch' && displaced.kind === 'far') throw new RangeError('A far patch comes through no hop');
  if (nesting !== undefined && hook === undefined) throw new RangeError('Nesting needs a hook');
  if (counters.length > 0 && (hook !== undefined || outerCopy !== undefined || fields.length > 0))
    throw new RangeError('A probe that counts makes no record and has no hook');
  if (hook !== undefined && displaced.hookRefused !== undefined)
    throw new RangeError(`No hook: ${displaced.hookRefused}`);
  if (hook !== undefined && hook.keep.length > MAX_KEPT) throw new RangeError(`At most ${MAX_KEPT} registers are kept`);
}

function pushHook(code: TrampolineCode, { keep, exit }: ReturnHook): void {
  const { frame } = code.frame;
  for (const [index, name] of keep.entries())
    code.emit(str(code.original(registerNamed(name), T3), SP, frame + keptOffset(index)));
  code.emit(str(LR, SP, frame));
  code.loadAddress(LR, exit);
}

/**
 * `outer` is 0 while the pair changes, so that an interrupt's handler never sees one poll's Future with another's
 * plan.
 */
function openOuter(code: TrampolineCode, control: Addr, { self, plan }: Nesting, { keep }: ReturnHook): void {
  const before = code.frame.frame + keptOffset(keep.length);
  code.loadAddress(T0, control);
  code.emit(ldr(T3, T0, controlBlock.outer), str(T3, SP, before));
  code.emit(ldr(T3, T0, controlBlock.outerPlan), str(T3, SP, before + 8));
  code.emit(str(ZR, T0, controlBlock.outer));
  code.loadAddress(T3, plan);
  code.emit(str(T3, T0, controlBlock.outerPlan));
  code.emit(str(code.original(registerNamed(self), T3), T0, controlBlock.outer));
}

function exit({ at, ring, fields, extents = [], keep, nesting }: ExitTrampoline): Uint8Array {
  const { saved, size } = slots(extents.length > 0);
  const depth = size + hookFrameSize(keep.length, nesting);
  const all = new Map([...saved, [LR, size] as const]);
  const code = new TrampolineCode(at, { saved: all, frame: size, kept: keep.length, depth, lost: undefined });
  return recordAndReturn(code, { ring, fields, outerCopy: undefined, extents }, nesting);
}

/** Writes a record, restores all registers that it has overwritten, x30 too if that is one of them, and returns. */
function recordAndReturn(code: TrampolineCode, record: RecordContents, nesting: boolean): Uint8Array {
  const { ring, extents = [] } = record;
  const { saved, frame, depth } = code.frame;
  checkRecord(record, mostShifts);
  const dropped = new Label();
  const used = extents.length > 0 ? [T0, T1, T2, T3, T4, T5] : [T0, T1, T2, T3];
  code.moveStack(-frame);
  code.save(used);
  code.loadAddress(T0, ring.control);
  if (nesting) closeOuter(code);
  const labels = claim(code, ring);
  fillRecord(code, record);
  code.bind(dropped);
  code.restore(saved.has(LR) ? [...used, LR] : used);
  code.moveStack(depth);
  code.emit(ret(LR));
  claimRarely(code, ring, labels, dropped);
  return code.finish();
}

function bareExit(returnOffset: number, frameBytes: number): Uint8Array {
  const code = new Assembler(0n as Addr);
  code.emit(ldr(LR, SP, returnOffset), addi(SP, SP, frameBytes), ret(LR));
  return code.finish();
}

/** `ldr x30, [sp], bytes; ret`. */
function likeBareExit(returnOffset: number, frameBytes: number): Uint8Array {
  if (returnOffset !== 0) return bareExit(returnOffset, frameBytes);
  const code = new Assembler(0n as Addr);
  code.emit(pop(LR, frameBytes), ret(LR));
  return code.finish();
}

function end({ at, ring, fields, extents = [], end, exit, hopped }: EndTrampoline): Uint8Array {
  const { saved, size } = slots(extents.length > 0);
  const code = new TrampolineCode(at, { saved, frame: size, kept: 0, depth: size, lost: undefined });
  if (hopped) endHop(code);
  code.raw(end.before(code.here));
  if (end.tail === undefined) return recordAndReturn(code, { ring, fields, outerCopy: undefined, extents }, false);
  if (exit === undefined) throw new RangeError('A tail jump needs a hook');
  code.moveStack(-hookFrameSize(0, false));
  code.emit(str(LR, SP, 0));
  code.loadAddress(LR, exit);
  code.raw(end.leave(code.here));
  return code.finish();
}

/** Restores the poll that was open before this call; a record of the exit refers to that poll. */
function closeOuter(code: TrampolineCode): void {
  const before = code.frame.frame + keptOffset(code.frame.kept);
  code.emit(str(ZR, T0, controlBlock.outer));
  code.emit(ldr(T3, SP, before + 8), str(T3, T0, controlBlock.outerPlan));
  code.emit(ldr(T3, SP, before), str(T3, T0, controlBlock.outer));
}

const NOP = 0xd503_201f;
/** `mov x9, x30`: what Linux puts into the first of two nops as it boots (arch/arm64/kernel/ftrace.c). */
const KEEPS_RETURN = 0xaa1e_03e9;

/** What is called from two nops may be reached through a linker's code, which changes x16. */
function beginsWithNops(code: Uint8Array): boolean {
  const [first, second] = [decode(code), decode(code, 4)];
  return (first?.word === NOP || first?.word === KEEPS_RETURN) && second?.word === NOP;
}

/** The affinity numbers. A kernel may read them in any mode of its own. */
const hart: HartSource = { kind: 'hart', how: 'mpidr', outside: { kind: 'affinity' } };

/** AArch64's part of tracing inside the target. */
export const probeCode: ProbeCode = {
  patches: [
    { kind: 'near', bytes: patchLengths.near, reach: 2 ** 27 - LONGEST },
    { kind: 'far', bytes: patchLengths.far, reach: 2 ** 32 - LONGEST },
  ],
  displace,
  displaceInside,
  loopsToStart,
  ends,
  patch,
  entryIsPatchable: beginsWithNops,
  patchTarget,
  hop,
  entry,
  exit,
  end,
  inner,
  wait,
  spinsPerSecond: 50_000, // A poll is five instructions: 40-80 ns.
  // Emulators see what their stubs write (QEMU invalidates what it has translated).
  onlyEmulated: 'the instruction caches of a processor may have other code than a debugger has written',
  floats: floatArguments,
  counter,
  hartSource: () => hart,
  calibration,
  hookedReturnOffset: () => 0,
  hookFrameBytes: hookFrameSize,
  bareExit,
  likeBareExit,
  step,
  disassemble,
  outerCopySteps,
};
