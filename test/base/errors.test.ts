import { closeSync, mkdtempSync, openSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { toError } from '../../src/base/errors.js';
import { RsptraceError } from '../../src/index.js';

t.test('an error of a program that uses the library keeps its code', (t) => {
  class OwnError extends RsptraceError {}
  const own = new OwnError('my-runtime:NO_TASKS', 'there are no tasks', { hint: 'start some' });
  t.equal(toError(own), own);
  t.equal(toError(own).code, 'my-runtime:NO_TASKS');
  // @ts-expect-error: a code that is spelt wrong does not compile (`npm run types` checks this line)
  t.equal(new RsptraceError('RSP_TIMEOT', '').code, 'RSP_TIMEOT');
  t.end();
});

t.test('no room and no folder for temporary files are no defects', (t) => {
  const before = process.env.TMPDIR;
  t.teardown(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  process.env.TMPDIR = '/nonexistent';
  const thrownBy = (work: () => unknown): unknown => {
    try {
      return work();
    } catch (thrown) {
      return thrown;
    }
  };
  const unusable = toError(thrownBy(() => mkdtempSync(join(tmpdir(), 'x-'))));
  t.match(unusable, { code: 'OUTPUT_CANNOT_WRITE', message: /ENOENT/, hint: /^TMPDIR/ });
  // write(2) to /dev/full: "No space left on device".
  const full = thrownBy(() => {
    const file = openSync('/dev/full', 'w');
    try {
      writeSync(file, 'x');
    } finally {
      closeSync(file);
    }
  });
  t.match(toError(full), { code: 'OUTPUT_CANNOT_WRITE', message: /ENOSPC/ });
  t.match(toError(thrownBy(() => openSync('/nowhere/x', 'r'))), { code: 'INTERNAL' });
  t.match(toError(null), { code: 'INTERNAL' });
  t.end();
});
