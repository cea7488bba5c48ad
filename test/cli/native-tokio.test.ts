// A release build of a tokio program, which the compiler has inlined most polls of: what is derived is never more than the program counted, both
// engines derive the same, and what may be less is marked.
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

async function tracePolls(t: Test, threads: string, engine: string): Promise<readonly FutureRow[]> {
  const program = pollsProgram(t, 'tokio');
  const { output, stdout } = await trace(t, [program, threads], '--engine', engine, '-p', 'poll:**');
  const truth = pollsPrinted(stdout);
  t.equal(truth.size, names.size, stdout);
  const counted = output.futures.flatMap((row) => {
    const name = names.get(row.future);
    return name === undefined ? [] : [{ ...row, truth: truth.get(name) ?? 0 }];
  });
  t.equal(counted.length, names.size);
  for (const { future, polls, ready, pending, at_least, truth } of counted) {
    t.ok(at_least ? polls <= truth : polls === truth, `${future}: ${at_least ? '>=' : ''}${polls} of ${truth}`);
    t.equal(ready + pending, polls, future);
  }
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

t.test('one thread: both engines derive the same', async (t) => {
  const rows = await tracePolls(t, '0', 'target');
  const counts = ({ instance, polls, ready, pending, derived, at_least }: FutureRow): object => {
    return { instance, polls, ready, pending, derived, at_least };
  };
  t.same(rows.map(counts), (await tracePolls(t, '0', 'stop')).map(counts));
});

t.test('three threads: each knows the poll that is open in it', (t) => tracePolls(t, '3', 'target'));
