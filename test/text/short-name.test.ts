import t from 'tap';
import { textTable } from '../../src/text/columns.js';
import { branchesIn, clipName, foldBrackets, lineOf, shortName } from '../../src/text/short-name.js';
import { clipEnd, clipPlace, clipStart, textWidth } from '../../src/text/text-width.js';

// Names as c++filt and rustc-demangle print them.
const insert =
  'std::_Rb_tree<Edge*, std::pair<Edge* const, Plan::Want>, std::less<Edge*> >::_M_emplace_unique<std::pair<Edge*, long> >(std::pair<Edge*, long>&&)';
const trait = '<alloc::vec::Vec<T, A> as core::iter::traits::collect::Extend<T>>::extend';

t.test('what is in brackets gives way first, from the inside', async (t) => {
  t.equal(foldBrackets(insert, 200), insert, 'it fits');
  t.equal(
    foldBrackets(insert, 100),
    'std::_Rb_tree<Edge*, std::pair<…>, std::less<…> >::_M_emplace_unique<std::pair<…> >(std::pair<…>&&)',
  );
  t.equal(foldBrackets(insert, 90), 'std::_Rb_tree<…>::_M_emplace_unique<…>(…)');
  t.equal(clipName(insert, 30), '…_tree<…>::_M_emplace_unique<…>(…)'.slice(-30).replace(/^./, '…'), 'then its begin');
});

t.test('what is no list of arguments stays', async (t) => {
  t.equal(foldBrackets(trait, 10), '<alloc::vec::Vec<…> as core::iter::traits::collect::Extend<T>>::extend');
  t.equal(foldBrackets('(anonymous namespace)::run(int, char)', 10), '(anonymous namespace)::run(…)');
  t.equal(foldBrackets('std::operator<< <char>(std::ostream&, int)', 10), 'std::operator<< <char>(…)');
  t.equal(foldBrackets('Shape::operator->(int) const', 10), 'Shape::operator->(…) const');
  t.equal(foldBrackets('main::{closure#0}<fn(u8) -> u16>', 10), 'main::{closure#0}<…>');
});

t.test('a name whose brackets do not match stays as it is', async (t) => {
  for (const name of ['a<b', 'a>b', 'f(a<b)', 'f(a>', ')(']) t.equal(foldBrackets(name, 1), name);
});

t.test('the name of a line gives way, and keeps something', async (t) => {
  const name = 'labkern::exec::a_long_name_of_a_function';
  t.equal(lineOf('└─ ', name, '  @0x1', 40), `└─ …${name.slice(-30)}  @0x1`);
  t.equal(textWidth(lineOf('└─ ', name, '  @0x1', 40)), 40);
  t.equal(lineOf(' '.repeat(30), name, '', 40), `${' '.repeat(30)}…${name.slice(-19, -11)}…`);
  t.equal(lineOf('', name, '', Number.POSITIVE_INFINITY), name);
});

t.test('branches before a deep name give way to its level', async (t) => {
  t.equal(branchesIn(30, ' |  |  +-', 3), ' |  |  +-');
  t.equal(branchesIn(30, ' |  |  |  +-', 4), '4…|  |  +-');
  t.equal(branchesIn(Number.POSITIVE_INFINITY, '│  '.repeat(99), 99), '│  '.repeat(99));
});

t.test('columns of names and places give way, the widest first', async (t) => {
  t.strictSame(
    [30, 20, 12, 11, 6].map((width) => clipPlace('bore/src/net/mod.rs:463', width)),
    ['bore/src/net/mod.rs:463', '…/src/net/mod.rs:463', '…/mod.rs:463', '…mod.rs:463', '…s:463'],
  );
  t.equal(clipPlace('woken in wake at src/net/mod.rs:463', 20), '…t src/net/mod.rs:463'.slice(-20).replace(/^./, '…'));
  const rows = [
    ['12', 'app::net::receive<std::vector<int> >', 'x86_64', 'lib/src/net/receive.cc:12'],
    ['3', 'main', 'riscv64', 'main.cc:3'],
  ];
  const table = (width?: number): string[] =>
    textTable(['n>', 'name~', 'arch', 'place/'], rows, { color: false, width }).split('\n');
  t.equal(table()[1], '12  app::net::receive<std::vector<int> >  x86_64   lib/src/net/receive.cc:12');
  t.strictSame(table(60), [
    ' n  name                  arch     place',
    '12  app::net::receive<…>  x86_64   …/src/net/receive.cc:12',
    ' 3  main                  riscv64  main.cc:3',
    '',
  ]);
  for (const width of [79, 70, 60, 50, 44])
    t.ok(
      table(width).every((line) => textWidth(line) <= width),
      `${width}`,
    );
  t.equal(table(10)[1]?.split(/ {2,}/)[2], 'x86_64', 'nothing else is shortened');
});

t.test('in little room a place keeps its line, and a block its function', async (t) => {
  const shown = (name: string): string[] => [99, 36, 24, 12, 4, 2].map((room) => shortName(name, room));
  const place = '/home/me/bakery/src/jobs.rs:23, in tokio Sleep';
  t.strictSame(shown(place), [
    place,
    '…/bakery/src/jobs.rs:23, in tokio Sleep'.slice(-36).replace(/^./, '…'),
    'jobs.rs:23',
    'jobs.rs:23',
    '…:23',
    '',
  ]);
  t.strictSame(shown('src/work.rs:7'), ['src/work.rs:7', 'src/work.rs:7', 'src/work.rs:7', '…c/work.rs:7', '…s:7', '']);
  const block = 'axum::serve::handle_connection::{async_block#3}';
  t.strictSame(shown(block), [
    block,
    'handle_connection::{async_block#3}',
    'handle_connection::{asy…',
    'handle_conn…',
    'han…',
    '',
  ]);
  const held = 'alloc::boxed::Box<core::pin::Pin<T>>';
  t.strictSame(shown(held), [held, held, 'Box<core::pin::Pin<T>>', 'Box<core::p…', 'Box…', '']);
});

t.test('a long text of any script is clipped by halves: a letter at a time, 5,000 take minutes', async (t) => {
  const long = 'é'.repeat(5000);
  t.equal(clipEnd(long, 80), `${'é'.repeat(79)}…`);
  t.equal(clipStart(`${long}漢字`, 80), `…${'é'.repeat(75)}漢字`);
  t.equal(clipEnd('漢字漢字', 4), '漢…', 'half a letter is none');
  t.equal(clipEnd('漢', 1), '…');
});
