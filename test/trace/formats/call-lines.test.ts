// Where the parts of a call tree's line stand, for who colours and indents it.
import t from 'tap';
import { type LineParts, type TextPart, TreeWriter, wholeText } from '../../../src/trace/index.js';
import { inner, oneTask, root } from '../one-task.js';
import { futures, linked, nanos, tell } from '../stories.js';

t.test('call tree: the track and the text of each line stand where its parts say', async (t) => {
  const lines: { readonly line: string; readonly parts: LineParts | undefined }[] = [];
  const out = {
    textRecord: (line: string | readonly TextPart[], parts?: LineParts) => {
      lines.push({ line: wholeText(line), parts: parts && { ...parts } });
    },
    flush: () => {},
    close: () => {},
  };
  tell(new TreeWriter(out), oneTask);
  t.ok(lines.some(({ parts }) => parts && parts.level > 0));
  for (const { line, parts } of lines) {
    if (parts === undefined) {
      t.match(line, /^#/, 'of the whole trace');
      continue;
    }
    const [, track, number, blanks, text] = /^.{28} *(\[ ?(?:\d+:)?(\d+)\] {2})( *)(.*)$/s.exec(line) ?? [];
    t.equal(line.slice(parts.track, parts.track + (track?.length ?? 0)), track);
    t.equal(parts.number, Number(number));
    t.equal(2 * parts.level, blanks?.length);
    t.equal(line.slice(parts.text), text);
  }
});

t.test('a recursion makes no line longer than a deep stack does', async (t) => {
  const lines: string[] = [];
  const out = {
    textRecord: (line: string | readonly TextPart[]) => void lines.push(wholeText(line)),
    flush: () => {},
    close: () => {},
  };
  const poll = { root, future: futures[1], address: inner, hart: 0, state: undefined };
  const depths = Array.from({ length: 5000 }, (_, depth) => depth);
  tell(
    new TreeWriter(out),
    linked(depths.map((depth) => ({ type: 'poll-begin', ...poll, time: nanos(100 * depth), depth }))),
  );
  t.ok(lines.length >= depths.length, `${lines.length} lines`);
  t.ok(Math.max(...lines.map(({ length }) => length)) < 600);
});
