// What the texts of a saved trace name.
import t from 'tap';
import { addr } from '../../../../../src/base/addr.js';
import { entryOf, Refs } from '../../../../../src/trace/formats/perfetto/read/refs.js';

const place = { file: 'src/a.rs', line: 3 };

t.test('the kind of a Future is that of the type itself, not of its arguments', async (t) => {
  const kinds: readonly (readonly [instance: string, kind: string])[] = [
    ['a::b::{async_fn_env#0}', 'async_fn'],
    ['a::b::{async_fn#0}::{async_block_env#1}<u8, fn(u8) -> a::C<u8>>', 'async_block'],
    ['<a::Disk<u8> as a::Dev>::read::{async_closure_env#0}', 'async_closure'],
    ['futures::Fuse<a::b::{async_fn_env#0}>', 'impl'],
    ['&mut a::b::{async_fn_env#0}', 'impl'],
    ['(a::b::{async_fn_env#0}, u8)', 'impl'],
    ['a::b::{async_fn_env#0}::Inner', 'impl'],
    ['broken>', 'impl'],
  ];
  const refs = new Refs();
  for (const [instance, kind] of kinds) t.equal(refs.future('a::b', instance, undefined).kind, kind, instance);
});

t.test('a place that is learnt later is added, and the first one stays', async (t) => {
  const refs = new Refs();
  const what = { name: 'a::f', instance: 'a::f<u8>', address: addr(0x1000n) };
  const fn = refs.function(what, undefined);
  const future = refs.future('a::b', undefined, undefined);
  for (const learnt of [place, { file: 'src/b.rs', line: 4 }]) {
    t.equal(refs.function(what, learnt), fn);
    t.equal(refs.future('a::b', undefined, learnt), future);
    t.match([fn, future], [place, place]);
  }
});

t.test('an instance and an address of a function have an object each', async (t) => {
  const refs = new Refs();
  const all = ['a::f<u8>', 'a::f<u16>'].flatMap((instance) =>
    [0x1000n, 0x2000n].map((at) => refs.function({ name: 'a::f', instance, address: addr(at) }, place)),
  );
  t.same(
    all.map(({ key }) => key),
    [0, 1, 2, 3],
  );
});

t.test('a place begins at the first ` at `, because paths may have that word again', async (t) => {
  const path = { file: '/home/meet at noon/a.rs', line: 3 };
  const where = '/home/meet at noon/a.rs:3';
  const refs = new Refs();
  t.match(refs.chain(`a::outer at ${where} > b`), [{ typeName: 'a::outer', state: path }, { typeName: 'b' }]);
  t.same(refs.state(`Suspend0 at ${where}`), { name: 'Suspend0', ...path });
  t.same(entryOf(`a::outer at ${where}`), { function: 'a::outer', ...path });
});
