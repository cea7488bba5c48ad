// A panic that cannot be looked at, because QEMU is gone or does not answer: the recording is reported all the same.
import t from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { leavePanic } from '../../src/cli/panic-report.js';
import type { Prepared } from '../../src/cli/recording/prepare.js';
import type { Session } from '../../src/rsp/index.js';
import { TaskSummary } from '../../src/trace/index.js';

t.test('a stub that answers nothing: the panic stays a broken limit, and both errors are said', async (t) => {
  const session = {
    get features(): never {
      throw new RsptraceError('RSP_TIMEOUT', 'no answer to a look');
    },
    async detach(): Promise<void> {
      throw new RsptraceError('RSP_CLOSED', 'no answer to a detach');
    },
  };
  const prepared = { program: { elf: { type: 2 } } } as unknown as Prepared;
  const said = t.capture(process.stderr, 'write');
  const look = await leavePanic(session as unknown as Session, prepared, new TaskSummary());
  t.match(look.verdict, { subject: 'panic', state: 'broken', measured: 'in an unknown function' });
  t.match(look.text, 'the guest panicked, where cannot be read: no answer to a look');
  t.match(look.json, { function: null, harts: [], polled: [], tasks: null });
  const text = said.args().flat().join('');
  t.match(text, 'no answer to a look');
  t.match(text, 'no answer to a detach');
});
