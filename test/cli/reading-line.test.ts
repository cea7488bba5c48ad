import t from 'tap';
import { note } from '../../src/cli/failure.js';
import { ReadingLine } from '../../src/cli/reading-line.js';

t.test('what takes long is a line, and it is gone before anything else is said', (t) => {
  const { isTTY, write } = process.stderr;
  let said = '';
  t.teardown(() => Object.assign(process.stderr, { isTTY, write }));
  process.stderr.write = (text: string | Uint8Array): boolean => {
    said += text;
    return true;
  };
  const saidBy = (isTerminal: boolean, wanted: boolean): string => {
    process.stderr.isTTY = isTerminal;
    said = '';
    const line = new ReadingLine('k.elf', wanted);
    line.phase('choosing engines for');
    note(isTerminal && 'a message');
    line[Symbol.dispose]();
    line[Symbol.dispose]();
    return said.replaceAll('\r\x1b[K', '|');
  };
  t.equal(saidBy(true, false), 'rsptrace: reading k.elf|rsptrace: choosing engines for k.elf|rsptrace: a message\n');
  t.equal(saidBy(false, true), 'rsptrace: reading k.elf\nrsptrace: choosing engines for k.elf\n');
  t.equal(saidBy(false, false), '');
  t.end();
});
