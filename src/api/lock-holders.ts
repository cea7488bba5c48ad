// Who holds a lock, out of stacks alone: a guard that leads to it is a variable of a frame.
import type { Addr } from '../base/addr.js';
import { stripGenerics } from '../dwarf/index.js';
import { type CodePlace, codePlace } from '../target/stacks/index.js';
import type { Frame, FrameVariables, SourceFrames } from '../target/unwind/index.js';
import type { Value } from '../values/index.js';

/**
 * A guard of a lock that is in scope where a hart is, with a place in its debug info. It has been made: its scope
 * begins behind that. Whether it was dropped or moved before its scope's end no debug info says.
 */
export interface LockGuard {
  readonly hart: number;
  /** The variable. */
  readonly name: string;
  readonly by: CodePlace['own'];
}

/** Guards of the lock with these bytes on a hart's stack, the innermost first. */
export async function guardsOn(
  { hart, stack, sources }: { readonly hart: number; readonly stack: readonly Frame[]; readonly sources: SourceFrames },
  lock: { readonly address: Addr; readonly size: number },
  variables: FrameVariables,
): Promise<readonly LockGuard[]> {
  const found: LockGuard[] = [];
  for (const [index, frame] of stack.entries()) {
    for (const { name, value } of await variables.of(frame)) {
      if (!leadsTo(value, lock, false)) continue;
      found.push({ hart, name, by: codePlace(stack.slice(index), sources).own });
    }
  }
  return found;
}

/** Whether a guard, or one inside of this value, points at or into a lock. */
function leadsTo(value: Value, lock: { readonly address: Addr; readonly size: number }, inGuard: boolean): boolean {
  switch (value.kind) {
    case 'pointer':
      return inGuard && value.address >= lock.address && value.address < lock.address + BigInt(lock.size);
    case 'struct': {
      const isGuard = inGuard || /Guard$/.test(stripGenerics(value.type));
      return value.form !== 'union' && value.fields.some((field) => leadsTo(field.value, lock, isGuard));
    }
    case 'wrapper':
      return value.value !== undefined && leadsTo(value.value, lock, inGuard);
    default:
      return false;
  }
}
