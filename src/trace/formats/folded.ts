// Folded stacks, as Brendan Gregg's flamegraph.pl reads them and `stackcollapse-*.pl` write them: a line a stack,
// outermost first, `;` between frames, a blank and a number at the end: nanoseconds inside the innermost frame, without
// what it called. A `;` in a name becomes `:`. Of a profile the number is that of its samples, as bcc's `profile -f`
// prints it.
import { startOf } from '../../base/file-bytes.js';
import { visible } from '../../text/index.js';
import { CallTree, stackOf } from '../events/call-tree.js';
import type { Format } from './format.js';
import { textAtEnd } from './written-at-end.js';

export const folded: Format = {
  name: 'folded stacks',
  extensions: ['.folded'],
  about: 'a line a stack with its own time, for flamegraph.pl, inferno and speedscope',
  use: 'give it to flamegraph.pl or inferno-flamegraph, or open it in speedscope.app',
  isAppended: false,
  holdsSamples: 'merged',
  recognizes: (head) => /^[^\n;]+(?:;[^\n;]+)* \d+\n/.test(startOf(head)),
  open: textAtEnd(() => new CallTree(), stacks),
};

function* stacks(tree: CallTree): Generator<string> {
  for (const node of tree.nodes()) {
    const frames = stackOf(node).map(({ name }) => visible(name).replaceAll(';', ':'));
    const value = tree.counts === 'samples' ? node.samples : node.self;
    if (value > 0) yield `${frames.join(';')} ${value}\n`;
  }
}
