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
import { isBegin, isEnd, OpenCalls } from './open-calls.js';
import type { Chosen } from './selection.js';
import { Fold } from './sinks.js';

interface TimedCall {
  readonly begin: AnyBegin;
  readonly thing: FunctionRef | FutureRef;
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

class CallTimes {
  readonly #open = new OpenCalls<TimedCall>();
  #events = 0;

  /** `isChosen`: false for a call whose {@link CallTime} nobody adds up. */
  begin(begin: AnyBegin, isChosen = true): void {
    const around = this.#open.of(begin.around);
    const before = this.#events++;
    this.#open.begin({ begin, thing: thingOf(begin), around, before, isOver: false, isChosen, inside: 0, counted: 0 });
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
  readonly #chosen: Chosen | undefined;
  /** Calls that are not chosen. */
  readonly #others = new WeakSet<AnyBegin>();

  /** `chosen`: of these calls and polls alone. */
  constructor(chosen?: Chosen) {
    super();
    this.#chosen = chosen;
  }

  event(event: TraceEvent): void {
    if (isBegin(event)) {
      const isChosen = this.#chosen === undefined || this.#chosen.begin(event);
      this.#times.begin(event, isChosen);
      if (isChosen) this.began(event);
      else this.#others.add(event);
    } else if (!isEnd(event)) this.other(event);
    else if (event.type === 'call-lost' || event.type === 'poll-lost') {
      if (this.#times.lost(event) && this.#isChosen(event)) this.lost(event);
    } else {
      const spent = this.#times.returned(event);
      // An end without a begin is no call.
      if (spent && this.#isChosen(event)) this.returned(event, spent);
    }
  }

  protected isOther(begin: AnyBegin): boolean {
    return this.#others.has(begin);
  }

  protected abstract began(begin: AnyBegin): void;

  protected abstract returned(event: PollEnd | CallEnd, spent: CallTime): void;

  /** Its end was not seen. */
  protected lost(_event: PollLost | CallLost): void {}

  protected other(_event: Exclude<TraceEvent, AnyBegin | AnyEnd>): void {}

  #isChosen({ begin }: AnyEnd): boolean {
    return this.#chosen === undefined || (begin !== undefined && !this.#others.has(begin));
  }
}

/** What the calls of a function, or the polls of a Future, came to. */
export class Tally {
  calls = 0;
  lost = 0;
  returned = 0;
  /** Those of `returned` that a stop was in. */
  stopped = 0;
  /** Time inside, recursion counted once. */
  total = 0;
  /** Events in that time, see `CallTime`. */
  inside = 0;
  self = 0;
  /** Of all that returned. */
  sum = 0;
  max = 0;

  add({ wasLost, stopped }: PollEnd | CallEnd, { time, self, total, events }: CallTime): void {
    if (wasLost) this.lost--;
    if (stopped) this.stopped++;
    this.returned++;
    this.sum += time;
    this.self += self;
    this.total += total;
    this.inside += events;
    this.max = Math.max(this.max, time);
  }
}

/** For a call that was emitted as lost: the time inside it is added to the call around it. */
function lateTime(time: number): CallTime {
  return { time, self: 0, total: time, events: 2 };
}

/** The nearest call of the same function around a call. */
function outerOfSame(call: TimedCall): TimedCall | undefined {
  const { thing } = call;
  for (let outer = call.around; outer && !outer.isOver; outer = outer.around) if (outer.thing === thing) return outer;
  return undefined;
}

function thingOf(begin: AnyBegin): FunctionRef | FutureRef {
  return begin.type === 'call-begin' ? begin.function : begin.future;
}
