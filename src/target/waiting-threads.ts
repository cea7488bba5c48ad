/*
 * Where the threads of a process stand that nobody stops. Linux says it of those that wait in the kernel (proc(5),
 * /proc/PID/task/TID/syscall):
 *
 *   232 0x3 0x7f.. .. 0x7ffe0 0x7f0001    number and six arguments of the system call, stack pointer, program counter
 *   -1 0x7ffe0 0x7f0001                   it waits outside of a system call, in a page fault
 *   running
 *
 * /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst) has the time that it has run, and how often.
 */

import { type Addr, addr } from '../base/addr.js';
import { entriesOf, textOf } from '../base/proc.js';

/** Where a thread of a process waits. */
export interface WaitingThread {
  readonly sp: Addr;
  readonly pc: Addr;
  /** While it is the same, the thread has not run. */
  readonly moment: string;
}

/** `unseen`: Linux does not say it. */
type ThreadPlace = WaitingThread | 'running' | 'unseen';

/** Each thread of the process by its number. */
export function threadsOf(pid: number): ReadonlyMap<number, ThreadPlace> {
  const folder = `/proc/${pid}/task`;
  return new Map(entriesOf(folder).map((name) => [Number(name), threadAt(`${folder}/${name}`)]));
}

/** `folder`: the thread's, below `/proc`. */
export function threadAt(folder: string): ThreadPlace {
  // In this order: a thread that has run between the two reads has another moment later.
  const ran = textOf(`${folder}/schedstat`);
  const text = textOf(`${folder}/syscall`).trim();
  if (text === '') return 'unseen';
  const [sp, pc] = text.split(' ').slice(1).slice(-2).map(numberOf);
  return sp === undefined || pc === undefined ? 'running' : { sp, pc, moment: `${text} ${ran}` };
}

function numberOf(word: string): Addr | undefined {
  return /^0x[0-9a-f]{1,16}$/.test(word) ? addr(BigInt(word)) : undefined;
}
