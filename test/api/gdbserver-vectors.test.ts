// Which gdbserver is told of, by its version as distributions print it; and how one is waited for.
import { execFileSync, spawn } from 'node:child_process';
import t from 'tap';
import { tracerOf } from '../../src/api/abandoned-server.js';
import { Gdbserver } from '../../src/api/gdbserver.js';
import { majorVersion, unharmedStart, vectorDamage } from '../../src/api/gdbserver-vectors.js';

t.test('the version is the last word of the first line', async (t) => {
  const texts = {
    'GNU gdbserver (Debian 13.1-3) 13.1': 13,
    'GNU gdbserver (GDB) 14.2': 14,
    'GNU gdbserver (Ubuntu 15.0.50.20240403-0ubuntu1) 15.0.50.20240403-git': 15,
    'GNU gdbserver (GDB) Fedora Linux 16.3-1.fc42': 16,
    'something else 9': undefined,
  };
  for (const [text, major] of Object.entries(texts))
    t.equal(majorVersion(`${text}\nCopyright (C) 2023 Free Software Foundation, Inc.\n`), major, text);
});

t.test('of the gdbserver that is here', async (t) => {
  const text = execFileSync('gdbserver', ['--version'], { encoding: 'latin1' });
  const [first = ''] = text.split('\n');
  t.ok(first.includes(` ${majorVersion(text)}.`), first);
});

t.test('a program that is started as it asks for is not told of', async (t) => {
  for (const tunables of ['-AVX512F,-AVX512VL', 'AVX2,-AVX512VL,-AVX512F'])
    t.equal(vectorDamage(`GLIBC_TUNABLES=glibc.malloc.check=3:glibc.cpu.hwcaps=${tunables}`), undefined);
  t.equal(vectorDamage('GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2'), vectorDamage(''));
});

t.test('one that we start has glibc use no AVX-512, unless the user has chosen', async (t) => {
  const tunablesOf = (value: string | undefined, version: number | undefined) => {
    const { environment, warning } = unharmedStart({ PATH: '/bin', GLIBC_TUNABLES: value }, () => version);
    t.equal(environment.PATH, '/bin');
    return [environment.GLIBC_TUNABLES, warning !== undefined];
  };
  const without = 'glibc.cpu.hwcaps=-AVX512F,-AVX512VL';
  t.strictSame(tunablesOf(undefined, 13), [without, true]);
  t.strictSame(tunablesOf('glibc.malloc.check=3', 13), [`glibc.malloc.check=3:${without}`, true]);
  t.strictSame(tunablesOf('glibc.cpu.hwcaps=-AVX2', 13), ['glibc.cpu.hwcaps=-AVX2', true]);
  t.strictSame(tunablesOf(without, 13), [without, false]);
  const other = 'glibc.malloc.check=3:glibc.cpu.hwcaps=-AVX512VL,-AVX2,-AVX512F';
  t.strictSame(tunablesOf(other, 13), [other, false]);
  // ifunc-memmove.h of glibc 2.36 chooses __memmove_evex_unaligned where AVX512VL is usable.
  const half = 'glibc.cpu.hwcaps=-AVX512F';
  t.strictSame(tunablesOf(half, 13), [half, true]);
});

t.test('a gdbserver that is right has its program started as it is', async (t) => {
  t.strictSame(unharmedStart({ HOME: '/' }, () => undefined).environment, { HOME: '/' });
});

t.test('however long its end is waited for, it has no more listeners', async (t) => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  t.teardown(() => process.off('warning', onWarning));
  const { pid = 0, ...child } = spawn('sleep', ['100']);
  t.teardown(() => process.kill(pid, 'SIGKILL'));
  using server = await Gdbserver.start({ pid }, { cleanUp: [process.execPath, '-e', ''] });
  const gone = server.gone();
  // A client is still there, as far as it knows.
  setTimeout(() => process.kill(tracerOf(pid) ?? 0, 'SIGKILL'), 400);
  await gone;
  t.strictSame(warnings, []);
  t.equal(child.exitCode, null);
});
