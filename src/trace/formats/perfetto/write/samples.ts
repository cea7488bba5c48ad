// Samples of a profile as PerfSample packets (protos/perfetto/trace/profiling: profile_packet.proto,
// profile_common.proto), which the viewer shows as a flame graph a thread. A hart is a thread of the one process.
import type { HartInfo, Sample } from '../../../events/events.js';
import { PERF_SAMPLE, TRACE_PACKET, TRACK } from '../fields.js';
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
    const callstackIid = this.#sequence.callstacks.of(stack);
    const sample = { cpu: hart, pid: PID, tid: tidOf(hart), callstackIid, timebaseCount: periodNs };
    this.#sequence.packet(time, (packet) => PERF_SAMPLE.put(packet, TRACE_PACKET.perfSample, sample));
  }

  #thread(hart: number): void {
    if (this.#threads.has(hart)) return;
    this.#threads.add(hart);
    const thread = { pid: PID, tid: tidOf(hart), threadName: this.#names.get(hart) ?? `hart ${hart}` };
    this.#sequence.descriptor({ uuid: FIRST_SAMPLED + 2 * hart, parentUuid: TRACK.process, thread });
  }
}
