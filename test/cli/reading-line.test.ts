import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { start } from '../support/command.js';

/** A program that is busy for so long while it says that it reads, and what it has written to stderr then. */
async function said(busyMs: number, wanted: boolean): Promise<string> {
  const module = pathToFileURL(join(resolve(import.meta.dirname, '../../dist/cli'), 'reading-line.js'));
  const script = `
    const { ReadingLine } = await import('${module}');
    const line = new ReadingLine('kernel.elf', ${wanted});
    const busy = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    busy(${busyMs});
    line.phase('choosing engines for');
    busy(${busyMs});
    line[Symbol.dispose]();
    process.stderr.write('after');`;
  return (await start(process.execPath, ['--input-type=module', '-e', script]).ended).stderr;
}

t.test('what takes long is one line, and it is gone before anything else is said', async (t) => {
  const text = await said(4000, true);
  t.match(
    text.replaceAll('\r\x1b[K', '|'),
    /^(?:\|rsptrace: (?:reading|choosing engines for) kernel\.elf, \d+\.\d s)+\|after$/,
  );
  t.match(text, /reading kernel\.elf.*choosing engines for kernel\.elf/s);
});

t.test('nothing is said of what is short, nor where it is neither wanted nor a terminal', async (t) => {
  t.equal(await said(1, true), 'after');
  t.equal(await said(1500, false), 'after');
});
