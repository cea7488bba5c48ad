import { hex } from '../../../base/addr.js';
import type { ArgumentValue, CallBegin, CallEnd, FunctionRef } from '../../events/events.js';

/** Functions that have a thread wait, and those that end such a wait, by their names. */
const waits = /sleep|wait|park|block/i;
const wakes = /wake|unpark/i;

const lastPart = ({ name }: FunctionRef): string => name.slice(name.lastIndexOf('::') + 1);

/** What a thread may be waiting for: arguments of the calls that it is in. */
export function awaited(calls: Iterable<CallBegin>): readonly ArgumentValue[] {
  return [...calls].flatMap((call) => (waits.test(lastPart(call.function)) ? call.arguments : []));
}

/**
 * Whether a call ends the wait of a thread. The function's name says that it wakes, and it is given the thread's own
 * address (`try_to_wake_up(p)`), or an argument that the thread waits with (`wakeup(chan)` for `sleep(chan)`).
 */
export function wakesThread(call: CallBegin, thread: FunctionRef, given: readonly ArgumentValue[]): boolean {
  if (call.function.kind !== undefined || !wakes.test(lastPart(call.function))) return false;
  const own = hex(thread.address);
  return call.arguments.some(
    ({ name, value }) => value === own || given.some((one) => one.name === name && one.value === value),
  );
}

/** Whether a call has said that there was nothing to wake. */
export function wokeNothing({ result }: CallEnd): boolean {
  return result === '0' || result === '0x0' || result === 'false';
}
