// A server that ends while threads are looked at: one error, which who looks gets.
import t from 'tap';
import { architectureNamed } from '../../../src/arch/index.js';
import { silent } from '../../../src/base/logger.js';
import { ElfFile } from '../../../src/elf/index.js';
import { connect } from '../../../src/rsp/index.js';
import { LoadedCode, Looks } from '../../../src/target/stacks/index.js';
import { compileC, gdbserver } from '../../support/native.js';

t.test('a look that its server does not outlast has one error, with all that was asked', async (t) => {
  const program = compileC(t, 'int main() { return 0; }');
  const server = await gdbserver(t, program);
  const session = await connect(server.address);
  const arch = architectureNamed('x86_64');
  if (arch === undefined) return t.fail('no architecture');
  await arch.prepare();
  const elf = await ElfFile.open(program);
  const code = await LoadedCode.find({ session, elf, arch, debug: undefined, logger: silent });
  const looks = new Looks(session, arch, code, { depth: 4, walksIdle: true });
  t.equal((await looks.all()).length, 1);
  const unhandled: unknown[] = [];
  const heard = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', heard);
  t.teardown(() => void process.off('unhandledRejection', heard));
  server.process.kill('SIGSTOP');
  const looking = looks.all((batch) => batch.readMemory(elf.entry, 8));
  server.process.kill('SIGKILL');
  await t.rejects(looking, { code: 'RSP_CLOSED' });
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(unhandled, []);
});
