// Values of a running program, read from /proc/PID/mem: what values/values.rs keeps in its statics, and what is written here by
// hand from its source.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import t from 'tap';
import { type Addr, addr } from '../../src/base/addr.js';
import type { MemoryReader } from '../../src/base/memory-reader.js';
import { DebugInfo } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import {
  defaultLimits,
  evaluateMemberExpr,
  formatValue,
  ProgramNames,
  parseMemberExpr,
  type ReadOptions,
  readValue,
  Shapes,
  type Value,
  valueJson,
  valueText,
} from '../../src/values/index.js';

/** Each member of `All`, as it must be printed. */
const expected: Readonly<Record<string, string>> = {
  int: '(-8, 65535, -2147483648, 18446744073709551615, -170141183460469231731687303715884105728, 340282366920938463463374607431768211455, -1)',
  float: '(0.1, 0.1, 16777216.0, 1e300, NaN, -0.0)',
  text: `('a', 'ß', '😀', "q\\"\\\\\\n\\u{7}", "öl", "box", Rc(strong=1, weak=0)("rc"), Arc(strong=1, weak=0)("arc"))`,
  flags: '(true, false, true)',
  level: '[Low, Mid, High]',
  shapes: 'Vec(len=4)[Dot, Circle(1.5), Rect { w: 3, h: 4 }, Named("n")]',
  options: "(Some(3), None, Some(Box(4)), None, Some('z'), Some(6), Some(None))",
  results: '(Ok(1), Err("bad"))',
  units: '(Unit, Wrapper(2), (), (3,))',
  grid: '[[1, 2, 3], [4, 5, 6]]',
  slice: '&[7, 8, 9]',
  boxed_slice: 'Box([1, 2])',
  shared_slice: 'Rc(strong=1, weak=0)([3, 4, 5])',
  zeros: '[0; 64, ..]',
  ring: 'VecDeque(len=8)[3, 4, 5, 6, 7, 8, 9, 10]',
  empty: 'Vec(len=0)[]',
  units_vec: 'Vec(len=3)[(), (), ()]',
  cell: '-3',
  refcell: 'RefCell(borrowed=mut)(7)',
  mutex: 'Mutex(Vec(len=2)[1, 2])',
  rwlock: 'RwLock(3)',
  once: '(Some(9), None)',
  atomics: '(-2, 3, 0x10)',
  numbers: '(300, 4)',
  pinned: 'Box(8)',
  maybe: '77',
  dog: 'Box<dyn Speak>(Dog { age: 3 })',
  cat: 'Box<dyn Speak>(Cat { lives: 9 })',
  shared_dog: 'Rc(strong=1, weak=0)(Dog { age: 4 })',
  // Cat is aligned to 64 bytes, so it lies further behind the counts than its pointer's type says.
  shared_cat: 'Arc(strong=1, weak=0)(Cat { lives: 8 })',
  anything: '&dyn Debug(Unit)',
  weak: '(Weak(strong=1, weak=1), Weak())',
  rc: 'Rc(strong=1, weak=1)(5)',
  cycle:
    'Rc(strong=2, weak=0)(Node { id: 1, next: Some(Rc(strong=1, weak=0)(Node { id: 2, next: Some(Rc(strong=2, weak=0)(<itself>)) })) })',
  either: 'Either { whole: 67305985 | parts: [1, 2, 3, 4] }',
  raw: '0x1234',
  nested: 'Some(Vec(len=2)[Some((1, "x")), None])',
};

const expressions: readonly [expression: string, expected: string | RegExp][] = [
  ['ALL.0.grid[1][2]', '6'],
  ['values::ALL.0.shapes[2].h', '4'],
  ['ALL.Some.0.shapes[2].Rect.w', '3'],
  ['(*ALL.0.dog).age', '3'],
  ['ALL.0.dog.age', '3'],
  ['*ALL.0.rc', '5'],
  ['ALL.0.cycle.next.0.id', '2'],
  ['ALL.0.cycle.next.0.next.0.id', '1'],
  ['ALL.0.ring[7]', '10'],
  ['ALL.0.ring.head', '3'],
  ['ALL.0.slice[1..]', '[8, 9]'],
  ['ALL.0.slice[ALL.0.units.3.0 as usize - 0]', /^EXPRESSION_SYNTAX/],
  ['ALL.0.slice[..2]', '[7, 8]'],
  ['ALL.0.slice[3]', /^EXPRESSION_TYPE .*beyond its length, 3/],
  ['ALL.0.ring[1..3]', /^EXPRESSION_TYPE .*one piece/],
  ['ALL.0.text.4', '"öl"'],
  ['ALL.0.text.4.vec.len', '3'],
  ['ALL.0.text.4[0]', '195'],
  ['ALL.0.mutex[1]', '2'],
  ['ALL.0.int.0 as u8', '248'],
  ['ALL.0.int.0 as i64', '-8'],
  ['ALL.0.level[0] as i32', '-5'],
  ['ALL.0.text.1 as u32', '223'],
  ['(&ALL.0.grid as *const u8)[5]', '6'],
  ['*(&ALL.0.grid as *const [[u8; 2]; 3])', '[[1, 2], [3, 4], [5, 6]]'],
  ['(Dog*)(&ALL.0.dog.age)', /^0x/],
  ['((Dog*)(&ALL.0.dog.age))->age', '3'],
  ['*(&NUMBERS as usize as *const u16)', '7'],
  ['NUMBERS', '[7, 8, 9]'],
  ['-3 as i8', '-3'],
  ['0xff_u8', '255'],
  ['*ALL.0.raw', /^EXPRESSION_MEMORY|<unreadable 0x1234>/],
  ['ALL.0.shapes[1].w', /^EXPRESSION_TYPE .*is Circle now/],
  ['ALL.0.nope', /^EXPRESSION_TYPE .*no member nope.*members: .*cell/],
  ['ALL.1', /^EXPRESSION_TYPE/],
  ['NOPE', /^EXPRESSION_NAME/],
  ['1 as *const Dgo', /^EXPRESSION_NAME .*Dog/],
  ['ALL.0.once[0]', /^EXPRESSION_TYPE/],
  ['*ALL.0.int.0', /^EXPRESSION_TYPE/],
  ['ALL..0', /^EXPRESSION_SYNTAX/],
];

t.test('a program with the standard library', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-values-'));
  const path = join(folder, 'values');
  writeFileSync(path, brotliDecompressSync(readFileSync(join(import.meta.dirname, 'values/values.elf.br'))), {
    mode: 0o755,
  });
  const child = spawn(path, { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => {
    child.kill();
    rmSync(folder, { recursive: true });
  });
  await once(child.stdout, 'data');
  const fd = openSync(`/proc/${child.pid}/mem`, 'r');
  t.teardown(() => closeSync(fd));
  const memory: MemoryReader = {
    async read(address, length) {
      const bytes = new Uint8Array(length);
      try {
        return readSync(fd, bytes, 0, length, address) === length ? bytes : undefined;
      } catch {
        return undefined;
      }
    },
  };
  const elf = await ElfFile.open(path);
  const debug = DebugInfo.load(elf);
  const [shapes, names] = [new Shapes(debug), new ProgramNames(debug)];
  const options: ReadOptions = {
    concrete: (vtable) => names.concrete(vtable),
    symbol: (address) => elf.symbols.at(address)?.name,
  };
  const value = async (expression: string, more: ReadOptions = {}): Promise<Value> => {
    const found = await evaluateMemberExpr(parseMemberExpr(expression), { shapes, names, memory });
    return readValue(shapes, memory, found.shape, found.place, { ...options, ...more });
  };
  for (const [member, text] of Object.entries(expected)) {
    t.equal(formatValue(await value(`ALL.0.${member}`)), text, member);
  }
  t.match(formatValue(await value('ALL.0.function')), /^0x[0-9a-f]+ <_ZN6values6double17h/);

  t.test('rustc writes several traits in parentheses', async (t) => {
    const several = 'core::error::Error + core::marker::Send + core::marker::Sync';
    const [boxed] = names.types(`alloc::boxed::Box<(dyn ${several}), alloc::alloc::Global>`);
    const { place } = await evaluateMemberExpr(parseMemberExpr('ALL.0.dog'), { shapes, names, memory });
    const found = await readValue(shapes, memory, shapes.of(boxed?.die), place, options);
    t.equal(formatValue(found), 'Box<dyn Error>(Dog { age: 3 })');
    t.match(found, { dyn: { trait: several, concrete: 'values::Dog' } });
  });

  t.test('limits', async (t) => {
    const deep = formatValue(await value('ALL.0.deep'));
    t.equal(deep.match(/More/g)?.length, 16, 'a More and its Box are two of 32 levels');
    t.match(deep, /More\(Box\(\.\.\)+$/);
    t.equal(formatValue(await value('ALL.0.shapes', { limits: { elements: 2 } })), 'Vec(len=4)[Dot, Circle(1.5), ..]');
    t.equal(formatValue(await value('ALL.0.text.4', { limits: { text: 1 } })), '"\ufffd"...');
    t.equal(formatValue(await value('ALL.0.grid', { limits: { values: 4 } })), '[[1, 2], ..]'.replace('2]', '2, ..]'));
    t.match(formatValue(await value('ALL', { limits: { bytes: 100 } })), /\.\./);
  });

  t.test('a RwLock that is held', async (t) => {
    const at = (expression: string) => evaluateMemberExpr(parseMemberExpr(expression), { shapes, names, memory });
    const [state, { shape, place }] = [await at('ALL.0.rwlock.inner.state'), await at('ALL.0.rwlock')];
    // std::sys::sync::rwlock::futex: so many readers, or all of 30 bits for a writer.
    for (const held of [1, 0x3fff_ffff]) {
      const patched: MemoryReader = {
        async read(address, length) {
          const bytes = await memory.read(address, length);
          const from = Number((state.place.address ?? 0n) - address);
          if (bytes && from >= 0 && from + 4 <= length) new DataView(bytes.buffer).setUint32(from, held, true);
          return bytes;
        },
      };
      t.equal(formatValue(await readValue(shapes, patched, shape, place, options)), 'RwLock(locked=true)(3)');
    }
  });

  t.test('raw values are what they are made of', async (t) => {
    t.equal(formatValue(await value('ALL.0.cell', { raw: true })), 'Cell { value: UnsafeCell { value: -3 } }');
    t.match(
      formatValue(await value('ALL.0.ring', { raw: true })),
      /^VecDeque \{ head: 3, len: 8, buf: RawVec \{ inner: /,
    );
  });

  t.test('json', async (t) => {
    const json = JSON.stringify(valueJson(await value('ALL')));
    t.match(JSON.parse(json), { kind: 'struct', variant: 'Some', fields: [{ name: '0', value: { kind: 'struct' } }] });
    t.match(json, /"kind":"integer","type":"i128","value":"-170141183460469231731687303715884105728"/);
  });

  t.test('a text names what must be read first, and says what was read', async (t) => {
    const { shape, place } = await evaluateMemberExpr(parseMemberExpr('ALL.0.boxed_slice'), { shapes, names, memory });
    const address = place.address ?? addr(0);
    const words = (await memory.read(address, 16)) ?? new Uint8Array(0);
    const text = (bytes: (at: Addr) => Uint8Array | 'unreadable' | 'unread') =>
      valueText(shape, address, { bytes }, { ...defaultLimits, elements: 2 });
    t.same(
      text(() => 'unread'),
      { address, length: 16 },
    );
    t.match(
      text((at) => (at === address ? words : 'unread')),
      { length: 4 },
    );
    t.equal(
      text(() => 'unreadable'),
      undefined,
    );
    t.match(
      text((at) => (at === address ? words : 'unreadable')),
      /^Box\(\[\.\.\]\)$/,
    );
  });

  t.test('expressions', async (t) => {
    for (const [expression, wanted] of expressions) {
      let said: string;
      try {
        said = formatValue(await value(expression));
      } catch (error) {
        const { code, message, hint } = error as { code?: string; message: string; hint?: string };
        if (code === undefined) throw error;
        said = `${code} ${message} ${hint ?? ''}`;
      }
      if (typeof wanted === 'string') t.equal(said, wanted, expression);
      else t.match(said, wanted, expression);
    }
  });
});
