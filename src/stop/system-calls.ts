import type { SignalStop } from '../rsp/index.js';
import type { StopParts } from './stop-engine-options.js';

const calls = { syscall_entry: 'entry', syscall_return: 'return' } as const;

/** Gives a stop at a system call to the tracer, if it is one. How the process goes on from it, others say. */
export async function visitSystemCall(
  { options, firstReads, resuming, unexpected }: StopParts,
  { hart, reason }: SignalStop,
): Promise<void> {
  if (reason !== 'syscall_entry' && reason !== 'syscall_return') return;
  const { registers, time, pc, stackPointer } = await firstReads.at(hart);
  if (pc === undefined || stackPointer === undefined || !time) return;
  await options.observer?.stopped(true);
  unexpected.expected();
  options.onStop?.(time());
  resuming.hit(time());
  const { tracer } = options;
  const systemCall = calls[reason];
  const visit = tracer.visit({ hart: options.hartNumber(hart), pc, stackPointer, registers, time: time(), systemCall });
  let step = visit.next();
  while (!step.done) {
    const batch = options.session.batch(hart);
    const replies = step.value.map(({ address, length }) => batch.readMemory(address, length));
    await batch.send();
    step = visit.next(replies.map(({ value }) => value));
  }
  tracer.digest();
}
