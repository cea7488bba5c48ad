// Lines of a console, whatever a guest prints, and however it is read.
import t from 'tap';
import { ConsoleLines } from '../../src/record/console-lines.js';

/** The lines of what is read in these pieces. */
function linesOf(...pieces: string[]): string[] {
  const lines: string[] = [];
  const console = new ConsoleLines((line) => lines.push(line));
  for (const piece of pieces) console.take(Buffer.from(piece));
  console.end();
  return lines;
}

t.test('lines end as serial ports end them, and blank ones are none', (t) => {
  t.strictSame(linesOf('one\r\ntwo\r\r\n \r\n\nth', 'ree'), ['one', 'two', 'three']);
  t.end();
});

t.test('of a line that is too long for one event nothing is lost, in one read as in several', (t) => {
  const long = Array.from({ length: 700 }, (_, i) => `${i};`).join('');
  for (const lines of [linesOf(long), linesOf(`${long}\r\n`), linesOf(...(long.match(/.{1,7}/g) ?? []))]) {
    t.equal(lines.join(''), long);
    t.ok(lines.every(({ length }) => length <= 1000));
  }
  t.end();
});

t.test('a megabyte of carriage returns takes no longer than other text', (t) => {
  t.strictSame(
    linesOf(`${'\r'.repeat(1 << 20)}x\r\n`)
      .join('')
      .trim(),
    'x',
  );
  t.end();
});
