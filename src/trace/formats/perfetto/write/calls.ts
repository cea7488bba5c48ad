import type { CallBegin, CallEnd, CallLost, FunctionRef } from '../../../events/events.js';
import { type Body, ValueNotes } from './body.js';
import type { PerfettoSequence } from './packets.js';
import { noteBegan } from './polls.js';

/** The name of an argument's annotation. */
interface ArgumentName {
  readonly argument: string;
  readonly field: Uint8Array;
}

/** One function: the begins of its calls are equal, except for the values of their arguments. */
interface Kept {
  readonly function: FunctionRef;
  readonly begin: Body;
  /** By their place among those that are written. */
  readonly arguments: ArgumentName[];
}

/** The bodies of events of functions' calls, each built once and reused. */
export class CallBodies {
  readonly #sequence: PerfettoSequence;
  /** By the function's key. */
  readonly #kept: (Kept | undefined)[] = [];
  readonly #notes = new ValueNotes();
  #hart: Uint8Array | undefined;
  #returned: Uint8Array | undefined;

  constructor(sequence: PerfettoSequence) {
    this.#sequence = sequence;
  }

  /** What all calls of the function have in common. */
  begin(event: CallBegin): Body {
    return this.#of(event.function).begin;
  }

  /** What this call has in addition; valid until the next call. Undefined if there is nothing. */
  besides({ function: fn, thread, hart, arguments: values }: CallBegin): Body | undefined {
    if (values.length === 0 && thread === undefined) return undefined;
    const notes = this.#notes.clear();
    if (thread !== undefined) {
      this.#hart ??= this.#sequence.nameField('hart');
      notes.add(this.#hart, String(hart));
    }
    const names = this.#of(fn).arguments;
    for (let i = 0; i < values.length; i++) {
      const { name, value } = values[i] as CallBegin['arguments'][number];
      let known = names[i];
      if (known?.argument !== name) {
        known = { argument: name, field: this.#sequence.nameField(`arg_${name}`) };
        names[i] = known;
      }
      notes.add(known.field, value);
    }
    return notes;
  }

  /** Valid until the next call. */
  result(value: string): Body {
    this.#returned ??= this.#sequence.nameField('returned');
    const notes = this.#notes.clear();
    notes.add(this.#returned, value);
    return notes;
  }

  /** An end whose begin was not seen. */
  orphan(event: CallEnd | CallLost): Body {
    const notes = this.#sequence.annotate();
    if (event.type === 'call-lost') notes.text('result', 'lost');
    else if (event.result !== undefined) notes.value('returned', event.result);
    const { address, instance, name } = event.function;
    notes.pointer('address', address);
    if (instance !== name) notes.text('instance', instance);
    noteBegan(notes, event);
    return this.#sequence.body({ category: 'call', name: event.function.name });
  }

  #of(fn: FunctionRef): Kept {
    const known = this.#kept[fn.key];
    if (known?.function === fn) return known;
    const { name, instance, address } = fn;
    const notes = this.#sequence.annotate();
    notes.pointer('address', address);
    if (instance !== name) notes.text('instance', instance);
    const begin = this.#sequence.body({ category: 'call', name, place: fn });
    const kept: Kept = { function: fn, begin, arguments: [] };
    this.#kept[fn.key] = kept;
    return kept;
  }
}
