// `rsptrace types`, once as a user runs it.
// Layouts are tested against llvm-dwarfdump and gdb in test/values/value-layout.test.ts.
import t from 'tap';
import { elfPath } from '../qemu/guests/guests.js';
import { rsptrace, rsptraceProcess } from '../support/command.js';

const types = (...args: string[]) => rsptrace('types', elfPath('rv-o0'), ...args).ended;

t.test('a struct, members as they lie', async (t) => {
  const whole = await types('labkern::exec::Task');
  t.equal(whole.status, 0);
  t.equal(
    whole.stdout,
    `struct labkern::exec::Task  (56 bytes, align 8)
      0    16  name: &str
     16     8  id: u64
     24    16  fut: core::cell::UnsafeCell<core::option::Option<core::pin::Pin<alloc::boxed::Box<dyn core::future::future::Future<Output=()>, alloc::alloc::Global>>>>
     40     8  polls: core::sync::atomic::Atomic<u64>
     48     1  queued: core::sync::atomic::Atomic<bool>
     49     7  (hole)
  7 bytes in a hole
`,
  );
  t.equal(
    (await rsptraceProcess('types', elfPath('rv-o0'), 'Task').ended).stdout,
    whole.stdout,
    'run as a user runs it',
  );
  for (const tail of ['Task', 'exec::Task', ' ::labkern::exec::Task ']) {
    t.equal((await types(tail)).stdout, whole.stdout, tail);
  }
});

t.test('an async fn: a variant a state, with the line of its await', async (t) => {
  const { stdout } = await types('level3::{async_fn_env#0}');
  t.match(
    stdout,
    /^enum labkern::work::level3::\{async_fn_env#0\} {2}\(112 bytes, align 8\)\n {5}24 {5}1 {2}\(discriminant\): u8\n/,
  );
  t.match(stdout, /\n {2}Suspend1 = 4 {2}\/labkern\/src\/work\.rs:50\n/);
  t.match(stdout, /\n +32 +48 {2}__awaitee: labkern::work::leaf_io::\{async_fn_env#0\}\n +80 +32 {2}buf: \[u64; 4\]\n/);
});

t.test('niches and enums without data', async (t) => {
  const { stdout } = await types('Option<char>');
  t.match(stdout, /None = 0x110000\n {2}Some = \(any other value\)\n +0 +4 {2}__0: char\n/);
  t.match(
    (await types('core::sync::atomic::Ordering')).stdout,
    /^enum .* \(1 byte, align 1\).*\n {2}Relaxed = 0\n.*\n.*\n {2}AcqRel = 3\n/,
  );
});

t.test('json', async (t) => {
  const { stdout, status } = await types('--json', 'Task');
  t.equal(status, 0);
  const json = JSON.parse(stdout);
  t.match(json, { version: 1, query: 'Task', matches: 1 });
  t.match(json.types, [
    { name: 'labkern::exec::Task', kind: 'struct', size: 56, align: 8, holes: [{ offset: 49, size: 7 }] },
  ]);
  t.match(json.types[0].members[1], { name: 'id', offset: 16, size: 8, align: 8, type: 'u64' });
});

t.test('several types of a name are listed', async (t) => {
  const { stdout, status } = await types('Ordering');
  t.equal(status, 0);
  t.match(stdout, /1 {2}enum {4}core::cmp::Ordering\n.* {2}core::sync::atomic::Ordering\n2 types are called that/);
  const json = JSON.parse((await types('Ordering', '--json')).stdout);
  t.equal(json.types.length, 2);
});

t.test('what is not there: names that are alike', async (t) => {
  const { stderr, stdout, status } = await types('Tsak', '--json');
  t.equal(status, 1);
  t.match(stderr, /has no type Tsak \[TYPE_UNKNOWN\]\n {2}did you mean .*labkern::exec::Task/);
  t.equal(JSON.parse(stdout).error.code, 'TYPE_UNKNOWN');
  t.equal((await types()).status, 2);
});
