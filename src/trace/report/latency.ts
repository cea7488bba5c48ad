import { madeOnce } from '../../base/made-once.js';
import type { FutureRef, PollEnd, RootRef, TraceEvent } from '../events/events.js';
import { isOfTask } from '../events/roots.js';
import type { Chosen } from '../events/selection.js';
import { Fold } from '../events/sinks.js';
import type { Row, Rows } from './rows.js';
import { type Subject, Subjects } from './story/subjects.js';

/** A row a Future: how long it lived, from its first poll to its end. A request's life is that of its handler. */
export class Latency extends Fold {
  readonly #rows: Rows;
  readonly #lives: Subjects;
  /** Those in a task's present poll whose result nothing has shown, by name; undefined for two of one name. */
  readonly #unknown = new Map<RootRef, Map<string, Subject | undefined>>();
  readonly #isWanted: (name: string) => boolean;

  /** `chosen`: of these alone. */
  constructor(rows: Rows, chosen: Chosen | undefined) {
    super();
    this.#rows = rows;
    this.#isWanted = chosen?.note ?? (() => true);
    this.#lives = new Subjects({ kind: 'poll', matches: this.#isWanted, holds: undefined });
  }

  event(event: TraceEvent): void {
    if (event.type === 'poll-end') this.#ends(event);
    // Of a poll that was inlined nothing says how long it took.
    else if (event.type === 'derived-poll' && this.#rowOf(event.future)) this.#rows.unseen.add(event.future);
    else if (event.type === 'reset') this.#unknown.clear();
    const { began, ended } = this.#lives.on(event);
    if (event.type === 'poll-begin') {
      const row = began && this.#rowOf(event.future);
      if (row) row.calls++;
      // One without a state: its last poll may have been that of a life before, and this is the first of the next.
      else if (event.state === undefined && this.#lives.lifeAt(event)?.isUnknown) this.#rows.unseen.add(event.future);
    }
    if (ended?.isWhole && event.type !== 'gap') this.#over(ended.subject, event.time);
  }

  /** What was not seen to its end has no time. */
  override end(): void {
    for (const row of this.#rows.values()) row.lost = row.calls - row.durations.count;
  }

  #ends(end: PollEnd): void {
    this.#settle(end);
    const life = this.#lives.lifeAt(end);
    const row = life && this.#rowOf(end.future);
    if (life === undefined || row === undefined) return;
    life.busy += end.time - end.began;
    if (end.stopped) row.stopped++;
    life.isUnknown = end.result === 'unknown';
    if (life.isUnknown) {
      const unknown = madeOnce(this.#unknown, end.root, () => new Map<string, Subject | undefined>());
      unknown.set(end.future.future, unknown.has(end.future.future) ? undefined : life);
    }
  }

  /** A Future around one that is pending shows that it waits. A trace that was read back has names alone. */
  #settle(end: PollEnd): void {
    const unknown = this.#unknown.get(end.root);
    if (unknown === undefined) return;
    // What awaits another one has been polled, and is not over.
    for (const { future, typeName } of end.result === 'pending' ? end.chain.slice(0, -1) : []) {
      const life = unknown.get(future?.future ?? typeName);
      if (life) life.isUnknown = false;
    }
    if (isOfTask(end)) this.#unknown.delete(end.root);
  }

  #over({ begin, busy }: Subject, time: number): void {
    const row = begin.type === 'poll-begin' ? this.#rowOf(begin.future) : undefined;
    if (row === undefined) return;
    row.total += time - begin.time;
    row.self += busy;
    row.waiting = row.total - row.self;
    row.durations.add(time - begin.time);
  }

  #rowOf(future: FutureRef): Row | undefined {
    const { future: name, instance, file, line, inlined: isInlined = false } = future;
    if (![name, instance].some(this.#isWanted)) return undefined;
    return this.#rows.of(future, () => ({ name, subject: name, instance, file, line, isInlined, waiting: 0 }));
  }
}
