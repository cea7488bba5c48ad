/*
 * speedscope's own format (github.com/jlfwong/speedscope, src/lib/file-format-spec.ts; its schema: SCHEMA below).
 * This part: evented profiles, and sampled ones for the samples of a profile.
 *
 *   {   "$schema", "exporter", "name", "shared": {"frames": [{"name", "file", "line"}]},
 *       "profiles": [{"type": "evented", "name", "unit": "nanoseconds", "startValue", "endValue",
 *                     "events": [{"type": "O" or "C", "frame": its index, "at": time}]},
 *                    {"type": "sampled", ..., "samples": [[indices of frames, outermost first]], "weights": [ns]}]}
 *
 * A profile is a hart, or a stack; all of them span the whole trace. A frame is a function, or a Future that is polled.
 * It has the full name, so that instances of one generic function do not add up. What is open at the end is closed
 * there.
 *
 * A profile's events stand together, and the table of frames is one. So events go to a spool, and the end writes the
 * file. In memory are the frames, the open calls, and 1 KiB a track.
 */
import { startOf } from '../../../base/file-head.js';
import { visibleJson } from '../../../text/index.js';
import type {
  AnyBegin,
  CallBegin,
  CallEnd,
  FunctionRef,
  FutureRef,
  GuestNanos,
  HartInfo,
  PollBegin,
  PollEnd,
  Sample,
  SampledFrame,
  ThreadRef,
  TraceInfo,
} from '../../events/events.js';
import { threadText } from '../../events/text.js';
import type { Format } from '../format.js';
import { Lanes, type LaneWriter } from '../lanes.js';
import type { OutputFile } from '../output/output-file.js';
import { type SampledProfile, SampledProfiles } from './sampled-profiles.js';
import { Spool, type SpoolList } from './spool.js';

const SCHEMA = 'https://www.speedscope.app/file-format-schema.json';

/** speedscope's own JSON. */
export const speedscope: Format = {
  name: 'speedscope',
  extensions: ['.speedscope.json'],
  about: 'calls, polls and samples alone as flame graphs, for speedscope.app',
  use: 'open it in speedscope.app; it holds calls, polls and samples alone',
  isAppended: false,
  holdsSamples: 'merged',
  recognizes: (head) => /^\s*\{.*"\$schema"\s*:\s*"https:\/\/www\.speedscope\.app\//s.test(startOf(head)),
  open: (file) => new Lanes(new SpeedscopeWriter(file)),
};

/** A hart or a thread. */
interface Track {
  readonly name: string;
  /** A frame that is opened, or -1 minus one that is closed; and its time. */
  readonly events: SpoolList;
  /** Frames, innermost last. */
  readonly open: number[];
}

class SpeedscopeWriter implements LaneWriter {
  readonly #out: OutputFile;
  readonly #spool: Spool;
  readonly #frames = new Frames();
  readonly #samples: SampledProfiles;
  readonly #harts: Track[] = [];
  readonly #threads = new Map<ThreadRef, Track>();
  #state: 'before' | 'recording' | 'failed' | 'ended' = 'before';
  #name = '';
  #first = Number.POSITIVE_INFINITY;
  #last = 0;

  constructor(out: OutputFile) {
    this.#out = out;
    this.#spool = new Spool(out.path);
    this.#samples = new SampledProfiles(this.#spool, (frame) => this.#frames.of(frame));
  }

  begin({ program, arch, clock }: TraceInfo): void {
    this.#state = 'recording';
    this.#name = `${program}, ${arch}, ${clock.guest ? 'guest clock' : 'clock'} ${clock.name}`;
  }

  hart({ number, name }: HartInfo): void {
    this.#harts[number] = { name, events: this.#spool.list(), open: [] };
  }

  thread(thread: ThreadRef): void {
    if (this.#threads.has(thread)) return;
    this.#threads.set(thread, { name: threadText(thread), events: this.#spool.list(), open: [] });
  }

  pollBegin(event: PollBegin): void {
    this.#open(event, event.future);
  }

  pollEnd(begin: PollBegin, { time }: PollEnd): void {
    this.#close(begin, time);
  }

  pollLost(begin: PollBegin, time: GuestNanos, lanes: 'hart' | 'root' | 'both'): void {
    if (lanes !== 'root') this.#close(begin, time);
  }

  callBegin(event: CallBegin): void {
    this.#open(event, event.function);
  }

  callEnd(begin: CallBegin, { time }: CallEnd): void {
    this.#close(begin, time);
  }

  callLost(begin: CallBegin, time: GuestNanos): void {
    this.#close(begin, time);
  }

  callCut(begin: CallBegin, time: GuestNanos): void {
    this.#close(begin, time);
  }

  sample(event: Sample): void {
    this.#keep(() => this.#samples.add(event, this.#harts[event.hart]?.name ?? `hart ${event.hart}`));
  }

  flush(): void {
    // Only the whole file is readable: the end writes it.
  }

  end(): void {
    const state = this.#state;
    if (state === 'ended') return;
    this.#state = 'ended';
    try {
      if (state === 'recording') this.#write();
    } finally {
      this.#spool.close();
      this.#out.close();
    }
  }

  #open(begin: AnyBegin, what: FunctionRef | FutureRef): void {
    const track = this.#trackOf(begin);
    const frame = this.#frames.of(what);
    track.open.push(frame);
    this.#event(track, frame, begin.time);
  }

  /** Slices nest: the innermost one ends. */
  #close(begin: AnyBegin, time: number): void {
    const track = this.#trackOf(begin);
    const frame = track.open.pop();
    if (frame !== undefined) this.#event(track, -1 - frame, time);
  }

  #event({ events }: Track, frame: number, time: number): void {
    this.#first = Math.min(this.#first, time);
    this.#last = Math.max(this.#last, time);
    this.#keep(() => events.push(frame, time));
  }

  /** Nothing more is kept once that has failed. */
  #keep(push: () => void): void {
    if (this.#state !== 'recording') return;
    try {
      push();
    } catch (error) {
      this.#state = 'failed';
      throw error;
    }
  }

  #trackOf({ hart, thread }: AnyBegin): Track {
    return (thread ? this.#threads.get(thread) : this.#harts[hart]) as Track;
  }

  #write(): void {
    const out = this.#out;
    const tracks = [...this.#harts, ...this.#threads.values()].filter((track) => track !== undefined);
    const used = tracks.filter(({ events }) => !events.isEmpty);
    out.textRecord(`{"$schema":${quote(SCHEMA)},"exporter":"rsptrace","name":${quote(this.#name)},\n`);
    out.textRecord('"shared":{"frames":[');
    for (const [index, text] of this.#frames.texts.entries()) out.textRecord(`${separator(index)}${text}`);
    out.textRecord('\n]},\n"profiles":[');
    const sampled = this.#samples.all;
    let index = 0;
    // A reader may require at least one profile.
    for (const track of used.length > 0 || sampled.length > 0 ? used : tracks) {
      out.textRecord(separator(index++));
      this.#writeProfile(track);
    }
    for (const profile of sampled) {
      out.textRecord(separator(index++));
      this.#writeSampled(profile);
    }
    out.textRecord('\n]}\n');
  }

  #writeProfile({ name, events, open }: Track): void {
    const out = this.#out;
    const span = `"startValue":${Math.min(this.#first, this.#last)},"endValue":${this.#last}`;
    out.textRecord(`{"type":"evented","name":${quote(name)},"unit":"nanoseconds",${span},"events":[`);
    let index = 0;
    const write = (frame: number, at: number): void => {
      const [type, which] = frame < 0 ? ['C', -1 - frame] : ['O', frame];
      out.textRecord(`${separator(index++)}{"type":"${type}","frame":${which},"at":${at}}`);
    };
    events.forEach(write);
    for (const frame of open.toReversed()) write(-1 - frame, this.#last);
    out.textRecord('\n]}');
  }

  #writeSampled({ name, samples, weight }: SampledProfile): void {
    const out = this.#out;
    const span = `"startValue":0,"endValue":${weight}`;
    out.textRecord(`{"type":"sampled","name":${quote(name)},"unit":"nanoseconds",${span},"samples":[`);
    let index = 0;
    samples.forEach((stack) => void out.textRecord(`${separator(index++)}[${this.#samples.stacks[stack]}]`));
    out.textRecord('\n],"weights":[');
    index = 0;
    samples.forEach((_stack, nanos) => void out.textRecord(`${separator(index++)}${nanos}`));
    out.textRecord('\n]}');
  }
}

/** The table of frames, each written once. */
class Frames {
  /** By index. */
  readonly texts: string[] = [];
  readonly #known = new Map<FunctionRef | FutureRef | SampledFrame, number>();
  readonly #byText = new Map<string, number>();

  of(what: FunctionRef | FutureRef | SampledFrame): number {
    const known = this.#known.get(what);
    if (known !== undefined) return known;
    const { instance, file, line } = what;
    const text = visibleJson(JSON.stringify({ name: instance, file, line }));
    const index = this.#byText.get(text) ?? this.texts.push(text) - 1;
    this.#byText.set(text, index);
    this.#known.set(what, index);
    return index;
  }
}

function separator(index: number): string {
  return index === 0 ? '\n' : ',\n';
}

function quote(text: string): string {
  return visibleJson(JSON.stringify(text));
}
