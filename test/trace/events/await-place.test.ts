// Where a task waits in its own code: paths as Cargo and rustc write them.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { awaitPlace, awaitText, waitText } from '../../../src/trace/events/await-place.js';
import { chainText, wholeAwait } from '../../../src/trace/events/await-ways.js';
import type { AwaitLink, FutureRef, PollEnd, StateRef } from '../../../src/trace/index.js';
import { future } from '../stories.js';

const registry = '/home/a/.cargo/registry/src/index.crates.io-1/';
const state = (file: string | undefined, line = 1): StateRef => ({ name: 'Suspend0', file, line });
const link = (typeName: string, at?: StateRef): AwaitLink => {
  return { future: undefined, typeName, address: undefined, state: at };
};
const lock = [
  link('tokio::sync::mutex::Mutex::lock', state(`${registry}tokio-1.54.1/src/sync/mutex.rs`, 455)),
  link('tokio::sync::mutex::Mutex::lock::{async_block#0}', state(`${registry}tokio-1.54.1/src/sync/mutex.rs`, 436)),
  link('tokio::sync::batch_semaphore::Acquire'),
];

const handle: FutureRef = { ...future(1, 'shop::handle', 3), file: '/shop/src/main.rs', line: 20 };
const end = (at: StateRef | undefined, chain: readonly AwaitLink[], of = handle): PollEnd =>
  ({ type: 'poll-end', future: of, state: at, chain }) as unknown as PollEnd;
const at = state('/shop/src/main.rs', 22);
const book = link('shop::book', state('/shop/src/main.rs', 15));
const text = (...of: Parameters<typeof end>): string | undefined => {
  const place = awaitPlace(end(...of));
  return place && awaitText(place);
};

t.test('the innermost line of its own code, and what of a library that awaits', async (t) => {
  t.equal(text(at, [book, ...lock]), '/shop/src/main.rs:15, in tokio Mutex::lock');
  t.match(awaitPlace(end(at, [book, ...lock])), { future: 'shop::book', inside: 'tokio::sync::mutex::Mutex::lock' });
  t.equal(text(at, [book, link('shop::Yield')]), '/shop/src/main.rs:15', 'its own Future, written by hand');
  t.equal(
    text(at, [link('alloc::boxed::Box<dyn core::future::future::Future<Output=u8>, alloc::alloc::Global>')]),
    '/shop/src/main.rs:22',
    'a pointer',
  );
  t.equal(
    text(at, [link('hyper::server::conn::http1::Connection<u8, shop::Service>'), book, ...lock]),
    '/shop/src/main.rs:15, in tokio Mutex::lock',
    'through a library',
  );
  t.equal(
    text(at, [link('hyper_util::client::send_request::{async_fn_env#0}', state(`${registry}h-1/src/a.rs`))]),
    '/shop/src/main.rs:22, in hyper_util send_request',
  );
  t.equal(
    text(state('library/core/src/future.rs'), []),
    'library/core/src/future.rs:1',
    'no path of a library: its own',
  );
});

t.test("a library's task is called by what of the program waits in it", async (t) => {
  const serve = { ...future(5, 'axum::serve', 3), file: `${registry}axum-0.8.9/src/serve/mod.rs`, line: 389 };
  const waits = state(`${registry}tokio-1.54.1/src/macros/select.rs`, 746);
  const buy = link('shop::buy', state('/shop/src/main.rs', 30));
  t.match(awaitPlace(end(waits, [buy, book, ...lock], serve)), {
    outermost: 'shop::buy',
    future: 'shop::book',
    line: 15,
  });
  t.match(awaitPlace(end(at, [book, ...lock])), { outermost: 'shop::handle' });
});

t.test('a macro of a library awaits in the file of the macro', async (t) => {
  const select = state(`${registry}tokio-1.54.1/src/macros/select.rs`, 600);
  t.equal(text(select, [link('core::future::poll_fn::PollFn<u8>')]), '/shop/src/main.rs:20, in tokio select!');
  t.equal(text(at, [link('shop::both', select)]), '/shop/src/main.rs:22, in tokio select!', 'one that is awaited');
});

t.test('a library that waits by itself', async (t) => {
  const worker = { ...future(2, 'tokio::worker', 3), file: `${registry}tokio-1.54.1/src/worker.rs`, line: 3 };
  t.equal(text(undefined, lock, worker), `${registry}tokio-1.54.1/src/sync/mutex.rs:436`);
  t.equal(text(undefined, [], worker), undefined);
  t.equal(waitText(awaitPlace(end(undefined, [], future(3, 'a', 1)))), 'waiting', 'a declaration is no await');
});

t.test('a program that came from a registry', async (t) => {
  const main = { ...future(4, 'shop::main', 3), file: `${registry}shop-0.1.0/src/main.rs`, line: 5 };
  const waits = state(`${registry}shop-0.1.0/src/main.rs`, 6);
  t.equal(text(waits, lock, main), `${registry}shop-0.1.0/src/main.rs:6, in tokio Mutex::lock`);
});

t.test('a place is one object, as long as there are few ways to wait', async (t) => {
  const first = awaitPlace(end(at, [book, ...lock]));
  t.equal(awaitPlace(end(at, [book, ...lock])), first);
  for (let i = 0; i < 5000; i++) awaitPlace(end(state('/shop/src/main.rs', i), []));
  t.same(awaitPlace(end(at, [book, ...lock])), first);
});

t.test('what is awaited is a text without addresses', async (t) => {
  const [first = book] = lock;
  const waits = end(at, [book, { ...first, address: addr(0x1000) }]);
  const tokio = `tokio::sync::mutex::Mutex::lock at ${first.state?.file}:455`;
  t.equal(chainText(waits), `shop::book at /shop/src/main.rs:15 > ${tokio}`);
  t.equal(chainText(end(at, [book, { ...first, address: addr(0x2000) }])), chainText(waits));
  t.equal(wholeAwait(waits), `shop::handle at /shop/src/main.rs:22 > ${chainText(waits)}`);
  t.equal(
    chainText(end(at, [book, { ...first, state: undefined }])),
    'shop::book at /shop/src/main.rs:15 > tokio::sync::mutex::Mutex::lock',
  );
  t.equal(chainText(end(at, [])), '');
  t.equal(wholeAwait(end(state('/shop/src/main.rs', 23), [])), 'shop::handle at /shop/src/main.rs:23');
});
