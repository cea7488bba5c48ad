import type { ArgumentValue, CallBegin, CallEnd, CallLost, FunctionRef } from '../events.js';
import type { PerfettoSequence } from './perfetto-packets.js';

/** Values of one argument whose annotations are kept. */
const valuesKept = 1024;
const nothing = new Uint8Array(0);

/** The annotations of a value, by its text. */
interface Values {
  readonly name: string;
  readonly bodies: Map<string, Uint8Array>;
}

/** One function: its calls all begin alike, but for the values of their arguments. */
interface Kept {
  readonly function: FunctionRef;
  readonly begin: Uint8Array;
  /** By their place among those that are told. */
  readonly arguments: (Values & { readonly argument: string })[];
  readonly results: Values;
}

/** The bodies of events of functions' calls, each written once and given again. */
export class CallBodies {
  readonly #sequence: PerfettoSequence;
  /** By the function's key. */
  readonly #kept: (Kept | undefined)[] = [];
  /** Annotations of a call with several arguments, put together. */
  #joined = new Uint8Array(1024);

  constructor(sequence: PerfettoSequence) {
    this.#sequence = sequence;
  }

  /** `more` is valid until the next call. */
  begin(event: CallBegin): { readonly body: Uint8Array; readonly more: Uint8Array } {
    const kept = this.#of(event.function);
    return { body: kept.begin, more: this.#arguments(kept, event.arguments) };
  }

  result(fn: FunctionRef, value: string): Uint8Array {
    return this.#value(this.#of(fn).results, value);
  }

  /** An end whose begin was not seen. */
  orphan(event: CallEnd | CallLost): Uint8Array {
    const notes = this.#sequence.annotate();
    if (event.type === 'call-lost') notes.text('result', 'lost');
    else if (event.result !== undefined) notes.value('returned', event.result);
    return this.#sequence.body({ category: 'call', name: event.function.name });
  }

  #arguments(kept: Kept, values: readonly ArgumentValue[]): Uint8Array {
    if (values.length === 0) return nothing;
    let length = 0;
    let only: Uint8Array = nothing;
    for (let i = 0; i < values.length; i++) {
      const { name, value } = values[i] as ArgumentValue;
      let known = kept.arguments[i];
      if (known?.argument !== name) {
        known = { argument: name, name: `arg_${name}`, bodies: new Map() };
        kept.arguments[i] = known;
      }
      only = this.#value(known, value);
      if (values.length > 1) length = this.#join(only, length);
    }
    return values.length > 1 ? this.#joined.subarray(0, length) : only;
  }

  #value({ name, bodies }: Values, value: string): Uint8Array {
    let body = bodies.get(value);
    if (body === undefined) {
      this.#sequence.annotate().value(name, value);
      body = this.#sequence.body();
      if (bodies.size >= valuesKept) bodies.clear();
      bodies.set(value, body);
    }
    return body;
  }

  #join(bytes: Uint8Array, at: number): number {
    const end = at + bytes.length;
    if (end > this.#joined.length) {
      const grown = new Uint8Array(2 * end);
      grown.set(this.#joined);
      this.#joined = grown;
    }
    this.#joined.set(bytes, at);
    return end;
  }

  #of(fn: FunctionRef): Kept {
    const known = this.#kept[fn.key];
    if (known?.function === fn) return known;
    const { name, instance, address } = fn;
    const notes = this.#sequence.annotate();
    notes.pointer('address', address);
    if (instance !== name) notes.text('instance', instance);
    const begin = this.#sequence.body({ category: 'call', name, place: fn });
    const kept: Kept = { function: fn, begin, arguments: [], results: { name: 'returned', bodies: new Map() } };
    this.#kept[fn.key] = kept;
    return kept;
  }
}
