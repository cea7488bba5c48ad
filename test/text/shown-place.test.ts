// Source files as tables and trees show them: of packages and the standard library without what lies before.
import t from 'tap';
import { shownFile, shownPlace, shownPlaces } from '../../src/text/shown-place.js';

t.test('files', (t) => {
  for (const [file, shown] of [
    ['/home/a/.cargo/registry/src/registry-1949cf8c/tokio-1.54.1/src/sync/mutex.rs', 'tokio-1.54.1/src/sync/mutex.rs'],
    ['/home/a/.cargo/git/checkouts/axum-a8e1b1/0f3c/axum/src/lib.rs', 'axum-a8e1b1/0f3c/axum/src/lib.rs'],
    ['/rustc/59807616e1fa/library/core/src/future/poll_fn.rs', 'library/core/src/future/poll_fn.rs'],
    ['/home/user/.rustup/toolchains/x/lib/rustlib/src/rust/library/std/src/io.rs', 'library/std/src/io.rs'],
    ['/rustc/59807616e1fa/compiler/rustc/src/main.rs', '/rustc/59807616e1fa/compiler/rustc/src/main.rs'],
    ['/home/a/registry/source/main.rs', '/home/a/registry/source/main.rs'],
    ['src/main.rs', 'src/main.rs'],
    ['', ''],
  ] as const)
    t.equal(shownFile(file), shown);
  t.equal(shownPlace('/rustc/1/library/a.rs', 3), 'library/a.rs:3');
  t.equal(shownPlace('src/main.rs', undefined), 'src/main.rs:?');
  t.end();
});

t.test('places in a line', (t) => {
  const package_ = '/home/a b/.cargo/registry/src/registry-1949cf8c/tokio-1.54.1/src/io.rs:7';
  for (const [line, shown] of [
    [`poll a from S0 at ${package_} {`, 'poll a from S0 at tokio-1.54.1/src/io.rs:7 {'],
    [
      `a at src/a.rs:1 > b at ${package_} > c at ${package_}`,
      'a at src/a.rs:1 > b at tokio-1.54.1/src/io.rs:7 > c at tokio-1.54.1/src/io.rs:7',
    ],
    ['open(path: "/registry/src/x/y")', 'open(path: "/registry/src/x/y")'],
    ['a at /rustc/59807616e1fa/library/core/src/a.rs:3', 'a at library/core/src/a.rs:3'],
    [
      'a at /home/a b/.rustup/x/lib/rustlib/src/rust/library/std/src/io.rs:3 > b at src/a.rs:1',
      'a at library/std/src/io.rs:3 > b at src/a.rs:1',
    ],
    ['a at /rustc/59807616e1fa/compiler/a.rs:3', 'a at /rustc/59807616e1fa/compiler/a.rs:3'],
    ['a at src/main.rs:3', 'a at src/main.rs:3'],
  ] as const)
    t.equal(shownPlaces(line), shown);
  t.end();
});
