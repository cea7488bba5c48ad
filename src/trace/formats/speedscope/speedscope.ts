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
import { startOf } from '../../../base/file-bytes.js';
import { madeOnce, Numbered } from '../../../base/made-once.js';
import type { AnyBegin, FunctionRef, FutureRef, Sample, SampledFrame, TraceInfo } from '../../events/events.js';
import type { Format } from '../format.js';
import { TrackWriter } from '../lane-writer.js';
import type { OutputFile } from '../output/output-file.js';
import { headText, json, quote } from '../text-lines.js';
import { openSpooled, type Spool, type SpoolList } from './spool.js';

const SCHEMA = 'https://www.speedscope.app/file-format-schema.json';

export const speedscope: Format = {
  name: 'speedscope',
  extensions: ['.speedscope.json'],
  about: 'calls, polls and samples alone as flame graphs, for speedscope.app',
  use: 'open it in speedscope.app; it holds calls, polls and samples alone',
  isAppended: false,
  holdsSamples: 'merged',
  recognizes: (head) => /^\s*\{.*"\$schema"\s*:\s*"https:\/\/www\.speedscope\.app\//s.test(startOf(head)),
  open: (file) => openSpooled(file, (spool) => new SpeedscopeWriter(file, spool)),
};

/** A hart or a thread. */
interface Track {
  readonly name: string;
  /** A frame that is opened, or -1 minus one that is closed; and its time. */
  readonly events: SpoolList;
  /** Frames, innermost last. */
  readonly open: number[];
}

/** Samples of one hart, or all waits of an off-CPU profile. */
interface SampledProfile {
  readonly name: string;
  /** Of each sample the number of its stack, and what it weighs in nanoseconds. */
  readonly samples: SpoolList;
  /** Nanoseconds. */
  weight: number;
}

class SpeedscopeWriter extends TrackWriter<Track> {
  readonly #out: OutputFile;
  readonly #spool: Spool;
  readonly #frames = new Frames();
  /** Of samples, by their names. */
  readonly #sampled = new Map<string, SampledProfile>();
  /** Of samples: numbers of frames with commas between, the outermost first. */
  readonly #stacks = new Numbered<string>();
  #name = '';
  #first = Number.POSITIVE_INFINITY;
  #last = 0;

  constructor(out: OutputFile, spool: Spool) {
    super();
    this.#out = out;
    this.#spool = spool;
  }

  begin(info: TraceInfo): void {
    this.#name = headText(info);
  }

  protected added(name: string): Track {
    return { name, events: this.#spool.list(), open: [] };
  }

  enter(begin: AnyBegin): void {
    const track = this.trackOf(begin);
    const frame = this.#frames.of(begin.type === 'call-begin' ? begin.function : begin.future);
    track.open.push(frame);
    this.#event(track, frame, begin.time);
  }

  /** Slices nest: the innermost one ends. */
  leave(begin: AnyBegin, time: number): void {
    const track = this.trackOf(begin);
    const frame = track.open.pop();
    if (frame !== undefined) this.#event(track, -1 - frame, time);
  }

  sample({ hart, stack, periodNs, isWait }: Sample): void {
    const name = isWait ? 'waits of tasks' : `${this.#hartName(hart)}: samples`;
    const profile = madeOnce(this.#sampled, name, () => ({ name, samples: this.#spool.list(), weight: 0 }));
    const frames = stack.map((frame) => this.#frames.of(frame)).reverse();
    profile.samples.push(this.#stacks.of(frames.join()), periodNs);
    profile.weight += periodNs;
  }

  #event({ events }: Track, frame: number, time: number): void {
    this.#first = Math.min(this.#first, time);
    this.#last = Math.max(this.#last, time);
    events.push(frame, time);
  }

  #hartName(hart: number): string {
    const track: Track | undefined = this.trackOf({ hart });
    return track?.name ?? `hart ${hart}`;
  }

  write(): void {
    const out = this.#out;
    const tracks = this.tracks();
    const used = tracks.filter(({ events }) => !events.isEmpty);
    out.textRecord(`{"$schema":${quote(SCHEMA)},"exporter":"rsptrace","name":${quote(this.#name)},\n`);
    out.textRecord('"shared":{"frames":[');
    for (const [index, text] of this.#frames.texts.entries()) out.textRecord(`${separator(index)}${text}`);
    out.textRecord('\n]},\n"profiles":[');
    const sampled = [...this.#sampled.values()];
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
    samples.forEach((stack) => void out.textRecord(`${separator(index++)}[${this.#stacks.all[stack]}]`));
    out.textRecord('\n],"weights":[');
    index = 0;
    samples.forEach((_stack, nanos) => void out.textRecord(`${separator(index++)}${nanos}`));
    out.textRecord('\n]}');
  }
}

/** The table of frames, each written once. */
class Frames {
  readonly #known = new Map<FunctionRef | FutureRef | SampledFrame, number>();
  readonly #texts = new Numbered<string>();

  /** By index. */
  get texts(): readonly string[] {
    return this.#texts.all;
  }

  of(what: FunctionRef | FutureRef | SampledFrame): number {
    const { instance, file, line } = what;
    return madeOnce(this.#known, what, () => this.#texts.of(json({ name: instance, file, line })));
  }
}

function separator(index: number): string {
  return index === 0 ? '\n' : ',\n';
}
