// What cannot be seen is written out, by the characters that Unicode's DerivedCoreProperties.txt has as
// Default_Ignorable_Code_Point, and a Braille pattern without dots.
import t from 'tap';
import { jsonLine, visible } from '../../src/text/index.js';

const HIDDEN = [0xad, 0x34f, 0x115f, 0x200b, 0x202e, 0x2800, 0x3164, 0xfe00, 0xfe0f, 0xffa0, 0xe0100];

t.test('each character that has no shape', async (t) => {
  for (const code of HIDDEN) {
    const text = `a${String.fromCodePoint(code)}b1`;
    t.equal(visible(text), `a\\u{${code.toString(16)}}b1`);
    t.match(jsonLine(text), /^[ -~]*\n$/);
    t.equal(JSON.parse(jsonLine(text)), text);
  }
});

t.test('a selector is seen behind a sign that it makes a picture of, and behind nothing else', async (t) => {
  for (const seen of ['\u2764\ufe0f', '\u{1f600}', 'na\u00efve \u540d\u524d']) {
    t.equal(visible(seen), seen);
    t.equal(jsonLine(seen), `${JSON.stringify(seen)}\n`);
  }
  t.equal(visible('1\ufe0f'), '1\\u{fe0f}');
  t.equal(visible('\u{1f600}\ufe0f'), '\u{1f600}\\u{fe0f}');
  t.equal(visible('\u2764\ufe0f\ufe0f'), '\u2764\ufe0f\\u{fe0f}');
});
