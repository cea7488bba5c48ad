import { RsptraceError } from '../../../base/errors.js';
import { type DebugInfo, functionName, inlinedCopies } from '../../../dwarf/index.js';
import type { Shape } from '../../../values/index.js';
import type { ValuePlace } from '../../argument-places.js';
import type { FunctionProbe } from '../../describer.js';
import { namedFunctions } from '../../function-names.js';
import { type ExcludedFunction, resolveFunctions } from '../../resolve-functions.js';
import type { Found, ProbedProgram } from '../kind.js';
import { type ProbeSpec, whiteList } from '../names.js';
import { type LockRole, lockRole } from './names.js';

/** A function that takes locks, or releases them. */
export interface LockFunction {
  readonly probe: FunctionProbe;
  readonly role: LockRole;
  /** Holds the lock's address at the entry; for a guard the guard's. */
  readonly register: string;
  /** Where in the guard the pointer to the lock lies. */
  readonly through: number | undefined;
  /** The type of the lock; undefined if that is not known. */
  readonly type: { readonly name: string; readonly size: number | undefined } | undefined;
  /** Of Rust: one method may call another of the same lock. */
  readonly isMethod: boolean;
}

export interface InlinedRole {
  readonly function: string;
  readonly copies: number;
}

export interface FoundLocks extends Found {
  readonly functions: readonly LockFunction[];
  /** Functions of locks that were inlined, with the number of copies: these are not seen. */
  readonly inlined: readonly InlinedRole[];
  /** Whether a lock is traced that has these names. */
  readonly wants: (names: readonly string[]) => boolean;
}

/**
 * The functions of a program that take and release locks. Which locks are meant, only their addresses say.
 * @throws RsptraceError `PROBE_NO_MATCH`, `PROBE_INLINED`, `PROBE_UNSAFE`
 */
export function resolveLocks(program: ProbedProgram, specs: readonly ProbeSpec[]): FoundLocks {
  const { elf, debug, arch } = program;
  const [first] = specs;
  const inlined = debug ? inlinedRoles(debug) : [];
  if (![...namedFunctions(elf, debug)].some(({ names }) => names.some((name) => lockRole(name))))
    throw inlined.length > 0 ? onlyInlined(first, inlined) : noLocks(first);
  const all = { ...(first as ProbeSpec), excludes: false, matches: (path: string) => lockRole(path) !== undefined };
  const { probes, excluded } = resolveFunctions(elf, debug, arch, [all]);
  const functions: LockFunction[] = [];
  const refused: ExcludedFunction[] = [...excluded];
  for (const probe of probes) {
    const found = lockFunction(probe);
    if (typeof found === 'object') functions.push(found);
    else if (found !== undefined) refused.push({ name: probe.ref.name, address: probe.address, reason: found });
  }
  if (!functions.some(({ role }) => role.does !== 'release'))
    throw inlined.length > 0 ? onlyInlined(first, inlined) : noLocks(first, refused[0]);
  const list = whiteList(specs);
  return {
    functions,
    inlined,
    excluded: refused,
    addresses: functions.map(({ probe }) => probe.address),
    wants: (names) => list.allows(names, true),
  };
}

/** Why it is left out, in words for the user; undefined if it is no function of a lock after all. */
function lockFunction(probe: FunctionProbe): LockFunction | string | undefined {
  const { ref, arguments: passed, result } = probe;
  const path = [ref.instance, ref.name, ...probe.aliases].find((name) => lockRole(name));
  const role = path === undefined ? undefined : lockRole(path);
  if (!role || path === undefined) return undefined;
  const isMethod = path.includes('::');
  const [self, ...others] = passed.filter(({ shape }) => shape?.size !== 0);
  const register = self && pointerIn(self.where);
  if (!self || register === undefined) return 'the lock is in no register when it is called';
  if (isMethod && self.shape && others.length > 0)
    return 'it has other arguments besides the lock, so that it may do more than take it';
  if (/\{async_/.test(result?.shape.name ?? '')) return 'it makes a Future: polls of that take the lock';
  if (role.does === 'try' && self.shape && result?.where.kind !== 'registers')
    return 'whether it has taken the lock is in no register when it returns';
  const target = self.shape?.kind === 'pointer' ? self.shape.target() : undefined;
  if (!role.isGuard) return { probe, role, register, through: undefined, type: typeOf(target), isMethod };
  const held = target && pointerWithin(target);
  return held && { probe, role, register, through: held.offset, type: typeOf(held.target), isMethod };
}

function typeOf(shape: Shape | undefined): LockFunction['type'] {
  return shape && { name: shape.name, size: shape.size };
}

function pointerIn(where: ValuePlace): string | undefined {
  if (where.kind !== 'registers') return undefined;
  const part = where.parts.find(({ offset }) => offset === 0);
  return part?.register !== undefined && part.size === 8 && part.mask === undefined ? part.register : undefined;
}

const deepest = 4;
const lockLike = /Mutex|Lock|Spin|Atomic/;

/** The pointer of a guard that leads to its lock, or into it; undefined for a guard of something else. */
function pointerWithin(
  { kind, ...shape }: Shape,
  depth = 0,
): { readonly offset: number; readonly target: Shape } | undefined {
  if (kind !== 'struct' || depth > deepest) return undefined;
  for (const { offset, type } of (shape as Shape & { kind: 'struct' }).fields) {
    const field = type();
    const target = field.kind === 'pointer' ? field.target() : undefined;
    if (target && lockLike.test(target.name)) return { offset, target };
    const inner = pointerWithin(field, depth + 1);
    if (inner) return { ...inner, offset: offset + inner.offset };
  }
  return undefined;
}

/** The one with the most copies first. */
function inlinedRoles(debug: DebugInfo): readonly InlinedRole[] {
  const counts = new Map<number, number>();
  for (const origin of inlinedCopies(debug).origin) counts.set(origin, (counts.get(origin) ?? 0) + 1);
  const found = new Map<string, number>();
  for (const [offset, copies] of counts) {
    const die = debug.die(offset);
    const name = die && debug.attempt(die.unit, () => functionName(die));
    if (name !== undefined && lockRole(name)) found.set(name, (found.get(name) ?? 0) + copies);
  }
  return [...found].map(([name, copies]) => ({ function: name, copies })).sort((a, b) => b.copies - a.copies);
}

function onlyInlined(spec: ProbeSpec | undefined, inlined: readonly InlinedRole[]): RsptraceError {
  const names = inlined.slice(0, 3).map(({ function: name }) => name);
  const message = `'${spec?.text}': the compiler inlined every function that takes a lock (${names.join(', ')})`;
  return new RsptraceError('PROBE_INLINED', message, {
    hint: "build the program without optimisation, or with '#[inline(never)]' at the lock's own functions",
  });
}

function noLocks(spec: ProbeSpec | undefined, refused?: ExcludedFunction): RsptraceError {
  const message = `'${spec?.text}' finds no function that takes a lock`;
  const why = refused && `${refused.name}: ${refused.reason}`;
  return new RsptraceError('PROBE_NO_MATCH', message, {
    hint:
      why ??
      "locks are known by the names of their functions, as in std, spin, lock_api, xv6 and Linux; 'fn:GLOB' traces any",
  });
}
