import { type Addr, addOffset } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import { Label } from '../inject/code-buffer.js';
import type { Displaced, FunctionExit } from '../inject/displaced.js';
import type { ProbeCode } from '../inject/probe-code.js';
import type { CounterCalibration } from '../inject/process-code.js';
import type { HartSource, HartsOfGuest, Nesting, RecordContents, ReturnHook } from '../inject/record-parts.js';
import { controlBlock, type RingGeometry } from '../inject/ring-contract.js';
import type { EndTrampoline, EntryTrampoline, ExitTrampoline } from '../inject/trampolines.js';
import { PM_HZ, pmTimerPort } from '../machine.js';
import { Assembler } from './assembler.js';
import { compare } from './condition.js';
import { countUp } from './count.js';
import { disassemble, step } from './decode.js';
import { ends } from './exits.js';
import { beginWait, controlWord, endWait, outerWords } from './fields.js';
import { inner } from './inner.js';
import { jumpBytes, linuxProcess } from './process.js';
import { claimRarely, outerCopySteps, toPush, writeRecord } from './record.js';
import { floatArguments, R10, R11, RAX, RSP } from './registers.js';
import { displace, displaceInside, loopsToStart, padding, patchBytes } from './relocate.js';
import { fetch, general, type Stack } from './stack.js';

/** 5 ms: the timer's resolution is then less than a ten-thousandth. */
const waitTicks = Math.round(PM_HZ / 200);

/**
 * Counts the TSC against the ACPI PM timer, in ring 0:
 *
 *             mov dx, port
 *             in eax, dx ; mov ecx, eax
 *             rdtsc ; shl rdx, 32 ; or rdx, rax ; mov r8, rdx
 *     again:  mov dx, port
 *             in eax, dx ; sub eax, ecx ; and eax, 0xffffff
 *             cmp eax, waitTicks ; jb again
 *             mov ecx, eax
 *             rdtsc ; shl rdx, 32 ; or rdx, rax
 *             nop                                  the breakpoint
 */
const calibration: CounterCalibration = {
  name: 'x86-tsc',
  referenceHz: PM_HZ,
  reference: pmTimerPort,
  code(at: Addr, pmPort: number) {
    const port = [0x66, 0xba, pmPort & 0xff, pmPort >> 8];
    const tsc = [0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xc2];
    const limit = [0, 8, 16, 24].map((shift) => (waitTicks >>> shift) & 0xff);
    const loop = [...port, 0xed, 0x29, 0xc8, 0x25, 0xff, 0xff, 0xff, 0x00, 0x3d, ...limit];
    const code = [...port, 0xed, 0x89, 0xc1, ...tsc, 0x49, 0x89, 0xd0, ...loop, 0x72, 256 - (loop.length + 2)];
    code.push(0x89, 0xc1, ...tsc, 0x90);
    return { bytes: Uint8Array.from(code), breakpoint: addOffset(at, code.length - 1) };
  },
  changes: ['rax', 'rcx', 'rdx', 'r8', 'rip', 'eflags'],
  // The interrupt flag: nothing else may run meanwhile.
  begin: (register) => (register.name === 'eflags' ? register.value & ~0x200n : undefined),
  result: (registers) => {
    const [end, start, ticks] = [registers.register('rdx'), registers.register('r8'), registers.register('rcx')];
    if (end === undefined || start === undefined || ticks === undefined) return undefined;
    return { counter: Number(end), elapsed: Number(end - start), reference: Number(ticks & 0xffff_ffffn) };
  },
};

/**
 * Trampolines for x86 in 64-bit mode, ring 0 and ring 3. They use no register that they did not push, because gcc's
 * -fipa-ra lets callers keep values in any register that the callee does not change. Flags except DF are lost; no ABI
 * keeps them over calls.
 *
 * A hooked function returns to the exit trampoline, and finds this below its caller's frame:
 *
 *     rsp at its first instruction ->  address of the exit trampoline
 *                                      kept 0, kept 1, ...
 *                                      outer, outerPlan as they were        written with nesting only, but always there
 *                                      8 bytes, where a multiple of 16 needs them
 *                                      original return address
 *
 * Shadow stacks (CET) do not allow this.
 */
function hookBytes(keep: number): number {
  if (!(keep >= 0 && keep <= 4)) throw new RangeError(`${keep} registers cannot be kept, 4 at most`);
  return 16 * Math.ceil((1 + keep + 2) / 2);
}

const hookedReturnOffset = (keep: number): number => hookBytes(keep) - 8;

function entry(trampoline: EntryTrampoline): Uint8Array {
  const { at, ring, fields, displaced, when, hook, nesting, outerCopy, extents, counters, via } = trampoline;
  if (via !== 'patch') throw new RangeError('No patch for x86_64 needs a hop');
  if (nesting !== undefined && hook === undefined)
    throw new RangeError('A poll that is to be open until it returns needs a hook');
  const code = new Assembler(at);
  const body = new Label();
  for (const condition of when) compare(code, condition, body);
  if (counters.length > 0) {
    for (const counter of counters) countUp(code, counter);
    code.bind(body);
    code.raw(displaced.relocate(code.here));
    return code.finish();
  }
  const contents = { ring, fields, outerCopy, extents };
  const pushed = toPush(contents);
  const frame = hook === undefined ? 0 : hookBytes(hook.keep.length);
  const returnAddress = 8 * pushed.length + frame;
  const stack: Stack = { pushed, returnAddress, stackPointer: returnAddress, kept: [] };
  if (hook !== undefined) code.moveStack(-frame);
  for (const number of pushed) code.push(number);
  const labels = writeRecord(code, contents, stack);
  if (hook !== undefined) fillHook(code, hook, stack);
  if (hook !== undefined && nesting !== undefined)
    open(code, ring, nesting, stack, 8 * (pushed.length + 1 + hook.keep.length));
  for (const number of pushed.toReversed()) code.pop(number);
  code.bind(body);
  code.raw(displaced.relocate(code.here));
  claimRarely(code, ring, labels);
  for (const number of pushed.toReversed()) code.pop(number);
  if (hook !== undefined) code.moveStack(frame);
  code.jump(body);
  return code.finish();
}

function exit({ at, ring, fields, extents, keep, nesting }: ExitTrampoline): Uint8Array {
  const code = new Assembler(at);
  return recordAndReturn(code, { ring, fields, outerCopy: undefined, extents }, { keep, nesting });
}

/** Writes a record, and returns. `hook`: of a call that was hooked. */
function recordAndReturn(
  code: Assembler,
  contents: RecordContents,
  hook?: Pick<ExitTrampoline, 'keep' | 'nesting'>,
): Uint8Array {
  const pushed = toPush(contents);
  const words = 8 * pushed.length;
  const above = hook ? hookedReturnOffset(hook.keep.length) : 0;
  const returnAddress = words + above;
  const kept = (hook?.keep ?? []).map((_, index) => words + 8 * index);
  const leave = new Label();
  for (const number of pushed) code.push(number);
  const labels = writeRecord(code, contents, { pushed, returnAddress, stackPointer: returnAddress + 8, kept });
  code.bind(leave);
  if (hook?.nesting) close(code, contents.ring, words + 8 * kept.length);
  for (const number of pushed.toReversed()) code.pop(number);
  if (hook) code.moveStack(above);
  code.plain('ret');
  claimRarely(code, contents.ring, labels);
  code.jump(leave);
  return code.finish();
}

function bareExit(returnOffset: number): Uint8Array {
  const code = new Assembler(0n as Addr);
  code.moveStack(returnOffset);
  code.plain('ret');
  return code.finish();
}

/** `add rsp, offset; ret`: nothing needs the flags behind a return. */
function likeBareExit(returnOffset: number): Uint8Array {
  const code = new Assembler(0n as Addr);
  code.arithmetic('add', RSP, { constant: BigInt(returnOffset) });
  code.plain('ret');
  return code.finish();
}

function end({ at, ring, fields, extents, end: { before, tail, leave }, exit }: EndTrampoline): Uint8Array {
  const code = new Assembler(at);
  code.raw(before(code.here));
  if (tail === undefined) return recordAndReturn(code, { ring, fields, outerCopy: undefined, extents });
  if (exit === undefined) throw new RangeError('A tail jump needs a hook');
  code.moveStack(-hookBytes(0));
  code.push(RAX);
  code.address(RAX, { at: exit });
  code.store({ base: RSP, offset: 8 }, RAX);
  code.pop(RAX);
  code.raw(leave(code.here));
  return code.finish();
}

function fillHook(code: Assembler, { exit, keep }: ReturnHook, stack: Stack): void {
  const frame = 8 * stack.pushed.length;
  code.address(RAX, { at: exit });
  code.store({ base: RSP, offset: frame }, RAX);
  for (const [index, name] of keep.entries()) {
    code.store({ base: RSP, offset: frame + 8 + 8 * index }, fetch(code, general(name), stack, RAX));
  }
}

/** An interrupt's own trampolines see `outer` as 0, or with its own plan; they restore the old values. */
function open(code: Assembler, ring: RingGeometry, { self, plan }: Nesting, stack: Stack, offset: number): void {
  const outer = outerWords(ring);
  code.load(RAX, outer.self);
  code.store({ base: RSP, offset }, RAX);
  code.load(RAX, outer.plan);
  code.store({ base: RSP, offset: offset + 8 }, RAX);
  code.storeConstant(outer.self, 0n, 8);
  code.constant(RAX, plan);
  code.store(outer.plan, RAX);
  code.store(outer.self, fetch(code, general(self), stack, RAX));
}

function close(code: Assembler, ring: RingGeometry, offset: number): void {
  const outer = outerWords(ring);
  code.storeConstant(outer.self, 0n, 8);
  code.load(RAX, { base: RSP, offset: offset + 8 });
  code.store(outer.plan, RAX);
  code.load(RAX, { base: RSP, offset });
  code.store(outer.self, RAX);
}

/** In: rax = HEAD, r11 = return address. Clobbers r10. Nothing is claimed yet. */
const wait: ProbeCode['wait'] = (at, ring, isTimed) => {
  const code = new Assembler(at);
  const [again, look, drop, leave] = [new Label(), new Label(), new Label(), new Label()];
  const unattended = controlWord(ring, controlBlock.unattended);
  const [spins, seen] = [{ base: RSP, offset: 0 } as const, { base: RSP, offset: 8 } as const];
  const [counts, beat] = [controlWord(ring, controlBlock.spins), controlWord(ring, controlBlock.beat)];
  if (isTimed) beginWait(code);
  code.push(beat);
  code.push(counts);
  code.bind(again);
  code.arithmetic('cmp', unattended, { constant: 0n });
  code.branch('ne', drop);
  code.load(R10, controlWord(ring, controlBlock.looks));
  code.bind(look);
  code.arithmetic('cmp', RAX, controlWord(ring, controlBlock.limit));
  code.branch('b', leave);
  code.plain('pause');
  code.decrement(R10);
  code.branch('g', look);
  const breakpoint = code.here;
  code.plain('nop');
  code.arithmetic('sub', spins, { constant: 1n });
  code.branch('g', again);
  code.load(R10, counts);
  code.store(spins, R10);
  code.load(R10, beat);
  code.arithmetic('cmp', R10, seen);
  code.store(seen, R10);
  code.branch('ne', again);
  code.storeConstant(unattended, 1n, 8);
  code.bind(drop);
  code.increment(controlWord(ring, controlBlock.dropped));
  code.address(R11, { base: R11, offset: jumpBytes });
  code.bind(leave);
  code.moveStack(16);
  if (isTimed) endWait(code, ring);
  // Unlike a jump, it leads to any instruction where branches are tracked.
  code.push(R11);
  code.plain('ret');
  return { code: code.finish(), breakpoint };
};

function patch({ start }: Displaced | FunctionExit, to: Addr): Uint8Array {
  const code = new Assembler(start);
  code.jump(to);
  return code.finish();
}

function patchTarget(code: Uint8Array, start: Addr): Addr | undefined {
  if (code.length < patchBytes || code[0] !== 0xe9) return undefined;
  const distance = new DataView(code.buffer, code.byteOffset, code.byteLength).getInt32(1, true);
  return addOffset(start, patchBytes + distance);
}

/** The largest APIC number that fits the `cpuid` leaf with that number. */
const mostProcessors = 256;

function hartSource({ count }: HartsOfGuest): HartSource | Refusal {
  if (count <= mostProcessors) return { kind: 'hart', how: 'apic', outside: { kind: 'apic' } };
  return { refused: `trampolines tell ${mostProcessors} processors apart, the machine has ${count}` };
}

export const probeCode: ProbeCode = {
  patches: [{ kind: 'near', bytes: patchBytes, reach: 2 ** 31 - patchBytes }],
  displace,
  displaceInside,
  padding,
  loopsToStart,
  ends,
  patch,
  patchTarget,
  hop: undefined,
  entry,
  exit,
  end,
  inner,
  wait,
  // `pause` ends QEMU's translation block: 130-250 ns per poll.
  spinsPerSecond: 5_000,
  floats: floatArguments,
  hartSource,
  hookedReturnOffset,
  hookFrameBytes: hookBytes,
  bareExit,
  likeBareExit,
  step,
  disassemble,
  outerCopySteps,
  calibration,
  process: linuxProcess,
};
