import type { ArgumentValue, CallBegin, CallEnd, CallLost, FunctionRef } from '../events.js';
import { type Body, bytesOf, noBody, type PerfettoSequence } from './perfetto-packets.js';

/** Values of one argument whose annotations are kept. */
const valuesKept = 1024;

/** The annotations of a value, by its text. */
interface Values {
  readonly name: string;
  readonly bodies: Map<string, Body>;
}

/** One function: its calls all begin alike, but for the values of their arguments. */
interface Kept {
  readonly function: FunctionRef;
  readonly begin: Body;
  /** By their place among those that are told. */
  readonly arguments: (Values & { readonly argument: string })[];
  readonly results: Values;
}

/** The bodies of events of functions' calls, each written once and given again. */
export class CallBodies {
  readonly #sequence: PerfettoSequence;
  /** By the function's key. */
  readonly #kept: (Kept | undefined)[] = [];
  readonly #harts: Values = { name: 'hart', bodies: new Map() };
  /** Annotations of a call with several arguments, put together. */
  #joined = new Int32Array(256);

  constructor(sequence: PerfettoSequence) {
    this.#sequence = sequence;
  }

  /** `more` is valid until the next call. */
  begin(event: CallBegin): { readonly body: Body; readonly more: Body } {
    const kept = this.#of(event.function);
    const hart = event.thread && this.#value(this.#harts, String(event.hart));
    return { body: kept.begin, more: this.#arguments(kept, event.arguments, hart) };
  }

  result(fn: FunctionRef, value: string): Body {
    return this.#value(this.#of(fn).results, value);
  }

  /** An end whose begin was not seen. */
  orphan(event: CallEnd | CallLost): Body {
    const notes = this.#sequence.annotate();
    if (event.type === 'call-lost') notes.text('result', 'lost');
    else if (event.result !== undefined) notes.value('returned', event.result);
    return this.#sequence.body({ category: 'call', name: event.function.name });
  }

  #arguments(kept: Kept, values: readonly ArgumentValue[], hart: Body | undefined): Body {
    if (values.length === 0) return hart ?? noBody;
    const joins = values.length > 1 || hart !== undefined;
    let length = hart ? this.#join(hart, 0) : 0;
    let only: Body = noBody;
    for (let i = 0; i < values.length; i++) {
      const { name, value } = values[i] as ArgumentValue;
      let known = kept.arguments[i];
      if (known?.argument !== name) {
        known = { argument: name, name: `arg_${name}`, bodies: new Map() };
        kept.arguments[i] = known;
      }
      only = this.#value(known, value);
      if (joins) length = this.#join(only, length);
    }
    return joins ? { words: this.#joined.subarray(0, Math.ceil(length / 4)), length } : only;
  }

  #value({ name, bodies }: Values, value: string): Body {
    let body = bodies.get(value);
    if (body === undefined) {
      this.#sequence.annotate().value(name, value);
      body = this.#sequence.body();
      if (bodies.size >= valuesKept) bodies.clear();
      bodies.set(value, body);
    }
    return body;
  }

  #join(body: Body, at: number): number {
    const end = at + body.length;
    if (end > 4 * this.#joined.length) {
      const grown = new Int32Array(end);
      grown.set(this.#joined);
      this.#joined = grown;
    }
    new Uint8Array(this.#joined.buffer).set(bytesOf(body), at);
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
