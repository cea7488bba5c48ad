// LoongArch Reference Manual, volume 1: 2.2.5 "Common Memory Access Instructions" to 2.2.7 "Atomic Memory Access
// Instructions", 3.2.7, and the vector extensions' loads and stores (volume 2).
import { bit, field, signedField } from '../instructions.js';
import type { SystemOp } from './opcodes.js';

export interface Memory {
  readonly form: 'memory';
  /** `both`: an atomic operation. */
  readonly access: 'load' | 'store' | 'both' | 'prefetch';
  /** What is loaded or stored; of an atomic operation what is loaded. */
  readonly rt: number;
  /** `rt` is a floating-point or vector register. */
  readonly isFloat: boolean;
  readonly base: number;
  /** Undefined if `index` is added instead, if the access may trap, and for a vector's element. */
  readonly offset: number | undefined;
  readonly index?: number;
  /** In bytes. */
  readonly size: number;
  readonly signed: boolean;
  /** ll begins a reservation, sc ends it and says in `rt` whether it has stored. */
  readonly exclusive?: 'begins' | 'ends' | undefined;
}

type Shape = Pick<Memory, 'access' | 'isFloat' | 'size'> & Partial<Pick<Memory, 'signed'>>;

const load = (size: number, signed = true): Shape => ({ access: 'load', isFloat: false, size, signed });
const store = (size: number): Shape => ({ access: 'store', isFloat: false, size });
const loads = [1, 2, 4, 8].map((size) => load(size));
const stores = [1, 2, 4, 8].map(store);
const unsigned = [1, 2, 4].map((size) => load(size, false));
const prefetch: Shape = { access: 'prefetch', isFloat: false, size: 1 };
const float = (access: 'load' | 'store', size: number): Shape => ({ access, isFloat: true, size });

/** With 12 bits of distance: bits 31:22, less 160. */
const near: readonly Shape[] = [
  ...[...loads, ...stores, ...unsigned, prefetch],
  ...[float('load', 4), float('store', 4), float('load', 8), float('store', 8)],
  ...[float('load', 16), float('store', 16), float('load', 32), float('store', 32)],
];

/** With an index: bits 31:18, less 3584. */
const indexed: readonly Shape[] = [
  ...[...loads, ...stores, ...unsigned, prefetch],
  ...[float('load', 4), float('load', 8), float('store', 4), float('store', 8)],
  ...[float('load', 16), float('store', 16), float('load', 32), float('store', 32)],
];

/** With 14 bits of distance in words: bits 31:24, less 32. */
const far = [
  { ...load(4), exclusive: 'begins' },
  { ...store(4), exclusive: 'ends' },
  { ...load(8), exclusive: 'begins' },
  { ...store(8), exclusive: 'ends' },
  ...[load(4), store(4), load(8), store(8)],
] as const;

/** The access of an instruction; a word that means another one; undefined for all that access no memory. */
export function accessOf(word: number): Memory | { readonly form: 'system'; readonly op: SystemOp } | undefined {
  const [rt, base] = [field(word, 4, 0), field(word, 9, 5)];
  const at = (shape: Shape, place: Pick<Memory, 'offset' | 'index' | 'exclusive'>): Memory => ({
    ...{ form: 'memory', signed: false, rt, base },
    ...shape,
    ...place,
  });
  const high = word >>> 24;
  if (high >= 0x28 && high < 0x2e) {
    const shape = near[(word >>> 22) - 0xa0];
    return shape && at(shape, { offset: signedField(word, 21, 10) });
  }
  if (high >= 0x20 && high < 0x28) {
    const shape = far[high - 0x20];
    return shape && at(shape, { ...shape, offset: 4 * signedField(word, 23, 10) });
  }
  // Elements of vectors: vstelm, xvstelm; vldrepl, xvldrepl.
  if (high >= 0x30 && high < 0x34) return at(float(bit(word, 24) ? 'store' : 'load', 8), { offset: undefined });
  return high === 0x38 ? byRegisters(word, at) : undefined;
}

/** 0x38000000 and up: an index, or no distance. */
function byRegisters(
  word: number,
  at: (shape: Shape, place: Pick<Memory, 'offset' | 'index' | 'exclusive'>) => Memory,
): ReturnType<typeof accessOf> {
  const group = field(word, 23, 15);
  const shape = indexed[group >>> 3];
  if (shape && (group & 7) === 0) return at(shape, { offset: undefined, index: field(word, 14, 10) });
  if (group === 0xae) return at(store(16), { offset: 0, exclusive: 'ends' });
  if (group === 0xaf) {
    // llacq, screl: bit 10 says which, bit 11 the size.
    const size = bit(word, 11) ? 8 : 4;
    const place = { offset: 0, exclusive: bit(word, 10) ? 'ends' : 'begins' } as const;
    return at(bit(word, 10) ? store(size) : load(size), place);
  }
  if (group >= 0xb0 && group < 0xe4) {
    if (group === 0xc0 && field(word, 4, 0) === field(word, 9, 5)) return { form: 'system', op: 'ud' };
    const size = group < 0xb8 ? 1 << (group & 3) : (group < 0xc0 ? 1 : 4) << (group & 1);
    return at({ access: 'both', isFloat: false, size }, { offset: 0 });
  }
  // Loads and stores that trap beyond bounds: of floating point, of integers.
  const unknown = { offset: undefined };
  if (group >= 0xe8 && group < 0xf0) return at(float(group < 0xec ? 'load' : 'store', group & 1 ? 8 : 4), unknown);
  if (group >= 0xf0) return at((group < 0xf8 ? load : store)(1 << (group & 3)), unknown);
  return undefined;
}
