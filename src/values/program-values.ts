import type { MemoryReader } from '../base/memory-reader.js';
import type { DebugInfo, Die } from '../dwarf/index.js';
import type { ObjectPlace } from './object-place.js';
import { ProgramNames } from './program-names.js';
import { Shapes } from './program-shapes.js';
import { readValue } from './reader.js';
import type { Value } from './value.js';

/** Enough to recognise a value. Not everything that it owns on the heap is read. */
const brief = { depth: 4, elements: 16, text: 200, values: 500 };

/**
 * Reads values of one program from one memory, in short form, and `dyn Trait`s by their vtables. For lists of locals.
 */
export class Values {
  readonly #memory: MemoryReader;
  readonly #shapes: Shapes;
  readonly #names: ProgramNames;

  constructor(debug: DebugInfo, memory: MemoryReader) {
    this.#memory = memory;
    this.#shapes = new Shapes(debug);
    this.#names = new ProgramNames(debug);
  }

  /** The value at a place; a variable without a place was optimized out. */
  async read(type: Die | undefined, place: ObjectPlace | undefined): Promise<Value> {
    const shape = this.#shapes.of(type);
    if (place === undefined) return { kind: 'optimized-out', type: shape.name };
    const concrete = (vtable: Parameters<ProgramNames['concrete']>[0]) => this.#names.concrete(vtable);
    return readValue(this.#shapes, this.#memory, shape, place, { limits: brief, concrete });
  }
}
