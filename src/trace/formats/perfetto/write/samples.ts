// Samples of a profile as PerfSample packets (protos/perfetto/trace/profiling: profile_packet.proto,
// profile_common.proto), which the viewer shows as a flame graph a thread. A hart is a thread of the one process.
import type { HartInfo, Sample } from '../../../events/events.js';
import { PERF_SAMPLE, THREAD_DESCRIPTOR, TRACE_PACKET, TRACK, TRACK_DESCRIPTOR } from '../fields.js';
import type { ProtoBuffer } from '../protobuf.js';
import type { PerfettoSequence } from './packets.js';

const PID = 1;
/** Of the threads that stand for harts: below watched places, and odd, as no hart's is. */
const FIRST_SAMPLED = 0x7000_0001;

/** The thread that stands for a hart; 1 is the process's own. */
const tidOf = (hart: number): number => hart + 2;

/** Writes samples. */
export class SamplePackets {
  readonly #sequence: PerfettoSequence;
  readonly #threads = new Set<number>();
  readonly #names = new Map<number, string>();

  constructor(sequence: PerfettoSequence) {
    this.#sequence = sequence;
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
    const fill = (track: ProtoBuffer): void => {
      const thread = track.open(TRACK_DESCRIPTOR.thread);
      track.uint(THREAD_DESCRIPTOR.pid, PID);
      track.uint(THREAD_DESCRIPTOR.tid, tidOf(hart));
      track.text(THREAD_DESCRIPTOR.threadName, this.#names.get(hart) ?? `hart ${hart}`);
      track.close(thread);
    };
    this.#sequence.descriptor({ uuid: FIRST_SAMPLED + 2 * hart, parent: TRACK.process, fill });
  }
}
