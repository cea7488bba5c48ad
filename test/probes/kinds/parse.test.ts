import fc from 'fast-check';
import t from 'tap';
import type { RsptraceError } from '../../../src/base/errors.js';
import { compileGlob, nearest } from '../../../src/probes/glob.js';
import { askedKinds, parseProbe } from '../../../src/probes/kinds/index.js';
import { type ProbeSpec, whiteList } from '../../../src/probes/kinds/names.js';

const names = (text: string): ProbeSpec => parseProbe(text) as ProbeSpec;

const escaped = (text: string): string => text.replace(/[()]/g, '\\$&');

t.test('a glob matches a whole path or a tail that begins at a segment', async (t) => {
  const cases: [glob: string, path: string, matches: boolean][] = [
    ['labkern::work::level3', 'labkern::work::level3', true],
    ['level3', 'labkern::work::level3', true],
    ['evel3', 'labkern::work::level3', false],
    ['work::level?', 'labkern::work::level3', true],
    ['work::*', 'labkern::work::level3', true],
    ['work::*', 'labkern::work::fib_box::{async_block#0}', false],
    ['work::**', 'labkern::work::fib_box::{async_block#0}', true],
    ['**', 'anything::at<all, u8>', true],
    ['*', 'labkern::work::level3', true],
    ['labkern::*', 'labkern::work::level3', false],
    ['level3', 'labkern::work::level33', false],
    ['{async_block#0}', 'labkern::work::fib_box::{async_block#0}', true],
    ['<labkern::Disk as labkern::Dev>::read', '<labkern::Disk as labkern::Dev>::read', true],
    ['read', '<labkern::Disk as labkern::Dev>::read', true],
    ['a.c', 'a::abc', false],
  ];
  for (const [glob, path, matches] of cases) t.equal(compileGlob(glob)(path), matches, `${glob} on ${path}`);
});

t.test('a path matches itself as a glob, whatever characters it has', async () => {
  fc.assert(
    fc.property(
      fc.string().filter((s) => !/[*?]/.test(s)),
      (path) => compileGlob(path)(path),
    ),
    { seed: 1, numRuns: 500 },
  );
});

t.test('probes are read, and what is not one is refused with a way out', async (t) => {
  t.match(parseProbe('poll:net::*'), { kind: 'poll', glob: 'net::*', excludes: false });
  t.match(parseProbe('!poll:level3'), { glob: 'level3', excludes: true });
  t.match(parseProbe('poll:!level3'), { glob: 'level3', excludes: true });
  t.match(parseProbe('fn:net::**'), { kind: 'fn', glob: 'net::**', excludes: false });
  t.match(parseProbe('fn:!core::**'), { kind: 'fn', glob: 'core::**', excludes: true });
  t.throws(() => parseProbe('fn:'), { code: 'PROBE_SYNTAX', hint: "'fn:**' is every function" });
  t.match(parseProbe('fn:net::send if len > 0x1_00 && last == true'), {
    glob: 'net::send',
    when: [
      [
        { text: 'len', op: 'gt', literal: { value: 256n } },
        { text: 'last', op: 'eq', literal: { value: 1n } },
      ],
    ],
  });
  t.match(parseProbe('fn:a if x != -5'), { when: [[{ text: 'x', op: 'ne', literal: { value: -5n } }]] });
  for (const wrong of [
    'fn:a if',
    'fn:a if x',
    'fn:a if x = 3',
    'fn:a if 3 < x',
    'fn:a if x > 3 &&',
    'fn:a if x > y',
    'fn: if x > 3',
  ]) {
    t.throws(() => parseProbe(wrong), { code: 'PROBE_SYNTAX' }, `'${wrong}'`);
  }
  t.match(parseProbe('count:net::send'), { kind: 'count', glob: 'net::send', argument: undefined, when: [] });
  t.match(parseProbe('!count:net::send'), { kind: 'count', excludes: true });
  t.match(parseProbe('hist( len ):net::send if len > 3'), {
    kind: 'hist',
    argument: { text: 'len' },
    glob: 'net::send',
    when: [[{ text: 'len', op: 'gt', literal: { value: 3n } }]],
  });
  t.match(parseProbe('!hist:net::send'), { kind: 'hist', excludes: true, argument: undefined });
  for (const wrong of [
    'hist:a',
    'hist():a',
    'hist(a,b):c',
    '!hist(len):a',
    'fn(len):a',
    'count(len):a',
    'hist(len)::a',
  ]) {
    t.throws(() => parseProbe(wrong), { code: 'PROBE_SYNTAX' }, `'${wrong}'`);
  }
  for (const [wrong, message] of [
    ['hist():a', "'hist():a' names no argument"],
    ['hist( ):a', "'hist( ):a' names no argument"],
    ['hist(a,b):c', "'hist(a,b):c' names 'a,b', which is not one argument"],
    ['count():a', "'count():a' has brackets, which only hist(ARG), sum(ARG) and avg(ARG) have"],
  ]) {
    t.throws(() => parseProbe(wrong as string), { code: 'PROBE_SYNTAX', message });
  }
  for (const [wrong, hint] of [
    ['fn:a if x', "write 'fn:a if len > 100'"],
    ['count:a if x', "write 'count:a if len > 100'"],
    ['hist(x):a if x', "write 'hist(x):a if len > 100'"],
    ['!poll:a if x > 3', "'poll:a if x > 3' takes"],
    ['!count:a if x > 3', "'count:a if x > 3' takes"],
    ['!hist:a if x > 3', "'hist(len):a if x > 3' takes"],
  ]) {
    t.throws(() => parseProbe(wrong as string), {
      code: 'PROBE_SYNTAX',
      hint: new RegExp(`^${escaped(hint as string)}`),
    });
  }
  t.throws(() => parseProbe('hist:net::send'), { code: 'PROBE_SYNTAX', hint: /'hist\(len\):net::send'/ });
  t.throws(() => parseProbe('hist(len:net::send'), {
    code: 'PROBE_SYNTAX',
    message: /its parenthesis is never closed$/,
    hint: "write 'hist(EXPRESSION):GLOB'",
  });
  t.throws(() => parseProbe('!fn:a if x > 3'), {
    code: 'PROBE_SYNTAX',
    hint: "'fn:a if x > 3' takes what the condition holds for",
  });
  t.match(parseProbe('poll:a if self.x > 3'), { kind: 'poll', glob: 'a', when: [[{ text: 'self.x', op: 'gt' }]] });
  for (const wrong of ['', 'level3', 'labkern::work::level3', 'poll:', 'pol:level3', '!']) {
    t.throws(() => parseProbe(wrong), { code: 'PROBE_SYNTAX' }, `'${wrong}'`);
  }
  try {
    parseProbe('labkern::work::level3');
  } catch (error) {
    t.match((error as RsptraceError).hint, "--probe 'poll:labkern::work::level3'");
  }
});

t.test('what is asked for by kind', async (t) => {
  const asked = (...texts: string[]) => {
    const kinds = askedKinds(texts.map((text) => parseProbe(text)));
    const of = (name: string) => kinds.find(({ kind }) => kind.name === name)?.probes.map(({ text }) => text);
    return [of('poll'), of('fn')];
  };
  t.strictSame(asked(), [[], undefined], 'polls are what there is without a probe');
  t.strictSame(asked('!poll:a'), [['!poll:a'], undefined]);
  t.strictSame(asked('fn:a'), [undefined, ['fn:a']]);
  t.strictSame(asked('fn:a', '!poll:b', '!fn:c'), [['!poll:b'], ['fn:a', '!fn:c']]);
  t.throws(() => asked('!fn:a', 'poll:b'), { code: 'PROBE_SYNTAX' });
  t.strictSame(asked('count:a'), [undefined, undefined], 'what is counted alone is counted alone');
  t.strictSame(asked('hist(x):a', '!poll:b'), [['!poll:b'], undefined]);
  t.throws(() => asked('!count:a', 'fn:b'), { code: 'PROBE_SYNTAX', hint: /count:\*\*/ });
  t.throws(() => asked('!hist:a'), { code: 'PROBE_SYNTAX', hint: /hist\(ARG\):\*\*/ });
});

t.test('the white list: includes, excludes, and what holds without includes', async (t) => {
  const only = whiteList([names('poll:a::*'), names('!poll:a::b')]);
  t.equal(only.allows(['a::c'], false), true);
  t.equal(only.allows(['a::b'], true), false);
  t.equal(only.allows(['z::c'], true), false);
  const without = whiteList([names('!poll:b')]);
  t.equal(without.allows(['a::c'], true), true);
  t.equal(without.allows(['a::c'], false), false);
  t.equal(without.allows(['a::b'], true), false);
  t.equal(only.allows(['other', 'a::c'], false), true, 'any of its names may match');
});

t.test('nearest names: close spellings first, nothing far away', async (t) => {
  const names = ['k::work::level1', 'k::work::level2', 'k::work::leaf_io', 'k::net::poll_rx'];
  t.equal(nearest('levle1', names)[0], 'k::work::level1');
  t.equal(nearest('leaf', names)[0], 'k::work::leaf_io');
  t.strictSame(nearest('completely_different_thing', names), []);
});
