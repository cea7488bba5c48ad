// Samples of a profile as PerfSample packets (protos/perfetto/trace/profiling: profile_packet.proto,
// profile_common.proto), which the viewer shows as a flame graph a thread. A hart is a thread of the one process.
import type { HartInfo, Sample, SampledFrame, TraceInfo } from '../../events.js';
import {
  CALLSTACK,
  FRAME,
  INTERNED_DATA,
  INTERNED_STRING,
  MAPPING,
  PERF_SAMPLE,
  THREAD_DESCRIPTOR,
  TRACE_PACKET,
  TRACK_DESCRIPTOR,
} from './fields.js';
import type { PerfettoSequence } from './packets.js';
import type { ProtoBuffer } from './protobuf.js';

const PID = 1;
/** All frames are of one mapping, because a frame must have one. */
const ONLY_MAPPING = 1;

/** The thread that stands for a hart; 1 is the process's own. */
export const tidOf = (hart: number): number => hart + 2;
/** The hart of such a thread. */
export const hartOf = (tid: number): number => tid - 2;

/** Writes samples, and interns what they are made of. */
export class SamplePackets {
  readonly #sequence: PerfettoSequence;
  readonly #track: (hart: number) => number;
  readonly #process: number;
  readonly #texts = new Map<string, number>();
  readonly #frames = new Map<SampledFrame, number>();
  /** By the iids of their frames. */
  readonly #stacks = new Map<string, number>();
  readonly #threads = new Set<number>();
  readonly #names = new Map<number, string>();
  #program = '';
  #hasMapping = false;

  /** `track`: the number of a hart's thread track; `process`: that of the process. */
  constructor(sequence: PerfettoSequence, process: number, track: (hart: number) => number) {
    this.#sequence = sequence;
    this.#process = process;
    this.#track = track;
  }

  begin({ program }: TraceInfo): void {
    this.#program = program;
  }

  hart({ number, name }: HartInfo): void {
    this.#names.set(number, name);
  }

  write({ time, hart, stack, periodNs }: Sample): void {
    this.#thread(hart);
    let iid = 0;
    this.#sequence.packet(
      time,
      (fresh) => {
        this.#mapping(fresh);
        iid = this.#stack(fresh, stack);
      },
      (packet) => {
        const sample = packet.open(TRACE_PACKET.perfSample);
        packet.uint(PERF_SAMPLE.cpu, hart);
        packet.uint(PERF_SAMPLE.pid, PID);
        packet.uint(PERF_SAMPLE.tid, tidOf(hart));
        packet.uint(PERF_SAMPLE.callstackIid, iid);
        packet.uint(PERF_SAMPLE.timebaseCount, periodNs);
        packet.close(sample);
      },
    );
  }

  #thread(hart: number): void {
    if (this.#threads.has(hart)) return;
    this.#threads.add(hart);
    this.#sequence.descriptor((track) => {
      track.uint(TRACK_DESCRIPTOR.uuid, this.#track(hart));
      track.uint(TRACK_DESCRIPTOR.parentUuid, this.#process);
      const thread = track.open(TRACK_DESCRIPTOR.thread);
      track.uint(THREAD_DESCRIPTOR.pid, PID);
      track.uint(THREAD_DESCRIPTOR.tid, tidOf(hart));
      track.text(THREAD_DESCRIPTOR.threadName, this.#names.get(hart) ?? `hart ${hart}`);
      track.close(thread);
    });
  }

  #mapping(fresh: ProtoBuffer): void {
    if (this.#hasMapping) return;
    this.#hasMapping = true;
    const path = this.#text(fresh, INTERNED_DATA.mappingPaths, this.#program);
    const mapping = fresh.open(INTERNED_DATA.mappings);
    fresh.uint(MAPPING.iid, ONLY_MAPPING);
    fresh.uint(MAPPING.pathStringIds, path);
    fresh.close(mapping);
  }

  #stack(fresh: ProtoBuffer, stack: readonly SampledFrame[]): number {
    // The outermost first.
    const frames = stack.map((frame) => this.#frame(fresh, frame)).reverse();
    const key = frames.join();
    let iid = this.#stacks.get(key);
    if (iid === undefined) {
      iid = this.#stacks.size + 1;
      this.#stacks.set(key, iid);
      const message = fresh.open(INTERNED_DATA.callstacks);
      fresh.uint(CALLSTACK.iid, iid);
      for (const frame of frames) fresh.uint(CALLSTACK.frameIds, frame);
      fresh.close(message);
    }
    return iid;
  }

  #frame(fresh: ProtoBuffer, frame: SampledFrame): number {
    let iid = this.#frames.get(frame);
    if (iid === undefined) {
      iid = this.#frames.size + 1;
      this.#frames.set(frame, iid);
      const name = this.#text(fresh, INTERNED_DATA.functionNames, frame.name);
      const path = frame.file === undefined ? 0 : this.#text(fresh, INTERNED_DATA.sourcePaths, frame.file);
      const message = fresh.open(INTERNED_DATA.frames);
      fresh.uint(FRAME.iid, iid);
      fresh.uint(FRAME.functionNameId, name);
      fresh.uint(FRAME.mappingId, ONLY_MAPPING);
      // Frames of one address are one frame, so each has an address of its own.
      if (frame.address === undefined) fresh.uint(FRAME.relPc, iid);
      else fresh.uint64(FRAME.relPc, frame.address);
      if (path > 0) fresh.uint(FRAME.sourcePathIid, path);
      if (frame.line !== undefined) fresh.uint(FRAME.lineNumber, frame.line);
      fresh.close(message);
    }
    return iid;
  }

  #text(fresh: ProtoBuffer, field: number, text: string): number {
    const key = `${field} ${text}`;
    let iid = this.#texts.get(key);
    if (iid === undefined) {
      iid = this.#texts.size + 1;
      this.#texts.set(key, iid);
      const message = fresh.open(field);
      fresh.uint(INTERNED_STRING.iid, iid);
      fresh.text(INTERNED_STRING.str, text);
      fresh.close(message);
    }
    return iid;
  }
}
