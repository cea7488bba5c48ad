// Stops beside many records: they wait for their turn, and the program does not stand while what came before is understood. Events and values
// are those that the source says, also when they come out of the records of a recording that was killed.

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { compileC } from '../support/native.js';
import type { Recording } from '../support/recording.js';
import { storyPlugin } from '../support/story.js';

// A vector among the arguments is read at a stop only.
const source = `
#include <setjmp.h>
typedef float v4 __attribute__((vector_size(16)));
struct named { long id, twice; };
static jmp_buf back;
static volatile long sink;
#define NI extern "C" __attribute__((noinline, noclone))
NI long leaf(long n) { return sink += n & 3; }
NI void flood(void) { for (long i = 0; i < 20000; i++) leaf(i); }
NI const named &marked(v4 v, const named &s) { flood(); return (&s)[1]; }
NI long deep(v4 v, long n) { return n ? deep(v, n - 1) + 1 : leaf(n); }
NI void leaves(v4 v) { leaf(0); longjmp(back, 1); }
int main(void) {
  named all[2] = {{1, 2}, {21, 42}};
  v4 v = {1, 2, 3, 4};
  for (long i = 0; i < 4; i++) {
    marked(v, all[0]);
    deep(v, 2);
    if (!setjmp(back)) leaves(v);
  }
  return 0;
}
`;

const plugin = storyPlugin(`({ type, function: fn, depth, arguments: all, result }) =>
  [type, fn?.name, depth, all?.filter(({ name }) => name !== 'v').map(({ value }) => value), result].join(' ')`);

/** The events of one turn of the loop, but those of `leaf` in `flood`. */
const turn = [
  /^call-begin marked 0 &named \{ id: 1, twice: 2 \}/,
  /^call-end marked 0 +&named \{ id: 21, twice: 42 \}/,
  /^call-begin deep 0 2/,
  /^call-begin deep 1 1/,
  /^call-begin deep 2 0/,
  /^call-end deep 2/,
  /^call-end deep 1/,
  /^call-end deep 0/,
  /^call-begin leaves 0/,
  /^call-lost leaves 0/,
];

t.test('stops wait behind records', async (t) => {
  const program = compileC(t, source, ['-x', 'c++']);
  const folder = scratchFolder(t);
  const [module, trace, again] = [join(folder, 'story.mjs'), join(folder, 'a.story'), join(folder, 'b.story')];
  writeFileSync(module, plugin);
  const probes = ['leaf', 'marked', 'deep', 'leaves'].flatMap((name) => ['-p', `fn:${name}`]);
  const words = ['run', '--plugin', module, '--json', '--engine', 'mixed', '-o', trace, ...probes, program];
  const { engines, records, missing } = await rsptrace(...words).json<Output>();
  t.match(engines, { without_stops: 1, stopping: 3, held_ms: 0 });
  t.ok(engines.queued >= 4, `${engines.queued} stops had records before them`);
  t.equal(missing, 0);
  t.ok(records >= 2 * 4 * 20_002, `${records} records`);
  const [, ...lines] = readFileSync(trace, 'utf8').trimEnd().split('\n');
  t.equal(lines.filter((line) => line.startsWith('call-begin leaf')).length, 4 * 20_002);
  const others = lines.filter((line) => line.startsWith('call-') && !line.includes(' leaf '));
  t.equal(others.length, 4 * turn.length);
  for (const [index, line] of others.entries()) t.match(line, turn[index % turn.length]);

  copyFileSync(`${trace}.kept`, `${again}.records`);
  const recovered = await rsptrace('recover', again, '--plugin', module, '--json').ended;
  t.equal(recovered.status, 0, recovered.stderr);
  t.ok(readFileSync(again, 'utf8') === readFileSync(trace, 'utf8'), 'the same events come out of the records');
});

interface Output extends Recording {
  readonly engines: { readonly queued: number };
}
