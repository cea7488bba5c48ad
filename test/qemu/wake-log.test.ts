// Who woke whom, and the poll that came of it, against the log that a kernel keeps itself. It has each wake, by which
// task or by the interrupt, and each poll, with the time of the machine's clock.
import t from 'tap';
import {
  onEvents,
  type PollBegin,
  type PollEnd,
  type RootRef,
  readTrace,
  type TraceEvent,
  type Wake,
} from '../../src/trace/index.js';
import { usually } from '../support/long.js';
import { tracePolls } from '../support/polls.js';

/** Of a task: that it was polled, or who woke it; the log's time in ticks of 100 ns. */
interface Entry {
  readonly what: string;
  readonly time: number;
}

function logged(console: string): Map<number, Entry[]> {
  const all = new Map<number, Entry[]>();
  for (const [, task, what = '', time] of console.matchAll(/^LAB log (\d+) (polled|woken by=\w+) at=(\d+)/gm))
    add(all, Number(task), { what, time: 100 * Number(time) });
  return all;
}

function add(all: Map<number, Entry[]>, task: number, entry: Entry): void {
  const entries = all.get(task) ?? [];
  // A task that wakes itself has a hundred thousand of them on a busy machine: none is copied.
  entries.push(entry);
  all.set(task, entries);
}

/** The same of a trace. Tasks are numbered in the order of their first polls, in which they were spawned too. */
class Told {
  readonly all = new Map<number, Entry[]>();
  readonly #numbers = new Map<RootRef, number>();
  readonly #open = new Map<RootRef, PollBegin>();

  event(event: TraceEvent): void {
    if (event.type === 'wake') this.#wake(event);
    else if (event.type === 'poll-begin') this.#begin(event);
    else if (event.type === 'poll-end') this.#end(event);
  }

  #wake({ root, by, caller, time }: Wake): void {
    const isInterrupt = /::timer_tick$/.test(caller.function ?? '');
    const who = isInterrupt ? 'interrupt' : by === undefined ? 'nobody' : this.#number(by);
    if (root) add(this.all, this.#number(root), { what: `woken by=${who}`, time });
    else add(this.all, -1, { what: 'an unknown task was woken', time });
  }

  #begin(event: PollBegin): void {
    if (this.#open.has(event.root)) return;
    this.#open.set(event.root, event);
    add(this.all, this.#number(event.root), { what: 'polled', time: event.time });
  }

  #end({ root, begin }: PollEnd): void {
    if (begin !== undefined && this.#open.get(root) === begin) this.#open.delete(root);
  }

  #number(root: RootRef): number {
    const known = this.#numbers.get(root) ?? this.#numbers.size;
    this.#numbers.set(root, known);
    return known;
  }
}

/** From the first wake since a poll to the next poll. */
function delays(entries: readonly Entry[]): number[] {
  const found: number[] = [];
  let woken: number | undefined;
  for (const { what, time } of entries) {
    if (what !== 'polled') woken ??= time;
    else if (woken !== undefined) {
      found.push(time - woken);
      woken = undefined;
    }
  }
  return found;
}

/** Of the kernel's log, which the task that wakes itself fills on a busy machine. */
const ENTRIES = 4096;

/** The task that wakes itself by a waker that the compiler knows. Optimised, its wakes are inlined: no mark is left. */
const CANCELLED = 5;

const guests = ['rv-asynctask-o0', 'rv-asynctask-o3', 'x86-asynctask-o0', 'x86-asynctask-o3'];
for (const guest of usually(guests, (one) => one === 'x86-asynctask-o3'))
  t.test(`${guest}: each wake and each poll of the kernel's log, in its order`, async (t) => {
    const { output, console } = await tracePolls(t, guest);
    const told = new Told();
    await readTrace(
      output.trace,
      onEvents((event) => told.event(event)),
    );
    const log = logged(console);
    const isFull = [...log.values()].flat().length === ENTRIES;
    const isOptimised = guest.endsWith('o3');
    // Unoptimised, the interrupt's handler calls a function of the library, which calls the waker's.
    const who = (what: string): string => (isOptimised ? what : what.replace(/ by=.*/, ''));
    const of = (all: ReadonlyMap<number, readonly Entry[]>, task: number): string[] =>
      (all.get(task) ?? []).map(({ what }) => who(what));
    t.equal(log.size, 9);
    t.ok([...log.values()].flat().length > 150);
    t.strictSame([...told.all.keys()].sort(), [...log.keys()].sort(), 'no unknown tasks');
    for (const task of log.keys())
      if (task !== CANCELLED || !isOptimised) {
        const [all, known] = [of(told.all, task), of(log, task)];
        t.strictSame(isFull ? all.slice(0, known.length) : all, known, `task ${task}`);
      }
    const polls = (texts: readonly string[]): number => texts.filter((what) => what === 'polled').length;
    if (!isFull) t.equal(polls(of(told.all, CANCELLED)), polls(of(log, CANCELLED)));
    for (const { number, wakes, wakes_at_least: isBound } of output.tasks) {
      const known = of(log, number - 1).filter((what) => what !== 'polled').length;
      t.equal(isBound, isOptimised);
      if (isFull) continue;
      t.ok(isBound && number - 1 === CANCELLED ? (wakes ?? 0) <= known : wakes === known, `task ${number}: ${wakes}`);
    }
    if (!guest.startsWith('rv')) return;
    for (const [task, entries] of log) {
      if (task === CANCELLED && isOptimised) continue;
      const known = delays(entries);
      const traced = delays(told.all.get(task) ?? []);
      if (!isFull) t.equal(traced.length, known.length);
      // The kernel looks at the clock before the wake, and in the poll.
      for (const [i, delay] of traced.slice(0, known.length).entries())
        t.ok(delay >= 0 && delay <= (known[i] ?? 0) + 100, `task ${task}: ${delay} ns of ${known[i]} ns`);
    }
  });
