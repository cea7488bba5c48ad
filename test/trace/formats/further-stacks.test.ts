import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import {
  type CallBegin,
  type FunctionRef,
  type GuestNanos,
  openTrace,
  type TraceSink,
} from '../../../src/trace/index.js';
import { variant } from '../../support/long.js';
import { info } from '../stories.js';
import { folder } from '../written.js';

const most = 300_000;
const width = 600;

const functions = Array.from({ length: width }, (_, key): FunctionRef => {
  const name = `f${key}`;
  return { key, name, instance: name, address: addr(BigInt(key)), file: undefined, line: undefined };
});

/** Each of 600 functions calls each: 360,600 stacks, 361,200 calls. Of each call the first nanosecond is its own. */
function each(sink: TraceSink): void {
  let last = 0;
  const next = (): GuestNanos => last++ as GuestNanos;
  const begin = (fn: FunctionRef, around: CallBegin | undefined): CallBegin => {
    const depth = around ? 1 : 0;
    const event: CallBegin = { type: 'call-begin', time: next(), hart: 0, depth, around, function: fn, arguments: [] };
    sink.event(event);
    return event;
  };
  const end = (event: CallBegin): void =>
    sink.event({ ...event, type: 'call-end', time: last as GuestNanos, began: event.time, begin: event });
  sink.begin(info);
  for (const caller of functions) {
    const outer = begin(caller, undefined);
    for (const callee of functions) end(begin(callee, outer));
    end(outer);
  }
  sink.end();
}

t.test('stacks past the limit are in a frame of their own, below the caller that is known; none is lost', async (t) => {
  const path = join(folder, 'further.folded');
  each(openTrace(path));
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  const values = lines.map((line) => Number(/ (\d+)$/.exec(line)?.[1]));
  t.equal(
    values.reduce((sum, value) => sum + value, 0),
    width * width + width,
    'a nanosecond a call',
  );
  const further = lines.filter((line) => line.includes(`[stacks past the first ${most}]`));
  t.equal(lines.length - further.length, most);
  t.match(further[0], /^f\d+;\[stacks past the first 300000\] \d+$/);
  t.match(further.at(-1), /^\[stacks past the first 300000\] \d+$/, 'its caller is past the limit, too');
});

variant(t, "in Firefox Profiler's file too", async (t) => {
  const path = join(folder, 'further.firefox.json');
  each(openTrace(path));
  const { threads } = JSON.parse(readFileSync(path, 'utf8'));
  const [{ stackTable, samples, stringArray }] = threads;
  t.ok(stringArray.includes(`[stacks past the first ${most}]`));
  t.ok(stackTable.length > most && stackTable.length <= most + width, `${stackTable.length}`);
  const weight = samples.weight.reduce((sum: number, each: number) => sum + each, 0);
  t.equal(Math.round(weight * 1e6), width * width + width);
});

t.test("what is open at the end is open up to there in Firefox Profiler's file", async (t) => {
  const path = join(folder, 'open.firefox.json');
  const sink = openTrace(path);
  const [one, other] = functions;
  const at = { depth: 0, arguments: [], around: undefined };
  const inner = { ...at, type: 'call-begin', hart: 1, time: 10 as GuestNanos, function: other } as CallBegin;
  sink.begin(info);
  sink.event({ ...at, type: 'call-begin', hart: 0, time: 2 as GuestNanos, function: one } as CallBegin);
  sink.event(inner);
  sink.event({ ...inner, type: 'call-end', time: 1000 as GuestNanos, began: inner.time, begin: inner });
  sink.end();
  const { threads } = JSON.parse(readFileSync(path, 'utf8'));
  t.same(
    threads.map((thread: { name: string; samples: { weight: number[] } }) => [thread.name, thread.samples.weight]),
    [
      ['hart 0', [0.000998]],
      ['hart 1', [0.00099]],
    ],
  );
});
