import { type Addr, addr } from '../../base/addr.js';
import { littleEndian } from '../../dwarf/index.js';
import type { FutureState, FutureType } from './types.js';

/** One Future below the outermost. */
export interface ChainLink {
  readonly future: FutureType | undefined;
  /** The name of the awaited type; for a `dyn Future` that no vtable resolved, the trait object's. */
  readonly typeName: string;
  /** Bytes from the outermost Future's start; undefined if it lies elsewhere. */
  readonly offset: number | undefined;
  /** The place if it lies elsewhere: read on from there with `future`. Only the last link of a chain has it. */
  readonly pointer: Addr | undefined;
  readonly vtable: Addr | undefined;
  /** Undefined if it is not compiler-made, or if its bytes were not among those read. */
  readonly state: FutureState | undefined;
}

/**
 * The state of a compiler-made Future at `offset` of the bytes. Undefined if the discriminant belongs to none of its
 * states (memory that is no such Future), or if the bytes end before it. Also undefined for a Future that is written
 * by hand.
 */
export function stateOf(future: FutureType, bytes: Uint8Array, offset = 0): FutureState | undefined {
  const { discriminant, states } = future;
  if (discriminant === undefined) return undefined;
  const value = unsignedAt(bytes, offset + discriminant.offset, discriminant.size);
  return value === undefined ? undefined : states.find((s) => s.value === value);
}

/**
 * The Futures that a Future awaits, outermost first, read from its own bytes: `__awaitee` lies in place. Bounded by
 * the type's nesting.
 */
export function awaitChain(
  future: FutureType,
  bytes: Uint8Array,
  resolve: (vtable: Addr) => FutureType | undefined = () => undefined,
): ChainLink[] {
  const chain: ChainLink[] = [];
  let at: FutureType | undefined = future;
  let offset = 0;
  // A type contains what it awaits, so sizes strictly decrease; in a damaged file they might not.
  while (at !== undefined && chain.length < MAX_LINKS) {
    const awaitee: FutureState['awaitee'] = stateOf(at, bytes, offset)?.awaitee;
    if (awaitee === undefined) break;
    offset += awaitee.offset;
    if (awaitee.box !== undefined) {
      const { box } = awaitee;
      const pointer = addressAt(bytes, offset + box.pointer);
      const vtable = box.vtable === undefined ? undefined : addressAt(bytes, offset + box.vtable);
      const target: FutureType | undefined = box.future ?? (vtable === undefined ? undefined : resolve(vtable));
      chain.push({
        future: target,
        typeName: target?.instance ?? box.typeName,
        offset: undefined,
        pointer,
        vtable,
        state: undefined,
      });
      break;
    }
    at = awaitee.future;
    chain.push({
      future: at,
      typeName: awaitee.typeName,
      offset,
      pointer: undefined,
      vtable: undefined,
      state: at && stateOf(at, bytes, offset),
    });
  }
  return chain;
}

const MAX_LINKS = 256;

function unsignedAt(bytes: Uint8Array, offset: number, size: number): number | undefined {
  if (offset + size > bytes.length) return undefined;
  let value = 0;
  for (let i = size - 1; i >= 0; i--) value = value * 256 + (bytes[offset + i] as number);
  return value;
}

function addressAt(bytes: Uint8Array, offset: number): Addr | undefined {
  if (offset + 8 > bytes.length) return undefined;
  return addr(littleEndian(bytes, offset, 8));
}
