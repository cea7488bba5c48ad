import type { MemoryReader } from '../../base/memory-reader.js';
import type { DebugInfo } from '../../dwarf/index.js';
import { ObjectPlace, type Value, Values } from '../../values/index.js';
import type { AwaitNode } from './await-tree.js';

export interface FutureLocal {
  readonly name: string;
  readonly value: Value;
}

/** What a Future keeps in its present state: the locals saved across the await, or a hand-written Future's fields. */
export class FutureFields {
  readonly #debug: DebugInfo;
  readonly #values: Values;

  constructor(debug: DebugInfo, memory: MemoryReader) {
    this.#debug = debug;
    this.#values = new Values(debug, memory);
  }

  /** By name, without what it awaits, which the tree shows. Empty if nothing is known about the type. */
  async of({ future, address, awaits }: AwaitNode): Promise<FutureLocal[]> {
    const die = future && this.#debug.die(future.typeOffset);
    if (!die) return [];
    const value = await this.#values.read(die, ObjectPlace.memory(address));
    if (value.kind !== 'struct') return [];
    const shown = new Set(['__awaitee', ...awaits.map(({ path }) => path.split('.')[0])]);
    // An argument is listed twice in a state: its new place, and at the end its captured copy, now stale.
    return value.fields.filter(({ name }) => !shown.has(name) && shown.add(name));
  }
}
