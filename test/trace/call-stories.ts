import fc from 'fast-check';
import { addr } from '../../src/base/addr.js';
import type { FunctionRef, RootRef, TraceEvent } from '../../src/trace/index.js';
import { futures, linked, nanos } from './stories.js';

export const functions: readonly FunctionRef[] = ['main', 'k::work::leaf', 'k::work::add', 'isr'].map((name, i) => ({
  key: i + 1,
  name,
  instance: i === 2 ? `${name}::<u8>` : name,
  address: addr(0xffff_ffff_8000_0000n + BigInt(i) * 0x40n),
  file: i === 3 ? undefined : 'src/work.rs',
  line: i === 3 ? undefined : 10 * i + 1,
}));

/** What happened: known to the story's maker, not read back from its events. */
export interface TrueCall {
  readonly hart: number;
  /** Undefined for a poll. */
  readonly function: FunctionRef | undefined;
  readonly name: string;
  readonly around: readonly TrueCall[];
  readonly begin: number;
  end: number | undefined;
  lost: boolean;
}

export interface CallStory {
  readonly events: TraceEvent[];
  readonly calls: TrueCall[];
}

/** A random walk of one hart or two through calls and polls that nest in each other; some returns are never seen. */
export function callStory(numbers: readonly number[]): CallStory {
  const events: TraceEvent[] = [];
  const calls: TrueCall[] = [];
  const stacks: TrueCall[][] = [[], []];
  const roots = stacks.map(
    (_, hart): RootRef => ({
      key: hart,
      future: futures[0],
      address: addr(0x8000_1000n + BigInt(hart) * 0x100n),
    }),
  );
  let time = 0;
  for (const number of numbers) {
    time += number % 5 === 0 ? 0 : number % 97;
    const hart = number % 11 === 0 ? 1 : 0;
    const stack = stacks[hart] as TrueCall[];
    const root = roots[hart] as RootRef;
    const action = Math.floor(number / 1000) % 10;
    const inner = stack.at(-1);
    if (inner === undefined || (action < 5 && stack.length < 7)) {
      const fn = action === 4 ? undefined : functions[Math.floor(number / 10_000) % functions.length];
      const depth = stack.length;
      const call: TrueCall = {
        hart,
        function: fn,
        name: fn?.name ?? root.future.future,
        around: [...stack],
        begin: time,
        end: undefined,
        lost: false,
      };
      const at = { time: nanos(time), hart, depth };
      if (fn) events.push({ type: 'call-begin', ...at, function: fn, arguments: [{ name: 'x', value: `${number}` }] });
      else
        events.push({ type: 'poll-begin', ...at, root, future: root.future, address: root.address, state: undefined });
      stack.push(call);
      calls.push(call);
      continue;
    }
    stack.pop();
    inner.end = time;
    inner.lost = action === 9;
    const at = { time: nanos(time), hart, depth: stack.length, began: nanos(inner.begin) };
    const poll = { root, future: root.future, address: root.address };
    if (inner.function) {
      if (inner.lost) events.push({ type: 'call-lost', ...at, function: inner.function });
      else events.push({ type: 'call-end', ...at, function: inner.function, result: `${number}` });
    } else if (inner.lost) events.push({ type: 'poll-lost', ...at, ...poll });
    else events.push({ type: 'poll-end', ...at, ...poll, result: 'pending', state: undefined, chain: [] });
  }
  return { events: linked(events), calls };
}

/** Stories of up to 150 steps. */
export const callStories = fc.array(fc.nat({ max: 10_000_000 }), { minLength: 1, maxLength: 150 }).map(callStory);
