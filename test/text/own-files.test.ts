// Whose a source file is, by where Cargo, git and rustc keep sources, and how a library's function is called.
import t from 'tap';
import { isLibraryFile, libraryName, ownFiles } from '../../src/text/index.js';

const CARGO = '/home/a/.cargo';
const TOKIO = `${CARGO}/registry/src/index.crates.io-1/tokio-1.54.1/src/task.rs`;
const HASH = '59807616e1fa44f0aa9b2d1e5e8b1c9e0d5b3a7c';

t.test('files of libraries', async (t) => {
  for (const file of [
    TOKIO,
    `${CARGO}/git/checkouts/axum-a8e1b1/0f3c/axum/src/lib.rs`,
    `/rustc/${HASH}/library/core/src/task/wake.rs`,
    '/rustc/1.97.0-nightly/library/core/src/task/wake.rs',
    '/home/a/.rustup/toolchains/x/lib/rustlib/src/rust/library/std/src/io.rs',
  ])
    t.equal(isLibraryFile(file), true, file);
});

t.test('folders that are called as those of libraries', async (t) => {
  for (const file of [
    '/home/a/rustc/demo/src/main.rs',
    '/rustc/demo/src/main.rs',
    '/src/rustlib/main.rs',
    '/home/a/registry/src/main.rs',
    '/home/a/registry/src/net/tcp/main.rs',
  ])
    t.equal(isLibraryFile(file), false, file);
});

t.test('a program that was installed has the files of its own package, or repository', async (t) => {
  const core = `/rustc/${HASH}/library/core/src/future/poll_fn.rs`;
  for (const folder of ['registry/src/index.crates.io-1/app-1.0.0', 'git/checkouts/app-1a2b/0f3c']) {
    const main = `${CARGO}/${folder}/src/main.rs`;
    const isOwn = ownFiles([main, TOKIO, core, undefined]);
    t.same([main, TOKIO, core, undefined].map(isOwn), [true, false, false, false], folder);
  }
  t.same([TOKIO, '/app/src/main.rs'].map(ownFiles([TOKIO, '/app/src/main.rs'])), [false, true]);
});

t.test('functions of libraries', async (t) => {
  for (const [name, said] of [
    ['tokio::sync::mutex::Mutex::lock::{async_block#0}', 'tokio Mutex::lock'],
    ['<tokio::sync::Notify as core::future::Future>::poll', 'tokio Notify::poll'],
    ['<F as axum::handler::Handler>::call::{async_block#0}', 'axum Handler::call'],
  ] as const)
    t.equal(libraryName(name), said);
});
