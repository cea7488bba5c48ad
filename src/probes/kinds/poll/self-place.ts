import type { Architecture } from '../../../arch/index.js';
import { type Addr, addr } from '../../../base/addr.js';
import {
  type Die,
  DW_AT,
  DW_TAG,
  evaluate,
  type Location,
  layoutOf,
  locationAt,
  rangesOf,
  through,
} from '../../../dwarf/index.js';
import type { CodeAddress } from '../../../elf/index.js';
import type { FutureSet, FutureType, Guard, HeldInPlace, TaskPlaces } from '../../../futures/index.js';
import type { FunctionGraphs } from '../../function-graphs.js';

/** Where a Future lies, by one register at some instruction. */
export interface SelfPlace {
  readonly register: string;
  /** The Future's address is the register's value and this. */
  readonly offset: number;
  /** It is there as long as these hold; offsets from the Future's start. */
  readonly guards: readonly Guard[];
}

/** The most Futures inside one type that are looked at. */
const mostInside = 1000;
/** The most pointers and structs around them in one variable. */
const deepest = 6;

/** The Future of the task whose header is a function's first argument, and how far from the header it lies. */
export interface HostedTask {
  readonly future: FutureType;
  readonly offset: number;
}

/** The tasks that functions of runtimes are called with, by the offsets of these functions' DIEs. */
export function hostedTasks(futures: FutureSet, places: TaskPlaces | undefined): Map<number, HostedTask> {
  const byType = new Map(futures.all.map((future) => [future.typeOffset, future]));
  const found = new Map<number, HostedTask>();
  // The task's own Future is first, then what it consists of.
  for (const { die, future: type, offset } of [...(places?.enders ?? []), ...(places?.hosts ?? [])]) {
    const future = byType.get(type);
    if (future && !found.has(die.offset)) found.set(die.offset, { future, offset });
  }
  return found;
}

/** What {@link selfPlace} goes by. */
interface Inlining {
  readonly copy: Die;
  /** The function around it. */
  readonly host: Die;
  readonly task: HostedTask | undefined;
  readonly futures: FutureSet;
  readonly arch: Architecture;
  readonly graphs: FunctionGraphs;
}

/**
 * Finds a Future's address at an instruction of a function into which its poll was inlined. Any parameter or variable
 * there may lead to it, by its type. Those of the copy itself are tried first, then what the function was called with,
 * and the header of its task last.
 */
export function selfPlace(future: FutureType, at: Addr, inlining: Inlining): SelfPlace | undefined {
  const { copy, host } = inlining;
  const code = host.unit.codes.toCode(at);
  for (const variable of [...parametersOf(copy), ...variablesAt(host, code)]) {
    const found = placeBy(variable, future, code, inlining);
    if (found) return found;
  }
  for (const parameter of parametersOf(host)) {
    const found = placeBy(parameter, future, entryOf(host), inlining);
    // What lies in memory may not lie there yet.
    const kept = found?.isPointer && keptPlace(found, at, inlining);
    if (kept) return kept;
  }
  return headerPlace(future, at, inlining);
}

/** By the type of one variable. */
function placeBy(
  variable: Die,
  future: FutureType,
  code: CodeAddress,
  { host, futures, arch }: Inlining,
): (SelfPlace & { readonly isPointer: boolean }) | undefined {
  const expression = locationAt(variable, DW_AT.location, code);
  const type = through(variable, (die) => die.follow(DW_AT.type));
  if (!expression || !type || expression.length === 0) return undefined;
  const frame = host.block(DW_AT.frame_base);
  for (const way of waysTo(future, type, futures)) {
    const found = linear(variable, expression, frame, way.pointerAt, arch);
    if (!found || (way.pointerAt === undefined) === found.isValue) continue;
    const { register, offset, isValue } = found;
    return { register, offset: offset + way.offset, guards: way.guards, isPointer: isValue };
  }
  return undefined;
}

/** By the header of the task that a function of a runtime is called with. */
function headerPlace(future: FutureType, at: Addr, inlining: Inlining): SelfPlace | undefined {
  const { host, task, arch } = inlining;
  const [header] = task ? parametersOf(host) : [];
  const way = task && inside(future, [{ ...task, guards: [], repeats: [] }]);
  if (!header || !way) return undefined;
  const frame = host.block(DW_AT.frame_base);
  const placeAt = (code: CodeAddress): SelfPlace | undefined => {
    const expression = locationAt(header, DW_AT.location, code);
    if (!expression || expression.length === 0) return undefined;
    const found = linear(header, expression, frame, 0, arch);
    return found?.isValue ? { ...way, register: found.register, offset: found.offset + way.offset } : undefined;
  };
  const known = placeAt(host.unit.codes.toCode(at));
  if (known) return known;
  const found = placeAt(entryOf(host));
  return found && keptPlace(found, at, inlining);
}

/** A place by a register at the function's entry, by one that still has its value at another instruction. */
function keptPlace(
  { register, offset, guards }: SelfPlace,
  at: Addr,
  { host, graphs }: Inlining,
): SelfPlace | undefined {
  const [kept] = graphs.kept(host, register, at);
  return kept && { register: kept.register, offset: offset + kept.offset, guards };
}

function entryOf(host: Die): CodeAddress {
  return rangesOf(host)[0]?.low ?? host.lowPc;
}

function parametersOf(copy: Die): Die[] {
  return [...copy.children()].filter((die) => die.tag === DW_TAG.formal_parameter);
}

/** Parameters and variables of the blocks around an instruction, the innermost first. */
function variablesAt(host: Die, code: CodeAddress): Die[] {
  const found: Die[] = [];
  const cursor = host.subtree();
  while (cursor.next()) {
    const { tag } = cursor;
    if (tag === DW_TAG.formal_parameter || tag === DW_TAG.variable) found.push(cursor.die());
    else if (tag === DW_TAG.lexical_block || tag === DW_TAG.inlined_subroutine) {
      const holds = rangesOf(cursor).some(({ low, high }) => code >= low && code < high);
      if (!holds) cursor.skipChildren();
    } else cursor.skipChildren();
  }
  return found.reverse();
}

/** How a variable leads to a Future. */
interface Way {
  /** Where in the variable the pointer lies; undefined: the variable itself holds the Future. */
  readonly pointerAt: number | undefined;
  /** From the pointer's target, or from the variable's start. */
  readonly offset: number;
  readonly guards: readonly Guard[];
}

function waysTo(future: FutureType, type: Die, futures: FutureSet): Way[] {
  // Declared, and defined in another unit.
  if (type.name === `Pin<&mut ${future.instance}>`) return [{ pointerAt: 0, offset: 0, guards: [] }];
  const own = inside(future, futures.inPlace(type));
  if (own) return [{ ...own, pointerAt: undefined }];
  return pointersIn(type, 0, deepest).flatMap(({ at, target }) => {
    const found = inside(future, futures.inPlace(target));
    return found ? [{ ...found, pointerAt: at }] : [];
  });
}

type Held = Pick<HeldInPlace, 'future' | 'offset' | 'guards' | 'repeats'>;

/** The one place of a Future among others and inside them; undefined if there are several. */
function inside(future: FutureType, among: readonly Held[]): Omit<Way, 'pointerAt'> | undefined {
  const found = new Map<number, readonly Guard[]>();
  const open: Held[] = [...among];
  const seen = new Set<string>();
  for (let held = open.pop(); held && seen.size < mostInside; held = open.pop()) {
    const { offset, guards } = held;
    const key = `${offset} ${held.future.typeOffset}`;
    if (seen.has(key)) continue;
    seen.add(key);
    if (held.repeats.length > 0) return undefined;
    if (held.future === future) found.set(offset, guards);
    else if (held.future.size >= future.size) {
      for (const inner of heldIn(held.future)) open.push({ ...inner, offset: offset + inner.offset, guards: [] });
    }
  }
  const [only, ...others] = found;
  if (!only || others.length > 0) return undefined;
  const [offset, guards] = only;
  return { offset, guards: guards.map((guard) => ({ ...guard, offset: guard.offset - offset })) };
}

/** The Futures in a Future's own bytes, in any of its states. */
function heldIn(future: FutureType): Held[] {
  const holds = [...future.holds, ...future.states.flatMap((state) => state.holds)];
  return holds.flatMap(({ future: inner, hops, offset, repeats, guards }) =>
    inner && hops.length === 0 ? [{ future: inner, offset, repeats, guards }] : [],
  );
}

function pointersIn(type: Die, offset: number, depth: number): { readonly at: number; readonly target: Die }[] {
  if (type.tag === DW_TAG.pointer_type) {
    const target = type.follow(DW_AT.type);
    return target ? [{ at: offset, target }] : [];
  }
  if (depth === 0 || type.tag !== DW_TAG.structure_type) return [];
  return layoutOf(type).members.flatMap((member) =>
    member.type ? pointersIn(member.type, offset + member.offset, depth - 1) : [],
  );
}

const probes = [0x1000_0000n, 0x2345_6780n] as const;

/**
 * An expression as a register and a number. `pointerAt`: of the pointer there; else of where the variable lies.
 * `isValue`: it is the pointer's value, and not the place of a variable.
 */
function linear(
  variable: Die,
  expression: Uint8Array,
  frame: Uint8Array | undefined,
  pointerAt: number | undefined,
  arch: Architecture,
): { readonly register: string; readonly offset: number; readonly isValue: boolean } | undefined {
  const asked = new Set<number>();
  const results = probes.map((value) => {
    const answer = (need: Parameters<Parameters<typeof evaluate>[2]>[0]): bigint | undefined => {
      if (need.kind === 'register') {
        asked.add(need.register);
        return value;
      }
      if (need.kind !== 'frame-base' || !frame) return undefined;
      const base = evaluate(frame, variable.unit, answer);
      const [piece] = 'pieces' in base ? base.pieces : [];
      if (piece?.location.kind === 'register') {
        asked.add(piece.location.register);
        return value;
      }
      return undefined;
    };
    const found = evaluate(expression, variable.unit, answer);
    if ('missing' in found) return undefined;
    let start = 0;
    for (const { location, bitSize, bitOffset } of found.pieces) {
      const size = bitSize === undefined ? Number.POSITIVE_INFINITY : bitSize / 8;
      const wanted = pointerAt ?? 0;
      if (wanted >= start && wanted < start + size && bitOffset === 0) {
        return numberOf(location, wanted - start, asked, value);
      }
      start += size;
    }
    return undefined;
  });
  const [first, second] = results;
  const [register] = asked;
  if (!first || !second || register === undefined || asked.size > 1) return undefined;
  const name = arch.dwarfRegister(register);
  const offset = first.value - probes[0];
  if (name === undefined || second.value - probes[1] !== offset) return undefined;
  return { register: name, offset: Number(offset), isValue: first.isValue };
}

function numberOf(
  location: Location,
  within: number,
  asked: Set<number>,
  value: bigint,
): { readonly value: bigint; readonly isValue: boolean } | undefined {
  switch (location.kind) {
    case 'register':
      if (within !== 0) return undefined;
      asked.add(location.register);
      return { value, isValue: true };
    case 'value':
      return within === 0 ? { value: location.value, isValue: true } : undefined;
    case 'memory':
      return { value: addr(location.address) + BigInt(within), isValue: false };
    default:
      return undefined;
  }
}
