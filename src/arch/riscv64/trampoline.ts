import { type Addr, addOffset } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import { hopsOf } from '../inject/hops.js';
import type { ProbeCode } from '../inject/probe-code.js';
import type { HartSource, HartsOfGuest } from '../inject/record-parts.js';
import { trampolinesOf } from '../inject/trampoline-skeleton.js';
import { Assembler, addi, cAddi16Sp, cAddiSp, cJrRa, cLdsp, cSdsp0, jalr, ld, machine, T0, T2 } from './assembler.js';
import { check, countUp } from './count.js';
import { decode } from './decode.js';
import { disassemble, step } from './disassembly.js';
import { claim, fillRecord, keptOffset, outerCopySteps, release, waitForRoom } from './record-code.js';
import { floatArguments, RA, registerNamed, SP } from './registers.js';
import { displace, displaceInside, ends, loopsToStart, patchLengths } from './relocate.js';
import { wait } from './wait.js';

function patchTarget(code: Uint8Array, start: Addr): Addr | undefined {
  const first = decode(code);
  if (first === undefined || first.compressed) return undefined;
  if (first.form === 'jump') return first.rd === 0 ? addOffset(start, first.imm) : undefined;
  const second = decode(code, 4);
  if (first.op !== 'auipc' || second?.form !== 'jump-register' || second.compressed) return undefined;
  return second.rd === 0 && second.rs1 === first.rd ? addOffset(start, first.imm + second.imm) : undefined;
}

/** `addi sp,sp,-16; sd t0,0(sp)`, compressed; and back. */
const FRAME = 16;
const save = [cAddiSp(-FRAME), cSdsp0(T0)];
const restore = [cLdsp(T0, 0), cAddiSp(FRAME)];

const hops = hopsOf<Assembler>({
  ...{ create: (at) => new Assembler(at), far: T0, farBytes: patchLengths.far, frame: FRAME },
  save: (code) => code.emitCompressed(...save),
  restore: (code) => code.emitCompressed(...restore),
  target(code, at) {
    const saves = new Uint8Array(Uint16Array.from(save).buffer);
    if (!saves.every((byte, i) => code[i] === byte)) return undefined;
    return patchTarget(code.subarray(saves.length), addOffset(at, saves.length));
  },
});

const trampolines = trampolinesOf({
  create: (at, frame) => new Assembler(at, frame),
  ...machine,
  returnOffset: (bytes) => bytes - 8,
  keptOffset,
  forConditions: [],
  forCounters: (counters) => (counters.some(({ kind }) => kind !== 'calls') ? [T2] : []),
  ...{ check, countUp, claim, release, waitForRoom, fillRecord },
  hop: hops.parts,
  lostInside: ({ through }) => (through === undefined ? undefined : registerNamed(through)),
});

/** If a trampoline's start is in reach, its end is too. */
const LONGEST = 4096;

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
  patch: hops.patch,
  entryIsPatchable: beginsWithNops,
  patchTarget,
  hop: hops.hop,
  ...trampolines,
  wait,
  spinsPerSecond: 50_000, // A poll is five instructions and, at the loop's end, a jump: 40-80 ns.
  floats: floatArguments,
  hartSource,
  bareExit,
  likeBareExit,
  step,
  disassemble,
  outerCopySteps,
};
