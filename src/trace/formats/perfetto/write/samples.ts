// Samples of a profile as PerfSample packets (protos/perfetto/trace/profiling: profile_packet.proto,
// profile_common.proto), which the viewer shows as a flame graph a thread. A hart is a thread of the one process.
import type { HartInfo, Sample } from '../../../events/events.js';
import { PERF_SAMPLE, THREAD_DESCRIPTOR, TRACE_PACKET, TRACK_DESCRIPTOR } from '../fields.js';
import type { PerfettoSequence } from './packets.js';

const PID = 1;

/** The thread that stands for a hart; 1 is the process's own. */
const tidOf = (hart: number): number => hart + 2;

/** Writes samples. */
export class SamplePackets {
  readonly #sequence: PerfettoSequence;
  readonly #track: (hart: number) => number;
  readonly #process: number;
  readonly #threads = new Set<number>();
  readonly #names = new Map<number, string>();

  /** `track`: the number of a hart's thread track; `process`: that of the process. */
  constructor(sequence: PerfettoSequence, process: number, track: (hart: number) => number) {
    this.#sequence = sequence;
    this.#process = process;
    this.#track = track;
  }

  hart({ number, name }: HartInfo): void {
    this.#names.set(number, name);
  }

  write({ time, hart, stack, periodNs }: Sample): void {
    this.#thread(hart);
    const iid = this.#sequence.callstacks.of(stack);
    this.#sequence.packet(time, (packet) => {
      const sample = packet.open(TRACE_PACKET.perfSample);
      packet.uint(PERF_SAMPLE.cpu, hart);
      packet.uint(PERF_SAMPLE.pid, PID);
      packet.uint(PERF_SAMPLE.tid, tidOf(hart));
      packet.uint(PERF_SAMPLE.callstackIid, iid);
      packet.uint(PERF_SAMPLE.timebaseCount, periodNs);
      packet.close(sample);
    });
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
}
