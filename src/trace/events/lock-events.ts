// How events say that a lock is taken: a call named after the lock, so that whatever shows calls shows locks too.
import { type Addr, hex } from '../../base/addr.js';
import type { ArgumentValue, CallBegin, CallEnd, FunctionRef } from './events.js';

/** What a function that takes a lock does. */
export interface LockUse {
  /** The lock's address: `0x80208050`, with ` of space 0x80254000` in a program that a kernel runs. */
  readonly lock: string;
  /** Other readers may hold it. */
  readonly isShared: boolean;
  /** It takes the lock at once, or not at all. */
  readonly isAttempt: boolean;
  /** Where: `app::print at src/console.rs:40`. */
  readonly by: string;
}

export function lockText(address: Addr, space: Addr | undefined): string {
  return `${hex(address)}${space === undefined ? '' : ` of space ${hex(space)}`}`;
}

export function lockArguments({ lock, isShared, isAttempt, by }: LockUse): readonly ArgumentValue[] {
  const how = `${isAttempt ? 'try ' : ''}${isShared ? 'read' : 'lock'}`;
  return [
    { name: 'lock', value: lock },
    { name: 'how', value: how },
    { name: 'by', value: by },
  ];
}

/** Undefined for a call of anything else. */
export function lockUse({ function: fn, arguments: values }: CallBegin): LockUse | undefined {
  if (fn.kind !== 'lock') return undefined;
  const value = (name: string): string => values.find((each) => each.name === name)?.value ?? '';
  const how = value('how');
  return { lock: value('lock'), isShared: how.endsWith('read'), isAttempt: how.startsWith('try'), by: value('by') };
}

/** Before the names of locks. */
const LOCKS = 'lock::';

/** What stands for uses of a lock. `name`: `CONSOLE`. */
export function lockRef(name: string, { type, ...ref }: Omit<FunctionRef, 'name' | 'instance' | 'kind'>): FunctionRef {
  return { ...ref, name: `${LOCKS}${name}`, instance: `lock ${name}: ${type ?? 'unknown'}`, kind: 'lock', type };
}

export function lockName({ name }: FunctionRef): string {
  return name.slice(LOCKS.length);
}

export function isLockTaken({ result }: CallEnd): boolean {
  return result === 'taken';
}

/** What an instant is called where a lock is released. */
export function releaseName(lock: FunctionRef, space: Addr | undefined): string {
  return `unlock ${lockName(lock)}${space === undefined ? '' : ` of space ${hex(space)}`}`;
}
