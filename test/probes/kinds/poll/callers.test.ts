// Who acts, of functions that are inlined into each other: paths as Cargo and rustc write them.
import t from 'tap';
import { actingFunction } from '../../../../src/probes/kinds/poll/callers.js';

const entry = (name: string, file: string) => ({ function: name, file, line: 1 });
const wake = entry('core::task::wake::Waker::wake', '/rustc/5980761/library/core/src/task/wake.rs');
const permits = entry(
  'tokio::sync::batch_semaphore::Semaphore::add_permits_locked',
  '/cargo/registry/src/index-1/tokio-1.54.1/src/sync/batch_semaphore.rs',
);
const book = entry('orders::book', '/orders/src/main.rs');

t.test("its own code; else a library's, and the language's at last", async (t) => {
  t.equal(actingFunction([wake, permits, book]), book);
  t.equal(actingFunction([wake, permits]), permits);
  t.equal(actingFunction([wake]), wake);
  t.match(actingFunction([]), { function: undefined });
  // `impl All for Vec<Waker>`, of a trait of the program, and `impl IntoIterator for Vec<Waker>`.
  const all = entry('<alloc::vec::Vec as orders::All>::wake_all', '/orders/src/main.rs');
  const iterated = entry('<alloc::vec::Vec as core::iter::IntoIterator>::into_iter', '/opt/library/alloc/vec.rs');
  t.equal(actingFunction([wake, iterated, all, book]), all);
});
