/*
 * Callgrind's profile format (valgrind.org/docs/manual/cl-format.html), version 1. This part: one cost, nanoseconds;
 * positions are lines; names in full. A function's own cost stands at the line of its declaration, then each arc with
 * its calls and the time inside the callee. `callgrind_annotate --inclusive=yes` and KCachegrind read it.
 */

import { startOf } from '../../base/file-bytes.js';
import { madeOnce } from '../../base/made-once.js';
import { sharedBy, visible } from '../../text/index.js';
import { type Arc, Arcs, type Node } from '../events/arcs.js';
import type { Format } from './format.js';
import { textAtEnd } from './written-at-end.js';

export const callgrind: Format = {
  name: 'callgrind',
  extensions: ['.callgrind'],
  about: 'calls and times of every arc, for KCachegrind and callgrind_annotate',
  use: 'open it in KCachegrind, or give it to callgrind_annotate',
  isAppended: false,
  recognizes: (head) => /^# callgrind format\n/.test(startOf(head)) || /^(?:version|creator): /.test(startOf(head)),
  open: textAtEnd(() => new Arcs(), profile),
};

function* profile(arcs: Arcs): Generator<string> {
  const { nodes } = arcs;
  const total = nodes.reduce((sum, { self }) => sum + self, 0);
  const program = visible(arcs.info?.program ?? '');
  yield `# callgrind format\nversion: 1\ncreator: rsptrace\ncmd: ${program}\npositions: line\n`;
  yield `event: ns : Nanoseconds\nevents: ns\nsummary: ${total}\n\n`;
  const isShared = sharedBy(nodes, (node) => node.name);
  const name = (node: Node): string => visible(isShared(node) ? node.instance : node.name);
  const byCaller = new Map<Node, Arc[]>();
  for (const arc of arcs.arcs) {
    if (arc.caller === undefined) continue;
    madeOnce(byCaller, arc.caller, () => []).push(arc);
  }
  for (const node of nodes) {
    const line = node.line ?? 0;
    yield `fl=${fileOf(node)}\nfn=${name(node)}\n${line} ${node.self}\n`;
    for (const { callee, calls, total: inside } of byCaller.get(node) ?? []) {
      const file = fileOf(callee) === fileOf(node) ? '' : `cfi=${fileOf(callee)}\n`;
      // A function that calls itself is inside already.
      const cost = callee === node ? 0 : inside;
      yield `${file}cfn=${name(callee)}\ncalls=${calls} ${callee.line ?? 0}\n${line} ${cost}\n`;
    }
    yield '\n';
  }
}

function fileOf({ file }: Node): string {
  return file === undefined ? '???' : visible(file);
}
