import { madeOnce } from '../../../base/made-once.js';
import type { AnyBegin, GuestNanos } from '../../events/events.js';
import { tidOf } from '../lane-writer.js';
import type { OutputFile } from '../output/output-file.js';
import type { TextPart } from '../output/record-block.js';
import { DIGITS, encoded, json, quote } from '../text-lines.js';
import { type Args, commonPiece, type Named, named, type SliceTime, SliceTimes } from './fields.js';

/** Records of Chrome's trace format on their way into a file: what they are of is given as JSON. */
export class ChromeRecords {
  readonly #out: OutputFile;
  readonly #times = new SliceTimes();
  #state: 'before' | 'first' | 'more' | 'ended' = 'before';
  /** Facts about the whole trace, until the first event is written. */
  #facts: Args | undefined;
  #firstTime = 0 as GuestNanos;
  /** By track: what says whose it is. */
  readonly #processes: (Uint8Array | undefined)[] = [];
  readonly #numbered = new Map<number, Uint8Array>();

  constructor(out: OutputFile) {
    this.#out = out;
  }

  /** `facts`: what the first event is to say of the whole trace. */
  begin(facts: Args): void {
    this.#state = 'first';
    this.#facts = facts;
  }

  flush(): void {
    this.#out.flush();
  }

  /** `engines`: what is said of the whole trace at its end. */
  end(engines: Args | undefined): void {
    const hasBegun = this.#state === 'first' || this.#state === 'more';
    if (hasBegun) this.#reportFacts(this.#firstTime);
    if (engines) this.ofAll('g', this.#firstTime, { category: 'trace', name: 'engines', args: engines });
    if (hasBegun) this.#out.textRecord('\n]\n');
    this.#state = 'ended';
    this.#out.close();
  }

  /** From now on the track is of a process of this number, and not of the kernel's. */
  home(tid: number, pid: number): void {
    this.#processes[tid] = this.#of(pid);
  }

  #of(pid: number): Uint8Array {
    return madeOnce(this.#numbered, pid, () => encoded(`,"pid":${pid},"tid":`));
  }

  /** Of a process without tracks, as yet. */
  process(pid: number, name: string, args: Args): void {
    this.#write('M', zero, 0, ',', `"name":${quote(name)},"args":${json(args)}`, this.#of(pid));
  }

  metadata(name: string, tid: number, args: Args): void {
    this.#write('M', zero, tid, ',', `"name":${quote(name)},"args":${json(args)}`);
  }

  /** The begin or end of a slice of a hart or a stack. */
  slice(phase: 'B' | 'E', begin: AnyBegin, time: GuestNanos): void {
    this.#reportFacts(time);
    const tid = tidOf(begin);
    this.#write(phase, this.#times.next(tid, time), tid, ',', commonPiece(begin));
  }

  /** An instant of a hart or a stack. */
  onTrack(tid: number, time: GuestNanos, fields: TextPart): void {
    this.#reportFacts(time);
    this.#write('i', this.#times.at(tid, time), tid, ',"s":"t",', fields);
  }

  /** `scope`: of the process, or of everything. */
  ofAll(scope: 'p' | 'g', time: GuestNanos, what: Named): void {
    this.event('i', time, 1, `"s":"${scope}",${named(what)}`);
  }

  /** `fields`: what it is. `pid`: whose, if that is not what the track says. */
  event(phase: Phase, time: GuestNanos, tid: number, fields: TextPart, pid?: number): void {
    this.#reportFacts(time);
    this.#write(phase, { nanos: time, picos: 0 }, tid, ',', fields, pid === undefined ? undefined : this.#of(pid));
  }

  /** At the time of the first event, because there may be nothing else for long after 0. */
  #reportFacts(time: GuestNanos): void {
    const facts = this.#facts;
    if (facts === undefined) return;
    this.#facts = undefined;
    this.#firstTime = time;
    this.ofAll('g', time, { category: 'trace', name: 'rsptrace', args: facts });
  }

  /** `fields`: what it is. */
  #write(
    phase: Phase,
    { nanos, picos }: SliceTime,
    tid: number,
    before: string,
    fields: TextPart,
    process = this.#processes[tid] ?? KERNEL,
  ): void {
    const record = HEADS[phase];
    const head = this.#state === 'first' ? `[${Buffer.from(record.subarray(1))}` : record;
    this.#state = 'more';
    const rest = nanos % 1000;
    const decimals = DIGITS[rest] as string;
    const more = picos === 0 ? '' : (DIGITS[picos] as string);
    const micros = (nanos - rest) / 1000;
    this.#out.textRecord([head, micros, '.', decimals, more, process, tid, before, fields, '}']);
  }
}

const zero: SliceTime = { nanos: 0, picos: 0 };

/** The beginning of every record of a phase, behind what is between two records. */
const HEADS = {
  B: head('B'),
  E: head('E'),
  i: head('i'),
  M: head('M'),
  b: head('b'),
  n: head('n'),
  e: head('e'),
  C: head('C'),
};
type Phase = keyof typeof HEADS;
const KERNEL = encoded(',"pid":1,"tid":');

function head(phase: string): Uint8Array {
  return encoded(`,\n{"ph":"${phase}","ts":`);
}
