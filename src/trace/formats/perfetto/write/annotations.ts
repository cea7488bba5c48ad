import { DEBUG_ANNOTATION, TRACK_EVENT } from '../fields.js';
import { ProtoBuffer } from '../protobuf.js';
import type { Interned } from './interned.js';

/** The arguments and flows of one event, gathered as fields of its TrackEvent. */
export class Annotations {
  readonly fields = new ProtoBuffer();
  readonly #interned: Interned;

  constructor(interned: Interned) {
    this.#interned = interned;
  }

  clear(): this {
    this.fields.clear();
    return this;
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

  /** A flow leads to the event from the last one of the same number, and on to the next. */
  flow(number: number): void {
    this.fields.fixed64(TRACK_EVENT.flowIds, number);
  }

  /** The flow of this number ends at the event. */
  endOfFlow(number: number): void {
    this.fields.fixed64(TRACK_EVENT.terminatingFlowIds, number);
  }

  #open(name: string): number {
    const mark = this.fields.open(TRACK_EVENT.debugAnnotations);
    const iid = this.#interned.annotationName(name);
    if (iid === 0) this.fields.text(DEBUG_ANNOTATION.name, name);
    else this.fields.uint(DEBUG_ANNOTATION.nameIid, iid);
    return mark;
  }
}
