import { type Addr, addOffset } from '../../base/addr.js';
import type { Refusal } from '../../base/refusal.js';
import { Label } from '../inject/code-buffer.js';
import type { ProbeCode } from '../inject/probe-code.js';
import {
  checkRecord,
  type HartSource,
  type HartsOfGuest,
  type Nesting,
  type RecordContents,
  type ReturnHook,
} from '../inject/record-parts.js';
import { controlBlock } from '../inject/ring-contract.js';
import type { EndTrampoline, EntryTrampoline, ExitTrampoline } from '../inject/trampolines.js';
import {
  Assembler,
  addi,
  cAddi16Sp,
  cAddiSp,
  cJrRa,
  cLdsp,
  jalr,
  ld,
  sd,
  T0,
  T1,
  T2,
  T3,
  T4,
  T5,
  T6,
} from './assembler.js';
import { check } from './condition.js';
import { countUp } from './count.js';
import { disassemble, step } from './disassembly.js';
import { ends } from './exits.js';
import { inner } from './inner.js';
import { endHop, HOP_BACK, HOP_FRAME, hop, patch, patchTarget } from './patch.js';
import { claim, claimRarely, fillRecord, mostShifts, outerCopySteps } from './record-code.js';
import { floatArguments, RA, SP } from './registers.js';
import { displace, displaceInside, loopsToStart, patchLengths } from './relocate.js';
import { hookFrameSize, registerNamed, slots, TrampolineCode, type TrampolineFrame } from './trampoline-frame.js';
import { wait } from './wait.js';

/**
 * RISC-V trampolines. They save every register that they use, because GCC's -fipa-ra keeps values in temporaries
 * across calls of functions that are known not to change them. Their stack is drawn in `trampoline-frame.ts`: from sp
 * down, nothing below it.
 */
const MAX_KEPT = 4;
/** If a trampoline's start is in reach, its end is too. */
const LONGEST = 4096;

function entry(trampoline: EntryTrampoline): Uint8Array {
  checkEntry(trampoline);
  const { at, displaced, hook, nesting, outerCopy, extents = [], counters, via } = trampoline;
  const copies = outerCopy !== undefined || extents.length > 0;
  const { saved, size } = slots(copies);
  const hookSize = hook === undefined ? 0 : hookFrameSize(hook.keep.length, nesting !== undefined);
  const far = displaced.kind === 'far';
  const frame = { saved, frame: size, kept: 0, depth: size + hookSize, lost: far ? T0 : undefined };
  const code = new TrampolineCode(at, frame);
  /** Bytes of stack that are already in use, and that the hop frees later. */
  const hopped = via === 'patch' ? 0 : HOP_FRAME;
  const first = far || hopped !== 0 ? [T1] : [T1, T0];
  const counts = counters.length > 0;
  const counted = counters.some(({ kind }) => kind !== 'calls') ? [T2] : [];
  const others = counts ? counted : copies ? [T2, T3, T4, T5, T6] : [T2, T3];
  const [skip, dropped, resume] = [new Label(), new Label(), new Label()];

  code.moveStack(hopped - frame.depth);
  if (hopped !== 0 && hook !== undefined) {
    // The hop saved t0 where the hook frame will be.
    code.emit(ld(T0, SP, frame.depth - HOP_FRAME));
    code.save([T0]);
  }
  code.save(first);
  code.frame = onlySaved(frame, [T0, T1]);
  for (const condition of trampoline.when) check(code, condition, skip);
  code.frame = onlySaved(frame, [T0, T1, ...others]);
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
  else code.jumpFar(addOffset(via.hop, HOP_BACK), T0);
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
  const { frame, depth } = code.frame;
  for (const [index, name] of keep.entries())
    code.emit(sd(code.original(registerNamed(name), T3), SP, frame + 8 * index));
  code.emit(sd(RA, SP, depth - 8));
  code.loadAddress(RA, exit);
}

/**
 * `outer` is 0 while the pair changes, so that an interrupt's handler never sees one poll's Future with another's
 * plan.
 */
function openOuter(code: TrampolineCode, control: Addr, { self, plan }: Nesting, { keep }: ReturnHook): void {
  const before = code.frame.frame + 8 * keep.length;
  code.loadAddress(T0, control);
  code.emit(ld(T3, T0, controlBlock.outer), sd(T3, SP, before));
  code.emit(ld(T3, T0, controlBlock.outerPlan), sd(T3, SP, before + 8));
  code.emit(sd(0, T0, controlBlock.outer));
  code.loadAddress(T3, plan);
  code.emit(sd(T3, T0, controlBlock.outerPlan));
  code.emit(sd(code.original(registerNamed(self), T3), T0, controlBlock.outer));
}

function exit({ at, ring, fields, extents = [], keep, nesting }: ExitTrampoline): Uint8Array {
  const { saved, size } = slots(extents.length > 0);
  const depth = size + hookFrameSize(keep.length, nesting);
  const ra = [RA, depth - 8] as const;
  const all = new Map([...saved, ra]);
  const code = new TrampolineCode(at, { saved: all, frame: size, kept: keep.length, depth, lost: undefined });
  return recordAndReturn(code, { ring, fields, outerCopy: undefined, extents }, nesting);
}

/** Writes a record, restores all registers that it has overwritten, ra too if that is one of them, and returns. */
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
  code.restore(saved.has(RA) ? [...used, RA] : used);
  code.moveStack(depth);
  code.emit(jalr(0, RA, 0));
  claimRarely(code, ring, labels, dropped);
  return code.finish();
}

function bareExit(returnOffset: number, frameBytes: number): Uint8Array {
  const code = new Assembler(0n as Addr);
  code.emit(ld(RA, SP, returnOffset), addi(SP, SP, frameBytes), jalr(0, RA, 0));
  return code.finish();
}

/** `c.ldsp ra, offset(sp); c.addi sp, bytes; c.jr ra`; a larger frame is freed by `c.addi16sp`. */
function likeBareExit(returnOffset: number, frameBytes: number): Uint8Array {
  const code = new Assembler(0n as Addr);
  const free = frameBytes < 32 ? cAddiSp(frameBytes) : cAddi16Sp(frameBytes);
  code.emitCompressed(cLdsp(RA, returnOffset), free, cJrRa);
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
  code.emit(sd(RA, SP, hookFrameSize(0, false) - 8));
  code.loadAddress(RA, exit);
  code.raw(end.leave(code.here));
  return code.finish();
}

/** Restores the poll that was open before this call; a record of the exit refers to that poll. */
function closeOuter(code: TrampolineCode): void {
  const before = code.frame.frame + 8 * code.frame.kept;
  code.emit(sd(0, T0, controlBlock.outer));
  code.emit(ld(T3, SP, before + 8), sd(T3, T0, controlBlock.outerPlan));
  code.emit(ld(T3, SP, before), sd(T3, T0, controlBlock.outer));
}

/** `nop` (00000013) and `c.nop` (0001), as many as Linux needs for its `auipc t0; jalr t0, t0`. */
function beginsWithNops(code: Uint8Array): boolean {
  const halves = Array.from(
    { length: patchLengths.far / 2 },
    (_, i) => (code[2 * i] ?? 0) | ((code[2 * i + 1] ?? 0) << 8),
  );
  for (let at = 0; at < halves.length; at++) {
    if (halves[at] === 0x0001) continue;
    if (halves[at] !== 0x0013 || halves[++at] !== 0) return false;
  }
  return true;
}

/** `mhartid` is for M-mode only. Kernels identify harts by `tp`; in Linux it points to the task. */
function hartSource({ cpuInTask }: HartsOfGuest): HartSource | Refusal {
  if (!cpuInTask) return { kind: 'hart', how: 'tp', outside: { kind: 'register', name: 'tp' } };
  const offset = cpuInTask();
  if (offset === undefined)
    return { refused: 'neither BTF nor DWARF says where a task of this Linux has the number of its CPU' };
  return { kind: 'hart', how: 'at-tp', offset, outside: { kind: 'linux-cpu', hartRegister: 'mhartid' } };
}

/** RISC-V's part of tracing inside the target. */
export const probeCode: ProbeCode = {
  patches: [
    { kind: 'near', bytes: patchLengths.near, reach: 2 ** 20 - LONGEST },
    { kind: 'far', bytes: patchLengths.far, reach: 2 ** 31 - LONGEST },
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
  spinsPerSecond: 50_000, // A poll is five instructions and, at the loop's end, a jump: 40-80 ns.
  floats: floatArguments,
  counter: 'time',
  hartSource,
  hookedReturnOffset: (keep, nesting) => hookFrameSize(keep, nesting) - 8,
  hookFrameBytes: hookFrameSize,
  bareExit,
  likeBareExit,
  step,
  disassemble,
  outerCopySteps,
};
