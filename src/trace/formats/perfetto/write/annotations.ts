import { DEBUG_ANNOTATION, TRACK_EVENT } from '../fields.js';
import { ProtoBuffer } from '../protobuf.js';
import type { Interned } from './interned.js';

/** The arguments of one event, gathered as fields of its TrackEvent. */
export class Annotations {
  readonly fields = new ProtoBuffer();
  readonly #interned: Interned;

  constructor(interned: Interned) {
    this.#interned = interned;
  }

  /** A text that comes again and again: written once. */
  text(name: string, value: string): void {
    const mark = this.#open(name);
    const iid = this.#interned.value(value);
    if (iid === 0) this.fields.text(DEBUG_ANNOTATION.stringValue, value);
    else this.fields.uint(DEBUG_ANNOTATION.stringValueIid, iid);
    this.fields.close(mark);
  }

  /** A text that may never come again. */
  value(name: string, value: string): void {
    const mark = this.#open(name);
    this.fields.text(DEBUG_ANNOTATION.stringValue, value);
    this.fields.close(mark);
  }

  /** JSON, which Perfetto shows member by member. */
  json(name: string, value: object): void {
    const mark = this.#open(name);
    this.fields.text(DEBUG_ANNOTATION.legacyJsonValue, JSON.stringify(value));
    this.fields.close(mark);
  }

  pointer(name: string, value: bigint): void {
    const mark = this.#open(name);
    this.fields.uint64(DEBUG_ANNOTATION.pointerValue, value);
    this.fields.close(mark);
  }

  bool(name: string, value: boolean): void {
    const mark = this.#open(name);
    this.fields.bool(DEBUG_ANNOTATION.boolValue, value);
    this.fields.close(mark);
  }

  #open(name: string): number {
    const mark = this.fields.open(TRACK_EVENT.debugAnnotations);
    putName(this.fields, name, this.#interned);
    return mark;
  }
}

/** The field that gives an annotation's name. */
export function putName(into: ProtoBuffer, name: string, interned: Interned): void {
  const iid = interned.annotationName(name);
  if (iid === 0) into.text(DEBUG_ANNOTATION.name, name);
  else into.uint(DEBUG_ANNOTATION.nameIid, iid);
}
