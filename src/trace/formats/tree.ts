// A call tree for people to read and to grep, in the manner of `uftrace replay` and of ftrace's function_graph. One
// line for a begin, one line with the duration for its end; a single line for both if nothing happened in between.
//
//   #           TIME    DURATION  HART
//          12.300 us              [ 0]  labkern::exec::poll_task(t: 0x80412340) {
//          13.100 us      1.2 us  [ 0]    labkern::work::deep0(x: 3, y: 1) = 7
//          15.000 us      2.7 us  [ 0]  } /* labkern::exec::poll_task
//
// If threads are known by their stacks, `[ 0:12]` is thread 12 on hart 0, indented by its own calls.
//
// Written as events come; only the last begin waits for the next event.

import { startOf } from '../../base/file-head.js';
import { plural } from '../../text/index.js';
import type {
  AnyBegin,
  AnyEnd,
  HartInfo,
  PollEnd,
  ProbeFact,
  ThreadRef,
  TraceEvent,
  TraceFacts,
  TraceInfo,
} from '../events/events.js';
import { hartWord } from '../events/hart-labels.js';
import type { Track } from '../events/open-calls.js';
import { argumentsText, ChainTexts, engineTexts, stateText, threadText } from '../events/text.js';
import { timeText } from '../events/text-table.js';
import { type AboutAll, CallLines, callName } from './call-lines.js';
import type { Format } from './format.js';
import { encoded, type TextBytes } from './output/text-bytes.js';

/** The call tree. */
export const tree: Format = {
  name: 'call tree',
  extensions: ['.txt'],
  about: 'text to read and to grep',
  use: 'a call tree, to read with a pager',
  isAppended: true,
  // `# kernel.elf, riscv64, guest clock riscv-time`, as `begin` writes it.
  recognizes: (head) => /^# .*, \w+, (?:guest )?clock [\w-]+\n/.test(startOf(head)),
  open: (file) => new TreeWriter(file),
};

/** Writes a readable call tree into `out`. */
export class TreeWriter extends CallLines {
  /** One object, because lines are many. */
  protected override readonly parts = { track: 0, text: 0, level: 0, number: 0 };
  readonly #chains = new ChainTexts();
  readonly #threads = new Set<ThreadRef>();

  override begin(info: TraceInfo): void {
    const { program, arch, clock, harts } = info;
    const clockText = clock.guest ? `guest clock ${clock.name}` : `clock ${clock.name}`;
    this.write(`# ${program}, ${arch}, ${clockText}`);
    for (const hart of harts) this.hart(hart);
    this.write(`#${'TIME'.padStart(15)}${'DURATION'.padStart(12)}  ${hartWord(info).toUpperCase()}`);
  }

  override hart(hart: HartInfo): void {
    this.write(`# [${String(hart.number).padStart(2)}] is ${hart.name}`);
  }

  override event(event: TraceEvent): void {
    if (event.type !== 'sample') super.event(event);
  }

  override end(facts?: TraceFacts): void {
    this.openPending();
    if (facts) for (const line of probeLines(facts)) this.write(`# ${line}`);
    this.out.close();
  }

  protected override comment(event: AboutAll): string {
    const text = super.comment(event);
    if (event.type === 'gap') return `${text}: ${timeText(event.to - event.from)}`;
    return event.type === 'reset' ? `${text} at ${micros(event.time)} us` : text;
  }

  protected level(begin: AnyBegin): number {
    const { thread } = begin;
    if (thread && !this.#threads.has(thread)) {
      this.#threads.add(thread);
      this.write(`# [..:${thread.key}] is on ${threadText(thread)}`);
    }
    const around = this.open.of(begin.around);
    return around ? around.indent + 1 : this.open.on(begin).length;
  }

  protected called(text: TextBytes, begin: AnyBegin): void {
    text.piece(callName(begin));
    if (begin.type === 'poll-begin') {
      if (begin.state === undefined) return;
      text.piece(FROM);
      text.visible(stateText(begin.state));
      return;
    }
    text.byte(OPEN_ARGUMENTS);
    if (begin.arguments.length > 0) text.visible(argumentsText(begin.arguments));
    text.byte(CLOSE_ARGUMENTS);
  }

  protected whole(end: AnyEnd): string {
    if (end.type === 'poll-end') return this.#resultText(end);
    if (end.type !== 'call-end') return ' = lost';
    return end.result === undefined ? '' : ` = ${end.result}`;
  }

  protected closed(text: TextBytes, begin: AnyBegin, end: AnyEnd): void {
    text.byte(CLOSE);
    text.visible(this.whole(end));
    text.piece(COMMENT);
    text.piece(callName(begin));
    this.stop(text, ' */');
  }

  protected orphan(end: AnyEnd): void {
    const text = this.start(end, end.time, undefined, this.open.on(end).length);
    text.piece(callName(end));
    this.stop(text, this.whole(end));
  }

  #resultText(end: PollEnd): string {
    const chain = this.#chains.text(end.chain);
    if (chain !== '') return ` = ${end.result}, awaits ${chain}`;
    return end.result === 'pending' && end.state ? ` = pending, ${stateText(end.state)}` : ` = ${end.result}`;
  }

  protected start({ hart, thread }: Track, time: number, duration: number | undefined, indent: number): TextBytes {
    const text = this.out.startText();
    const from = text.length;
    text.micros(time, MICROS);
    text.piece(UNIT);
    const spent = duration === undefined ? '' : timeText(duration);
    text.blanks(Math.max(0, SPENT - spent.length));
    text.text(spent);
    text.piece(GAP);
    const track = text.length - from;
    text.byte(OPEN_TRACK);
    if (hart < 10) text.byte(BLANK);
    text.number(hart);
    if (thread !== undefined) {
      text.byte(COLON);
      text.number(thread.key);
    }
    text.piece(TRACK_END);
    text.blanks(2 * indent);
    const { parts } = this;
    parts.track = track;
    parts.text = text.length - from;
    parts.level = indent;
    parts.number = thread?.key ?? hart;
    return text;
  }
}

/** Characters of a time, and of a duration. */
const MICROS = 13;
const SPENT = 12;
const UNIT = encoded(' us');
const GAP = encoded('  ');
const OPEN_TRACK = 0x5b;
const TRACK_END = encoded(']  ');
const COMMENT = encoded(' /* ');
const FROM = encoded(' from ');
const BLANK = 0x20;
const COLON = 0x3a;
const CLOSE = 0x7d;
const OPEN_ARGUMENTS = 0x28;
const CLOSE_ARGUMENTS = 0x29;

function micros(nanos: number): string {
  return `${Math.floor(nanos / 1000)}.${String(nanos % 1000).padStart(3, '0')}`;
}

/** Those that everybody expects are a number. The others have a line each. */
function probeLines(facts: TraceFacts): string[] {
  const isUsual = ({ engine, why, extra }: ProbeFact): boolean =>
    engine === 'target' && why === undefined && extra === undefined;
  const usual = facts.probes.filter(isUsual).length;
  const others = engineTexts({ ...facts, probes: facts.probes.filter((probe) => !isUsual(probe)) });
  const lines = others.map(([probe, engine]) => `${probe}: ${engine}`);
  return usual > 0 ? [`${plural(usual, 'probe')} without stops`, ...lines] : lines;
}
