import fc from 'fast-check';
import { addr } from '../../src/base/addr.js';
import type {
  AnyBegin,
  AnyEnd,
  AwaitLink,
  FutureRef,
  GuestNanos,
  PollResult,
  RootRef,
  StateRef,
  TraceEvent,
  TraceFacts,
  TraceInfo,
  TraceSink,
} from '../../src/trace/index.js';

export const info: TraceInfo = {
  program: 'labkern',
  buildId: 'c0ffee',
  arch: 'riscv64',
  clock: { name: 'riscv-time', resolutionNs: 100, guest: true },
  harts: [
    { number: 0, name: 'hart 0' },
    { number: 1, name: 'hart 1' },
  ],
};

export function future(
  key: number,
  name: string,
  line: number | undefined,
  instance = `${name}::{async_fn_env#0}`,
): FutureRef {
  return { key, future: name, instance, kind: 'async_fn', file: line && `src/${name}.rs`, line } as FutureRef;
}

export const futures = [
  future(0, 'a', 10),
  future(1, 'b', 20),
  future(2, 'c::d', 30, 'c::d<"\\\u00e9\n">::{async_fn_env#0}'),
  future(3, 'no_place', undefined),
] as const;

export const unresumed: StateRef = { name: 'Unresumed', file: undefined, line: undefined };
export const returned: StateRef = { name: 'Returned', file: undefined, line: undefined };
export const suspend0: StateRef = { name: 'Suspend0', file: 'src/a.rs', line: 12 };
export const suspend1: StateRef = { name: 'Suspend1', file: 'src/b.rs', line: 25 };

export const nanos = (value: number): GuestNanos => value as GuestNanos;

export function link(future: FutureRef | undefined, typeName: string, state: StateRef | undefined): AwaitLink {
  return { future, typeName, address: undefined, state };
}

/** What happened in the guest to one poll: known to the story's maker, not read back from its events. */
export interface TruePoll {
  readonly hart: number;
  readonly root: RootRef;
  readonly future: FutureRef;
  /** Polls of any root around it on its hart, and those of its own root. */
  readonly around: readonly TruePoll[];
  readonly begin: number;
  /** Where it begins. */
  readonly state: StateRef | undefined;
  end: number | undefined;
  result: PollResult | 'lost' | undefined;
}

export interface TrueInstant {
  readonly root: RootRef;
  readonly future: FutureRef;
  readonly time: number;
  readonly derivedPoll: PollResult | undefined;
}

export interface Story {
  readonly events: TraceEvent[];
  readonly polls: TruePoll[];
  readonly instants: TrueInstant[];
}

/**
 * A random walk through what a guest with two harts can do, driven by numbers: a task is polled by one hart at a time, polls
 * nest (also polls of other tasks), a task that is ready makes place for a new one at its address, polls can be lost, and the
 * trace can end with polls open.
 */
export function story(numbers: readonly number[]): Story {
  const events: TraceEvent[] = [];
  const polls: TruePoll[] = [];
  const instants: TrueInstant[] = [];
  const stacks: TruePoll[][] = [[], []];
  let keys = 0;
  const spawn = (slot: number): RootRef => ({
    key: keys++,
    future: pick(futures, slot % futures.length),
    address: addr(0xffff_ffff_8000_0000n + BigInt(slot) * 0x1000n),
  });
  const slots = [0, 1, 2, 3, 4].map(spawn);
  const busy = new Set<number>();
  let time = 0;
  for (const number of numbers) {
    let rest = number;
    const take = (below: number): number => {
      const value = rest % below;
      rest = Math.floor(rest / below);
      return value;
    };
    time += take(3) * 7;
    const hart = take(2);
    const stack = pick(stacks, hart);
    const action = take(10);
    const inner = stack.at(-1);
    const address = (depth: number, root: RootRef) => addr(root.address + BigInt(depth) * 0x10n);
    const ownDepth = (poll: TruePoll) => poll.around.filter((outer) => outer.root === poll.root).length;
    if (inner === undefined || action < 4) {
      if (stack.length > 5) continue;
      const slot = take(slots.length);
      const isNested = inner !== undefined && take(3) > 0;
      if (!isNested && busy.has(slot)) continue;
      const root = isNested ? inner.root : pick(slots, slot);
      if (!isNested) busy.add(slot);
      const poll: TruePoll = {
        hart,
        root,
        future: isNested ? pick(futures, take(futures.length)) : root.future,
        around: [...stack],
        begin: time,
        state: pick([undefined, unresumed, suspend0, suspend1], take(4)),
        end: undefined,
        result: undefined,
      };
      events.push({
        type: 'poll-begin',
        time: nanos(time),
        hart,
        root,
        future: poll.future,
        address: address(ownDepth(poll), root),
        depth: stack.length,
        state: poll.state,
      });
      stack.push(poll);
      polls.push(poll);
      continue;
    }
    const at = {
      time: nanos(time),
      hart,
      root: inner.root,
      future: inner.future,
      address: address(ownDepth(inner), inner.root),
    };
    if (action === 4) {
      const derived = take(2) === 1;
      events.push({ type: 'state', ...at, from: unresumed, to: pick([suspend0, undefined], take(2)), derived });
      instants.push({ root: inner.root, future: inner.future, time, derivedPoll: undefined });
      continue;
    }
    if (action === 5) {
      const result = pick(['ready', 'pending'] as const, take(2));
      const whose = pick(futures, take(futures.length));
      events.push({ type: 'derived-poll', ...at, future: whose, result, state: suspend1 });
      instants.push({ root: inner.root, future: whose, time, derivedPoll: result });
      continue;
    }
    stack.pop();
    inner.end = time;
    const depth = stack.length;
    if (action === 6) {
      events.push({ type: 'poll-lost', ...at, depth, began: nanos(inner.begin) });
      inner.result = 'lost';
    } else {
      const result = pick(['pending', 'pending', 'ready', 'panicked', 'unknown'] as const, take(5));
      inner.result = result;
      const chain = [link(futures[1], 'b', suspend1), link(undefined, 'core::future::Pending', undefined)];
      const state = pick([suspend0, undefined, returned], take(3));
      events.push({
        type: 'poll-end',
        ...at,
        depth,
        began: nanos(inner.begin),
        result,
        state,
        chain: chain.slice(take(3)),
      });
    }
    if (ownDepth(inner) === 0) {
      const slot = slots.indexOf(inner.root);
      busy.delete(slot);
      if (inner.result === 'ready' || inner.result === 'panicked' || take(8) === 0) slots[slot] = spawn(slot);
    }
  }
  return { events: linked(events), polls, instants };
}

/** The same events, and what each is around, and the begin of each end, by their depths: the last that began there is meant, where it is the same. */
export function linked(events: readonly TraceEvent[]): TraceEvent[] {
  const tracks = new Map<string, AnyBegin[]>();
  return events.map((event) => {
    if (!('depth' in event)) return event;
    const { hart, thread, depth } = event;
    const name = thread ? `thread ${thread.key}` : `hart ${hart}`;
    const open = tracks.get(name) ?? [];
    tracks.set(name, open);
    if (event.type === 'poll-begin' || event.type === 'call-begin') {
      const begin = { ...event, around: open.slice(0, depth).findLast((outer) => outer) };
      open.length = Math.min(open.length, depth);
      open[depth] = begin;
      return begin;
    }
    const begin = open[depth];
    open.length = Math.min(open.length, depth);
    const isSame = begin && nameOf(begin) === nameOf(event) && begin.time === event.began;
    return (isSame ? { ...event, begin } : event) as TraceEvent;
  });
}

function nameOf(event: AnyBegin | AnyEnd): string {
  return 'function' in event ? `${event.function.key}` : `${event.future.key} @${event.address}`;
}

/** Stories of up to 120 steps. */
export const stories = fc.array(fc.maxSafeNat(), { minLength: 1, maxLength: 120 }).map(story);

/** The waits that a story has: from a pending end of a task's outermost poll to its next poll, or its place's next task. */
export function trueWaits(told: Story): { root: RootRef; begin: number; end: number | undefined }[] {
  const outermost = told.polls.filter((poll) => poll.around.every((outer) => outer.root !== poll.root));
  return outermost.flatMap((poll, i) => {
    if (poll.result !== 'pending' || poll.end === undefined) return [];
    // Polls are listed as they began, and one place is polled by one hart at a time.
    const next = outermost.slice(i + 1).find((later) => later.root.address === poll.root.address);
    return [{ root: poll.root, begin: poll.end, end: next?.begin }];
  });
}

/** Those that only the next poll shows, because it finds the Future at an await. */
export function lateWaits(told: Story): { begin: number; end: number }[] {
  const outermost = told.polls.filter((poll) => poll.around.every((outer) => outer.root !== poll.root));
  return outermost.flatMap((poll, i) => {
    const next = outermost.slice(i + 1).find((later) => later.root === poll.root);
    const isLate = poll.result === 'unknown' && (next?.state === suspend0 || next?.state === suspend1);
    return isLate && next && poll.end !== undefined ? [{ begin: poll.end, end: next.begin }] : [];
  });
}

export function tell(sink: TraceSink, events: readonly TraceEvent[], facts?: TraceFacts): void {
  sink.begin(info);
  for (const event of events) sink.event(event);
  sink.end(facts);
}

function pick<T>(list: readonly T[], index: number): T {
  const value = list[index];
  if (value === undefined && index >= list.length) throw new Error(`no ${index} in a list of ${list.length}`);
  return value as T;
}
