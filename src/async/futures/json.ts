// `rsptrace futures --json`, version 1: described in docs/futures.md. Fields are added, never changed, while the
// version stays.
import { hex } from '../../base/addr.js';
import { demangle } from '../../dwarf/index.js';
import { blameOf, bytesOf } from './size-blame.js';
import type { FutureSet, FutureState, FutureType, HeldFuture, Place } from './types.js';

interface FuturesInput {
  readonly program: string;
  readonly buildId: string | undefined;
  readonly futures: readonly FutureType[];
  readonly set: FutureSet;
  /** How the polls of each are seen. */
  readonly seen?: (future: FutureType) => HowSeen | undefined;
}

/** How a Future's polls are seen, and if not all are, why and what would help. */
interface HowSeen {
  readonly seen: string;
  readonly reason: string | undefined;
  readonly help: string | undefined;
}

/**
 * Everything that is known about the selected Futures, as one object. Addresses are `0x...`; unknown values are null.
 */
export function futuresJson({ program, buildId, futures, set, seen }: FuturesInput): object {
  return {
    version: 1,
    program,
    build_id: buildId ?? null,
    futures: futures.map((future) => ({ ...futureJson(future, set), ...seenJson(seen?.(future)) })),
    warnings: set.warnings,
  };
}

function futureJson(future: FutureType, set: FutureSet): object {
  const { discriminant, polls, inlined, vtables } = future;
  return {
    future: future.future,
    instance: future.instance,
    kind: future.kind,
    crate: future.crate,
    file: future.file ?? null,
    line: future.line ?? null,
    size: future.size,
    align: future.align ?? null,
    output: future.output ?? null,
    discriminant: discriminant === undefined ? null : { offset: discriminant.offset, size: discriminant.size },
    states: future.states.map((state) => stateJson(state, set)),
    fields: future.fields,
    holds: future.holds.map((held) => heldJson(held, set)),
    blame: blameJson(future),
    polls: polls.map(({ address, end, symbol }) => ({
      address: hex(address),
      end: hex(end),
      symbol: symbol ?? null,
      name: symbol === undefined ? null : demangle(symbol, set.budget),
    })),
    inlined: inlined.map(({ address, into, file, line }) => ({
      address: hex(address),
      into,
      file: file ?? null,
      line: line ?? null,
    })),
    vtables: vtables.map(hex),
  };
}

function seenJson(known: HowSeen | undefined): object {
  return { seen: known?.seen ?? null, unseen_reason: known?.reason ?? null, unseen_help: known?.help ?? null };
}

function stateJson(state: FutureState, set: FutureSet): object {
  return {
    name: state.name,
    value: state.value,
    file: state.file ?? null,
    line: state.line ?? null,
    bytes: bytesOf(state),
    awaits: [...new Set(state.holds.filter(({ role }) => role === 'awaitee').map(nameOf))],
    locals: state.locals,
    holds: state.holds.map((held) => heldJson(held, set)),
  };
}

function nameOf(held: HeldFuture): string {
  return held.future?.future ?? held.typeName;
}

function heldJson(held: HeldFuture, set: FutureSet): object {
  return {
    future: nameOf(held),
    instance: held.future?.instance ?? null,
    type: held.typeName,
    role: held.role,
    path: held.path,
    size: held.size,
    maybe: held.maybe,
    ...placeJson(held),
    pointers: held.hops.map((hop) => ({ ...placeJson(hop), to: hop.to })),
    vtable: held.vtable ?? null,
    may_be:
      held.vtable === undefined
        ? []
        : set.behindDyn(held.typeName).map(({ future, instance }) => ({ future, instance })),
  };
}

function placeJson({ offset, repeats, guards }: Place): object {
  return {
    offset,
    repeats,
    guards: guards.map(({ values, ...guard }) => ({
      ...guard,
      values: values.map(({ low, high }) => [hex(low), hex(high)]),
    })),
  };
}

function blameJson(future: FutureType): object | null {
  const blame = blameOf(future);
  if (blame === undefined) return null;
  const { state, member } = blame;
  return {
    state: state?.name ?? null,
    member: member.name,
    type: member.type,
    offset: member.offset,
    size: member.size,
  };
}
