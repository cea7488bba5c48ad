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
import type { AnyBegin, CallEnd, CallLost, FunctionRef, FutureRef, PollEnd, PollLost } from './events.js';
import { OpenCalls } from './open-calls.js';

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
