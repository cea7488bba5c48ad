import { AddressMap } from '../../../base/address-map.js';
import { madeOnce } from '../../../base/made-once.js';
import type {
  AnyBegin,
  AnyEnd,
  Cancelled,
  FutureRef,
  GuestNanos,
  PollBegin,
  PollResult,
  TraceEvent,
} from '../../events/events.js';
import { isBegin, isEnd } from '../../events/open-calls.js';
import { placeOf } from '../../events/roots.js';
import { isNamed, type Selection } from '../../events/selection.js';
import { Fold } from '../../events/sinks.js';

/** What a story is of: a call, or a Future from its first poll to its end. */
export interface Subject {
  /** In the order of their begins, from 1. */
  readonly number: number;
  readonly begin: AnyBegin;
  /** Of a Future: its first poll was before the trace, or the end of one was not seen. */
  isPart: boolean;
  /** The time in its polls, where somebody counts it. */
  busy: number;
  /** Nothing has shown the result of its last poll. */
  isUnknown: boolean;
}

type OfFuture = Pick<Cancelled, 'future' | 'address' | 'root'>;

/** What an event means for the subjects. */
export interface SubjectChange {
  readonly began?: Subject | undefined;
  readonly ended?: { readonly subject: Subject; readonly isWhole: boolean } | undefined;
}

const nothing: SubjectChange = {};

/** Finds in a trace what a story may be of. */
export class Subjects {
  readonly #wanted: Selection;
  readonly #open = new Map<AnyBegin, Subject>();
  /** Futures that are not over, by what and where they are. */
  readonly #lives = new Map<FutureRef, AddressMap<Subject>>();
  #count = 0;

  constructor(wanted: Selection) {
    this.#wanted = wanted;
  }

  get count(): number {
    return this.#count;
  }

  on(event: TraceEvent): SubjectChange {
    if (event.type === 'poll-begin') return this.#polled(event);
    if (event.type === 'cancelled') return event.root ? this.#lifeEnds(event, false) : nothing;
    if (event.type === 'derived-poll') return isOver(event.result) ? this.#lifeEnds(event, true) : nothing;
    if (event.type === 'reset') this.#lives.clear();
    // What lives may be over, and another one in its place.
    if (event.type === 'gap')
      for (const lives of this.#lives.values()) for (const life of lives.values()) life.isPart = true;
    if (isBegin(event)) return isThread(event) || !isNamed(this.#wanted, event) ? nothing : this.#begins(event);
    return isEnd(event) ? this.#ends(event) : nothing;
  }

  #begins(begin: AnyBegin): SubjectChange {
    const { type } = begin;
    const isPart = type === 'poll-begin' && begin.state !== undefined && begin.state.name !== 'Unresumed';
    const began = { number: ++this.#count, begin, isPart, busy: 0, isUnknown: false };
    if (begin.type === 'call-begin') this.#open.set(begin, began);
    else madeOnce(this.#lives, begin.future, () => new AddressMap<Subject>(16)).set(placeOfFuture(begin), began);
    return { began };
  }

  /** The Future that lives there. */
  lifeAt(of: OfFuture): Subject | undefined {
    return this.#lives.get(of.future)?.get(placeOfFuture(of));
  }

  #polled(begin: PollBegin): SubjectChange {
    if (!isNamed(this.#wanted, begin)) return nothing;
    const before = this.lifeAt(begin);
    // One written by hand has no state: it lives on until it is ready.
    if (before && begin.state?.name !== 'Unresumed') return nothing;
    return { ...this.#begins(begin), ended: before && { subject: before, isWhole: false } };
  }

  #ends(event: AnyEnd): SubjectChange {
    const { begin } = event;
    const subject = begin && this.#open.get(begin);
    if (begin && subject) {
      this.#open.delete(begin);
      return { ended: { subject, isWhole: event.type === 'call-end' } };
    }
    if (event.type === 'poll-end') return isOver(event.result) ? this.#lifeEnds(event, true) : nothing;
    const life = event.type === 'poll-lost' ? this.lifeAt(event) : undefined;
    if (life) life.isPart = true;
    return nothing;
  }

  #lifeEnds(of: OfFuture, isWhole: boolean): SubjectChange {
    const subject = this.lifeAt(of);
    this.#lives.get(of.future)?.delete(placeOfFuture(of));
    return { ended: subject && { subject, isWhole: isWhole && !subject.isPart } };
  }
}

function isOver(result: PollResult): boolean {
  return result === 'ready' || result === 'panicked';
}

/** Distinguishes two Futures, as long as both live. */
export function lifeOf(of: OfFuture): string {
  return `${of.future.key} ${placeOfFuture(of)}`;
}

function placeOfFuture({ address, root }: OfFuture): bigint {
  return placeOf({ address, space: root?.space });
}

/** A time that a thread had a hart. */
export function isThread(event: AnyBegin | AnyEnd): boolean {
  return 'function' in event && event.function.kind === 'thread';
}

/** Chooses the subject of a story: the one with a number, else the one that took longest. */
export class Choice extends Fold {
  readonly #subjects: Subjects;
  readonly #nth: number | undefined;
  readonly names = new Set<string>();
  #longest: { readonly number: number; readonly time: GuestNanos } | undefined;

  constructor(wanted: Selection, nth: number | undefined) {
    super();
    this.#subjects = new Subjects(wanted);
    this.#nth = nth;
  }

  get count(): number {
    return this.#subjects.count;
  }

  /** Undefined if there is none. Where none has ended it is the first. */
  get number(): number | undefined {
    if (this.#nth !== undefined) return this.#nth <= this.count ? this.#nth : undefined;
    return this.#longest?.number ?? (this.count > 0 ? 1 : undefined);
  }

  event(event: TraceEvent): void {
    const { ended } = this.#subjects.on(event);
    if (this.count === 0 && isBegin(event) && !isThread(event))
      this.names.add(event.type === 'call-begin' ? event.function.name : event.future.future);
    if (!ended?.isWhole || event.type === 'gap') return;
    const time = (event.time - ended.subject.begin.time) as GuestNanos;
    if (this.#longest === undefined || time > this.#longest.time)
      this.#longest = { number: ended.subject.number, time };
  }
}
