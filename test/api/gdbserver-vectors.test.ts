// Which gdbserver is told of: its version as distributions print it.
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { majorVersion, vectorDamage } from '../../src/api/gdbserver-vectors.js';

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
  for (const tunables of ['-AVX512F,-AVX512VL', 'AVX2,-AVX512F'])
    t.equal(vectorDamage(`PATH=/bin\nGLIBC_TUNABLES=glibc.malloc.check=3:glibc.cpu.hwcaps=${tunables}\n`), undefined);
  t.equal(vectorDamage('GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2'), vectorDamage(''));
});
