import t from 'tap';
import { toError } from '../../src/base/errors.js';
import { errorCodes, RsptraceError } from '../../src/index.js';

t.test('what a code means and what to do is a sentence each', (t) => {
  for (const [code, { means, remedy }] of Object.entries(errorCodes)) {
    t.match(code, /^[A-Z][A-Z0-9_]+$/);
    t.match(means, /^[A-Z`].*\.$/, `${code}: ${means}`);
    t.match(remedy, /^[A-Z`].*[.`]$/, `${code}: ${remedy}`);
  }
  t.end();
});

t.test('an error of a program that uses the library keeps its code', (t) => {
  class OwnError extends RsptraceError {}
  const own = new OwnError('my-runtime:NO_TASKS', 'there are no tasks', { hint: 'start some' });
  t.equal(toError(own), own);
  t.equal(toError(own).code, 'my-runtime:NO_TASKS');
  // @ts-expect-error: a code that is spelt wrong does not compile (`npm run types` checks this line)
  t.equal(new RsptraceError('RSP_TIMEOT', '').code, 'RSP_TIMEOT');
  t.end();
});
