// A release build of a tokio program, which the compiler has inlined most polls of: what is derived or seen where it was inlined is
// never more than the program counted, and what may be less is marked.
import t, { type Test } from 'tap';
import { pollsPrinted, pollsProgram } from '../support/native.js';
import { type FutureRow, trace } from '../support/native-trace.js';

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
  const isDerivedOnly = options.includes('target');
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
    // Of an inlined poll that leaves the state as it was, memory does not tell the result.
    if (isDerivedOnly) t.equal(ready + pending, polls, future);
  }
  if (!isDerivedOnly) return counted;
  // All of its polls lie between two looks at the Future around it.
  const lock = counted.find(({ future }) => future.endsWith('Mutex::lock'));
  t.equal(lock?.polls, lock?.truth);
  const inlined = output.futures.filter(({ derived }) => derived > 0);
  t.ok(inlined.length > 10, `${inlined.length} are derived`);
  t.same(
    inlined.filter(({ at_least }) => !at_least),
    [],
    'they are lower bounds',
  );
  t.same(
    output.futures.filter(({ lost, panicked }) => lost + panicked > 0),
    [],
  );
  return output.futures;
}

t.test('one thread: what is derived without stops is no more than the truth', async (t) => {
  await tracePolls(t, '0', '--engine', 'target');
});

t.test('one thread: stops at inlined polls see more, and nothing twice', async (t) => {
  const few = await tracePolls(t, '0', '--engine', 'stop');
  const all = await tracePolls(t, '0', '--engine', 'stop', '--exact');
  const exact = (rows: readonly FutureRow[]): number => rows.filter(({ at_least }) => !at_least).length;
  t.ok(exact(all) > 0, 'some are seen exactly');
  t.ok(exact(all) >= exact(few), 'no fewer with --exact');
});

t.test('three threads: each knows the poll that is open in it', async (t) => {
  await tracePolls(t, '3', '--engine', 'target');
});
