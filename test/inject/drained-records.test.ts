import t from 'tap';
import { silent } from '../../src/base/logger.js';
import { Backlog } from '../../src/inject/backlog.js';
import { DrainedRecords } from '../../src/inject/drained-records.js';
import type { RecordDispatcher } from '../../src/inject/record-dispatcher.js';

const slot = 8;

/** Understanding a record takes a tenth of a millisecond at least. */
function slowRecords(count: number): DrainedRecords {
  const dispatch = (): void => {
    const until = performance.now() + 0.1;
    while (performance.now() < until);
  };
  const dispatcher = { count: () => {}, dispatch } as unknown as RecordDispatcher;
  const drained = new DrainedRecords(dispatcher, new Backlog(), slot, silent);
  drained.add(new DataView(new ArrayBuffer(count * slot)), 0, count * slot);
  return drained;
}

t.test('the target stands only for what is digested at a stop', async (t) => {
  const drained = slowRecords(1024);
  // At least one piece of 256 records, and not all of them.
  t.equal(drained.digest(1), true);
  t.equal(drained.heldMs, 0, 'while it ran');
  const ran = drained.digestedMs;
  t.ok(ran >= 25);
  drained.digestAll();
  t.equal(drained.queue.bytes, 0);
  t.ok(drained.heldMs >= 76, `${drained.heldMs} ms`);
  t.equal(drained.heldMs, drained.digestedMs - ran);
});
