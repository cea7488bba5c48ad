// What of a tree of Futures is a program's own: paths as Cargo and rustc write them.
import t from 'tap';
import { leftOut, ownTree, type Shown, wholeTree } from '../../src/text/index.js';

interface Node {
  readonly name: string;
  readonly file?: string;
  readonly declared?: string;
  readonly awaits: readonly Node[];
}

const TOKIO = '/cargo/registry/src/index-1/tokio-1.54.1/src/';
const node = (name: string, of: Omit<Node, 'name' | 'awaits'>, ...awaits: Node[]): Node => ({ name, ...of, awaits });
const sleep = node('tokio::time::sleep::Sleep', { declared: `${TOKIO}time/sleep.rs` });
const lock = node(
  'tokio::sync::mutex::Mutex::lock',
  { file: `${TOKIO}sync/mutex.rs` },
  node('tokio::sync::Acquire', {}),
);
const book = node('shop::book', { file: '/shop/src/main.rs' }, lock);
const codeOf = ({ name, file, declared }: Node) => ({ name, file, declared });
const text = ({ node: { name }, inside, awaits, isDirect }: Shown<Node>): string =>
  `${isDirect ? '' : '..'}${name}${inside}${awaits.length > 0 ? ` [${awaits.map(text).join(' | ')}]` : ''}`;
const shown = (root: Node): string => text(ownTree(root, codeOf));

t.test('what a library awaits below the last own line is a word behind it', async (t) => {
  t.equal(
    shown(node('shop::handle', { file: '/shop/src/main.rs' }, book)),
    'shop::handle [shop::book, in tokio Mutex::lock]',
  );
  const tree = ownTree(book, codeOf);
  t.same(
    tree.hidden.map(({ name }) => name),
    ['tokio::sync::mutex::Mutex::lock', 'tokio::sync::Acquire'],
  );
  t.equal(leftOut(ownTree(node('shop::handle', { file: '/shop/src/main.rs' }, book), codeOf)), 2);
});

t.test("own Futures inside a library's, and a task that is a library's", async (t) => {
  const server = node(
    'axum::serve::{async_block#0}',
    { file: `${TOKIO}macros/select.rs` },
    node('core::future::PollFn', {}, node('hyper::Connection', {}, book), sleep),
  );
  t.equal(shown(server), 'axum::serve::{async_block#0} [..shop::book, in tokio Mutex::lock]');
  t.equal(
    shown(node('tokio::worker', { file: `${TOKIO}worker.rs` }, sleep)),
    'tokio::worker [tokio::time::sleep::Sleep]',
  );
});

t.test('one of its own that no file is known of, by its crate', async (t) => {
  t.equal(
    shown(node('shop::leaf', { file: '/shop/src/main.rs' }, node('shop::Yield', {}))),
    'shop::leaf [shop::Yield]',
  );
});

t.test('all of it', async (t) => {
  t.equal(text(wholeTree(book)), 'shop::book [tokio::sync::mutex::Mutex::lock [tokio::sync::Acquire]]');
  t.equal(leftOut(wholeTree(book)), 0);
});
