// Notes on stderr: lines that a terminal shows, and that other programs search.
import t from 'tap';
import { note, sentenceLines, showOutput } from '../../src/cli/failure.js';
import { textWidth } from '../../src/text/text-width.js';

const sentence = 'rsptrace: 3 probes left out (work::level1, work::level2): counts of them are lower bounds';
const hint = '  rsptrace info says why each of them was left out, in a line of its own';

t.test('a terminal gets lines that fit, broken between words', async (t) => {
  const text = sentenceLines([sentence, hint], { isTTY: true, columns: 40 });
  const lines = text.split('\n');
  t.equal(lines.pop(), '');
  t.ok(lines.length > 3 && lines.every((line) => textWidth(line) <= 40), text);
  t.equal(lines.map((line) => line.trim()).join(' '), `${sentence} ${hint.trim()}`, 'with all words');
  t.strictSame(
    lines.map((line) => line.search(/\S/)),
    [0, 2, 2, 2, 4],
    'the lines of a sentence are told from those of the next',
  );
});

t.test('a terminal that says 0 columns, as a serial line does, has 80', async (t) => {
  const lines = sentenceLines([sentence], { isTTY: true, columns: 0 }).split('\n');
  t.strictSame(lines, [
    'rsptrace: 3 probes left out (work::level1, work::level2): counts of them are',
    '  lower bounds',
    '',
  ]);
});

t.test('a file gets a line a sentence, whatever is in it', async (t) => {
  const file = { isTTY: false, columns: 40 };
  t.equal(sentenceLines([sentence, hint], file), `${sentence}\n${hint}\n`);
  t.equal(sentenceLines(['name \x1b[31m\nred'], file), 'name \\u{1b}[31m\\nred\n');
});

t.test('a message ends the line that the target has begun on the same stream, and only that', async (t) => {
  const { write } = process.stderr;
  t.teardown(() => Object.assign(process.stderr, { write }));
  let written = '';
  Object.assign(process.stderr, { write: (text: string | Uint8Array) => (written += Buffer.from(text)) });
  for (const text of ['boot', 'ing\n', '$ ']) {
    showOutput(process.stderr, Buffer.from(text));
    note('a message');
  }
  t.equal(written, 'boot\nrsptrace: a message\ning\nrsptrace: a message\n$ \nrsptrace: a message\n');
});
