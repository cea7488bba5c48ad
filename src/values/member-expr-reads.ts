import { addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { littleEndian } from '../base/little-endian.js';
import { isList, type List, row, sizeOrThrow, WORD } from './member-expr-shapes.js';
import { type Missing, ObjectPlace } from './object-place.js';
import type { Shape } from './shape.js';

/** The meaning of an expression: an object of the target, or a computed value. */
export interface Operand {
  readonly shape: Shape;
  readonly place: ObjectPlace;
  /** It lies in a union: what looks like a reference there need not be one. */
  readonly isUnsure?: boolean | undefined;
}

/**
 * What is read on the way to an object. `reference`: a pointer that its type declares valid. `pointer`: one without
 * that. `vtable`, `discriminant`, `length` and `value` decide how it goes on.
 */
export type Use = 'reference' | 'pointer' | 'vtable' | 'discriminant' | 'length' | 'value';

/** Bytes that must be known before an evaluation goes on. */
export interface Need {
  readonly place: ObjectPlace;
  readonly size: number;
  readonly use: Use;
  /** With a number like this it goes on: for who only wants to know what the expression is. */
  readonly plausible: bigint | undefined;
}

/** More elements than any collection has. */
const manyElements = 1n << 40n;

/** Reads on the way to an object. */
export class ExpressionReads {
  readonly #read: (need: Need) => Uint8Array | Missing | undefined;

  /** `read`: see `EvaluationScope`. */
  constructor(read: (need: Need) => Uint8Array | Missing | undefined) {
    this.#read = read;
  }

  bytes(place: ObjectPlace, size: number, what: string, use: Use, plausible?: bigint): Uint8Array {
    const found = place.atHand(size) ?? this.#read({ place, size, use, plausible });
    if (found instanceof Uint8Array) return found;
    if (found?.missing === 'unreadable')
      throw new RsptraceError('EXPRESSION_MEMORY', `${what} cannot be read at 0x${found.address.toString(16)}`);
    throw new RsptraceError('EXPRESSION_OPTIMIZED_OUT', `${what} is optimized out`);
  }

  word(place: ObjectPlace, what: string, use: Use, plausible?: bigint): bigint {
    return littleEndian(this.bytes(place, WORD, what, use, plausible));
  }

  /** What can be indexed: an array, a slice, a collection, or a pointer. */
  list({ shape, place, isUnsure }: Operand, what: string): List | undefined {
    const sure: Use = isUnsure ? 'pointer' : 'reference';
    if (shape.kind === 'array') return row(shape.element(), place, shape.count);
    if (shape.kind === 'slice') {
      const use = shape.style === 'raw' ? 'pointer' : sure;
      const data = ObjectPlace.memory(addr(this.word(place.inside(shape.pointer), what, use)));
      return row(shape.element(), data, this.#length(place.inside(shape.length), what));
    }
    if (shape.kind === 'pointer' && shape.style !== 'fn') {
      const target = shape.target();
      // A pointer to an array or collection is indexed like that array; any other pointer as in C.
      if (target === undefined || (target.kind !== 'integer' && shape.style !== 'raw')) return undefined;
      if (isList(target)) return undefined;
      // Nothing says how far its elements go.
      return row(target, ObjectPlace.memory(addr(this.word(place, what, 'pointer'))), undefined);
    }
    const view = shape.kind === 'struct' ? shape.view() : undefined;
    if (view?.kind !== 'vec' && view?.kind !== 'deque') return undefined;
    const data = ObjectPlace.memory(addr(this.word(place.inside(view.pointer), what, sure)));
    const length = this.#length(place.inside(view.length), what);
    const element = view.element();
    if (view.kind === 'vec') return row(element, data, length);
    const head = Number(this.word(place.inside(view.head), what, 'length', 0n));
    const capacity = this.#length(place.inside(view.capacity), what);
    const size = sizeOrThrow(element);
    const placeOf = (i: number): ObjectPlace => data.inside(capacity === 0 ? 0 : ((head + i) % capacity) * size);
    return { element, length, contiguous: false, placeOf };
  }

  #length(place: ObjectPlace, what: string): number {
    return Number(this.word(place, what, 'length', manyElements));
  }
}
