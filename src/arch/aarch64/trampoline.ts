import { type Addr, addOffset } from '../../base/addr.js';
import type { Displaced } from '../inject/displaced.js';
import { hopsOf } from '../inject/hops.js';
import type { ProbeCode } from '../inject/probe-code.js';
import type { CounterCalibration } from '../inject/process-code.js';
import type { HartSource } from '../inject/record-parts.js';
import { trampolinesOf } from '../inject/trampoline-skeleton.js';
import { Assembler, addi, farJumpBytes, ldr, machine, mrs, nop, pop, push, ret, T0, T2, T3, T4 } from './assembler.js';
import { check, countUp } from './count.js';
import { decode } from './decode.js';
import { disassemble, farTarget, step } from './disassembly.js';
import { authenticating } from './position.js';
import { claim, fillRecord, keptOffset, outerCopySteps, release, waitForRoom } from './record-code.js';
import { floatArguments, LR, SP } from './registers.js';
import { displace, displaceInside, ends, loopsToStart, patchLengths } from './relocate.js';
import { CNTFRQ_EL0, CNTVCT_EL0 } from './system-registers.js';
import { wait } from './wait.js';

function patchTarget(code: Uint8Array, start: Addr): Addr | undefined {
  const first = decode(code);
  if (first?.form === 'jump') return first.link ? undefined : addOffset(start, first.imm);
  return farTarget(code, start, 0);
}

/** Undoes the landing pad that signed x30, which a trampoline wants as it was at the entry. */
function unsign(assembler: Assembler, { signs }: Pick<Displaced, 'signs'>): void {
  if (signs !== undefined) assembler.emit(authenticating[signs]);
}

const FRAME = 16;

const hops = hopsOf<Assembler>({
  ...{ create: (at) => new Assembler(at), far: T0, farBytes: farJumpBytes, frame: FRAME, unsign },
  save: (code) => code.emit(push(T0, FRAME)),
  restore: (code) => code.emit(pop(T0, FRAME)),
  target(code, at) {
    const first = decode(code)?.word;
    const skipped = first === authenticating.paciasp || first === authenticating.pacibsp ? 4 : 0;
    if (decode(code, skipped)?.word !== push(T0, FRAME)) return undefined;
    return farTarget(code, at, skipped + 4);
  },
});

/** The processor says how fast its counter is; no stub gives its value. The code runs for two instructions, at EL1. */
const calibration: CounterCalibration = {
  name: 'aarch64-cntvct',
  referenceHz: 1,
  reference: async () => 0,
  code(at: Addr) {
    const code = new Assembler(at);
    code.emit(mrs(0, CNTVCT_EL0), mrs(1, CNTFRQ_EL0), nop);
    return { bytes: code.finish(), breakpoint: addOffset(at, 8) };
  },
  changes: ['x0', 'x1', 'pc', 'cpsr'],
  // DAIF: no interrupt may come between.
  begin: (register) => (register.name === 'cpsr' ? register.value | 0x3c0n : undefined),
  result(registers) {
    const [counter, rate] = [registers.register('x0'), registers.register('x1')];
    if (counter === undefined || rate === undefined) return undefined;
    return { counter: Number(counter), elapsed: Number(rate), reference: 1 };
  },
};

/** The flags are left alone, and sp is always a multiple of 16. */
const trampolines = trampolinesOf({
  create: (at, frame) => new Assembler(at, frame),
  ...machine,
  returnOffset: () => 0,
  keptOffset,
  forConditions: [T2],
  forCounters: () => [T2, T3, T4],
  atEntry: unsign,
  ...{ check, countUp, claim, release, waitForRoom, fillRecord },
  hop: hops.parts,
});

/** If a trampoline's start is in reach, its end is too. */
const LONGEST = 4096;

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
  patch: hops.patch,
  entryIsPatchable: beginsWithNops,
  patchTarget,
  hop: hops.hop,
  ...trampolines,
  wait,
  spinsPerSecond: 50_000, // A poll is five instructions: 40-80 ns.
  // Emulators see what their stubs write (QEMU invalidates what it has translated).
  onlyEmulated: 'the instruction caches of a processor may have other code than a debugger has written',
  floats: floatArguments,
  hartSource: () => hart,
  calibration,
  bareExit,
  likeBareExit,
  step,
  disassemble,
  outerCopySteps,
};
