import { findFutures } from '../../../async/futures/index.js';
import { type DebugInfo, type Die, parametersOf, typeOf } from '../../../dwarf/index.js';
import type { Shape, Shapes } from '../../../values/index.js';

/** What a function does with the lock that is its first argument. */
export interface LockRole {
  readonly does: 'take' | 'try' | 'release';
  /** Others may hold it as well: readers. */
  readonly isShared: boolean;
  /** Its argument is a guard, which leads to the lock. */
  readonly isGuard: boolean;
  /** A result of 0 says that an attempt has taken it. */
  readonly isZeroTaken: boolean;
}

const take: LockRole = { does: 'take', isShared: false, isGuard: false, isZeroTaken: false };
const attempt: LockRole = { ...take, does: 'try' };
const release: LockRole = { ...take, does: 'release' };

/** What type a method of Rust's belongs to, that is a lock. */
const lockType = /(?:Mutex|Lock|Spin)(?!ed)/;
const guardType = /Guard/;
const readerWriter = /Rw|RW/;

/**
 * Methods of Rust's lock types: std, the crates spin, lock_api and parking_lot, kspin, and kernels' own that have these
 * names.
 */
const methods: Readonly<Record<string, LockRole>> = {
  ...all(['lock', 'lock_irqsave', 'lock_irq', 'lock_exclusive', 'write_lock'], take),
  ...all(['lock_shared', 'read_lock'], { ...take, isShared: true }),
  ...all(['try_lock', 'try_lock_exclusive'], attempt),
  ...all(['try_lock_shared'], { ...attempt, isShared: true }),
  ...all(['unlock', 'unlock_exclusive', 'unlock_shared', 'force_unlock', 'read_unlock', 'write_unlock'], release),
};
/** The same of types that distinguish readers from writers. */
const readersAndWriters: Readonly<Record<string, LockRole>> = {
  read: { ...take, isShared: true },
  write: take,
  try_read: { ...attempt, isShared: true },
  try_write: attempt,
};

/** Functions of C: xv6's, Linux' and POSIX'. */
const functions: readonly (readonly [RegExp, LockRole])[] = [
  [/^(acquire|acquiresleep|mutex_lock|down_write)$/, take],
  [/^(release|releasesleep|mutex_unlock|up_write|up_read)$/, release],
  [/^_*(raw_)?(spin|write)_lock(_irq|_irqsave|_bh)?$/, take],
  [/^_*(raw_)?read_lock(_irq|_irqsave|_bh)?$|^down_read$/, { ...take, isShared: true }],
  [/^_*(raw_)?(spin|write|read)_unlock(_irq|_irqrestore|_bh)?$/, release],
  [/^_*(raw_)?(spin|write)_trylock(_irq|_irqsave|_bh)?$|^mutex_trylock$/, attempt],
  [/^_*(raw_)?read_trylock$/, { ...attempt, isShared: true }],
  [/^_*pthread_(mutex|spin)_lock$|^_*pthread_rwlock_wrlock$/, take],
  [/^_*pthread_rwlock_rdlock$/, { ...take, isShared: true }],
  [/^_*pthread_(mutex|spin)_trylock$|^_*pthread_rwlock_trywrlock$/, { ...attempt, isZeroTaken: true }],
  [/^_*pthread_rwlock_tryrdlock$/, { ...attempt, isShared: true, isZeroTaken: true }],
  [/^_*pthread_(mutex|spin|rwlock)_unlock$/, release],
];

/**
 * The role of a function, by its path: `spin::mutex::Mutex<u8>::lock`, `<app::Guard as core::ops::drop::Drop>::drop`,
 * `spin_lock`. Undefined if it is no lock's.
 */
export function lockRole(path: string): LockRole | undefined {
  const cut = lastSeparator(path);
  if (cut < 0) return functions.find(([name]) => name.test(path))?.[1];
  const method = path.slice(cut + 2);
  const owner = ownType(path.slice(0, cut));
  if (method === 'drop') return guardType.test(owner) ? { ...release, isGuard: true } : undefined;
  if (guardType.test(owner) || !lockType.test(owner)) return undefined;
  return own(methods, method) ?? (readerWriter.test(owner) ? own(readersAndWriters, method) : undefined);
}

function all(names: readonly string[], role: LockRole): Record<string, LockRole> {
  return Object.fromEntries(names.map((name) => [name, role]));
}

function own(roles: Readonly<Record<string, LockRole>>, name: string): LockRole | undefined {
  return Object.hasOwn(roles, name) ? roles[name] : undefined;
}

/** Where the last `::` outside of brackets begins; -1 if there is none. */
function lastSeparator(path: string): number {
  let depth = 0;
  for (let at = path.length - 1; at > 0; at--) {
    const letter = path[at];
    if (letter === '>' && path[at - 1] !== '-') depth++;
    else if (letter === '<') depth--;
    else if (depth === 0 && letter === ':' && path[at - 1] === ':') return at - 1;
  }
  return -1;
}

/** The last name of a type, or of the type that implements a trait: `Mutex` of `<spin::Mutex<u8> as T>`. */
function ownType(path: string): string {
  let text = path.replace(/::$/, '');
  if (text.startsWith('<') && text.endsWith('>')) text = typeOfImpl(text.slice(1, -1));
  const [name = ''] = /^[^<]*/.exec(text) ?? [];
  return name.slice(name.lastIndexOf('::') + 1).replace(/^:+/, '');
}

function typeOfImpl(text: string): string {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '<') depth++;
    else if (text[at] === '>' && text[at - 1] !== '-') depth--;
    else if (depth === 0 && text.startsWith(' as ', at)) return text.slice(0, at);
  }
  return text;
}

// Methods that have the name of a lock's, and of which nothing is locked when they return.

/** Of an async mutex. */
export const takenByPolls = "it makes a Future, whose polls take the lock: -p 'poll:**' shows who waits for it";
/** `RawMutex::lock(f)`: the lock is held while `f` runs. */
export const hasOthers = 'it has other arguments besides the lock, so that it may do more than take it';

/** Whether an argument is more than a mark: a closure may have no size. */
export function isMore(argument: Shape | undefined): boolean {
  return argument?.size !== 0 || argument.name.includes('{closure_env');
}

/** Whether what returns such a type has taken nothing: it is a Future. Few are looked for, because that is dear. */
export type IsFuture = (type: Shape | undefined) => boolean;

export function futureTypes(debug: DebugInfo | undefined): IsFuture {
  let instances: ReadonlySet<string> | undefined;
  return (type) => {
    if (/\{async_/.test(type?.name ?? '')) return true;
    if (!debug || type?.kind !== 'struct' || /Guard/.test(type.name)) return false;
    instances ??= new Set(findFutures(debug).all.map(({ instance }) => instance));
    return instances.has(type.name);
  };
}

/** Why a method that is inlined takes nothing; undefined if it does. */
export function whyUntaken(method: Die, shapes: Shapes, isFuture: IsFuture): string | undefined {
  const type = typeOf(method);
  if (type && isFuture(shapes.of(type))) return takenByPolls;
  const [, ...others] = parametersOf(method);
  return others.some((other) => isMore(shapes.of(typeOf(other)))) ? hasOthers : undefined;
}
