import { type Addr, addOffset } from '../../base/addr.js';
import { PM_HZ, pmTimerPort } from '../acpi-timer.js';
import type { CounterCalibration } from '../inject/process-code.js';

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
export const calibration: CounterCalibration = {
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
