// The language of `watch:` probes, and where the places lie that they name, against nm and the sizes in the guests' sources.
import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../../../src/base/addr.js';
import { RsptraceError } from '../../../../src/base/errors.js';
import type { MemoryReader } from '../../../../src/base/memory-reader.js';
import { DebugInfo } from '../../../../src/dwarf/index.js';
import { ElfFile } from '../../../../src/elf/index.js';
import { parseProbe, resolveWatches, type WatchPlace, type WatchSpec } from '../../../../src/probes/index.js';
import { elfPath } from '../../../qemu/guests/guests.js';

function watch(text: string): WatchSpec {
  return parseProbe(text) as WatchSpec;
}

t.test('a place, and which accesses', async (t) => {
  const cases: [text: string, name: string, access: string][] = [
    ['watch:labkern::exec::POLLS', 'labkern::exec::POLLS', 'w'],
    ['watch:labkern::exec::POLLS:rw', 'labkern::exec::POLLS', 'rw'],
    ['watch: X : r ', 'X', 'r'],
    ['watch:a::r', 'a::r', 'w'],
    ['watch:a::w:w', 'a::w', 'w'],
    ['watch:KERNEL.header.id.0:r', 'KERNEL.header.id.0', 'r'],
    ['watch:*(0x80001000 as *const u64):rw', '*(0x80001000 as *const u64)', 'rw'],
    ['watch:0x8000_1000,4:r', '0x8000_1000,4', 'r'],
  ];
  for (const [text, name, access] of cases) t.match(watch(text), { kind: 'watch', text, name, access }, text);
  t.strictSame(watch('watch:0x8000_1000,4').place, { kind: 'address', address: addr(0x80001000n), size: 4 });
  t.strictSame(watch('watch:4096,1').place, { kind: 'address', address: addr(4096n), size: 1 });
});

t.test('what is none is refused', async (t) => {
  const cases: [text: string, code: string][] = [
    ['watch:', 'PROBE_SYNTAX'],
    ['watch: :w', 'EXPRESSION_SYNTAX'],
    ['watch::POLLS', 'PROBE_SYNTAX'],
    ['!watch:POLLS', 'PROBE_SYNTAX'],
    ['watch:POLLS:x', 'PROBE_SYNTAX'],
    ['watch:POLLS:rr', 'PROBE_SYNTAX'],
    ['watch:POLLS:', 'PROBE_SYNTAX'],
    ['watch:poll()', 'EXPRESSION_SYNTAX'],
    ['watch:0x1000,3', 'WATCH_SIZE'],
    ['watch:0x1000,16', 'WATCH_SIZE'],
    ['watch:0x10000000000000000,8', 'PROBE_SYNTAX'],
  ];
  for (const [text, code] of cases) t.throws(() => parseProbe(text), { code }, text);
  for (const letter of ['x', 'rr', 'wr', '']) {
    const unknown = { message: new RegExp(`':${letter}'`), hint: /:r\|w\|rw/ };
    t.throws(() => parseProbe(`watch:exec::POLLS:${letter}`), unknown, 'an unknown access names the known ones');
  }
});

t.test('any text gives a watch or an error with a code, and a watch is what was written', async () => {
  const word = fc.constantFrom(
    'a',
    'X',
    '::',
    ':',
    'r',
    'w',
    'rw',
    '.',
    '0',
    '[1]',
    '*',
    '&',
    ',8',
    '0x10',
    ' ',
    '{x}',
    '<',
    '(',
  );
  const text = fc.oneof(
    fc.array(word, { maxLength: 8 }).map((parts) => parts.join('')),
    fc.string(),
  );
  fc.assert(
    fc.property(text, fc.constantFrom('', ':r', ':w', ':rw'), (place, access) => {
      try {
        const spec = watch(`watch:${place}${access}`);
        return access === '' || /:\s*$/.test(place) || (spec.access === access.slice(1) && spec.name === place.trim());
      } catch (error) {
        return error instanceof RsptraceError && /^(?:PROBE_SYNTAX|EXPRESSION_SYNTAX|WATCH_SIZE)$/.test(error.code);
      }
    }),
    { seed: 3, numRuns: 3000 },
  );
});

t.test('places in a program', async (t) => {
  const path = elfPath('rv-o2');
  const debug = DebugInfo.load(await ElfFile.open(path));
  const zeros: MemoryReader = { read: async (_, length) => new Uint8Array(length) };
  const nothing: MemoryReader = { read: async () => undefined };
  const find = (memory: MemoryReader, ...texts: string[]): Promise<WatchPlace[]> =>
    resolveWatches(texts.map(watch), debug, memory);
  const symbols = new Map(
    execFileSync('nm', ['-C', path], { encoding: 'utf8' })
      .split('\n')
      .map((line) => line.split(' '))
      .map(([at = '', , name = '']) => [name, BigInt(`0x${at || 0}`)]),
  );
  const [polls, third, low] = await find(
    nothing,
    'watch:labkern::exec::POLLS',
    'watch:stats::CALLS[3]:rw',
    'watch:0x1000,2',
  );
  t.match(polls, { address: symbols.get('labkern::exec::POLLS'), size: 8 });
  t.match(third, { address: (symbols.get('labkern::stats::CALLS') ?? 0n) + 24n, size: 8 });
  t.match(low, { address: 0x1000n, size: 2, shape: { name: 'u16' } });
  const refused: [texts: string[], memory: MemoryReader, code: string][] = [
    [['watch:NOWHERE'], nothing, 'EXPRESSION_NAME'],
    [['watch:POLLS'], nothing, 'EXPRESSION_NAME'],
    [['watch:labkern::exec::POLLS.nothing'], nothing, 'EXPRESSION_TYPE'],
    [['watch:labkern::exec::READY'], nothing, 'WATCH_SIZE'],
    [['watch:stats::CALLS'], nothing, 'WATCH_SIZE'],
    [['watch:&labkern::exec::POLLS'], nothing, 'WATCH_NO_PLACE'],
    [['watch:0x80001000'], nothing, 'WATCH_NO_PLACE'],
    [['watch:*(labkern::heap::ALLOC.head.value as *const u64)'], nothing, 'WATCH_NOT_YET'],
    [['watch:*(labkern::heap::ALLOC.head.value as *const u64)'], zeros, 'WATCH_NOT_YET'],
    [['watch:labkern::exec::POLLS', 'watch:labkern::exec::POLLS:r'], nothing, 'WATCH_OVERLAP'],
    [
      [`watch:labkern::exec::POLLS`, `watch:0x${((polls?.address ?? 0n) + 7n).toString(16)},1`],
      nothing,
      'WATCH_OVERLAP',
    ],
  ];
  for (const [texts, memory, code] of refused) await t.rejects(find(memory, ...texts), { code }, texts.join(' '));
  const misspelt: [text: string, hint: RegExp][] = [
    ['watch:labkern::exec::POLS', /^nearest: labkern::exec::POLLS, /],
    ['watch:exc::POLLS:rw', /^nearest: labkern::exec::POLLS, /],
    ['watch:stats::CALS[labkern::exec::POLLS]', /^nearest: labkern::stats::CALLS/],
    ['watch:labkern::exec::POLLS.nothing', /^its members: /],
    ['watch:NOWHERE_AT_ALL', /^no static of the program has a name like it/],
  ];
  for (const [text, hint] of misspelt)
    t.match(await find(nothing, text).catch((error: unknown) => error), { hint }, text);
  const heap = addr(0x8070_0000n);
  const set: MemoryReader = {
    read: async (_, length) =>
      new Uint8Array(Buffer.from(heap.toString(16).padStart(16, '0'), 'hex').reverse()).slice(0, length),
  };
  const [behind] = await find(set, 'watch:*(labkern::heap::ALLOC.head.value as *const u64)');
  t.equal(behind?.address, heap, 'a pointer that is set is followed');
  await t.rejects(resolveWatches([watch('watch:POLLS')], undefined, nothing), { code: 'DWARF_MISSING' });
});
