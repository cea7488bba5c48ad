// What ends a wait, as far as events show it: who holds a lock, and which calls wake a thread.
import { hex } from '../../../base/addr.js';
import type { ArgumentValue, CallBegin, CallEnd, FunctionRef, PlaceHit, Wake } from '../../events/events.js';
import { isLockTaken, lockUse } from '../../events/lock-events.js';
import { isOfTask } from '../../events/roots.js';
import { wakeSourceText } from '../../events/text.js';
import type { Subject } from './subjects.js';

/** Who holds each lock, as far as events show it. */
export class LockHolders {
  readonly #holders = new Map<string, string>();

  /** Where the lock was taken that a call waits for: `kernel::holder at src/table.rs:99`. */
  of(begin: CallBegin): string | undefined {
    return this.#holders.get(lockUse(begin)?.lock ?? '');
  }

  taken(end: CallEnd): void {
    const use = end.begin && isLockTaken(end) ? lockUse(end.begin) : undefined;
    if (use) this.#holders.set(use.lock, use.by);
  }

  released({ place: { lock } }: PlaceHit): void {
    if (lock !== undefined) this.#holders.delete(lock);
  }

  forget(): void {
    this.#holders.clear();
  }
}

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

/** Who woke a Future's task: of one inside a task it may be another one in it. */
export function sourceOf({ begin }: Subject, wake: Wake): string {
  const isTask = begin.type === 'poll-begin' && isOfTask(begin);
  return isTask ? wakeSourceText(wake) : wakeSourceText(wake).replace(/^itself/, 'its own task');
}
