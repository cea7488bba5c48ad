// The order of a profile's rows: functions without a sample of their own are worth a line if they are the program's.
import t from 'tap';
import type { TreeNode } from '../../../src/trace/index.js';
import { sampleRows } from '../../../src/trace/index.js';

const files: Readonly<Record<string, string>> = {
  _start: './csu/libc-start.c',
  call_once: '/rustc/5980/library/core/src/ops/function.rs',
  'tokio::poll': '/home/a/.cargo/registry/src/index-1/tokio-1.54.1/src/task.rs',
  'shop::main': '/shop/src/main.rs',
  'shop::spin': 'src/spin.rs',
};

function stack(names: readonly string[], samples: number): TreeNode {
  const empty = { children: new Map(), samples: 0 };
  const outermost = { ...empty, frame: undefined, parent: undefined } as unknown as TreeNode;
  const node = names.reduce(
    (parent, name) => ({ ...empty, parent, frame: { name, file: files[name] } }) as unknown as TreeNode,
    outermost,
  );
  return { ...node, samples };
}

t.test('own functions come before those of libraries, where none has samples of its own', async (t) => {
  const first = stack(['_start', 'call_once', 'shop::main', 'tokio::poll', 'shop::spin', 'lt'], 5);
  const second = stack(['_start', 'call_once', 'shop::main', 'tokio::poll'], 1);
  const rows = sampleRows({ nodes: () => [first, second][Symbol.iterator]() as Generator<TreeNode> });
  t.same(
    rows.map(({ name, self, total }) => [name, self, total]),
    [
      ['lt', 5, 5],
      ['tokio::poll', 1, 6],
      ['shop::main', 0, 6],
      ['shop::spin', 0, 5],
      ['_start', 0, 6],
      ['call_once', 0, 6],
    ],
  );
});
