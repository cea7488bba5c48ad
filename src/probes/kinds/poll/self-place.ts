import type { Architecture } from '../../../arch/index.js';
import {
  allHeld,
  type FutureSet,
  type FutureType,
  type Guard,
  type HeldInPlace,
  type TaskPlaces,
} from '../../../async/futures/index.js';
import { type Addr, addr } from '../../../base/addr.js';
import {
  type Die,
  DW_AT,
  DW_TAG,
  evaluate,
  type Location,
  layoutOf,
  locationAt,
  nameOf,
  parametersOf,
  rangesOf,
  typeOf,
} from '../../../dwarf/index.js';
import type { CodeAddress } from '../../../elf/index.js';
import { type Shapes, variablesAt } from '../../../values/index.js';
import type { FunctionGraphs, KeptPlace } from '../../function-graphs.js';
import type { PollAround, PollsAround } from './poll-around.js';
import { pollEntry } from './poll-entry.js';

/** Where a Future lies, by one register at some instruction. */
export interface SelfPlace extends KeptPlace {
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
export interface Inlining {
  readonly copy: Die;
  /** The function around it. */
  readonly host: Die;
  readonly task: HostedTask | undefined;
  readonly futures: FutureSet;
  readonly around: PollsAround;
  readonly arch: Architecture;
  readonly graphs: FunctionGraphs;
  readonly shapes: Shapes;
}

/**
 * Finds a Future's address at an instruction of a function into which its poll was inlined. The copy's parameters say
 * it, or the place of the Future that polls it, or any variable whose type leads to it.
 */
export function selfPlace(future: FutureType, at: Addr, inlining: Inlining): SelfPlace | undefined {
  const { copy, host, around } = inlining;
  const code = host.unit.codes.toCode(at);
  const known = firstOf(parametersOf(copy), (parameter) => placeBy(parameter, future, code, inlining));
  if (known) return known;
  const outer = around.directly(copy, host);
  const inner = outer && innerPlace(outer, future, at, inlining);
  if (inner) return inner;
  // A Future polls what it holds or awaits, where that was moved to. Other variables are what it was moved out of.
  const placeAt = (variable: Die): Found | undefined => {
    const found = placeBy(variable, future, code, inlining);
    return found && outer && !found.isPointer && nameOf(variable) !== awaited ? undefined : found;
  };
  return (
    firstOf(variablesAt(host.unit.debug, at), ({ die }) => placeAt(die)) ??
    firstOf(parametersOf(host), (parameter) => keptBy(parameter, future, at, inlining)) ??
    headerPlace(future, at, inlining)
  );
}

const awaited = '__awaitee';

function firstOf<T, R>(all: readonly T[], find: (one: T) => R | undefined): R | undefined {
  for (const one of all) {
    const found = find(one);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The place of a Future in the one that polls it. */
function innerPlace(
  { future: outer, copy }: PollAround,
  future: FutureType,
  at: Addr,
  inlining: Inlining,
): SelfPlace | undefined {
  const way = outer.kind === 'impl' ? inside(future, heldIn(outer)) : awaitedPlace(outer, future);
  if (!way) return undefined;
  const place = copy ? selfPlace(outer, at, { ...inlining, copy }) : ownPlace(outer, at, inlining);
  if (!place) return undefined;
  const within = place.guards.map((guard) => ({ ...guard, offset: guard.offset - way.offset }));
  return { ...place, offset: place.offset + way.offset, guards: [...within, ...way.guards] };
}

/** Where a Future awaits another one in its own bytes; undefined if there are several places, or none. */
function awaitedPlace(outer: FutureType, future: FutureType): Pick<Way, 'offset' | 'guards'> | undefined {
  const awaits = outer.states.flatMap(({ awaitee }) => (awaitee && !awaitee.box ? [awaitee] : []));
  const [only, ...others] = new Set(awaits.flatMap((each) => (each.future === future ? [each.offset] : [])));
  return only === undefined || others.length > 0 ? undefined : { offset: only, guards: [] };
}

/** Where a poll function's own Future is: also where the debug info does not list it (rustc up to 1.92). */
function ownPlace(future: FutureType, at: Addr, inlining: Inlining): SelfPlace | undefined {
  const { host, arch, shapes } = inlining;
  const { codes } = host.unit;
  const code = codes.toCode(at);
  const poll = future.polls.find(({ address }) => codes.toCode(address) === entryOf(host));
  return (
    firstOf(parametersOf(host), (parameter) => placeBy(parameter, future, code, inlining)) ??
    firstOf(parametersOf(host), (parameter) => keptBy(parameter, future, at, inlining)) ??
    (poll && keptPlace({ register: pollEntry(poll, arch, shapes).selfRegister, offset: 0, guards: [] }, at, inlining))
  );
}

/** By what the function was called with, as far as its code still has that. */
function keptBy(parameter: Die, future: FutureType, at: Addr, inlining: Inlining): SelfPlace | undefined {
  const found = placeBy(parameter, future, entryOf(inlining.host), inlining);
  // What lies in memory may not lie there yet.
  return found?.isPointer ? keptPlace(found, at, inlining) : undefined;
}

/** `isPointer`: the variable leads to the Future, and does not hold it. */
type Found = SelfPlace & { readonly isPointer: boolean };

/** By the type of one variable. */
function placeBy(
  variable: Die,
  future: FutureType,
  code: CodeAddress,
  { host, futures, arch }: Inlining,
): Found | undefined {
  const expression = locationAt(variable, DW_AT.location, code);
  const type = typeOf(variable);
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
  return kept && { ...kept, offset: offset + kept.offset, guards };
}

function entryOf(host: Die): CodeAddress {
  return rangesOf(host)[0]?.low ?? host.lowPc;
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
  return allHeld(future).flatMap(({ future: inner, hops, offset, repeats, guards }) =>
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
export function linear(
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
