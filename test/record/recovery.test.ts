// What the file of a recording's inputs says of harts, before calls are kept by them.
import t from 'tap';
import { parseProbe } from '../../src/probes/index.js';
import { prepare } from '../../src/record/index.js';
import { Recovery } from '../../src/record/recovery.js';
import { compileC } from '../support/native.js';

const nothing = (): void => {};
const sink = { begin: nothing, hart: nothing, event: nothing, flush: nothing, end: nothing };
const clock = { name: 'riscv-time', resolutionNs: 100, guest: true };

t.test('a stop of a hart that nobody has named is none of the recording', async (t) => {
  const program = await prepare(compileC(t, 'int main(void) { return 0; }'), [parseProbe('fn:main')]);
  const info = { program: 'program', buildId: undefined, arch: 'x86_64', harts: [{ number: 0, name: 'one' }], clock };
  const recovery = new Recovery({ program, sink }, { harts: [{ id: '1', name: 'one' }], info });
  const stop = (hart: number): boolean =>
    recovery.entry({ type: 'stop', hart, pc: '0x1', sp: '0x2', time: 1, registers: {}, memory: [] });
  t.strictSame([0, 1, 2 ** 32].map(stop), [true, false, false]);
  recovery.entry({ type: 'hart', id: '2' });
  t.strictSame([0, 1, 2 ** 32].map(stop), [true, true, false]);
});
