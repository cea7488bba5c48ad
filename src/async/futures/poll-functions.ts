import {
  type DebugInfo,
  type Die,
  DW_AT,
  DW_TAG,
  demangle,
  layoutOf,
  linkageNameOf,
  locationAt,
  nameOf,
  parametersOf,
  pathOf,
  plainRegister,
  qualifiedName,
  rangesOf,
  sizeOf,
  stripGenerics,
  typeName,
  typeOf,
} from '../../dwarf/index.js';
import { pollResultOf } from './layout.js';
import type { InlinedPoll, PollFunction } from './types.js';

/** The T of a parameter's type `Pin<&mut T>`; undefined for any other type, and where T has no size (`dyn Future`). */
export function pinTarget(type: Die): Die | undefined {
  if (type.tag !== DW_TAG.structure_type || !type.name?.startsWith('Pin<&mut ')) return undefined;
  if (!qualifiedName(type).startsWith('core::pin::Pin<')) return undefined;
  const pointer = layoutOf(type).members[0]?.type;
  return pointer?.tag === DW_TAG.pointer_type ? pointer.follow(DW_AT.type) : undefined;
}

/**
 * The full name of T in a parameter's type `Pin<&mut T>` that this unit only declares. Undefined for any other type.
 * The compiler leaves declarations for the types of code that was imported from another unit.
 */
export function declaredPinTarget(type: Die): string | undefined {
  if (type.tag !== DW_TAG.structure_type || !type.flag(DW_AT.declaration)) return undefined;
  return /^Pin<&mut (.*)>$/s.exec(type.name ?? '')?.[1];
}

/**
 * Whether this is the type of the first parameter that rustc up to 1.91 lists of an `async fn`'s poll function. The
 * Future before it is not listed. 1.92 lists neither.
 */
export function isContext(type: Die): boolean {
  return type.tag === DW_TAG.pointer_type && /^&mut core::task::wake::Context\b/.test(type.name ?? '');
}

/** The type of the Future that such a function polls, as far as its scope has it; else its full name. */
export function environmentOf(fn: Die): Die | string | undefined {
  const name = nameOf(fn);
  const own = name?.replace(/^(\{async_[a-z]+)(#\d+\})/, '$1_env$2');
  if (own === undefined || own === name) return undefined;
  const scope = fn.unit.debug.indexOf(fn.unit).scopeOf(fn.offset);
  for (const child of scope?.children() ?? [])
    if (child.tag === DW_TAG.structure_type && child.name === own) return child;
  return [...pathOf(fn).slice(0, -1), own].join('::');
}

/** A function's result type, if it is `Poll<T>`. */
export function pollTypeOf(fn: Die): Die | undefined {
  const type = typeOf(fn);
  return type !== undefined && qualifiedName(type).startsWith('core::task::poll::Poll<') ? type : undefined;
}

/**
 * Whether a function that polls returns nothing, as rustc says it where `Poll<T>` has one value alone: Pending. Then T
 * is `!`, as of `async { loop { .. } }` in edition 2024, or another type without values.
 */
export function returnsNothing(fn: Die): boolean {
  return typeOf(fn) === undefined;
}

/**
 * Whether a function whose first parameter is `Pin<&mut T>` is `<T as Future>::poll`. The mangled name shows the
 * trait. Without one that can be read the shape decides: `poll` in an impl block, from `&mut Context` to `Poll`.
 */
export function isFuturePoll(fn: Die): boolean {
  if (stripGenerics(nameOf(fn) ?? '') !== 'poll') return false;
  const scope = fn.unit.debug.indexOf(fn.unit).scopeOf(fn.offset);
  if (!/^\{impl#\d+\}$/.test((scope && nameOf(scope)) ?? '')) return false;
  if (pollTypeOf(fn) === undefined && !returnsNothing(fn)) return false;
  const symbol = linkageNameOf(fn);
  const name = symbol === undefined ? undefined : demangle(symbol, fn.unit.budget);
  // What is too long to be demangled stays as it is.
  if (name !== symbol) return /^<.* as core::future::future::Future>::poll$/.test(stripGenerics(name ?? ''));
  const [, context] = parametersOf(fn);
  return context !== undefined && typeName(context.follow(DW_AT.type)).includes('core::task::wake::Context');
}

/** A poll function that exists out of line; undefined for one without code (abstract, or discarded by the linker). */
export function readPollFunction(debug: DebugInfo, fn: Die): PollFunction | undefined {
  const ranges = rangesOf(fn);
  const entry = fn.code(DW_AT.entry_pc) ?? fn.lowPc;
  const body = ranges.find((r) => entry >= r.low && entry < r.high) ?? ranges[0];
  if (body === undefined || !debug.elf.isLoaded(body.low)) return undefined;
  const [parameter] = parametersOf(fn);
  const type = parameter && typeOf(parameter);
  const location = type && !isContext(type) ? locationAt(parameter, DW_AT.location, body.low) : undefined;
  const register = location && plainRegister(location);
  const result = pollTypeOf(fn);
  return {
    address: debug.elf.codes.fromCode(body.low),
    end: debug.elf.codes.fromCode(body.high),
    symbol: linkageNameOf(fn),
    declFile: debug.declarationOf(fn).file,
    self: register === undefined ? undefined : { register },
    resultSize: sizeOf(result) ?? 0,
    resultType: result,
    result: result && pollResultOf(result),
  };
}

/** An inlined copy: its first address and the call; undefined if the optimiser left no code of it. */
export function readInlinedPoll(debug: DebugInfo, copy: Die, host: Die, into: string): InlinedPoll | undefined {
  const first = rangesOf(copy)[0];
  const address = copy.code(DW_AT.entry_pc) ?? first?.low;
  if (address === undefined || first === undefined || !debug.elf.isLoaded(address)) return undefined;
  const file = copy.number(DW_AT.call_file);
  return {
    into,
    address: debug.elf.codes.fromCode(address),
    die: copy,
    host,
    file: file === undefined ? undefined : debug.fileName(copy.unit, file)?.path,
    line: copy.number(DW_AT.call_line),
  };
}
