import { madeOnce } from '../../base/made-once.js';
import { type Die, layoutOf, type Member, selectVariant, sizeOf, typeName, variantName } from '../../dwarf/index.js';
import type { HeldFutures } from './held-futures.js';
import { atFirst, type Found, fieldName, named, shifted } from './held-place.js';
import { boxOf, type FutureOfType } from './pointers.js';
import { AWAITEE } from './scan.js';
import type { FutureState, HeldFuture, PollResultLayout, StateLocal } from './types.js';

export interface StateMachine {
  readonly discriminant: { readonly offset: number; readonly size: number } | undefined;
  readonly states: readonly FutureState[];
}

/** What a state keeps. */
type Contents = Pick<FutureState, 'awaitee' | 'locals'> & { readonly members: readonly Member[] };

/** Finds the Futures of one program while the states of each are read. */
export interface FutureLookup {
  readonly futureOf: FutureOfType;
  readonly held: HeldFutures;
  /** By the offset of a state's struct: states of a damaged file may share one huge struct. */
  readonly contents: Map<number, Contents>;
}

/**
 * The states of a compiler-made Future. A variant is a state; the member inside it has the line. The variant's struct
 * covers the whole Future, so its members' offsets are the Future's.
 */
export function readStates(type: Die, lookup: FutureLookup): StateMachine {
  const part = layoutOf(type).variantPart;
  if (part === undefined) return { discriminant: undefined, states: [] };
  const states: FutureState[] = [];
  // The Future's arguments: the members of Unresumed, which every other state lists once more at its end.
  let captured: readonly Member[] = [];
  for (const variant of part.variants) {
    const holder = variant.members[0];
    const value = variant.values?.[0]?.low;
    if (holder === undefined || value === undefined) continue;
    const name = variantName(variant) ?? String(value);
    const { awaitee, locals, members } = contentsOf(holder.type, lookup);
    if (name === 'Unresumed') captured = members;
    states.push({
      value: Number(value),
      name,
      ...type.unit.debug.declarationOf(holder.die),
      awaitee,
      locals,
      get holds() {
        return holdsIn(type, name, members, captured, lookup);
      },
    });
  }
  states.sort((a, b) => a.value - b.value);
  return { discriminant: part.discriminant, states };
}

function contentsOf(type: Die | undefined, { futureOf, contents }: FutureLookup): Contents {
  if (type === undefined) return { awaitee: undefined, locals: [], members: [] };
  return madeOnce(contents, type.offset, () => {
    const { members } = layoutOf(type);
    const awaitee = members.find((m) => m.name === AWAITEE);
    return {
      awaitee: awaitee?.type && {
        offset: awaitee.offset,
        size: sizeOf(awaitee.type) ?? 0,
        typeName: typeName(awaitee.type),
        future: futureOf(awaitee.type),
        box: boxOf(awaitee.type, futureOf),
      },
      locals: distinct(members.filter((m) => m !== awaitee)).map(localOf),
      members,
    };
  });
}

/** An argument that kept its place when it was moved to a variable of the same name is listed twice. */
function distinct(members: readonly Member[]): readonly Member[] {
  const key = (m: Member): string => `${m.name} ${m.offset} ${m.type?.offset}`;
  return [...new Map(members.map((member) => [key(member), member])).values()];
}

/** The Futures in one state: the awaited one, and those that its other members hold. */
function holdsIn(
  type: Die,
  state: string,
  members: readonly Member[],
  captured: readonly Member[],
  lookup: FutureLookup,
): readonly HeldFuture[] {
  if (state === 'Returned' || state === 'Panicked') return [];
  const holds: HeldFuture[] = [];
  const seen = new Set<string>();
  const add = (member: Member, role: HeldFuture['role']): void => {
    // See distinct: as a variable it is listed first.
    const place = `${member.offset} ${member.type?.offset}`;
    if (seen.has(place)) return;
    seen.add(place);
    const found = lookup.held.in(member.type);
    for (const one of found.length > 0 || role !== 'awaitee' ? found : lookup.held.unknown(member.type)) {
      if (one.borrowed && role !== 'awaitee') continue;
      const moved = named(
        fieldName(member.name),
        atFirst(one, (at) => shifted(at, member.offset)),
      );
      // An argument exists until the Future runs; after that it may have been moved elsewhere.
      holds.push(heldAs(role, moved, one.maybe || (role !== 'awaitee' && state !== 'Unresumed')));
    }
  };
  const own = members.length - captured.length;
  const awaitee = members.find((member) => member.name === AWAITEE);
  type.unit.debug.attempt(type.unit, () => {
    if (awaitee !== undefined) add(awaitee, 'awaitee');
    members.forEach((member, i) => {
      const known = i >= own && captured[i - own]?.name === member.name;
      if (member !== awaitee) add(member, known ? 'captured' : 'local');
    });
  });
  return holds;
}

/** The Futures that the fields of a Future written by hand hold. */
export function holdsOfFields(type: Die, held: HeldFutures): HeldFuture[] {
  const pointed = held.behind(type);
  return (pointed.length > 0 ? pointed : held.inMembersOf(type)).map((one) => heldAs('field', one, one.maybe));
}

function heldAs(role: HeldFuture['role'], { borrowed: _, ...found }: Found, maybe: boolean): HeldFuture {
  return { ...found, role, maybe };
}

/** The fields of a type; those of an enum's variants are named with their variant. */
export function fieldsOf(type: Die): StateLocal[] {
  const { members, variantPart } = layoutOf(type);
  const ofVariants = (variantPart?.variants ?? []).flatMap((variant) =>
    variant.members.flatMap((payload) =>
      (payload.type === undefined ? [] : layoutOf(payload.type).members).map((member) => {
        const { name, ...local } = localOf(member);
        return { name: `${variantName(variant) ?? '?'}.${name}`, ...local, offset: local.offset + payload.offset };
      }),
    ),
  );
  return [...members.map(localOf), ...ofVariants];
}

function localOf(member: Member): StateLocal {
  return {
    name: fieldName(member.name),
    type: typeName(member.type),
    offset: member.offset,
    size: sizeOf(member.type) ?? 0,
  };
}

/** How Ready and Pending are distinguished in a `Poll<T>`; undefined if T leaves only one of them possible. */
export function pollResultOf(type: Die): PollResultLayout | undefined {
  const part = layoutOf(type).variantPart;
  const { discriminant } = part ?? {};
  if (part === undefined || discriminant === undefined) return undefined;
  return {
    ...discriminant,
    isReady(value) {
      const variant = selectVariant(part.variants, value);
      return variant !== undefined && variantName(variant) === 'Ready';
    },
  };
}
