import { addr } from '../../src/base/addr.js';
import type { PollEnd, PollResult, StateRef, TraceEvent } from '../../src/trace/index.js';
import { futures, link, linked, nanos, returned, suspend0, suspend1, unresumed } from './stories.js';

export const root = { key: 7, future: futures[0], address: addr(0xffff_ffff_8041_2340n) };
export const inner = addr(root.address + 0x20n);
const suspend2 = { name: 'Suspend2', file: 'src/c.rs', line: 31 };
const chain = [
  link(futures[1], 'b', suspend1),
  link(futures[2], 'c::d', suspend2),
  link(undefined, 'timer::Sleep', unresumed),
  link(undefined, 'timer::Timer', undefined),
];

const a = { root, future: futures[0], address: root.address };
const b = { root, future: futures[1], address: inner };
const derived = { root, future: futures[2], address: inner };

/** One task: a awaits b, pends, and is ready at its second poll, which hart 2 makes, unknown until then. */
export const oneTask: TraceEvent[] = linked([
  { type: 'poll-begin', ...a, hart: 0, time: nanos(0), depth: 0, state: unresumed },
  { type: 'state', ...a, hart: 0, time: nanos(100), from: unresumed, to: suspend0, derived: false },
  { type: 'poll-begin', ...b, hart: 0, time: nanos(200), depth: 1, state: undefined },
  { type: 'derived-poll', ...derived, hart: 0, time: nanos(300), result: 'pending', state: suspend1 },
  end(b, 0, 1, 200, 400, 'pending', suspend1),
  { ...end(a, 0, 0, 0, 500, 'pending', suspend0), chain },
  { type: 'poll-begin', ...a, hart: 2, time: nanos(5_000_000_123), depth: 0, state: suspend0 },
  end(a, 2, 0, 5_000_000_123, 5_000_001_000, 'ready', returned),
]);

function end(
  whose: typeof a | typeof b,
  hart: number,
  depth: number,
  began: number,
  time: number,
  result: PollResult,
  state: StateRef,
): PollEnd {
  return { type: 'poll-end', ...whose, hart, depth, began: nanos(began), time: nanos(time), result, state, chain: [] };
}
