import type { MemoryReader } from '../base/memory-reader.js';
import { type HitMemory, type HitObserver, type Moment, nothingRead } from '../calls/index.js';
import { bytesIn, holds, holdsAtStop, operandAt, placeIn } from '../probes/index.js';
import {
  type AnyBegin,
  type AnyEnd,
  type CallBegin,
  type DerivedPoll,
  Fold,
  type FutureRef,
  type PlaceHit,
  type PollBegin,
  type PollEnd,
  type TraceEvent,
  type WatchHit,
} from '../trace/index.js';
import { ObjectPlace, type Operand, type PlainValue, plainValue, Unavailable, valueOfBytes } from '../values/index.js';
import { polledCapture, recordedValue } from './captures.js';
import type { Handlers, PlacedHandler } from './handlers.js';
import type { AnyHit, Asked, CallHit, PollHit, PollReturn } from './probe.js';

/** What a hit has behind it: see `#report`. Others may come without any. */
const ofHits: ReadonlySet<TraceEvent['type']> = new Set([
  ...(['call-begin', 'call-end', 'poll-begin', 'poll-end', 'derived-poll', 'place'] as const),
]);

/** Where a hit's values are read: at a stop, or in a record. */
type Source = { readonly at: Moment } & (
  | { readonly memory: MemoryReader; readonly record?: never }
  | { readonly record: HitMemory; readonly memory?: never }
);

/** A call or poll that a probe's handler is given. */
interface Open {
  readonly placed: PlacedHandler;
  readonly hit: AnyHit;
}

/**
 * Tells the probes of a target of their hits. Events come first, into this sink. Then, as an observer, it is given what
 * was read at the hit.
 */
export class HandlerCalls extends Fold implements HitObserver {
  readonly #handlers: Handlers;
  readonly #fail: (thrown: unknown) => void;
  #fresh: TraceEvent[] = [];
  readonly #open = new Map<AnyBegin, readonly Open[]>();
  /** What handlers of hits in records still do. */
  readonly #pending = new Set<Promise<unknown>>();

  /** `fail` is given what a handler throws. */
  constructor(handlers: Handlers, fail: (thrown: unknown) => void) {
    super();
    this.#handlers = handlers;
    this.#fail = fail;
  }

  event(event: TraceEvent): void {
    if (event.type === 'watch') this.#watch(event);
    else if (event.type === 'poll-lost' || event.type === 'call-lost') this.#lost(event);
    else if (ofHits.has(event.type)) this.#fresh.push(event);
  }

  recorded(at: Moment, record: HitMemory): void {
    for (const event of this.#taken()) this.#keep(this.#report(event, { at, record }));
  }

  async stopped(at: Moment, memory: MemoryReader): Promise<void> {
    try {
      for (const event of this.#taken()) await this.#report(event, { at, memory });
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  /** Resolves when all handlers are done. */
  async done(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  #taken(): readonly TraceEvent[] {
    const taken = this.#fresh;
    if (taken.length > 0) this.#fresh = [];
    return taken;
  }

  #keep(call: Promise<void>): void {
    const kept: Promise<void> = call.catch(this.#fail).finally(() => this.#pending.delete(kept));
    this.#pending.add(kept);
  }

  // Without an await before the handler is called: a record is not there any more after the first.
  #report(event: TraceEvent, source: Source): Promise<void> {
    switch (event.type) {
      case 'call-begin':
      case 'poll-begin':
        return this.#begins(event, source);
      case 'call-end':
      case 'poll-end':
        return this.#ends(event, source);
      case 'derived-poll':
        return this.#derived(event);
      case 'place':
        return this.#place(event, source);
      default:
        return Promise.resolve();
    }
  }

  async #begins(event: CallBegin | PollBegin, source: Source): Promise<void> {
    const { at } = source;
    const handlers = this.#handlers.beginning(event, at.pc);
    const opened: Open[] = [];
    // The end may be said before the handlers of records are done.
    if (handlers.length > 0) this.#open.set(event, opened);
    for (const placed of handlers) {
      const { when } = placed;
      if (when && source.record && !holds(when, at.registers, source.record)) continue;
      if (when && source.memory && !(await holdsAtStop(when, at.registers, source.memory))) continue;
      const hit = source.record
        ? hitOf(event, recordedValues(placed, at, source.record), undefined)
        : hitOf(event, await this.#values(placed, event, at, source.memory), source.memory);
      opened.push({ placed, hit });
      const called = reportHit(placed.asked, hit);
      if (!source.record) await called;
      else if (called instanceof Promise) this.#keep(called);
    }
  }

  async #values(
    placed: PlacedHandler,
    event: TraceEvent,
    at: Moment,
    memory: MemoryReader,
  ): Promise<Record<string, PlainValue>> {
    const values: Record<string, PlainValue> = {};
    const reader = this.#handlers.reader;
    for (const [index, capture] of placed.asked.captures.entries()) {
      if (reader === undefined) {
        values[capture.text] = withoutTypes(placed, index, at);
      } else if (placed.fn) {
        const places = placed.fn.arguments;
        values[capture.text] = await reader.value(capture, memory, (name) => operandAt(name, places, at.registers));
      } else if (event.type === 'poll-begin' && placed.future) {
        const self: Operand = {
          shape: reader.shape(placed.future.typeOffset),
          place: ObjectPlace.memory(event.address),
        };
        values[capture.text] = await reader.value(polledCapture(capture), memory, (name) =>
          name === 'self' ? self : undefined,
        );
      }
    }
    return values;
  }

  async #ends(event: Extract<TraceEvent, { type: 'call-end' | 'poll-end' }>, source: Source): Promise<void> {
    const opened = event.begin && this.#open.get(event.begin);
    if (!event.begin || !opened) return;
    this.#open.delete(event.begin);
    for (const { placed, hit } of opened) {
      const { probe, onReturn } = placed.asked;
      probe.returns++;
      if (!onReturn) continue;
      const found = event.type === 'poll-end' ? pollReturn(event) : this.#result(placed, source);
      const result = found instanceof Promise ? await found : found;
      const called = onReturn(hit, result, event.time - event.began);
      if (!source.record) await called;
      else if (called instanceof Promise) this.#keep(called);
    }
  }

  /** Of a record without an await. */
  #result({ fn }: PlacedHandler, { at, memory }: Source): PlainValue | Promise<PlainValue> {
    const place = fn?.result;
    if (!place) return {};
    const { shape, where } = place;
    if (where.kind === 'unavailable') return new Unavailable('it is not in registers');
    const reader = this.#handlers.reader;
    if (memory && reader) return reader.read({ shape, place: placeIn(where, shape.size ?? 0, at.registers) }, memory);
    if (where.kind === 'pointer') return new Unavailable('it lies in memory: probe with { stop: true }');
    const bytes = shape.size ? bytesIn(where, shape.size, at.registers) : new Uint8Array(0);
    return bytes ? plainValue(valueOfBytes(shape, bytes)) : new Unavailable('it is not in registers');
  }

  async #derived(event: DerivedPoll): Promise<void> {
    for (const asked of this.#handlers.polled(event.future)) {
      const why = new Unavailable('the compiler inlined this poll');
      const values = Object.fromEntries(asked.captures.map(({ text }) => [text, why]));
      const { time, hart, future, root: task } = event;
      const hit: PollHit = { time, hart, values, memory: undefined, event, future, task, ...derivedPoll(event) };
      await reportHit(asked, hit);
    }
  }

  async #place(event: PlaceHit, source: Source): Promise<void> {
    for (const { asked } of this.#handlers.at(source.at.pc)) {
      if (asked.spec.kind !== event.place.category) continue;
      const why = new Unavailable('only functions and polls have captures');
      const values = Object.fromEntries(asked.captures.map(({ text }) => [text, why]));
      const { time, hart, place } = event;
      await reportHit(asked, { time, hart, values, memory: source.memory, event, place });
    }
  }

  #watch(event: WatchHit): void {
    for (const asked of this.#handlers.watching(event.watch.name)) {
      const { time, hart } = event;
      const called = reportHit(asked, { time, hart, values: {}, memory: undefined, event, access: event });
      if (called instanceof Promise) this.#keep(called);
    }
  }

  #lost(event: AnyEnd): void {
    const opened = event.begin && this.#open.get(event.begin);
    if (!event.begin || !opened) return;
    this.#open.delete(event.begin);
    for (const { placed } of opened) placed.asked.probe.lost++;
  }
}

function reportHit({ probe, handler }: Asked, hit: AnyHit): unknown {
  probe.hits++;
  return handler?.(hit);
}

function hitOf(
  event: CallBegin | PollBegin,
  values: Record<string, PlainValue>,
  memory: MemoryReader | undefined,
): CallHit | PollHit {
  const { time, hart } = event;
  if (event.type === 'call-begin') return { time, hart, values, memory, event, function: event.function };
  const { future, state, root: task } = event;
  return { time, hart, values, memory, event, future, state, task, chain: chainTo(event), derived: false };
}

/** The Futures of one task whose polls are open around this one, and this one. */
function chainTo(event: PollBegin): readonly FutureRef[] {
  const chain: FutureRef[] = [];
  for (let at: AnyBegin | undefined = event; at; at = at.around)
    if (at.type === 'poll-begin' && at.root === event.root) chain.unshift(at.future);
  return chain;
}

function derivedPoll({ root, future, state }: DerivedPoll): Pick<PollHit, 'state' | 'chain' | 'derived'> {
  return { state, chain: root.future === future ? [future] : [root.future, future], derived: true };
}

function pollReturn({ result, state, chain }: PollEnd): PollReturn {
  return { result, state, chain };
}

const notRead = 'it was not read';

function recordedValues({ asked, plans }: PlacedHandler, at: Moment, record: HitMemory): Record<string, PlainValue> {
  const value = (index: number): PlainValue => recordedValue(plans[index] ?? notRead, at.registers, record);
  return Object.fromEntries(asked.captures.map(({ text }, index) => [text, value(index)]));
}

function withoutTypes({ plans }: PlacedHandler, index: number, at: Moment): PlainValue {
  return recordedValue(plans[index] ?? 'there is no debug info', at.registers, nothingRead);
}
