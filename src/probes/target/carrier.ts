import type { Addr } from '../../base/addr.js';
import { OuterReadings, type Outers, RecordReader } from './record-format.js';
import type { Site } from './sites.js';
import type { Words } from './words.js';

/** What reads the records of one site. */
export interface Carrier {
  readonly address: Addr;
  /** Its calls return through a trampoline. */
  readonly hooks: boolean;
  readonly entry: RecordReader;
  readonly exit: RecordReader;
  readonly outer: { readonly pointer: string; readonly readings: OuterReadings } | undefined;
}

export function carrierOf({ plan, ends, entry, exit }: Site, words: Words, outers: Outers): Carrier {
  const { address, outer, seesReturn } = plan;
  return {
    address,
    // Of patched ends only tail jumps are hooked.
    hooks: seesReturn && (ends?.some((way) => way.some(({ tail }) => tail !== undefined)) ?? true),
    entry: new RecordReader(entry, words, outers),
    exit: new RecordReader(exit, words, outers),
    outer: outer && { pointer: outer.pointer, readings: new OuterReadings(outer.loads) },
  };
}
