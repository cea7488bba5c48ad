// What events name.
import type { Addr } from '../../base/addr.js';

export type FutureKind = 'async_fn' | 'async_block' | 'async_closure' | 'impl';

/** A type of Future as traces name it; one object an instance, so identity is a key. */
export interface FutureRef {
  readonly key: number;
  /** `labkern::work::level3`: no generic arguments, no `{async_fn#0}`. */
  readonly future: string;
  /** The full type name as DWARF spells it, with generic arguments. */
  readonly instance: string;
  readonly kind: FutureKind;
  readonly file: string | undefined;
  readonly line: number | undefined;
  /** Bytes, if they are known. */
  readonly size?: number | undefined;
  /** The compiler inlined its poll at some places, so not every poll is visible. */
  readonly inlined?: boolean | undefined;
  /** The same of the function that drops it, or it has none that is called. */
  readonly hidesDrops?: boolean | undefined;
  /** It is one of these, whose poll functions the compiler merged, and nothing says which. Known while recording. */
  readonly oneOf?: readonly FutureRef[] | undefined;
}

/** A state of a compiler-made Future: `Unresumed`, `Returned`, `Panicked`, `Suspend0`...; where it awaits. */
export interface StateRef {
  readonly name: string;
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** One link of an await chain: a Future that the one before it awaits. */
export interface AwaitLink {
  /** Undefined if its type implements Future in a way that DWARF does not describe. */
  readonly future: FutureRef | undefined;
  readonly typeName: string;
  /** Its address; undefined if the pointer to it was not read. */
  readonly address: Addr | undefined;
  readonly state: StateRef | undefined;
}

/** Where a task waits: in the program's own code, if it waits in any. One object a place, so identity is a key. */
export interface AwaitPlace {
  readonly file: string | undefined;
  readonly line: number | undefined;
  /** The Future whose code that is. */
  readonly future: string;
  /** What of a library is awaited there: `tokio::sync::mutex::Mutex::lock`. */
  readonly inside: string | undefined;
  /** The outermost Future of the program's own code that waits: in a library's task, as a server's, its handler. */
  readonly outermost?: string | undefined;
}

/** What a task's runtime knows of it. Members that the runtime does not keep are left out. */
export interface TaskAbout {
  readonly runtime: string;
  readonly id?: number;
  readonly name?: string;
  /** Where it was spawned: `src/main.rs:12:5`. */
  readonly spawned?: string;
}

/** The outermost Future of a poll: what an executor polls. One object per lifetime, so identity is a key. */
export interface RootRef {
  readonly key: number;
  readonly future: FutureRef;
  readonly address: Addr;
  /** As of a thread: there may be another one at the same address of another space. */
  readonly space?: Addr | undefined;
  readonly about?: TaskAbout | undefined;
  /** It is no task, but part of one that is not known: no poll of the Future around it was seen. */
  readonly isPart?: boolean | undefined;
}

/** A function as traces name it; one object a function, so identity is a key. */
export interface FunctionRef {
  readonly key: number;
  /** `labkern::work::deep0`, `<labkern::work::Disk as labkern::work::BlockDev>::read`: no generic arguments. */
  readonly name: string;
  /** The full name, with generic arguments, as the mangled name spells it. */
  readonly instance: string;
  readonly address: Addr;
  readonly file: string | undefined;
  readonly line: number | undefined;
  /**
   * It is no function, but a lock that is taken; a thread that has a hart, and the address is its context's; or a trap,
   * and the address is where that enters.
   */
  readonly kind?: 'lock' | 'thread' | 'irq' | 'fault' | 'syscall' | 'trap' | undefined;
  /** Of a lock, as DWARF spells it, if it is known. */
  readonly type?: string | undefined;
}

/** An argument from the registers at the entry, as Rust would print it; an address if it lies in memory. */
export interface ArgumentValue {
  readonly name: string;
  readonly value: string;
}

/** A function on a stack. */
export interface StackEntry {
  readonly function: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/**
 * A thread of the target, where threads are known by their stacks; one object a stack, so identity is a key. Or, with a
 * name, one that context switches have shown: what is on its track are the times that it had a hart.
 */
export interface ThreadRef {
  readonly key: number;
  /** The lowest address of its stack; with a name, of the context that switches save. */
  readonly stack: Addr;
  /** `kworker/0:1:12`. */
  readonly name?: string | undefined;
  /** For a program that a kernel runs: the physical address of its page tables' root. */
  readonly space?: Addr | undefined;
  /** The program's name, where several are traced. */
  readonly program?: string | undefined;
}

/** Which accesses are watched: reads, writes, both. */
export type WatchAccess = 'r' | 'w' | 'rw';

/** A place in memory that is watched; one object a place, so identity is a key. */
export interface WatchRef {
  readonly key: number;
  /** The user's text: `labkern::exec::POLLS`, `0x80001000,8`. */
  readonly name: string;
  /** What the target reports; not every target can report reads alone. */
  readonly access: WatchAccess;
  /** What was asked for. */
  readonly asked: WatchAccess;
  readonly address: Addr;
  /** Bytes: 1, 2, 4 or 8. */
  readonly size: number;
  /** The full type name as DWARF spells it. */
  readonly type: string;
}

/** A place in the code that a probe names; one object a place, so identity is a key. */
export interface PlaceRef {
  readonly key: number;
  /** The user's text: `src/work.rs:42`. */
  readonly name: string;
  /** The kind of probe: a category of the trace's formats. */
  readonly category: string;
  readonly address: Addr;
  /** The lock that is released there: as uses of it say. */
  readonly lock?: string | undefined;
  /** The function there, the innermost of those that are inlined into each other. */
  readonly by: StackEntry;
}

/** A function of sampled stacks; one object a function, so identity is a key. */
export interface SampledFrame {
  readonly name: string;
  readonly instance: string;
  readonly address: Addr | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/**
 * What a type of the compiler's is the Future of: `work::leaf::{async_fn_env#0}<u8>` of an `async fn`. The type's own
 * name says that, which is the last segment of its path; undefined of all others, also `Fuse<leaf::{async_fn_env#0}>`.
 */
export function asyncKindOf(type: string): Exclude<FutureKind, 'impl'> | undefined {
  // A reference or a pointer to such a type is no such type.
  const found = /^(?![&*])(?:.*::)?\{(async_fn|async_block|async_closure)_env#\d+\}$/s.exec(withoutArguments(type));
  return found?.[1] as Exclude<FutureKind, 'impl'> | undefined;
}

/** Without the generic arguments at its end. */
export function withoutArguments(type: string): string {
  if (!type.endsWith('>')) return type;
  let depth = 0;
  for (let at = type.length - 1; at >= 0; at--) {
    // The `>` of `fn() -> u8` closes nothing.
    if (type[at] === '>' && type[at - 1] !== '-') depth++;
    else if (type[at] === '<' && --depth === 0) return type.slice(0, at);
  }
  return type;
}
