/*
 * pprof's profile (github.com/google/pprof, proto/profile.proto); a `.pb.gz` is packed with gzip. This part: two values
 * a stack, calls (of a profile samples, or waits) and nanoseconds. A location is a function with one line, at its
 * declaration. There are no mappings, since names are known.
 */

import { highHalf, lowHalf } from '../../base/addr.js';
import { type FileHead, unpackedStart } from '../../base/file-head.js';
import { Numbered } from '../../base/made-once.js';
import { visible } from '../../text/index.js';
import { CallTree, type Frame, stackOf } from '../events/call-tree.js';
import type { Format } from './format.js';
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
const VALUE_TYPE = { type: 1, unit: 2 };
const SAMPLE = { locationId: 1, value: 2 };
const LOCATION = { id: 1, address: 3, line: 4 };
const LINE = { functionId: 1, line: 2 };
const FUNCTION = { id: 1, name: 2, systemName: 3, filename: 4, startLine: 5 };

/** pprof's profile. */
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
  const message = (field: number, values: readonly (readonly [field: number, value: number])[]): void => {
    const mark = out.open(field);
    for (const [each, value] of values) out.uint(each, value);
    out.close(mark);
  };
  for (const [type, unit] of [
    [tree.counts, 'count'],
    ['time', 'nanoseconds'],
  ] as const) {
    message(PROFILE.sampleType, [
      [VALUE_TYPE.type, texts.of(type)],
      [VALUE_TYPE.unit, texts.of(unit)],
    ]);
  }
  for (const node of tree.nodes()) {
    const sample = out.open(PROFILE.sample);
    for (const frame of stackOf(node).reverse()) out.uint(SAMPLE.locationId, 1 + locations.of(frame));
    out.uint(SAMPLE.value, node.calls + node.samples);
    out.uint(SAMPLE.value, node.self);
    out.close(sample);
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
  const location = out.open(PROFILE.location);
  out.uint(LOCATION.id, id);
  if (address !== undefined && (lowHalf(address) | highHalf(address)) !== 0) out.uint64(LOCATION.address, address);
  const place = out.open(LOCATION.line);
  out.uint(LINE.functionId, id);
  out.uint(LINE.line, line);
  out.close(place);
  out.close(location);
  const fn = out.open(PROFILE.function);
  out.uint(FUNCTION.id, id);
  out.uint(FUNCTION.name, texts.of(visible(name)));
  out.uint(FUNCTION.systemName, texts.of(visible(instance)));
  out.uint(FUNCTION.filename, texts.of(visible(file ?? '')));
  out.uint(FUNCTION.startLine, line);
  out.close(fn);
}
