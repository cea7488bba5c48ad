// Notes on stderr: lines that a terminal shows, and that other programs search.
import t from 'tap';
import { sentenceLines } from '../../src/cli/failure.js';
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

t.test('a file gets a line a sentence, whatever is in it', async (t) => {
  const file = { isTTY: false, columns: 40 };
  t.equal(sentenceLines([sentence, hint], file), `${sentence}\n${hint}\n`);
  t.equal(sentenceLines(['name \x1b[31m\nred'], file), 'name \\u{1b}[31m\\nred\n');
});
