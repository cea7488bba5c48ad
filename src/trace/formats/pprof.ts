/*
 * pprof's profile (github.com/google/pprof, proto/profile.proto); a `.pb.gz` is packed with gzip. This part: two values
 * a stack, calls (of a profile samples, or waits) and nanoseconds. A location is a function with one line, at its
 * declaration. There are no mappings, since names are known.
 */

import { highHalf, lowHalf } from '../../base/addr.js';
import { type FileHead, unpackedStart } from '../../base/file-bytes.js';
import { Numbered } from '../../base/made-once.js';
import { visible } from '../../text/index.js';
import { CallTree, type Frame, stackOf } from '../events/call-tree.js';
import type { Format } from './format.js';
import { list, Message, message, uint, uint64 } from './perfetto/message.js';
import { ProtoBuffer } from './perfetto/protobuf.js';
import { WrittenAtEnd } from './written-at-end.js';

const PROFILE = {
  sampleType: 1,
  sample: 2,
  location: 4,
  function: 5,
  stringTable: 6,
  durationNanos: 10,
  comment: 13,
  defaultSampleType: 14,
};
const VALUE_TYPE = new Message({ type: uint(1), unit: uint(2) });
const SAMPLE = new Message({ locationId: list(uint(1)), value: list(uint(2)) });
const LINE = new Message({ functionId: uint(1), line: uint(2) });
const LOCATION = new Message({ id: uint(1), address: uint64(3), line: message(4, LINE) });
const FUNCTION = new Message({
  ...{ id: uint(1), name: uint(2), systemName: uint(3), filename: uint(4), startLine: uint(5) },
});

export const pprof: Format = {
  name: 'pprof',
  extensions: ['.pb.gz', '.pprof'],
  about: 'stacks with calls and times, for go tool pprof',
  use: 'go tool pprof -top, or -http=:8080 for its web pages',
  isAppended: false,
  holdsSamples: 'merged',
  recognizes: isProfile,
  open: (file) => {
    const tree = new CallTree();
    return new WrittenAtEnd(tree, file, () => {
      const bytes = profile(tree);
      file.record(bytes, bytes.length);
    });
  },
};

/** Its first field is `sample_type`: a message of two small numbers. */
function isProfile({ bytes }: FileHead): boolean {
  const [tag, length, first] = unpackedStart(bytes);
  return tag === 0x0a && length === 4 && first === 0x08;
}

function profile(tree: CallTree): Uint8Array {
  const out = new ProtoBuffer();
  const texts = new Numbered<string>();
  // The first one is empty.
  texts.of('');
  const locations = new Numbered<Frame>();
  for (const [type, unit] of [
    [tree.counts, 'count'],
    ['time', 'nanoseconds'],
  ] as const) {
    VALUE_TYPE.put(out, PROFILE.sampleType, { type: texts.of(type), unit: texts.of(unit) });
  }
  for (const node of tree.nodes()) {
    const locationId = stackOf(node)
      .reverse()
      .map((frame) => 1 + locations.of(frame));
    SAMPLE.put(out, PROFILE.sample, { locationId, value: [node.calls + node.samples, node.self] });
  }
  for (const [index, frame] of locations.all.entries()) putFunction(out, texts, frame, 1 + index);
  out.uint(PROFILE.durationNanos, tree.span);
  out.uint(PROFILE.comment, texts.of(`rsptrace, ${tree.info?.program ?? ''}`));
  out.uint(PROFILE.defaultSampleType, texts.of('time'));
  for (const text of texts.all) out.text(PROFILE.stringTable, text);
  return out.copy();
}

/** A location and its function have the same number. */
function putFunction(out: ProtoBuffer, texts: Numbered<string>, frame: Frame, id: number): void {
  const { name, instance, address, file, line = 0 } = frame;
  const isKnown = address !== undefined && (lowHalf(address) | highHalf(address)) !== 0;
  const place = { functionId: id, line };
  LOCATION.put(out, PROFILE.location, { id, address: isKnown ? address : undefined, line: place });
  FUNCTION.put(out, PROFILE.function, {
    id,
    name: texts.of(visible(name)),
    systemName: texts.of(visible(instance)),
    filename: texts.of(visible(file ?? '')),
    startLine: line,
  });
}
