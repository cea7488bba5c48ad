import type { MemoryReader } from '../base/memory-reader.js';
import type { DebugInfo } from '../dwarf/index.js';
import { ObjectPlace, type Value, Values } from '../values/index.js';
import type { AwaitNode } from './await-tree.js';

export interface FutureLocal {
  readonly name: string;
  readonly value: Value;
}

/** What a Future keeps in the state it is in: the locals saved across the await, or a hand-written Future's fields. */
export class FutureFields {
  readonly #debug: DebugInfo;
  readonly #values: Values;

  constructor(debug: DebugInfo, memory: MemoryReader) {
    this.#debug = debug;
    this.#values = new Values(debug, memory);
  }

  /** By name, what it awaits left out: that is the tree's. Empty where nothing is known of the type. */
  async of({ future, address, awaits }: AwaitNode): Promise<FutureLocal[]> {
    const die = future && this.#debug.die(future.typeOffset);
    if (!die) return [];
    const value = await this.#values.read(die, ObjectPlace.memory(address));
    if (value.kind !== 'struct') return [];
    const shown = new Set(['__awaitee', ...awaits.map(({ path }) => path.split('.')[0])]);
    // An argument stands twice in a state: where it was moved to, and, listed last, where it was captured, now stale.
    return value.fields.filter(({ name }) => !shown.has(name) && shown.add(name));
  }
}
