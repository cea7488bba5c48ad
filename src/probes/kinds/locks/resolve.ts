import type { Architecture } from '../../../arch/index.js';
import { RsptraceError } from '../../../base/errors.js';
import { type Die, rangesOf } from '../../../dwarf/index.js';
import { type ElfFile, importSlots } from '../../../elf/index.js';
import type { Shape } from '../../../values/index.js';
import type { ValuePlace } from '../../argument-places.js';
import type { FunctionProbe } from '../../describer.js';
import { namedFunctions } from '../../function-names.js';
import type { ExcludedFunction } from '../../inlined-functions.js';
import { resolveFunctions } from '../../resolve-functions.js';
import type { Found, ProbedProgram } from '../kind.js';
import { type ProbeSpec, whiteList } from '../names.js';
import { type InlinedLock, InlinedLocks, pointerWithin, type UnseenCopy } from './inlined.js';
import { futureTypes, hasOthers, type IsFuture, isMore, type LockRole, lockRole, takenByPolls } from './names.js';

/** The type of a lock's object, and its bytes. */
export interface LockType {
  readonly name: string;
  readonly size: number | undefined;
}

/** A function that takes locks, or releases them. */
export interface LockFunction {
  readonly probe: FunctionProbe;
  readonly role: LockRole;
  /** Holds the lock's address at the entry; for a guard the guard's. */
  readonly register: string;
  /** Where in the guard the pointer to the lock lies. */
  readonly through: number | undefined;
  /** The type of the lock; undefined if that is not known. */
  readonly type: LockType | undefined;
  /** Of Rust: one method may call another of the same lock. */
  readonly isMethod: boolean;
  /** Of an attempt: where it says whether it has taken the lock. */
  readonly taken: (ValuePlace & { readonly kind: 'registers' }) | undefined;
}

export interface FoundLocks extends Found {
  readonly functions: readonly LockFunction[];
  /** Inlined copies of such functions. */
  readonly inlined: readonly InlinedLock[];
  readonly unseen: readonly UnseenCopy[];
  /** Whether a lock is traced that has these names. */
  readonly wants: (names: readonly string[]) => boolean;
}

/**
 * The functions of a program that take and release locks. Which locks are meant, only their addresses say.
 * @throws RsptraceError `PROBE_NO_MATCH`, `PROBE_INLINED`, `PROBE_UNSAFE`
 */
export function resolveLocks(program: ProbedProgram, specs: readonly ProbeSpec[]): FoundLocks {
  const { debug, arch } = program;
  const [first] = specs;
  const isFuture = futureTypes(debug);
  const { functions, refused } = functionsOf(program, first as ProbeSpec, isFuture);
  const traced = new Set<bigint>(functions.map(({ probe }) => probe.address));
  const isTraced = (host: Die): boolean => rangesOf(host).some(({ low }) => traced.has(host.unit.codes.fromCode(low)));
  const copies = debug && new InlinedLocks(debug, arch, isTraced, isFuture);
  const { found: inlined = [], unseen = [] } = copies ?? {};
  const isTaken = [...functions, ...inlined].some(({ role }) => role.does !== 'release');
  if (!isTaken) {
    const why = [...refused, ...unseen].find(({ reason }) => reason === takenByPolls || reason === hasOthers);
    const takers = unseen.filter(({ name }) => lockRole(name)?.does !== 'release');
    throw takers.length > 0 && !why ? onlyInlined(first, takers) : noLocks(program.elf, first, why ?? refused[0]);
  }
  const list = whiteList(specs);
  const inside = inlined.flatMap(({ begins, ends }) => [...begins, ...ends].map(({ address }) => address));
  return {
    ...{ functions, inlined, unseen },
    excluded: refused,
    addresses: [...functions.map(({ probe }) => probe.address), ...new Set(inside)],
    wants: (names) => list.allows(names, true),
  };
}

/** Those with code of their own. */
function functionsOf(
  { elf, debug, arch }: ProbedProgram,
  spec: ProbeSpec,
  isFuture: IsFuture,
): { readonly functions: readonly LockFunction[]; readonly refused: readonly ExcludedFunction[] } {
  const isAny = [...namedFunctions(elf, debug)].some(({ names }) => names.some((name) => lockRole(name)));
  if (!isAny) return { functions: [], refused: [] };
  const all = { ...spec, excludes: false, matches: (path: string) => lockRole(path) !== undefined };
  const { probes, excluded } = resolveFunctions(elf, debug, arch, [all]);
  const functions: LockFunction[] = [];
  const refused: ExcludedFunction[] = [...excluded];
  for (const probe of probes) {
    const found = lockFunction(probe, arch, isFuture);
    if (typeof found === 'object') functions.push(found);
    else if (found !== undefined) refused.push({ name: probe.ref.name, address: probe.address, reason: found });
  }
  return { functions, refused };
}

/** Why it is left out, in words for the user; undefined if it is no function of a lock after all. */
function lockFunction(
  probe: FunctionProbe,
  { results: [first = ''] }: Architecture,
  isFuture: IsFuture,
): LockFunction | string | undefined {
  const { ref, arguments: passed, result } = probe;
  const path = [ref.instance, ref.name, ...probe.aliases].find((name) => lockRole(name));
  const role = path === undefined ? undefined : lockRole(path);
  if (!role || path === undefined) return undefined;
  const isMethod = path.includes('::');
  const [self, ...others] = passed.filter(({ shape }) => isMore(shape));
  const register = self && pointerIn(self.where);
  if (!self || register === undefined) return 'the lock is in no register when it is called';
  if (isMethod && self.shape && others.length > 0) return hasOthers;
  if (isFuture(result?.shape)) return takenByPolls;
  // Without debug info: a function of C returns an `int`, one of Rust a `bool`, an `Option` or a `Result`.
  const int = { kind: 'registers', parts: [{ register: first, offset: 0, size: 4 }] } as const;
  const returned = result?.where ?? (self.shape || isMethod ? undefined : int);
  const taken = role.does === 'try' && returned?.kind === 'registers' ? returned : undefined;
  if (role.does === 'try' && !taken)
    return self.shape
      ? 'whether it has taken the lock is in no register when it returns'
      : 'without debug info nothing says whether it has taken the lock';
  const target = self.shape?.kind === 'pointer' ? self.shape.target() : undefined;
  const found = { probe, role, register, isMethod, taken };
  if (!role.isGuard) return { ...found, through: undefined, type: typeOf(target, self.type) };
  const held = target && pointerWithin(target);
  return held && { ...found, through: held.offset, type: typeOf(held.target) };
}

/** `spelled`: the pointer, whose target may have a name that its type has not, as in C. */
function typeOf(shape: Shape | undefined, spelled?: string): LockType | undefined {
  if (!shape) return undefined;
  const name = shape.name.startsWith('{') ? spelled?.replace(/^\*(const |mut )?/, '') : shape.name;
  return { name: name === undefined || name.startsWith('{') ? 'lock' : name, size: shape.size };
}

function pointerIn(where: ValuePlace): string | undefined {
  if (where.kind !== 'registers') return undefined;
  const part = where.parts.find(({ offset }) => offset === 0);
  return part?.register !== undefined && part.size === 8 && part.mask === undefined ? part.register : undefined;
}

function onlyInlined(spec: ProbeSpec | undefined, unseen: readonly UnseenCopy[]): RsptraceError {
  const names = [...new Set(unseen.map(({ name }) => name))].slice(0, 3);
  const around = [...new Set(unseen.map(({ into }) => `'fn:${into}'`))].slice(0, 3);
  const message = `'${spec?.text}': the compiler inlined every function that takes a lock (${names.join(', ')})`;
  return new RsptraceError('PROBE_INLINED', message, {
    hint: `${unseen[0]?.name} in ${unseen[0]?.into}: ${unseen[0]?.reason}; probe the functions around (${around.join(', ')}), or build it without optimisation and without '#[inline(always)]' at the lock's own functions`,
  });
}

function noLocks(
  elf: ElfFile,
  spec: ProbeSpec | undefined,
  refused?: Pick<ExcludedFunction, 'name' | 'reason'>,
): RsptraceError {
  const imported = [...importSlots(elf).values()].find((name) => lockRole(name));
  if (imported !== undefined) {
    return new RsptraceError(
      'PROBE_NO_MATCH',
      `'${spec?.text}' finds no lock in the program: its ${imported} is in a library`,
      {
        hint: `rsptrace attach PID /path/of/libc.so.6 -p '${spec?.text}' traces it there`,
      },
    );
  }
  const message = `'${spec?.text}' finds no function that takes a lock`;
  const why = refused && `${refused.name}: ${refused.reason}`;
  return new RsptraceError('PROBE_NO_MATCH', message, {
    hint:
      why ??
      "locks are known by the names of their functions, as in std, spin, lock_api, xv6 and Linux; 'fn:GLOB' traces any",
  });
}
