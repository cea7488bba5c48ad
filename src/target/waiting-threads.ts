/*
 * Where the threads of a process stand that nobody stops. Linux says it of those that wait in the kernel (proc(5),
 * /proc/PID/task/TID/syscall):
 *
 *   232 0x3 0x7f.. .. 0x7ffe0 0x7f0001    number and six arguments of the system call, stack pointer, program counter
 *   -1 0x7ffe0 0x7f0001                   it waits outside of a system call, in a page fault
 *   running
 */

import { type Addr, addr } from '../base/addr.js';
import { entriesOf, textOf } from '../base/proc.js';

export interface WaitingThread {
  readonly sp: Addr;
  readonly pc: Addr;
  /** What Linux said: while it is the same, the thread has probably not run. */
  readonly text: string;
}

/** Each thread of the process by its number; undefined for one that runs, or of which Linux does not say it. */
export function threadsOf(pid: number): ReadonlyMap<number, WaitingThread | undefined> {
  const folder = `/proc/${pid}/task`;
  return new Map(entriesOf(folder).map((name) => [Number(name), parseCall(textOf(`${folder}/${name}/syscall`))]));
}

function parseCall(text: string): WaitingThread | undefined {
  const [sp, pc] = text.trim().split(' ').slice(1).slice(-2).map(numberOf);
  return sp === undefined || pc === undefined ? undefined : { sp, pc, text };
}

function numberOf(word: string): Addr | undefined {
  return /^0x[0-9a-f]{1,16}$/.test(word) ? addr(BigInt(word)) : undefined;
}
