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
