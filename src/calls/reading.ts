import {
  awaitChain,
  type ChainLink,
  type FutureSet,
  type FutureState,
  type FutureType,
  type InnerFuture,
  stateOf,
} from '../async/futures/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { type MemoryRequest, newRequests, type Visit } from './hit.js';

/** An inner Future that is running or suspended, inlined, within its outer one's poll. */
export interface Running extends InnerFuture {
  /** The state it was resumed from: while it runs, its state number still shows this one. */
  readonly resumed: FutureState | undefined;
}

/**
 * Bytes that were read at a hit, never changed again. Their meaning is kept with them, because an engine returns the
 * same object for bytes that it has seen before.
 */
export class Reading {
  readonly bytes: Uint8Array;
  #look: FutureLook | undefined;
  #word: { readonly offset: number; readonly value: bigint } | undefined;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** The 8 bytes from an offset on, little-endian; undefined if fewer were read. */
  word(offset: number): bigint | undefined {
    const { bytes } = this;
    if (bytes.length < offset + 8) return undefined;
    if (this.#word?.offset !== offset) {
      this.#word = { offset, value: new DataView(bytes.buffer, bytes.byteOffset + offset, 8).getBigUint64(0, true) };
    }
    return this.#word.value;
  }

  /** The bytes as those of a Future of this type. */
  as(future: FutureType): FutureLook {
    if (this.#look?.future !== future) this.#look = new FutureLook(future, this.bytes);
    return this.#look;
  }
}

/** The most places of a Future whose content is kept; further ones are computed anew. */
const mostKept = 1024;

/** The content of a Future's bytes, each part computed once. */
export class FutureLook {
  readonly future: FutureType;
  /** Undefined if the Future is not compiler-made, or its bytes are no such Future's. */
  readonly state: FutureState | undefined;
  readonly #bytes: Uint8Array;
  #chain: readonly ChainLink[] | undefined;
  #suspended: readonly Running[] | undefined;
  #along: Map<readonly InnerFuture[], readonly Running[]> | undefined;
  #at: Map<bigint, unknown> | undefined;
  /** The last result, because a Map of bigints is slow. */
  #last: { readonly self: Addr; readonly made: unknown } | undefined;

  constructor(future: FutureType, bytes: Uint8Array) {
    this.future = future;
    this.#bytes = bytes;
    this.state = stateOf(future, bytes);
  }

  chain(futures: FutureSet): readonly ChainLink[] {
    this.#chain ??= awaitChain(this.future, this.#bytes, (vtable) => futures.byVtable(vtable));
    return this.#chain;
  }

  /** The part of the await chain that lies in the Future itself. */
  get suspended(): readonly Running[] {
    if (this.#suspended) return this.#suspended;
    const inside: Running[] = [];
    for (const { future, offset, state } of awaitChain(this.future, this.#bytes)) {
      if (!future || offset === undefined) break;
      inside.push({ future, offset, resumed: state });
    }
    this.#suspended = inside;
    return inside;
  }

  /** The states of the Futures on a way, which is one object each time it comes. */
  along(way: readonly InnerFuture[]): readonly Running[] {
    return this.#along?.get(way) ?? this.#statesAlong(way);
  }

  #statesAlong(way: readonly InnerFuture[]): readonly Running[] {
    const states = way.map((link) => ({ ...link, resumed: stateOf(link.future, this.#bytes, link.offset) }));
    this.#along ??= new Map();
    this.#along.set(way, states);
    return states;
  }

  /** The result of `make` on the chain of a Future at `self`. */
  chainAt<T>(self: Addr, futures: FutureSet, make: (link: ChainLink, address: Addr | undefined) => T): readonly T[] {
    return this.#last?.self === self ? (this.#last.made as readonly T[]) : this.#madeAt(self, futures, make);
  }

  #madeAt<T>(self: Addr, futures: FutureSet, make: (link: ChainLink, address: Addr | undefined) => T): readonly T[] {
    this.#at ??= new Map();
    let made = this.#at.get(self) as readonly T[] | undefined;
    if (!made) {
      made = this.chain(futures).map((link) =>
        make(link, link.offset === undefined ? link.pointer : addOffset(self, link.offset)),
      );
      if (this.#at.size >= mostKept) this.#at.clear();
      this.#at.set(self, made);
    }
    this.#last = { self, made };
    return made;
  }
}

/** What was read at a hit. */
export interface HitMemory {
  /** Undefined if it is not mapped, or was not read. */
  at(address: Addr, length: number): Reading | undefined;
  /** All of these bytes. `unread`: nobody has asked for them, and they can be asked for. */
  bytes(address: Addr, length: number): Uint8Array | 'unreadable' | 'unread';
}

/** The answers to requests, in their order. */
export class Answers implements HitMemory {
  readonly #requests: MemoryRequest[];
  readonly #answers: (Uint8Array | undefined)[];

  constructor(requests: readonly MemoryRequest[] = [], answers: readonly (Uint8Array | undefined)[] = []) {
    this.#requests = [...requests];
    this.#answers = [...answers];
  }

  add(requests: readonly MemoryRequest[], answers: readonly (Uint8Array | undefined)[]): void {
    this.#requests.push(...requests);
    this.#answers.push(...answers);
  }

  /** Asks for what is wanted, again with each answer, until nothing new is. */
  *readAll(wanted: () => readonly MemoryRequest[]): Visit<void> {
    for (;;) {
      const fresh = newRequests(wanted(), this.#requests);
      if (fresh.length === 0) return;
      this.add(fresh, yield fresh);
    }
  }

  at(address: Addr, length: number): Reading | undefined {
    const bytes = this.#answers[this.#indexOf(address, length)];
    return bytes && new Reading(bytes);
  }

  bytes(address: Addr, length: number): Uint8Array | 'unreadable' | 'unread' {
    const index = this.#indexOf(address, length);
    return index < 0 ? 'unread' : (this.#answers[index] ?? 'unreadable');
  }

  #indexOf(address: Addr, length: number): number {
    return this.#requests.findIndex((request) => request.address === address && request.length === length);
  }
}

export const nothingRead: HitMemory = new Answers();
