/**
 * Where the time of polls and calls goes. For each function and each Future the following holds at any time, whatever
 * was lost, is open, recurses or continued on another hart:
 *
 *      calls = returned + lost + open
 *      longest <= total <= sum of the times of all that returned
 *      self <= total
 *      average = that sum / returned, between the shortest and the longest
 *
 * A call that ends after the call around it was not inside it: it is on another stack.
 */
import type {
  AnyBegin,
  AnyEnd,
  CallEnd,
  CallLost,
  FunctionRef,
  FutureRef,
  PollEnd,
  PollLost,
  TraceEvent,
} from './events.js';
import { OpenCalls } from './open-calls.js';
import { Fold } from './sinks.js';

interface TimedCall {
  readonly begin: AnyBegin;
  readonly around: TimedCall | undefined;
  /** Events before it. */
  readonly before: number;
  isOver: boolean;
  /** Its time is in totals. */
  readonly isChosen: boolean;
  /** Time of the calls and polls directly inside that have returned. */
  inside: number;
  /** Time of calls of the same function or Future inside, as far as their total has it. */
  counted: number;
}

/** What the end of a call adds. */
export interface CallTime {
  readonly time: number;
  /** Without the calls and polls inside. */
  readonly self: number;
  /** To the time that passed while the function, or a poll of the Future, ran. */
  readonly total: number;
  /** Events in that time, its own two included: each was a stop, where all were recorded by stops. */
  readonly events: number;
}

export class CallTimes {
  readonly #open = new OpenCalls<TimedCall>();
  #events = 0;

  /** `isChosen`: false for a call whose {@link CallTime} nobody adds up. */
  begin(begin: AnyBegin, isChosen = true): void {
    const around = this.#open.of(begin.around);
    const before = this.#events++;
    this.#open.begin({ begin, around, before, isOver: false, isChosen, inside: 0, counted: 0 });
  }

  /** Undefined if the begin was not seen. */
  returned(event: PollEnd | CallEnd): CallTime | undefined {
    this.#events++;
    const call = this.#open.end(event);
    if (!call) return event.wasLost ? lateTime(event.time - event.began) : undefined;
    call.isOver = true;
    const time = event.time - call.begin.time;
    const self = Math.max(0, time - call.inside);
    // Calls that were counted as inside may have turned out to be on another stack.
    const total = Math.max(self, time - call.counted);
    const outer = outerOfSame(call);
    if (outer) outer.counted += call.isChosen ? total + call.counted : call.counted;
    if (call.around && !call.around.isOver) call.around.inside += time;
    return { time, self, total, events: outer ? 0 : this.#events - call.before };
  }

  /** Its end was not seen. Returns whether its begin was. */
  lost(event: PollLost | CallLost): boolean {
    const call = this.#open.end(event);
    if (!call) return false;
    call.isOver = true;
    const outer = outerOfSame(call);
    if (outer) outer.counted += call.counted;
    if (call.around && !call.around.isOver) call.around.inside += call.inside;
    return true;
  }
}

/** What makes something of calls and polls by the time that each took. */
export abstract class TimedFold extends Fold {
  readonly #times = new CallTimes();

  event(event: TraceEvent): void {
    switch (event.type) {
      case 'call-begin':
      case 'poll-begin':
        this.#times.begin(event, this.began(event));
        break;
      case 'call-end':
      case 'poll-end': {
        const spent = this.#times.returned(event);
        // An end without a begin is no call.
        if (spent) this.returned(event, spent);
        break;
      }
      case 'call-lost':
      case 'poll-lost':
        if (this.#times.lost(event)) this.lost(event);
        break;
      default:
        this.other(event);
    }
  }

  /** Returns whether its time is added up. */
  protected abstract began(begin: AnyBegin): boolean;

  protected abstract returned(event: PollEnd | CallEnd, spent: CallTime): void;

  /** Its end was not seen. */
  protected lost(_event: PollLost | CallLost): void {}

  protected other(_event: Exclude<TraceEvent, AnyBegin | AnyEnd>): void {}
}

/** What the calls of a function, or the polls of a Future, came to. */
export interface Tally {
  calls: number;
  lost: number;
  returned: number;
  /** Time inside, recursion counted once. */
  total: number;
  /** Events in that time, see `CallTime`. */
  inside: number;
  self: number;
  /** Of all that returned. */
  sum: number;
  max: number;
}

export const noCalls: Readonly<Tally> = {
  calls: 0,
  lost: 0,
  returned: 0,
  total: 0,
  inside: 0,
  self: 0,
  sum: 0,
  max: 0,
};

export function addTo(tally: Tally, { wasLost }: PollEnd | CallEnd, { time, self, total, events }: CallTime): void {
  if (wasLost) tally.lost--;
  tally.returned++;
  tally.sum += time;
  tally.self += self;
  tally.total += total;
  tally.inside += events;
  tally.max = Math.max(tally.max, time);
}

/** For a call that was emitted as lost: the time inside it is added to the call around it. */
function lateTime(time: number): CallTime {
  return { time, self: 0, total: time, events: 2 };
}

/** The nearest call of the same function around a call. */
function outerOfSame(call: TimedCall): TimedCall | undefined {
  const thing = thingOf(call.begin);
  for (let outer = call.around; outer && !outer.isOver; outer = outer.around) {
    if (thingOf(outer.begin) === thing) return outer;
  }
  return undefined;
}

function thingOf(begin: AnyBegin): FunctionRef | FutureRef {
  return begin.type === 'call-begin' ? begin.function : begin.future;
}
