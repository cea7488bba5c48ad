import type { Addr } from '../../base/addr.js';
import { type ClockSample, controlBlock, type ProcessCode, type RingGeometry } from '../inject/probe-code.js';
import { Assembler, Label } from './assembler.js';
import { controlWord } from './fields.js';
import { R10, R11, R12, R13, RAX, RBX, RCX, RDI, RDX, RSI, RSP } from './registers.js';
import { unwindTable, unwindTableBytes } from './unwind-table.js';
import { beginWait, endWait } from './wait-time.js';

/* Numbers of arch/x86/entry/syscalls/syscall_64.tbl in Linux. */
const NANOSLEEP = 35n;
const CLOCK_GETTIME = 228n;
/** clock_gettime(2); what `performance.now` of this process counts too. */
const CLOCK_MONOTONIC = 1n;

/** Bytes of a `jmp rel32`: the distance of the two places to which the wait routine returns. */
export const jumpBytes = 5;

/** Time between two polls of a full ring, in nanoseconds; the kernel adds some 50 us. */
const napNs = 100_000n;

/**
 * In: rax = HEAD, r11 = return address. Clobbers r10; other registers keep the function's values. A signal may come
 * while it sleeps: then it polls again.
 *
 *      rsp + 0: timespec { 0, napNs } | 16: r11 | 24: rax | 32: rdi | rsi | rcx | what `beginWait` has pushed
 */
function wait(
  at: Addr,
  ring: Omit<RingGeometry, 'wait'>,
  counter?: string,
): { readonly code: Uint8Array; readonly breakpoint: Addr } {
  const code = new Assembler(at);
  const [look, drop, leave] = [new Label(), new Label(), new Label()];
  const unattended = controlWord(ring, controlBlock.unattended);
  const saved = [RCX, RSI, RDI, RAX, R11];
  const [wayBack, head] = [{ base: RSP, offset: 16 } as const, { base: RSP, offset: 24 } as const];
  if (counter !== undefined) beginWait(code, counter);
  for (const register of saved) code.push(register);
  for (const word of [napNs, 0n]) {
    code.constant(RAX, word);
    code.push(RAX);
  }
  code.load(R10, controlWord(ring, controlBlock.spins));
  code.bind(look);
  const breakpoint = code.here;
  code.nop();
  code.arithmetic('cmp', unattended, { constant: 0n });
  code.branch('ne', drop);
  code.load(RAX, head);
  code.arithmetic('cmp', RAX, controlWord(ring, controlBlock.limit));
  code.branch('b', leave);
  code.constant(RAX, NANOSLEEP);
  code.move(RDI, RSP);
  code.constant(RSI, 0n);
  code.systemCall();
  code.decrement(R10);
  code.branch('ne', look);
  code.storeConstant(unattended, 1n, 8);
  code.bind(drop);
  code.increment(controlWord(ring, controlBlock.dropped));
  code.arithmetic('add', wayBack, { constant: BigInt(jumpBytes) });
  code.bind(leave);
  code.moveStack(16);
  for (const register of saved.toReversed()) code.pop(register);
  if (counter !== undefined) endWait(code, ring, counter);
  code.jumpTo(R11);
  return { code: code.finish(), breakpoint };
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
  code.nop();
  return { bytes: code.finish(), breakpoint };
}

const count = 64;
/** The counter, seconds, nanoseconds, the counter again. */
const sampleBytes = 32;
/** Time between two samples, in nanoseconds: some 10 ms in all. */
const pauseNs = 100_000n;

/** Registers that it does not keep: rax, rcx, rdx, rsi, rdi, r11, r12, r13. */
function clockCode(at: Addr, samples: Addr): { readonly bytes: Uint8Array; readonly breakpoint: Addr } {
  const code = new Assembler(at);
  const next = new Label();
  const readCounter = (offset: number): void => {
    code.readTimeStamp();
    code.shift('left', RDX, 32);
    code.arithmetic('or', RAX, RDX);
    code.store({ base: R13, offset }, RAX);
  };
  code.constant(R12, BigInt(count));
  code.address(R13, { at: samples });
  code.bind(next);
  readCounter(0);
  code.constant(RAX, CLOCK_GETTIME);
  code.constant(RDI, CLOCK_MONOTONIC);
  code.address(RSI, { base: R13, offset: 8 });
  code.systemCall();
  readCounter(24);
  // Below the red zone.
  code.moveStack(-256);
  for (const word of [pauseNs, 0n]) {
    code.constant(RAX, word);
    code.push(RAX);
  }
  code.constant(RAX, NANOSLEEP);
  code.move(RDI, RSP);
  code.constant(RSI, 0n);
  code.systemCall();
  code.moveStack(256 + 16);
  code.address(R13, { base: R13, offset: sampleBytes });
  code.decrement(R12);
  code.branch('ne', next);
  const breakpoint = code.here;
  code.nop();
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
  spins: 50_000,
  unwindTable,
  unwindTableBytes,
  call: { function: 'rbx', parameters: ['rdi', 'rsi'], saveBytes: 2688, code: callCode },
  clock: { code: clockCode, size: count * sampleBytes, result: clockResult },
};
