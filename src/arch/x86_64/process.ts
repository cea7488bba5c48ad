import type { Addr } from '../../base/addr.js';
import { Label } from '../inject/code-buffer.js';
import type { ClockSample, ProcessCode, StackWalk, WrappedWalk } from '../inject/process-code.js';
import { controlBlock } from '../inject/ring-contract.js';
import { Assembler } from './assembler.js';
import type { Place } from './encoder.js';
import { beginWait, controlWord, endWait, readTime } from './fields.js';
import { R10, R11, R12, R13, RAX, RBX, RCX, RDI, RDX, RSI, RSP } from './registers.js';

/** Bytes of stack that the wrapper takes: the callback, its argument, and 8 that align the stack for calls. */
const frame = 24;

/**
 * A wrapper of `_Unwind_Backtrace(callback, argument)` (LSB Core, libgcc_s). It calls that with a callback of its own,
 * which passes every frame on but those whose address is in trampolines. `open` counts the walks that have not ended.
 *
 *     rsp + 0: 8 bytes | 8: callback | 16: argument | 24: return address
 */
function code(at: Addr, { walk, addressOf, hidden, open }: WrappedWalk): ReturnType<StackWalk['code']> {
  const wrapper = new Assembler(at);
  const [filter, hides] = [new Label(), new Label()];
  wrapper.increment({ at: open });
  wrapper.push(RSI);
  wrapper.push(RDI);
  wrapper.moveStack(16 - frame);
  wrapper.address(RDI, { at: filter });
  wrapper.move(RSI, RSP);
  wrapper.load(RAX, wrapper.literal(walk));
  wrapper.callTo(RAX);
  const returns = wrapper.here;
  wrapper.moveStack(frame);
  wrapper.constant(RCX, -1n);
  wrapper.addAtOnce({ at: open }, RCX);
  wrapper.plain('ret');
  wrapper.bind(filter);
  const callback = wrapper.here;
  wrapper.push(RSI);
  wrapper.push(RDI);
  wrapper.moveStack(-8);
  wrapper.load(RAX, wrapper.literal(addressOf));
  wrapper.callTo(RAX);
  wrapper.moveStack(8);
  wrapper.pop(RDI);
  wrapper.pop(RSI);
  wrapper.arithmetic('sub', RAX, wrapper.literal(hidden.address));
  wrapper.arithmetic('cmp', RAX, { constant: BigInt(hidden.length) });
  wrapper.branch('b', hides);
  wrapper.load(RAX, { base: RSI, offset: 8 });
  wrapper.load(RSI, { base: RSI, offset: 16 });
  wrapper.jumpTo(RAX);
  wrapper.bind(hides);
  // _URC_NO_REASON: go on.
  wrapper.constant(RAX, 0n);
  wrapper.plain('ret');
  return { bytes: wrapper.finish(), returns, callback };
}

const nothing: WrappedWalk = {
  walk: 1n as Addr,
  addressOf: 2n as Addr,
  hidden: { address: 3n as Addr, length: 0 },
  open: 0n as Addr,
};

const stackWalk: StackWalk = {
  bytes: code(0n as Addr, nothing).bytes.length,
  returns: { at: Number(code(0n as Addr, nothing).returns), offset: frame },
  callback: 'rdi',
  code,
};

/* DWARF 5, 6.4, as .eh_frame has it (LSB Core, "Exception Frames"). */
const DW_CFA_def_cfa = 0x0c;
const DW_CFA_offset = 0x80;
const DWARF_RSP = 7;
const RETURN = 16;
const cieBytes = 24;
const fdeBytes = 32;

/** The most bytes of {@link unwindTable} for this many exit trampolines. */
function unwindTableBytes(exits: number): number {
  return exits * (cieBytes + fdeBytes) + 4;
}

/**
 * Call frame information for return addresses that are exit trampolines. The original return address is this many
 * bytes above the stack pointer, and every other register already has the caller's value. Each distance has one CIE,
 * without augmentation, so that addresses are absolute.
 *
 * An unwinder looks up the byte before a return address, so each range begins one byte early.
 */
function unwindTable(exits: ReadonlyMap<bigint, { readonly offset: number }>): Uint8Array {
  const bytes = new Uint8Array(unwindTableBytes(exits.size));
  const view = new DataView(bytes.buffer);
  const cies = new Map<number, number>();
  let at = 0;
  for (const { offset } of exits.values()) {
    if (cies.has(offset)) continue;
    cies.set(offset, at);
    view.setUint32(at, cieBytes - 4, true);
    // Id 0; version 1, no augmentation, alignments 1 and -8, the return address's column; then the rules, and nops.
    bytes.set(
      [1, 0, 1, 0x78, RETURN, DW_CFA_def_cfa, DWARF_RSP, ...uleb(offset + 8), DW_CFA_offset | RETURN, 1],
      at + 8,
    );
    at += cieBytes;
  }
  for (const [exit, { offset }] of exits) {
    view.setUint32(at, fdeBytes - 4, true);
    view.setUint32(at + 4, at + 4 - (cies.get(offset) ?? 0), true);
    view.setBigUint64(at + 8, (exit as Addr) - 1n, true);
    view.setBigUint64(at + 16, 2n, true);
    at += fdeBytes;
  }
  return bytes.slice(0, at + 4);
}

function uleb(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...uleb(value >>> 7)];
}

/** arch/x86/entry/syscalls/syscall_64.tbl in Linux. */
const CLOCK_GETTIME = 228n;
/** clock_gettime(2); what `performance.now` of this process counts too. */
const CLOCK_MONOTONIC = 1n;

/** Bytes of a `jmp rel32`: the distance of the two places to which the wait routine returns. */
export const jumpBytes = 5;

/**
 * In: rax = HEAD, r11 = return address. Clobbers r10; other registers keep the function's values. Where no wait is
 * allowed, it costs some instructions.
 *
 *      rsp + 0: when `beat` changed | 8: that beat | 16: when the wait began | 24: rax | 32: rdx
 */
const wait: ProcessCode['wait'] = (at, ring) => {
  const code = new Assembler(at);
  const [look, renewed, waits] = [new Label(), new Label(), new Label()];
  const [full, leave, dropAtOnce] = [new Label(), new Label(), new Label()];
  const word = (name: keyof typeof controlBlock): Place => controlWord(ring, controlBlock[name]);
  const [changed, beat] = [{ base: RSP, offset: 0 } as const, { base: RSP, offset: 8 } as const];
  const [began, head] = [{ base: RSP, offset: 16 } as const, { base: RSP, offset: 24 } as const];
  code.arithmetic('cmp', word('unattended'), { constant: 0n });
  code.branch('ne', dropAtOnce);
  code.load(R10, word('waited'));
  code.arithmetic('cmp', R10, word('allowed'));
  code.branch('ae', dropAtOnce);
  beginWait(code);
  code.push(word('beat'));
  code.push({ base: RSP, offset: 8 });
  code.bind(look);
  const breakpoint = code.here;
  code.plain('nop');
  code.arithmetic('cmp', word('unattended'), { constant: 0n });
  code.branch('ne', full);
  code.load(RAX, head);
  code.arithmetic('cmp', RAX, word('limit'));
  code.branch('b', leave);
  code.plain('pause');
  readTime(code);
  code.load(R10, word('beat'));
  code.arithmetic('cmp', R10, beat);
  code.branch('ne', renewed);
  code.move(R10, RAX);
  code.arithmetic('sub', R10, changed);
  code.arithmetic('cmp', R10, word('patience'));
  code.branch('b', waits);
  code.storeConstant(word('unattended'), 1n, 8);
  code.jump(full);
  code.bind(renewed);
  code.store(beat, R10);
  code.store(changed, RAX);
  code.bind(waits);
  code.arithmetic('sub', RAX, began);
  code.arithmetic('add', RAX, word('waited'));
  code.arithmetic('cmp', RAX, word('allowed'));
  code.branch('b', look);
  code.bind(full);
  code.load(RAX, head);
  drop(code, word('dropped'));
  code.bind(leave);
  code.load(RDX, { base: RSP, offset: 32 });
  code.moveStack(16);
  endWait(code, ring);
  code.jumpTo(R11);
  code.bind(dropAtOnce);
  drop(code, word('dropped'));
  code.jumpTo(R11);
  return { code: code.finish(), breakpoint };
};

/** Counts a record that is lost. The function goes on behind the jump that would write it. */
function drop(code: Assembler, dropped: Place): void {
  code.increment(dropped);
  code.address(R11, { base: R11, offset: jumpBytes });
}

/**
 * x87, SSE, AVX and AVX-512 (Intel SDM volume 1, 13.1). What the processor lacks is skipped. Their area ends at 2688.
 */
const components = 0xe7n;

function callCode(at: Addr, save: Addr): { readonly bytes: Uint8Array; readonly breakpoint: Addr } {
  const code = new Assembler(at);
  const state = (direction: 'save' | 'restore'): void => {
    code.constant(RAX, components);
    code.constant(RDX, 0n);
    code.extendedState(direction, { at: save });
  };
  state('save');
  code.callTo(RBX);
  state('restore');
  const breakpoint = code.here;
  code.plain('nop');
  return { bytes: code.finish(), breakpoint };
}

const count = 64;
/** The counter, seconds, nanoseconds, the counter again. */
const sampleBytes = 32;
/** Between two samples: some 10 ms in all. */
const pauseTicks = 400_000n;

/**
 * Registers that it does not keep: rax, rcx, rdx, rsi, rdi, r11, r12, r13. It waits without a system call: one that
 * waits would end one of the thread's own, which the kernel is to restart (`restart_block`).
 */
function clockCode(at: Addr, samples: Addr): { readonly bytes: Uint8Array; readonly breakpoint: Addr } {
  const code = new Assembler(at);
  const [next, waits] = [new Label(), new Label()];
  const readCounter = (offset: number): void => {
    readTime(code);
    code.store({ base: R13, offset }, RAX);
  };
  code.constant(R12, BigInt(count));
  code.address(R13, { at: samples });
  code.bind(next);
  readCounter(0);
  code.constant(RAX, CLOCK_GETTIME);
  code.constant(RDI, CLOCK_MONOTONIC);
  code.address(RSI, { base: R13, offset: 8 });
  code.plain('syscall');
  readCounter(24);
  code.move(RCX, RAX);
  code.bind(waits);
  code.plain('pause');
  readTime(code);
  code.arithmetic('sub', RAX, RCX);
  code.arithmetic('cmp', RAX, { constant: pauseTicks });
  code.branch('b', waits);
  code.address(R13, { base: R13, offset: sampleBytes });
  code.decrement(R12);
  code.branch('ne', next);
  const breakpoint = code.here;
  code.plain('nop');
  return { bytes: code.finish(), breakpoint };
}

/** From each half the sample whose clock was read in the fewest ticks, because nothing came between. */
function clockResult(bytes: Uint8Array): readonly [first: ClockSample, last: ClockSample] | undefined {
  if (bytes.length < count * sampleBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const best = (from: number, to: number): ClockSample | undefined => {
    let found: ClockSample | undefined;
    let shortest: bigint | undefined;
    for (let at = from * sampleBytes; at < to * sampleBytes; at += sampleBytes) {
      const [before, seconds, nanos, after] = [0, 8, 16, 24].map((word) => view.getBigUint64(at + word, true));
      if (before === undefined || seconds === undefined || nanos === undefined || after === undefined) return undefined;
      const ticks = after - before;
      if (ticks <= 0n || nanos >= 1_000_000_000n || (shortest !== undefined && ticks >= shortest)) continue;
      shortest = ticks;
      found = { ticks: before + ticks / 2n, nanos: seconds * 1_000_000_000n + nanos };
    }
    return found;
  };
  const [first, last] = [best(0, count / 4), best((3 * count) / 4, count)];
  if (!first || !last || last.ticks <= first.ticks || last.nanos <= first.nanos) return undefined;
  return [first, last];
}

/** Trampolines in ring 3 on Linux. */
export const linuxProcess: ProcessCode = {
  thread: { kind: 'hart', how: 'fs' },
  wait,
  unwindTable,
  unwindTableBytes,
  call: { function: 'rbx', parameters: ['rdi', 'rsi'], code: callCode },
  clock: { code: clockCode, size: count * sampleBytes, result: clockResult },
  stackWalk,
};
