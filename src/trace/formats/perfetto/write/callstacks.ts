import { madeOnce } from '../../../../base/made-once.js';
import type { SampledFrame, StackEntry } from '../../../events/events.js';
import { CALLSTACK, FRAME, INTERNED_DATA, INTERNED_STRING, MAPPING } from '../fields.js';
import type { ProtoBuffer } from '../protobuf.js';

/** All frames are of one mapping, because a frame must have one. */
const ONLY_MAPPING = 1;

/** Call stacks that a sequence has written once (profiling/profile_common.proto), and names by their iids. */
export class Callstacks {
  /** The path of the only mapping. */
  program = '';
  readonly #fresh: ProtoBuffer;
  readonly #texts = new Map<string, number>();
  readonly #frames = new Map<SampledFrame, number>();
  /** By the iids of their frames. */
  readonly #stacks = new Map<string, number>();
  /** Frames of entries, by their text. */
  readonly #entries = new Map<string, SampledFrame>();
  #hasMapping = false;

  /** `fresh`: takes the fields of `InternedData` that go with the next packet. */
  constructor(fresh: ProtoBuffer) {
    this.#fresh = fresh;
  }

  /** The iid of a stack, the innermost frame first. */
  of(stack: readonly SampledFrame[]): number {
    this.#mapping();
    // The outermost first.
    const frames = stack.map((frame) => this.#frame(frame)).reverse();
    const key = frames.join();
    return madeOnce(this.#stacks, key, () => {
      const iid = this.#stacks.size + 1;
      CALLSTACK.put(this.#fresh, INTERNED_DATA.callstacks, { iid, frameIds: frames });
      return iid;
    });
  }

  ofEntries(stack: readonly StackEntry[]): number {
    return this.of(stack.map((entry) => this.#entry(entry)));
  }

  #entry({ function: name = '??', file, line }: StackEntry): SampledFrame {
    const key = `${name}\n${file}\n${line}`;
    return madeOnce(this.#entries, key, () => ({ name, instance: name, address: undefined, file, line }));
  }

  #mapping(): void {
    if (this.#hasMapping) return;
    this.#hasMapping = true;
    const pathStringIds = this.#text(INTERNED_DATA.mappingPaths, this.program);
    MAPPING.put(this.#fresh, INTERNED_DATA.mappings, { iid: ONLY_MAPPING, pathStringIds });
  }

  #frame(frame: SampledFrame): number {
    return madeOnce(this.#frames, frame, () => {
      const iid = this.#frames.size + 1;
      const { name, file, line, address } = frame;
      FRAME.put(this.#fresh, INTERNED_DATA.frames, {
        iid,
        functionNameId: this.#text(INTERNED_DATA.functionNames, name),
        mappingId: ONLY_MAPPING,
        // Frames of one address are one frame, so each has an address of its own.
        relPc: address ?? BigInt(iid),
        sourcePathIid: file === undefined ? undefined : this.#text(INTERNED_DATA.sourcePaths, file),
        lineNumber: line,
      });
      return iid;
    });
  }

  #text(field: number, text: string): number {
    const key = `${field} ${text}`;
    return madeOnce(this.#texts, key, () => {
      const iid = this.#texts.size + 1;
      INTERNED_STRING.put(this.#fresh, field, { iid, str: text });
      return iid;
    });
  }
}
