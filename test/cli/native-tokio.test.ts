// A release build of a tokio program, which the compiler has inlined most polls of: what is derived or seen where it was inlined is
// never more than the program counted, and what may be less is marked.
import t, { type Test } from 'tap';
import { long } from '../support/long.js';
import { pollsPrinted, pollsProgram } from '../support/native.js';
import { trace, withoutStops } from '../support/native-trace.js';
import type { FutureRow } from '../support/recording.js';

/** Names of tokio's Futures, as the program prints them. */
const names = new Map([
  ['tokio::sync::batch_semaphore::Acquire', 'Acquire'],
  ['tokio::sync::mutex::Mutex::lock', 'lock'],
  ['tokio::sync::semaphore::Semaphore::acquire', 'acquire'],
  ['tokio::sync::semaphore::Semaphore::acquire_many', 'acquire_many'],
  ['tokio::sync::mpsc::bounded::Sender::send', 'send'],
  ['tokio::sync::mpsc::bounded::Receiver::recv', 'recv'],
  ['tokio::task::yield_now::yield_now', 'yield_now'],
]);

async function tracePolls(t: Test, threads: string, ...options: readonly string[]): Promise<readonly FutureRow[]> {
  const program = pollsProgram(t, 'tokio');
  const { output, stdout } = await trace(t, [program, threads], ...options, '-p', 'poll:**');
  const truth = pollsPrinted(stdout);
  t.equal(truth.size, names.size, stdout);
  const counted = output.futures.flatMap((row) => {
    const name = names.get(row.future);
    return name === undefined ? [] : [{ ...row, truth: truth.get(name) ?? 0 }];
  });
  t.equal(counted.length, names.size);
  for (const { future, polls, ready, pending, at_least, truth } of counted) {
    t.ok(at_least ? polls <= truth : polls === truth, `${future}: ${at_least ? '>=' : ''}${polls} of ${truth}`);
    // Of an inlined poll that leaves the state as it was, memory does not say the result.
    t.ok(ready + pending <= polls, future);
  }
  if (options.includes('target')) {
    withoutStops(t, output);
    t.equal(output.futures.filter(({ lost, panicked }) => lost + panicked > 0).length, 0, 'each poll has its end');
  }
  return counted;
}

/** How many are seen exactly. */
function exact(rows: readonly FutureRow[]): number {
  return rows.filter(({ at_least }) => !at_least).length;
}

t.test('one thread: patches inside functions see as much without stops as breakpoints do', async (t) => {
  const patched = await tracePolls(t, '0', '--engine', 'target');
  t.ok(exact(patched) >= 4, `${exact(patched)} exactly`);
  // Thousands of stops.
  if (!long) return;
  const few = await tracePolls(t, '0', '--engine', 'stop');
  const all = await tracePolls(t, '0', '--engine', 'stop', '--exact');
  t.ok(exact(few) <= exact(patched), 'where breakpoints are spared, less is seen');
  t.ok(exact(patched) <= exact(all), 'breakpoints are possible anywhere');
  const polls = (rows: readonly FutureRow[]) =>
    rows.filter(({ at_least }) => !at_least).map((row) => [row.future, row.polls]);
  const known = new Map(polls(all) as [string, number][]);
  for (const [future, count] of polls(patched) as [string, number][]) t.equal(known.get(future), count, future);
});

t.test('three threads: each knows the poll that is open in it', async (t) => {
  await tracePolls(t, '3', '--engine', 'target');
});
